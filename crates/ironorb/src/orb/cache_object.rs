//! The object that opens sessions for clients' caches and tells them what has changed.

use std::sync::{Arc, Weak};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use crate::cache::wire::{CACHE_ID, CACHE_KEY, OPEN, PROBE, WAIT, read_probe, write_answer, write_open};
use crate::driver::cache::desk::ProbeReply;
use crate::driver::orb_core::OrbCore;
use crate::object::ObjectRef;
use crate::poa::servant::{Call, Replied, Servant};
use crate::poa::{AdapterHost, PoaError};
use crate::status;

/// The object, which is made when a client asks for a cached state for the first time.
pub(super) fn object(orb: &Arc<OrbCore>) -> Result<ObjectRef, PoaError> {
    let root = orb.present_root().ok_or(PoaError::Destroyed)?;
    let poa = status::adapter(&root)?;
    let mut made = orb.cache_object.lock();
    let id = match &*made {
        Some(id) => id.clone(),
        None => {
            let id = poa.activate_object(Arc::new(CacheServant(Arc::downgrade(orb))))?;
            poa.bind_plain_key(CACHE_KEY, &id)?;
            made.insert(id).clone()
        }
    };
    drop(made);
    poa.id_to_reference(&id)
}

struct CacheServant(Weak<OrbCore>);

impl Servant for CacheServant {
    fn repository_ids(&self) -> &[&'static str] {
        &[CACHE_ID]
    }

    fn dispatch(&self, mut call: Call<'_>) -> Replied {
        let Some(orb) = self.0.upgrade() else { return call.raise(&gone()) };
        let cache = orb.adapter.cache();
        let now = orb.steady();
        match call.operation() {
            operation if operation == OPEN.as_bytes() => {
                let opened = orb.adapter.open_cache_session(now);
                call.reply(|w| {
                    write_open(opened, w);
                    Ok(())
                })
            }
            operation if operation == PROBE.as_bytes() => match read_probe(call.arguments()) {
                Ok(probe) => {
                    // No cell is waited for while the reply is written.
                    match cache.answer(&probe, now, call.encoding()) {
                        Ok(answer) => call.reply(|w| write_answer(&answer, w)),
                        Err(misuse) => call.raise(&SystemException::from(misuse)),
                    }
                }
                Err(e) => call.refuse_arguments(e),
            },
            operation if operation == WAIT.as_bytes() => {
                let encoding = call.encoding();
                let wait = |probe, reply: ProbeReply| orb.news_desk.wait(cache, probe, encoding, reply);
                call.deferred(read_probe, wait, |w, answer| write_answer(answer, w))
            }
            _ => call.standard_operation(&[]),
        }
    }
}

#[cold]
fn gone() -> SystemException {
    let kind = SystemExceptionKind::ObjectNotExist;
    SystemException::new(kind, MinorCode::NO_SUCH_OBJECT, CompletionStatus::No)
}
