//! From a request to its servant: all adapters of an ORB, and the way of a message through them.
//!
//! Opens no socket: a driver hands in messages and a place for the replies.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, RwLock};

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{LocateStatus, Message, Request, Response};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{CODE_SETS, CodeSetContext, ServiceContext};
use ironorb_giop::{Encoding, TransmissionCodeSets, Version};

use crate::generated::call::Responder;
use crate::generated::{Call, Raised};
use crate::invoke::servant_panicked;
use crate::orb::OrbCore;
use crate::poa::key::{self, Nonce, ParsedKey, Slot};
use crate::poa::{Naming, PoaInner, Refusal, Upcall, not_exist};
use crate::sync::{read, write};

/// Where the replies of one connection are written.
pub(crate) trait ReplySink {
    /// Lets `write` write to the connection, then sees to it that it is sent.
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection));

    /// The same place for an answer that is written after the upcall, from any thread. The connection counts the
    /// request as in progress until it is dropped. `None` when as many answers as it may owe are outstanding.
    fn later(&self) -> Option<Box<dyn ReplySink + Send>>;
}

/// What an adapter remembers of one connection: its code sets. Starts as ISO 8859-1 and no wide characters, which
/// holds until the client tells its choice (CORBA 3.3 part 2, 7.10.2.5).
#[derive(Debug)]
pub(crate) struct Session {
    code_sets: AtomicU8,
}

impl Default for Session {
    fn default() -> Self {
        Session { code_sets: AtomicU8::new(TransmissionCodeSets::UNNEGOTIATED.to_octet()) }
    }
}

impl Session {
    /// The code sets of a request, by what it says or an earlier one said; `None` when they are none that we speak.
    #[inline]
    fn code_sets(&self, request: &Request<'_>) -> Option<TransmissionCodeSets> {
        match request.contexts.find(CODE_SETS) {
            None if request.version == Version::V1_0 => Some(TransmissionCodeSets::UNNEGOTIATED),
            None => Some(TransmissionCodeSets::from_octet(self.code_sets.load(Ordering::Relaxed))),
            Some(context) => self.agree(context),
        }
    }

    #[cold]
    fn agree(&self, context: ServiceContext<'_>) -> Option<TransmissionCodeSets> {
        let sets = CodeSetContext::decode(context.data).ok()?.transmission()?;
        self.code_sets.store(sets.to_octet(), Ordering::Relaxed);
        Some(sets)
    }
}

/// All adapters of an ORB.
pub(crate) struct Adapter {
    nonce: Nonce,
    table: RwLock<Table>,
}

#[derive(Default)]
struct Table {
    slots: Vec<(u32, Option<Arc<PoaInner>>)>,
    by_path: HashMap<Vec<u8>, Arc<PoaInner>>,
    /// Keys of the application's choice, such as `NameService`, and the keys that they stand for.
    aliases: HashMap<Vec<u8>, Vec<u8>>,
}

impl Adapter {
    pub(crate) fn new(nonce: u64) -> Self {
        Adapter { nonce: Nonce(nonce), table: RwLock::default() }
    }

    pub(crate) fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// Adds an adapter; `None` when its path is taken.
    pub(crate) fn register(
        &self,
        path: Vec<u8>,
        make: impl FnOnce(Slot) -> Arc<PoaInner>,
    ) -> Option<Arc<PoaInner>> {
        let mut table = write(&self.table);
        if table.by_path.contains_key(&path) {
            return None;
        }
        let index = match table.slots.iter().position(|(_, poa)| poa.is_none()) {
            Some(index) => index,
            None => {
                table.slots.push((0, None));
                table.slots.len() - 1
            }
        };
        let poa = make(Slot { index: index as u32, generation: table.slots[index].0 });
        table.slots[index].1 = Some(poa.clone());
        table.by_path.insert(path, poa.clone());
        Some(poa)
    }

    pub(crate) fn unregister(&self, slot: Slot, path: &[u8]) {
        let mut table = write(&self.table);
        if let Some((generation, poa)) = table.slots.get_mut(slot.index as usize)
            && *generation == slot.generation
        {
            *generation = generation.wrapping_add(1);
            *poa = None;
            table.by_path.remove(path);
        }
    }

    /// From now on a plain key stands for one of ours.
    pub(crate) fn set_alias(&self, plain: Vec<u8>, key: Vec<u8>) {
        write(&self.table).aliases.insert(plain, key);
    }

    /// The key that a plain key stands for; any other key as it is.
    pub(crate) fn without_alias(&self, key: Vec<u8>) -> Vec<u8> {
        read(&self.table).aliases.get(&key).cloned().unwrap_or(key)
    }

    /// Passes a request for this key through to its servant; may wait where a manager holds requests.
    #[inline]
    pub(crate) fn begin_upcall(&self, key: &[u8]) -> Result<Upcall, Refusal> {
        match key::parse(key) {
            ParsedKey::Slot { nonce, poa, object } => {
                if nonce != self.nonce {
                    return Err(not_exist(MinorCode::STALE_KEY));
                }
                let found = {
                    let table = read(&self.table);
                    match table.slots.get(poa.index as usize) {
                        Some((generation, Some(found))) if *generation == poa.generation => {
                            // Mostly nothing is in the way, and then the table's lock spares a count of the
                            // adapter's users.
                            if let Some(upcall) = found.begin_upcall_now(Naming::Slot(object)) {
                                return Ok(upcall);
                            }
                            found.clone()
                        }
                        _ => return Err(not_exist(MinorCode::NO_SUCH_ADAPTER)),
                    }
                };
                found.begin_upcall(Naming::Slot(object))
            }
            ParsedKey::Path { nonce, path, id } => {
                if nonce != self.nonce && nonce != Nonce::PERSISTENT {
                    return Err(not_exist(MinorCode::STALE_KEY));
                }
                if let Some(found) = read(&self.table).by_path.get(path)
                    && found.accepts(nonce)
                    && let Some(upcall) = found.begin_upcall_now(Naming::Id(id))
                {
                    return Ok(upcall);
                }
                let find =
                    || read(&self.table).by_path.get(path).filter(|found| found.accepts(nonce)).cloned();
                match self.find_also_later(find)? {
                    Some(found) => found.begin_upcall(Naming::Id(id)),
                    None => Err(not_exist(MinorCode::NO_SUCH_ADAPTER)),
                }
            }
            ParsedKey::Foreign => {
                match self.find_also_later(|| read(&self.table).aliases.get(key).cloned())? {
                    // An alias never leads to another alias: it is made from an object of ours.
                    Some(target) if key::parse(&target) != ParsedKey::Foreign => self.begin_upcall(&target),
                    _ => Err(not_exist(MinorCode::NO_SUCH_OBJECT)),
                }
            }
        }
    }

    /// Looks, and when nothing is found while the root adapter's manager holds requests, looks again when it no
    /// longer does: the server is starting, and clients of its earlier run must not be told that their objects
    /// are gone.
    #[inline]
    fn find_also_later<T>(&self, find: impl Fn() -> Option<T>) -> Result<Option<T>, Refusal> {
        match find() {
            None => {
                self.wait_while_starting()?;
                Ok(find())
            }
            found => Ok(found),
        }
    }

    #[cold]
    fn wait_while_starting(&self) -> Result<(), Refusal> {
        let root = read(&self.table).by_path.get(ROOT_PATH).cloned();
        match root {
            Some(root) => root.wait_while_holding().map_err(Refusal::Exception),
            None => Ok(()),
        }
    }

    /// True when a key was made by this process, or is persistent or plain and known here.
    pub(crate) fn knows(&self, object_key: &[u8]) -> Ownership {
        match key::parse(object_key) {
            ParsedKey::Slot { nonce, .. } | ParsedKey::Path { nonce, .. } if nonce == self.nonce => {
                Ownership::Ours
            }
            ParsedKey::Path { nonce: Nonce::PERSISTENT, path, .. }
                if read(&self.table).by_path.contains_key(path) =>
            {
                Ownership::IfAtOurAddress
            }
            ParsedKey::Foreign if read(&self.table).aliases.contains_key(object_key) => {
                Ownership::IfAtOurAddress
            }
            _ => Ownership::NotOurs,
        }
    }

    /// Carries out a Request message. Never panics; a servant's panic becomes UNKNOWN.
    #[inline]
    pub(crate) fn serve_request(
        &self,
        message: &Message,
        session: &Session,
        sink: &dyn ReplySink,
        orb: &Arc<OrbCore>,
    ) {
        let request = match message.parse_request() {
            Ok(request) => request,
            Err(_) => return sink.with(&mut ServerConnection::protocol_error),
        };
        let agreed = session.code_sets(&request);
        let code_sets = agreed.unwrap_or(TransmissionCodeSets::UNNEGOTIATED);
        let encoding = Encoding::native(request.version, code_sets);
        let wanted = request.response == Response::SyncWithTarget;
        let responder = Responder::new(sink, encoding, request.id, wanted);
        if request.response == Response::SyncWithServer {
            responder.acknowledge();
        }
        if agreed.is_none() {
            return refuse(&responder, Refusal::Exception(incompatible_code_sets()));
        }
        if let Some(demanded) = orb.config.addressing_demanded
            && demanded != request.addressing
            && request.version == Version::V1_2
        {
            responder.need_addressing(demanded);
            return;
        }
        let upcall = match self.begin_upcall(request.object_key) {
            Ok(upcall) => upcall,
            Err(refusal) => return refuse(&responder, refusal),
        };
        let arguments = request.body.with_code_sets(code_sets).reader().with_environment(&**orb);
        let call = Call::new(request.operation, arguments, &responder);
        let _current = upcall.enter();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            upcall.servant().dispatch(call);
        }));
        if outcome.is_err() && !responder.is_answered() {
            responder.raise(Raised::System(&servant_panicked()));
        }
    }

    /// Answers a LocateRequest message.
    #[cold]
    pub(crate) fn serve_locate(&self, message: &Message, sink: &dyn ReplySink, orb: &OrbCore) {
        let Ok(request) = message.parse_locate_request() else {
            return sink.with(&mut ServerConnection::protocol_error);
        };
        let encoding = Encoding::native(request.version, TransmissionCodeSets::UNNEGOTIATED);
        if let Some(demanded) = orb.config.addressing_demanded
            && demanded != request.addressing
            && request.version == Version::V1_2
        {
            return sink.with(&mut |connection| {
                let status = LocateStatus::NeedsAddressingMode;
                // A number can always be written.
                let _ = connection.locate_reply(encoding, request.id, status, |w| w.put(&demanded));
            });
        }
        let found = self.begin_upcall(request.object_key).map(drop);
        sink.with(&mut |connection| {
            let written = match &found {
                Ok(()) => connection.locate_reply(encoding, request.id, LocateStatus::ObjectHere, |_| Ok(())),
                Err(Refusal::Forward(ior)) => {
                    connection.locate_reply(encoding, request.id, LocateStatus::ObjectForward, |w| w.put(ior))
                }
                Err(Refusal::Exception(e)) if e.kind == SystemExceptionKind::ObjectNotExist => {
                    connection.locate_reply(encoding, request.id, LocateStatus::UnknownObject, |_| Ok(()))
                }
                Err(Refusal::Exception(e)) if request.version == Version::V1_2 => {
                    connection.locate_reply(encoding, request.id, LocateStatus::SystemException, |w| w.put(e))
                }
                // Before 1.2 there is no way to say why; the call itself will be told.
                Err(Refusal::Exception(_)) => {
                    connection.locate_reply(encoding, request.id, LocateStatus::ObjectHere, |_| Ok(()))
                }
            };
            debug_assert!(written.is_ok(), "an IOR that was made can be written");
        });
    }
}

/// Whether a key names an object of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It does, wherever the reference says it is.
    Ours,
    /// It does if the address is one of ours.
    IfAtOurAddress,
    /// It does not.
    NotOurs,
}

/// The path of the root adapter.
const ROOT_PATH: &[u8] = &[];

/// The client chose a set of strings that we do not list (CORBA 3.3 part 2, 7.10.2.6).
#[cold]
fn incompatible_code_sets() -> SystemException {
    SystemException::new(
        SystemExceptionKind::CodesetIncompatible,
        MinorCode::CODESET_NOT_SUPPORTED,
        CompletionStatus::No,
    )
}

#[cold]
fn refuse(responder: &Responder<'_>, refusal: Refusal) {
    match refusal {
        Refusal::Forward(ior) => {
            responder.forward(&ior);
        }
        Refusal::Exception(e) => {
            responder.raise(Raised::System(&e));
        }
    }
}
