//! The server's side of connections in virtual time: timeouts, limits, cancellation, and replies that leave together.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::support::counter::{ADD, COUNTER_ID, write_arguments};
use crate::support::random::seeds;
use crate::support::{Cut, Kind, Pair, Seen, Side, kinds_seen};
use ironorb::engine::{
    CallNumber, ClientAction, ClientEngine, ClientEvent, ConnectionId, ServerAction, ServerEngine,
    ServerEvent, Time, UpcallNumber,
};
use ironorb::generated::{Call, Replied, Reply};
use ironorb::{CompletionStatus, ObjectRef, Orb, OrbBuilder, Servant, SystemException, SystemExceptionKind};

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
/// The header of a GIOP 1.2 request of 256 bytes.
const HEADER: &[u8] = b"GIOP\x01\x02\x01\x00\x00\x01\x00\x00";

/// Makes a call that takes less than a second.
fn call_soon(pair: &mut Pair, object: &ObjectRef, kind: Kind) -> u64 {
    let call = pair.begin(0, object, kind, 10);
    pair.run_until(pair.now() + SECOND / 10);
    call
}

#[test]
fn a_connection_without_requests_is_closed_in_order() {
    for seed in seeds(0..5) {
        let mut pair = Pair::seeded(seed);
        let server = pair.add_server(Orb::builder().server_idle_timeout(Some(10 * SECOND)));
        let counter = pair.reference(0, &pair.counter_ior(&[server]));
        let first = call_soon(&mut pair, &counter, Kind::Add);
        assert!(pair.succeeded(first), "{pair}");
        let sent = pair.sent_toward(Side::Client);
        pair.run_until(pair.now() + 9 * SECOND);
        call_soon(&mut pair, &counter, Kind::Tell);
        pair.run_until(pair.now() + 9 * SECOND);
        assert_eq!(pair.sent_toward(Side::Client), sent, "{pair}: every request begins the time anew");
        // A request in progress keeps the connection.
        pair.hold(server, true);
        let long = pair.begin(0, &counter, Kind::Add, 5);
        pair.run_until(pair.now() + 20 * SECOND);
        pair.hold(server, false);
        pair.run_until(pair.now() + 9 * SECOND);
        assert!(pair.succeeded(long) && pair.connections() == 1, "{pair}");
        let sent = pair.sent_toward(Side::Client);
        pair.run_until(pair.now() + 2 * SECOND);
        assert_eq!(pair.sent_toward(Side::Client), sent + 12, "{pair}: CloseConnection has 12 bytes");
        assert!(matches!(pair.call(0, &counter, Kind::Add), Seen::Value(_)), "{pair}");
        assert_eq!(pair.connections(), 2, "{pair}: over a new connection");
        pair.check_promises();
    }
}

#[test]
fn a_message_that_does_not_end_ends_its_connection() {
    let mut pair = Pair::seeded(1);
    let server = pair.add_server(Orb::builder().message_timeout(Some(4 * SECOND)));
    let counter = pair.reference(0, &pair.counter_ior(&[server]));
    pair.call(0, &counter, Kind::Add);
    pair.inject(0, Side::Server, HEADER);
    // A byte now and then does not keep the connection.
    for _ in 0..3 {
        pair.run_until(pair.now() + SECOND);
        pair.inject(0, Side::Server, b"x");
    }
    assert!(!pair.is_closed(0, Side::Client), "{pair}");
    pair.run_until(pair.now() + 2 * SECOND);
    assert!(pair.is_closed(0, Side::Client), "{pair}: cut off");
    assert!(matches!(pair.call(0, &counter, Kind::Add), Seen::Value(_)), "{pair}");
    assert_eq!(pair.connections(), 2, "{pair}");
    pair.check_promises();
}

#[test]
fn a_message_that_goes_on_has_its_time() {
    let mut pair = Pair::seeded(2);
    pair.segment_bytes = 20_000..40_000;
    let server = pair.add_server(Orb::builder().message_timeout(Some(4 * SECOND)));
    let counter = pair.reference(0, &pair.counter_ior(&[server]));
    pair.call(0, &counter, Kind::Add);
    let size = 400_000_u32;
    pair.inject(0, Side::Server, &[b"GIOP\x01\x02\x00\x00".as_slice(), &size.to_be_bytes()].concat());
    for _ in 0..5 {
        pair.inject(0, Side::Server, &[0; 70_000]);
        pair.run_until(pair.now() + 3 * SECOND);
        assert!(!pair.is_closed(0, Side::Client), "{pair}");
    }
    pair.run_until(pair.now() + 5 * SECOND);
    assert!(pair.is_closed(0, Side::Client), "{pair}: it has stopped");
}

/// Calls with pauses in which the server closes the connection, and more at once than it takes.
fn conversation(pair: &mut Pair, server: usize) -> Vec<u64> {
    let counter = pair.reference(0, &pair.counter_ior(&[server]));
    let mut calls = Vec::new();
    for round in 0..3 {
        calls.extend((0..5).map(|n| pair.begin(0, &counter, Kind::Add, 10 * n)));
        calls.push(pair.begin(0, &counter, Kind::Tell, round));
        calls.push(pair.begin(0, &counter, Kind::Refuse, round));
        pair.run_until(pair.now() + 60 * MILLISECOND);
    }
    calls
}

/// A server with short times and small limits.
fn small_server(pair: &mut Pair) -> usize {
    let mut builder =
        Orb::builder().server_idle_timeout(Some(20 * MILLISECOND)).message_timeout(Some(30 * MILLISECOND));
    builder.config().connection.calls_in_flight_max = 2;
    pair.add_server(builder)
}

#[test]
fn a_server_with_small_limits_keeps_its_promises_wherever_it_is_cut() {
    for seed in seeds(0..2) {
        for toward in [Side::Server, Side::Client] {
            let mut whole = Pair::seeded(seed);
            let server = small_server(&mut whole);
            let calls = conversation(&mut whole, server);
            whole.run_until_idle();
            assert!(calls.iter().all(|&call| whole.succeeded(call)), "{whole}");
            assert!(whole.connections() >= 3, "{whole}: idle connections are closed");
            let (length, mut seen) = (whole.sent_toward(toward), BTreeSet::new());
            for after in 0..length {
                let mut pair = Pair::seeded(seed);
                pair.label = format!("cut toward {toward:?} after {after} bytes of {length}");
                pair.cut = Some(Cut { toward, after });
                let server = small_server(&mut pair);
                conversation(&mut pair, server);
                pair.run_until_idle();
                pair.check_promises();
                seen.extend(kinds_seen(&pair));
            }
            assert!(seen.contains("COMM_FAILURE Maybe"), "{whole}: no cut was felt: {seen:?}");
        }
    }
}

#[test]
fn a_message_cut_at_any_byte_ends_its_connection_in_time() {
    let mut whole = Pair::seeded(3);
    let server = whole.add_server(Orb::builder());
    let counter = whole.reference(0, &whole.counter_ior(&[server]));
    whole.call(0, &counter, Kind::Add);
    let length = whole.sent_toward(Side::Server);
    for after in 1..length {
        let mut pair = Pair::seeded(3);
        pair.label = format!("stops after {after} bytes of {length}");
        let server = pair.add_server(Orb::builder().message_timeout(Some(4 * SECOND)));
        let counter = pair.reference(0, &pair.counter_ior(&[server]));
        pair.lose_after = Some(after);
        let lost = pair.begin(0, &counter, Kind::Add, 10);
        pair.run_until(pair.now() + 5 * SECOND);
        assert!(pair.is_closed(0, Side::Client), "{pair}");
        let e = pair.failure(lost);
        assert_eq!(
            (e.kind, e.completed),
            (SystemExceptionKind::CommFailure, CompletionStatus::Maybe),
            "{pair}"
        );
        assert_eq!(pair.executions.of(lost), 0, "{pair}");
    }
}

/// A client engine and a server engine over a wire without delay. The test runs the servants.
struct Direct {
    /// Its objects live as long as it.
    _orb: Orb,
    client: ClientEngine,
    server: ServerEngine,
    object: ObjectRef,
    now: Time,
    calls: u64,
    upcalls: Vec<UpcallNumber>,
    /// The bytes of each transmission of the server.
    transmitted: Vec<usize>,
    completed: Vec<u64>,
    timer: Option<Time>,
}

const CONNECTION: ConnectionId = ConnectionId(0);

impl Direct {
    fn with(servant: Arc<dyn Servant>, cancels: bool) -> Direct {
        Direct::to(Orb::builder(), servant, cancels)
    }

    fn to(server: OrbBuilder, servant: Arc<dyn Servant>, cancels: bool) -> Direct {
        let orb = server.no_endpoint().publish("server:2809").build().unwrap();
        let id = orb.root_poa().activate_object(servant).unwrap();
        let ior = orb.root_poa().id_to_reference(&id).unwrap().ior().to_string();
        let mut builder = Orb::builder().no_endpoint();
        builder.config().connection.cancel_requests = cancels;
        let client = builder.build().unwrap();
        let mut direct = Direct {
            object: client.string_to_object(&ior).unwrap(),
            client: ClientEngine::new(&client),
            server: ServerEngine::new(&orb),
            _orb: orb,
            now: Time::ZERO,
            calls: 0,
            upcalls: Vec::new(),
            transmitted: Vec::new(),
            completed: Vec::new(),
            timer: None,
        };
        direct.begin(None);
        direct.server.handle(ServerEvent::Accepted { connection: CONNECTION }, direct.now);
        direct.client_event(ClientEvent::Connected { connection: CONNECTION });
        direct.carry_out_all();
        direct.transmitted.clear();
        direct
    }

    fn begin(&mut self, timeout: Option<Duration>) -> u64 {
        let call = self.calls;
        self.calls += 1;
        self.client_event(ClientEvent::Call {
            call: CallNumber(call),
            caller: 0,
            object: self.object.clone(),
            operation: &ADD,
            arguments: Box::new(move |w| write_arguments(call, &[], w)),
            deadline: timeout.map(|timeout| self.now + timeout),
        });
        call
    }

    fn client_event(&mut self, event: ClientEvent<'_>) {
        self.client.handle(event, self.now);
        let mut sent = Vec::new();
        while let Some(action) = self.client.poll_action() {
            match action {
                ClientAction::Transmit { bytes, .. } => sent.extend(bytes),
                ClientAction::Complete { call, .. } => self.completed.push(call.0),
                _ => {}
            }
        }
        if !sent.is_empty() {
            self.server_event(ServerEvent::Received { connection: CONNECTION, bytes: &sent });
        }
    }

    fn server_event(&mut self, event: ServerEvent<'_>) {
        self.server.handle(event, self.now);
        self.poll_server();
    }

    fn poll_server(&mut self) {
        while let Some(action) = self.server.poll_action() {
            match action {
                ServerAction::Transmit { bytes, .. } => {
                    self.transmitted.push(bytes.len());
                    self.client_event(ClientEvent::Received { connection: CONNECTION, bytes: &bytes });
                }
                ServerAction::Upcall { upcall, .. } => self.upcalls.push(upcall),
                ServerAction::SetTimer { at } => self.timer = Some(at),
                ServerAction::Close { .. } => {}
            }
        }
    }

    fn carry_out_next(&mut self) {
        let upcall = self.upcalls.remove(0);
        self.server_event(ServerEvent::CarryOut { upcall });
    }

    fn carry_out_all(&mut self) {
        while !self.upcalls.is_empty() {
            self.carry_out_next();
        }
    }
}

#[test]
fn replies_to_requests_that_came_together_leave_together() {
    let mut direct = Direct::with(Arc::new(crate::support::counter::Counter(Default::default())), false);
    for _ in 0..40 {
        direct.begin(None);
    }
    direct.carry_out_all();
    assert_eq!(direct.completed.len(), 41);
    // The first eight teach the session that the servant is fast.
    assert_eq!(direct.transmitted.len(), 9, "{:?}", direct.transmitted);
}

#[test]
fn a_reply_does_not_wait_for_a_slow_servant() {
    let mut direct = Direct::with(Arc::new(crate::support::counter::Counter(Default::default())), false);
    for _ in 0..20 {
        direct.begin(None);
    }
    (0..15).for_each(|_| direct.carry_out_next());
    assert!(direct.completed.len() < 16, "some wait for the next");
    let at = direct.timer.expect("a timer for them");
    assert!(at.since(direct.now) <= 2 * MILLISECOND);
    direct.now = at;
    direct.server_event(ServerEvent::Timer);
    assert_eq!(direct.completed.len(), 16);
    direct.carry_out_all();
    assert_eq!(direct.completed.len(), 21);
}

/// A servant that keeps the obligation to reply.
#[derive(Debug, Default)]
struct Slow(Mutex<Vec<Reply<u64, SystemException>>>);

impl Slow {
    fn all(&self) -> Vec<Reply<u64, SystemException>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Servant for Slow {
    fn repository_ids(&self) -> &[&'static str] {
        &[COUNTER_ID]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        call.deferred(
            |r| Ok((r.get::<u64>()?, r.read_octets()?.len())),
            |_, reply| self.0.lock().unwrap_or_else(PoisonError::into_inner).push(reply),
            |w, value| w.put(value),
        )
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

#[test]
fn a_servant_that_asks_learns_that_its_client_no_longer_waits() {
    let slow = Arc::new(Slow::default());
    let mut direct = Direct::with(slow.clone(), true);
    slow.all().into_iter().for_each(|reply| reply.send(Ok(1)));
    direct.poll_server();
    assert_eq!(direct.completed, [0]);
    direct.transmitted.clear();
    let hurried = direct.begin(Some(SECOND));
    let patient = direct.begin(Some(5 * SECOND));
    direct.carry_out_all();
    let replies = slow.all();
    let told = Arc::new(Mutex::new(Vec::new()));
    for (n, reply) in replies.iter().enumerate() {
        let told = told.clone();
        reply.on_cancel(move || told.lock().unwrap().push(n));
    }
    direct.now = Time::ZERO + SECOND;
    direct.client_event(ClientEvent::Timer);
    assert_eq!(direct.completed, [0, hurried]);
    assert_eq!(*told.lock().unwrap(), [0], "one servant is told, once");
    assert!(replies[0].is_cancelled() && !replies[1].is_cancelled());
    replies.into_iter().for_each(|reply| reply.send(Ok(2)));
    direct.poll_server();
    assert_eq!(
        (direct.completed.as_slice(), direct.transmitted.len()),
        ([0, hurried, patient].as_slice(), 1)
    );
    // The client goes: all servants that ask learn it.
    direct.begin(None);
    direct.carry_out_all();
    let replies = slow.all();
    assert!(!replies[0].is_cancelled());
    direct.server_event(ServerEvent::Closed { connection: CONNECTION });
    assert!(replies[0].is_cancelled());
}

#[test]
fn requests_beyond_the_limit_of_the_orb_are_refused() {
    let slow = Arc::new(Slow::default());
    let mut direct = Direct::to(Orb::builder().server_requests_max(Some(2)), slow.clone(), false);
    slow.all().into_iter().for_each(|reply| reply.send(Ok(1)));
    direct.poll_server();
    let calls: Vec<u64> = (0..3).map(|_| direct.begin(None)).collect();
    direct.carry_out_all();
    assert_eq!(direct.completed, [0, calls[2]], "the third is refused at once");
    slow.all().into_iter().for_each(|reply| reply.send(Ok(2)));
    direct.poll_server();
    let later = direct.begin(None);
    direct.carry_out_all();
    assert_eq!(direct.completed, [0, calls[2], calls[0], calls[1]], "there is room again");
    slow.all().into_iter().for_each(|reply| reply.send(Ok(3)));
    direct.poll_server();
    assert_eq!(direct.completed.last(), Some(&later));
}

#[test]
fn replies_that_are_due_leave_before_the_connection_is_closed() {
    let slow = Arc::new(Slow::default());
    let mut direct = Direct::with(slow.clone(), false);
    slow.all().into_iter().for_each(|reply| reply.send(Ok(1)));
    direct.poll_server();
    let (late, waiting) = (direct.begin(None), direct.begin(None));
    direct.carry_out_next();
    direct.transmitted.clear();
    direct.server_event(ServerEvent::Retire { connection: CONNECTION });
    assert_eq!(direct.transmitted, [], "a request without a reply may have been carried out");
    slow.all().into_iter().for_each(|reply| reply.send(Ok(2)));
    direct.poll_server();
    assert!(direct.completed.contains(&late) && !direct.completed.contains(&waiting));
    assert_eq!(direct.server.upcalls_waiting(), 0);
}
