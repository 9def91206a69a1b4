//! From a request to its servant: all adapters of an ORB, and the way of a message through them.
//!
//! Opens no socket: a driver hands in messages and a place for the replies.

mod postponed;

pub(crate) use postponed::Postponed;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::message::{LocateRequest, LocateStatus, Message, Request, Response};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{BI_DIR_IIOP, CODE_SETS, CodeSetContext, ListenPoint, ServiceContext};
use ironorb_giop::{Encoding, TransmissionCodeSets, Version};

use crate::client::Errands;
use crate::config::{OrbConfig, ServerConcurrency};
use crate::generated::call::Responder;
use crate::generated::{Call, Raised};
use crate::interceptor::{FreshSlots, Interception, Target};
use crate::invoke::servant_panicked;
use crate::orb::OrbCore;
use crate::poa::key::{self, Nonce, ParsedKey, Slot};
use crate::poa::{
    Gate, MainThread, MainThreadRequest, ManagerState, Managers, Naming, OnHold, PoaCurrent, PoaInner,
    PoaManager, Refusal, Upcall, current_object, not_exist,
};
use crate::probe::{self, Stage};
use crate::sync::{read, write};

/// Where the replies of one connection are written.
pub(crate) trait ReplySink {
    /// Lets `write` write to the connection, then sees to it that it is sent.
    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection));

    /// Sends what it can of what `with` would send next, from where it lies; gives the number of bytes. Only while `with`
    /// lets something be written, and never waits.
    fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        let _ = pieces;
        0
    }

    /// Ends the connection at once: it can carry nothing more.
    fn cut_off(&self) {}

    /// The same place for an answer that is written after the upcall, from any thread. The connection counts the
    /// request as in progress until it is dropped. `None` when as many answers as it may owe are outstanding.
    fn later(&self) -> Option<Box<dyn ReplySink + Send>>;

    /// A number for whoever sends the requests, the same for all from one connection: they keep their order when they
    /// must wait. `None` for a caller in this process, whose thread waits itself.
    fn client(&self) -> Option<u64> {
        None
    }

    /// The client says that it listens there and may be called over this connection (CORBA 3.3 part 2, 9.8). Only
    /// where the ORB's configuration wants that.
    fn use_both_ways(&self, listen_points: &[ListenPoint]) {
        let _ = listen_points;
    }
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
    managers: Managers,
    main_thread: MainThread,
    threads_for_held: Arc<Errands>,
    /// How long a request waits for what other threads make; `None` for ever.
    patience: Option<Duration>,
}

#[derive(Default)]
struct Table {
    slots: Vec<(u32, Option<Arc<PoaInner>>)>,
    next_instance: u32,
    by_path: HashMap<Vec<u8>, Arc<PoaInner>>,
    /// Paths at which adapter activators are making adapters.
    in_the_making: HashMap<Vec<u8>, Arc<Gate>>,
    /// Adapters at and below these paths, which only their makers may see yet.
    unfinished: HashMap<Vec<u8>, Arc<PoaInner>>,
    /// Keys of the application's choice, such as `NameService`, and the keys that they stand for.
    aliases: HashMap<Vec<u8>, Vec<u8>>,
    /// Whose objects are meant by keys that nobody here has made.
    takes_other_keys: Option<Arc<PoaInner>>,
}

impl Adapter {
    pub(crate) fn new(nonce: u64, config: &OrbConfig) -> Self {
        let threads = match config.concurrency {
            ServerConcurrency::ThreadPerConnection => config.threads_per_connection_max,
            ServerConcurrency::LeaderFollowers { threads } => threads,
        };
        Adapter {
            patience: config.call_timeout,
            threads_for_held: Errands::new(threads),
            nonce: Nonce(nonce),
            table: RwLock::default(),
            managers: Managers::default(),
            main_thread: MainThread::default(),
        }
    }

    pub(crate) fn nonce(&self) -> Nonce {
        self.nonce
    }

    pub(crate) fn managers(&self) -> &Managers {
        &self.managers
    }

    pub(crate) fn main_thread(&self) -> &MainThread {
        &self.main_thread
    }

    /// Who carries out requests that were held, when they are no longer.
    pub(crate) fn threads_for_held(&self) -> &Arc<Errands> {
        &self.threads_for_held
    }

    /// Adds an adapter, made for a slot and an instance number; `None` when its path is taken.
    pub(crate) fn register(
        &self,
        path: Vec<u8>,
        make: impl FnOnce(Slot, u32) -> Arc<PoaInner>,
    ) -> Option<Arc<PoaInner>> {
        let mut table = write(&self.table);
        if table.by_path.contains_key(&path) || table.unfinished.contains_key(&path) {
            return None;
        }
        let index = match table.slots.iter().position(|(_, poa)| poa.is_none()) {
            Some(index) => index,
            None => {
                table.slots.push((0, None));
                table.slots.len() - 1
            }
        };
        table.next_instance = table.next_instance.wrapping_add(1);
        let slot = Slot { index: index as u32, generation: table.slots[index].0 };
        let poa = make(slot, table.next_instance);
        table.slots[index].1 = Some(poa.clone());
        if table.in_the_making.keys().any(|making| path.starts_with(making)) {
            table.unfinished.insert(path, poa.clone());
        } else {
            table.by_path.insert(path, poa.clone());
        }
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
            table.unfinished.remove(path);
            table.takes_other_keys.take_if(|taker| taker.slot == slot);
        }
    }

    /// The adapter at a path. Adapter activators are asked for those on the way that do not exist; where another thread is
    /// at that, this one waits.
    #[cold]
    pub(crate) fn find_or_activate(
        &self,
        path: &[u8],
        activation: Activation<'_>,
    ) -> Result<Option<Arc<PoaInner>>, Refusal> {
        loop {
            let step = read(&self.table).next_step(path);
            let (parent, name, end) = match step {
                Step::Found(poa) => return Ok(Some(poa)),
                Step::Nowhere => return Ok(None),
                Step::Wait(gate) => {
                    if gate.wait(self.patience) {
                        continue;
                    }
                    return Err(Refusal::Exception(SystemException::new(
                        SystemExceptionKind::Transient,
                        MinorCode::TRANSIENT_DISCARDED,
                        CompletionStatus::No,
                    )));
                }
                Step::Ask { parent, name, end } => (parent, name, end),
            };
            // Before anything is in the making: this may wait for the manager.
            let Some(inquiry) = parent.inquire(activation)? else { return Ok(None) };
            let keeper = Gate::of_this_thread();
            {
                let mut table = write(&self.table);
                if table.in_the_making.contains_key(&path[..end]) || table.by_path.contains_key(&path[..end])
                {
                    continue; // another thread was quicker
                }
                table.in_the_making.insert(path[..end].to_vec(), keeper.gate().clone());
            }
            let made = inquiry.ask(&name);
            let is_there = write(&self.table).finish(&path[..end]);
            drop(keeper);
            match made {
                Ok(true) if is_there => {}
                Ok(_) => return Ok(None),
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// From now on a plain key stands for one of ours.
    pub(crate) fn set_alias(&self, plain: Vec<u8>, key: Vec<u8>) {
        write(&self.table).aliases.insert(plain, key);
    }

    /// From now on keys that nobody here has made are ids of objects of this adapter.
    pub(crate) fn take_other_keys(&self, poa: &Arc<PoaInner>) {
        write(&self.table).takes_other_keys = Some(poa.clone());
    }

    /// Who takes a key, if nobody here has made it.
    #[cold]
    fn taker_of(&self, key: &[u8]) -> Option<Arc<PoaInner>> {
        let table = read(&self.table);
        let taker = table.takes_other_keys.as_ref()?;
        let is_ours = match key::parse(key) {
            ParsedKey::Slot { nonce, .. } => nonce == self.nonce,
            ParsedKey::Path { nonce, path, .. } => {
                nonce == self.nonce
                    || (nonce == Nonce::PERSISTENT && !matches!(table.next_step(path), Step::Nowhere))
            }
            ParsedKey::Foreign => table.aliases.contains_key(key),
        };
        (!is_ours).then(|| taker.clone())
    }

    /// The key that a plain key stands for; any other key as it is.
    pub(crate) fn without_alias(&self, key: Vec<u8>) -> Vec<u8> {
        read(&self.table).aliases.get(&key).cloned().unwrap_or(key)
    }

    /// Passes a request of this process for this key through to its servant; waits where a manager holds requests.
    /// `operation` is what a servant locator is told.
    #[inline]
    pub(crate) fn begin_upcall(&self, key: &[u8], operation: &[u8]) -> Result<Upcall, Refusal> {
        match self.begin_upcall_now(key) {
            Some(upcall) => Ok(upcall),
            None => self.begin_upcall_slowly(key, operation, OnHold::Wait),
        }
    }

    /// The same where nothing is in the way, as mostly nothing is. Adapters are used under the table's lock, which spares a
    /// count of their users.
    #[inline]
    pub(crate) fn begin_upcall_now(&self, key: &[u8]) -> Option<Upcall> {
        match key::parse(key) {
            ParsedKey::Slot { nonce, poa, object } if nonce == self.nonce => {
                read(&self.table).in_slot(poa)?.begin_upcall_now(|objects| objects.in_slot(object))
            }
            ParsedKey::Path { nonce, instance, path, id } => {
                let table = read(&self.table);
                let found = table.by_path.get(path).filter(|found| found.accepts(nonce, instance))?;
                found.begin_upcall_now(|objects| objects.by_id(id))
            }
            ParsedKey::Slot { .. } | ParsedKey::Foreign => None,
        }
    }

    #[cold]
    fn begin_upcall_slowly(
        &self,
        key: &[u8],
        operation: &[u8],
        on_hold: OnHold<'_>,
    ) -> Result<Upcall, Refusal> {
        if let Some(taker) = self.taker_of(key) {
            return taker.begin_upcall(Naming::Id(key), operation, on_hold);
        }
        match key::parse(key) {
            ParsedKey::Slot { nonce, poa, object } => {
                if nonce != self.nonce {
                    return Err(not_exist(MinorCode::STALE_KEY));
                }
                let found = read(&self.table).in_slot(poa).cloned();
                let found = found.ok_or_else(|| not_exist(MinorCode::NO_SUCH_ADAPTER))?;
                found.begin_upcall(Naming::Slot(object), operation, on_hold)
            }
            ParsedKey::Path { nonce, instance, path, id } => {
                let found = self.find_by_path(nonce, instance, path, on_hold)?;
                found.begin_upcall(Naming::Id(id), operation, on_hold)
            }
            ParsedKey::Foreign => {
                match self.find_also_later(on_hold, || read(&self.table).aliases.get(key).cloned())? {
                    // An alias never leads to another alias: it is made from an object of ours.
                    Some(target) if key::parse(&target) != ParsedKey::Foreign => {
                        self.begin_upcall_slowly(&target, operation, on_hold)
                    }
                    _ => Err(not_exist(MinorCode::NO_SUCH_OBJECT)),
                }
            }
        }
    }

    /// Whether the adapter of this key is there, as far as is known without asking anybody.
    fn has_adapter(&self, key: &[u8]) -> bool {
        let table = read(&self.table);
        // An alias never leads to another alias.
        let key = table.aliases.get(key).map_or(key, Vec::as_slice);
        match key::parse(key) {
            ParsedKey::Slot { nonce, poa, .. } => nonce == self.nonce && table.in_slot(poa).is_some(),
            ParsedKey::Path { nonce, instance, path, .. } => {
                table.visible(path).is_some_and(|found| found.accepts(nonce, instance))
            }
            ParsedKey::Foreign => false,
        }
    }

    /// The adapter that a path key names.
    #[cold]
    fn find_by_path(
        &self,
        nonce: Nonce,
        instance: u32,
        path: &[u8],
        on_hold: OnHold<'_>,
    ) -> Result<Arc<PoaInner>, Refusal> {
        if nonce != self.nonce && nonce != Nonce::PERSISTENT {
            return Err(not_exist(MinorCode::STALE_KEY));
        }
        let find = || {
            let table = read(&self.table);
            table.visible(path).filter(|found| found.accepts(nonce, instance)).cloned()
        };
        if let Some(found) = self.find_also_later(on_hold, find)? {
            return Ok(found);
        }
        if nonce == Nonce::PERSISTENT
            && let Some(found) = self.find_or_activate(path, Activation::ForRequest(on_hold))?
            && found.accepts(nonce, instance)
        {
            return Ok(found);
        }
        Err(not_exist(MinorCode::OBJECT_NOT_EXIST_NO_ADAPTER))
    }

    /// Whether there is an object for this key, as a LocateRequest asks.
    #[cold]
    pub(crate) fn locate(&self, key: &[u8], on_hold: OnHold<'_>) -> Result<(), Refusal> {
        match self.begin_upcall_slowly(key, b"_non_existent", on_hold) {
            Ok(upcall) => match upcall.ask(|servant| servant.is_here(upcall.object_id())) {
                Ok(true) => Ok(()),
                Ok(false) => Err(not_exist(MinorCode::NO_SUCH_OBJECT)),
                Err(e) => Err(Refusal::Exception(e)),
            },
            // Its own thread would know more, but nobody waits for that.
            Err(Refusal::NotThisThread(poa)) => match key::parse(&self.without_alias(key.to_vec())) {
                ParsedKey::Slot { object, .. } => poa.may_have(Naming::Slot(object)),
                ParsedKey::Path { id, .. } => poa.may_have(Naming::Id(id)),
                ParsedKey::Foreign => Ok(()),
            },
            Err(refusal) => Err(refusal),
        }
    }

    /// Whether a request for this key would wait for a manager that holds requests. For a driver with a single thread,
    /// which must not.
    #[cold]
    pub(crate) fn is_held(&self, key: &[u8]) -> bool {
        let table = read(&self.table);
        let is_holding = |poa: &Arc<PoaInner>| poa.manager().state() == ManagerState::Holding;
        let is_starting = || table.by_path.get(ROOT_PATH).is_some_and(is_holding);
        match key::parse(key) {
            ParsedKey::Slot { nonce, poa, .. } => match table.slots.get(poa.index as usize) {
                Some((generation, Some(found))) => {
                    nonce == self.nonce && *generation == poa.generation && is_holding(found)
                }
                _ => false,
            },
            ParsedKey::Path { path, .. } => match table.visible(path) {
                Some(found) => is_holding(found),
                None => is_starting(),
            },
            ParsedKey::Foreign => match table.aliases.get(key).cloned() {
                Some(target) if key::parse(&target) != ParsedKey::Foreign => {
                    drop(table);
                    self.is_held(&target)
                }
                _ => is_starting(),
            },
        }
    }

    /// Looks, and when nothing is found while the root adapter's manager holds requests, looks again when it no
    /// longer does: the server is starting, and clients of its earlier run must not be told that their objects
    /// are gone.
    #[inline]
    fn find_also_later<T>(
        &self,
        on_hold: OnHold<'_>,
        find: impl Fn() -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        match find() {
            None => {
                self.wait_while_starting(on_hold)?;
                Ok(find())
            }
            found => Ok(found),
        }
    }

    #[cold]
    fn wait_while_starting(&self, on_hold: OnHold<'_>) -> Result<(), Refusal> {
        let root = read(&self.table).by_path.get(ROOT_PATH).cloned();
        match root {
            Some(root) => root.wait_while_holding(on_hold),
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
                if !matches!(read(&self.table).next_step(path), Step::Nowhere) =>
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
        self.serve_begun(message, session, sink, orb, None);
    }

    /// Hears what a client tells of itself with a request, ahead of serving it.
    #[cold]
    pub(crate) fn take_note(
        &self,
        request: &Request<'_>,
        session: &Session,
        sink: &dyn ReplySink,
        orb: &OrbCore,
    ) {
        let agreed = session.code_sets(request);
        if agreed.is_some() && orb.config.bidirectional && request.version == Version::V1_2 {
            offer_both_ways(request, sink);
        }
    }

    /// The same for a request whose servant may have been found already.
    #[inline]
    pub(crate) fn serve_begun(
        &self,
        message: &Message,
        session: &Session,
        sink: &dyn ReplySink,
        orb: &Arc<OrbCore>,
        begun: Option<Upcall>,
    ) {
        let probe = probe::enter(Stage::Frame);
        let request = match message.parse_request() {
            Ok(request) => request,
            Err(_) => return sink.with(&mut ServerConnection::protocol_error),
        };
        drop(probe);
        let agreed = session.code_sets(&request);
        let code_sets = agreed.unwrap_or(TransmissionCodeSets::UNNEGOTIATED);
        let encoding = Encoding {
            bare_exceptions: orb.config.bare_exceptions,
            ..Encoding::native(request.version, code_sets)
        };
        let wanted = request.response == Response::SyncWithTarget;
        let is_intercepted = !orb.interceptors.server.is_empty();
        let _slots = is_intercepted.then(FreshSlots::enter);
        let (interception, instead) = is_intercepted.then(|| Interception::begin(orb, &request)).unzip();
        let responder = Responder::new(sink, encoding, request.id, wanted, interception.as_ref());
        if request.response == Response::SyncWithServer {
            responder.acknowledge();
        }
        if agreed.is_none() {
            responder.raise(Raised::System(&incompatible_code_sets()));
            return;
        }
        if let Some(demanded) = orb.config.other_addressing_demanded(request.version, request.addressing) {
            responder.need_addressing(demanded);
            return;
        }
        if orb.config.bidirectional && request.version == Version::V1_2 {
            offer_both_ways(&request, sink);
        }
        if let Some(Some(outcome)) = instead {
            return responder.end_instead(&outcome);
        }
        if let Err(obstacle) = self.carry_out(&request, code_sets, &responder, orb, begun, None) {
            postpone(obstacle, message, code_sets, &responder, orb);
        }
    }

    /// Takes a request to its servant, unless it must wait. `passed` is the manager that it has waited for.
    #[inline]
    fn carry_out(
        &self,
        request: &Request<'_>,
        code_sets: TransmissionCodeSets,
        responder: &Responder<'_>,
        orb: &Arc<OrbCore>,
        begun: Option<Upcall>,
        passed: Option<&PoaManager>,
    ) -> Result<(), Obstacle> {
        let probe = probe::enter(Stage::ObjectLookup);
        let upcall = match begun.or_else(|| self.begin_upcall_now(request.object_key)) {
            Some(upcall) => upcall,
            None => match self.begin_request(request, responder, passed) {
                Ok(upcall) => upcall,
                Err(refusal) => return refuse(responder, refusal),
            },
        };
        drop(probe);
        let arguments = request.body.with_code_sets(code_sets).reader().with_environment(&**orb);
        let call = Call::new(request.operation, arguments, responder);
        let _current = upcall.enter();
        if let Some(interception) = responder.interception()
            && let Some(outcome) = interception.found(target_of(&upcall))
        {
            responder.end_instead(&outcome);
            return Ok(());
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            upcall.servant().dispatch(call);
        }));
        if outcome.is_err() && !responder.is_answered() {
            responder.raise(Raised::System(&servant_panicked()));
        }
        Ok(())
    }

    #[cold]
    fn begin_request(
        &self,
        request: &Request<'_>,
        responder: &Responder<'_>,
        passed: Option<&PoaManager>,
    ) -> Result<Upcall, Refusal> {
        let on_hold = OnHold::of(responder.client(), passed);
        self.begin_upcall_slowly(request.object_key, request.operation, on_hold)
    }

    /// Answers a LocateRequest message.
    #[cold]
    pub(crate) fn serve_locate(&self, message: &Message, sink: &dyn ReplySink, orb: &Arc<OrbCore>) {
        let Ok(request) = message.parse_locate_request() else {
            return sink.with(&mut ServerConnection::protocol_error);
        };
        if let Some(demanded) = orb.config.other_addressing_demanded(request.version, request.addressing) {
            let encoding = encoding_of_locate(&request);
            return sink.with(&mut |connection| {
                let status = LocateStatus::NeedsAddressingMode;
                // A number can always be written.
                let _ = connection.locate_reply(encoding, request.id, status, |w| w.put(&demanded));
            });
        }
        let found = match self.locate(request.object_key, OnHold::of(sink.client(), None)) {
            Err(Refusal::Held(manager)) => match Postponed::locate(message, sink, orb) {
                Some(postponed) => return wait_for(postponed, Obstacle::Held(manager)),
                None => Err(nobody_takes_it().into()),
            },
            found => found,
        };
        answer_locate(sink, &request, &found);
    }
}

fn encoding_of_locate(request: &LocateRequest<'_>) -> Encoding {
    Encoding::native(request.version, TransmissionCodeSets::UNNEGOTIATED)
}

/// Writes what was found out for a LocateRequest.
fn answer_locate(sink: &dyn ReplySink, request: &LocateRequest<'_>, found: &Result<(), Refusal>) {
    let encoding = encoding_of_locate(request);
    sink.with(&mut |connection| {
        let written = match found {
            Ok(()) | Err(Refusal::NotThisThread(_) | Refusal::Held(_)) => {
                connection.locate_reply(encoding, request.id, LocateStatus::ObjectHere, |_| Ok(()))
            }
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

/// What a request must wait for, without its thread.
enum Obstacle {
    /// Only the main thread may make the upcall.
    OtherThread(Arc<PoaInner>),
    /// The manager holds requests.
    Held(PoaManager),
}

/// Has a request wait, with a copy of its message: the connection goes on.
#[cold]
fn postpone(
    obstacle: Obstacle,
    message: &Message,
    code_sets: TransmissionCodeSets,
    responder: &Responder<'_>,
    orb: &Arc<OrbCore>,
) {
    match Postponed::request(message, code_sets, responder, orb) {
        Some(postponed) => wait_for(postponed, obstacle),
        None => {
            responder.raise(Raised::System(&nobody_takes_it()));
        }
    }
}

fn wait_for(postponed: Postponed, obstacle: Obstacle) {
    if let Some(back) = postponed.wait_for(obstacle, None) {
        back.carry_out(None);
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

/// Takes note of where the client listens, if it says so.
#[cold]
fn offer_both_ways(request: &Request<'_>, sink: &dyn ReplySink) {
    // One that cannot be read is as good as none: the call itself has nothing to do with it.
    if let Some(context) = request.contexts.find(BI_DIR_IIOP)
        && let Ok(points) = ListenPoint::decode_all(context.data)
    {
        sink.use_both_ways(&points);
    }
}

/// The client chose a set of strings that we do not list (CORBA 3.3 part 2, 7.10.2.6).
#[cold]
fn incompatible_code_sets() -> SystemException {
    SystemException::new(
        SystemExceptionKind::CodesetIncompatible,
        MinorCode::CODESET_NOT_SUPPORTED,
        CompletionStatus::No,
    )
}

/// What interceptors may know of the servant that this thread is about to call.
#[cold]
fn target_of(upcall: &Upcall) -> Target {
    let repository_id = match current_object() {
        Some(object) => object.primary_interface().into_owned(),
        None => upcall.servant().repository_ids().first().copied().unwrap_or_default().to_owned(),
    };
    Target {
        object_id: PoaCurrent.object_id().map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
        adapter_name: PoaCurrent.poa().map(|poa| poa.adapter_name()).unwrap_or_default(),
        repository_id,
    }
}

#[cold]
fn refuse(responder: &Responder<'_>, refusal: Refusal) -> Result<(), Obstacle> {
    match refusal {
        Refusal::Forward(ior) => {
            responder.forward(&ior);
        }
        Refusal::Exception(e) => {
            responder.raise(Raised::System(&e));
        }
        Refusal::NotThisThread(poa) => return Err(Obstacle::OtherThread(poa)),
        Refusal::Held(manager) => return Err(Obstacle::Held(manager)),
    }
    Ok(())
}

/// Too many requests wait already, or the ORB is being shut down.
#[cold]
fn nobody_takes_it() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::TRANSIENT_DISCARDED, CompletionStatus::No)
}

/// For whom an adapter that does not exist is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Activation<'m> {
    /// A request: what the parent's manager says holds for it too.
    ForRequest(OnHold<'m>),
    /// The application asks.
    Direct,
}

/// What is next on the way to a path.
enum Step {
    Found(Arc<PoaInner>),
    /// Another thread makes an adapter on the way.
    Wait(Arc<Gate>),
    /// The parent's adapter activator may make the next one, whose path ends there.
    Ask {
        parent: Arc<PoaInner>,
        name: String,
        end: usize,
    },
    /// There is nobody to ask.
    Nowhere,
}

impl Table {
    /// The adapter in a slot, if it is still the one that the slot was given out for.
    #[inline]
    fn in_slot(&self, slot: Slot) -> Option<&Arc<PoaInner>> {
        match self.slots.get(slot.index as usize) {
            Some((generation, Some(found))) if *generation == slot.generation => Some(found),
            _ => None,
        }
    }

    /// An adapter, if this thread may see it.
    fn visible(&self, path: &[u8]) -> Option<&Arc<PoaInner>> {
        self.by_path.get(path).or_else(|| {
            let found = self.unfinished.get(path)?;
            let is_ours = |(making, gate): (&Vec<u8>, &Arc<Gate>)| path.starts_with(making) && gate.is_ours();
            self.in_the_making.iter().any(is_ours).then_some(found)
        })
    }

    fn next_step(&self, path: &[u8]) -> Step {
        if let Some(found) = self.visible(path) {
            return Step::Found(found.clone());
        }
        let Some(mut parent) = self.by_path.get(ROOT_PATH) else { return Step::Nowhere };
        let mut at = 0;
        while let Some((name, end)) = key::name_at(path, at) {
            if let Some(child) = self.visible(&path[..end]) {
                (parent, at) = (child, end);
                continue;
            }
            return match (self.in_the_making.get(&path[..end]), std::str::from_utf8(name)) {
                (Some(gate), _) if gate.is_ours() => Step::Nowhere,
                (Some(gate), _) => Step::Wait(gate.clone()),
                (None, Ok(name)) if parent.has_adapter_activator() => {
                    Step::Ask { parent: parent.clone(), name: name.to_owned(), end }
                }
                (None, _) => Step::Nowhere,
            };
        }
        Step::Nowhere
    }

    /// What was in the making is there for all, or is not made; which is told.
    fn finish(&mut self, path: &[u8]) -> bool {
        self.in_the_making.remove(path);
        // What is below another path that is still in the making stays unseen.
        let still: Vec<Vec<u8>> = self.in_the_making.keys().cloned().collect();
        let done: Vec<Vec<u8>> = self
            .unfinished
            .keys()
            .filter(|key| key.starts_with(path) && !still.iter().any(|making| key.starts_with(making)))
            .cloned()
            .collect();
        for path in done {
            if let Some(poa) = self.unfinished.remove(&path) {
                self.by_path.insert(path, poa);
            }
        }
        self.visible(path).is_some()
    }
}
