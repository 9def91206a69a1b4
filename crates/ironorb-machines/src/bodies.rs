//! What requests and replies say: nothing. Bodies have their scenario's size, and all their octets are zeros, which the
//! servants take and never look at.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ironorb::engine::Arguments;
use ironorb::generated::{Misuse, Operation, Writer};
use ironorb::{Call, Replied, Servant};
use ironorb_model::scenario;

/// The interface of all objects of a scenario.
pub(super) const REPOSITORY_ID: &str = "IDL:ironorb.sim/Body:1.0";

/// The servant of all objects of a server.
pub(super) struct Bodies(Vec<Body>);

struct Body {
    operation: String,
    request_octets: usize,
    reply_octets: usize,
}

impl Bodies {
    pub(super) fn of(server: &scenario::Server) -> Bodies {
        let body = |operation: &scenario::Operation| Body {
            operation: operation.name.clone(),
            request_octets: operation.request_octets as usize,
            reply_octets: operation.reply_octets as usize,
        };
        Bodies(server.operations.iter().map(body).collect())
    }
}

impl Servant for Bodies {
    fn repository_ids(&self) -> &[&'static str] {
        &[REPOSITORY_ID]
    }

    fn dispatch(&self, mut call: Call<'_>) -> Replied {
        let Some(body) = self.0.iter().find(|body| body.operation.as_bytes() == call.operation()) else {
            return call.standard_operation(&[REPOSITORY_ID]);
        };
        match call.arguments().read_bytes(body.request_octets) {
            Ok(_) => call.reply(|w| write_zeros(w, body.reply_octets)),
            Err(e) => call.refuse_arguments(e),
        }
    }
}

/// Arguments of so many octets.
pub(super) fn arguments(octets: u32) -> Arguments {
    Box::new(move |w| write_zeros(w, octets as usize))
}

fn write_zeros(w: &mut Writer<'_>, octets: usize) -> Result<(), Misuse> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut left = octets;
    while left > 0 {
        let piece = left.min(ZEROS.len());
        w.write_bytes(&ZEROS[..piece]);
        left -= piece;
    }
    Ok(())
}

/// The operation in the form of stubs. Each name takes memory once a process, however many scenarios have it.
pub(super) fn operation(of: &scenario::Operation) -> &'static Operation<'static> {
    static KNOWN: Mutex<BTreeMap<(String, bool), &'static Operation<'static>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry((of.name.clone(), of.is_oneway)).or_insert_with(|| {
        let name: &'static str = Box::leak(of.name.clone().into_boxed_str());
        let operation = if of.is_oneway { Operation::oneway(name) } else { Operation::twoway(name) };
        Box::leak(Box::new(operation))
    })
}
