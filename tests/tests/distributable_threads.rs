//! Distributable threads through ORBs that are connected by sockets: segments, ids, urgency, cancelling, schedulers, and
//! bytes of peers that mean harm.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ironorb::interceptor::{ClientRequestInfo, ServerContext, ServerRequestInfo};
use ironorb::rt::distributable::{
    DistributableThread, DistributableThreadId, DistributableThreadState, EarliestDeadline, FixedPriority,
    MaximumUrgencyFirst, SEGMENTS_MAX, Scheduler, SchedulingCurrent, SchedulingParameter, SegmentTerms,
    UrgencyBands,
};
use ironorb::rt::{Level, Priority, PriorityModel};
use ironorb::{
    CompletionStatus, Deferred, MinorCode, Orb, PoaPolicies, Reply, SystemException, SystemExceptionKind,
    TypedRef, remaining_time,
};
use ironorb_tests::real_time::{priority, real_time, server_of};
use ironorb_tests::timing::{DeferredPlant, Plant, PlantAsync, PlantRef};
use ironorb_tests::{eventually, raw};

const CONTEXT: u32 = 0x494F_5204;

type Outcome = Result<i32, SystemException>;

/// What a servant does in an upcall: `untimed` waits for it, `over_unheard` is a oneway.
struct Does<F>(F);

#[rustfmt::skip]
impl<F: Fn() -> Outcome + Send + Sync + 'static> Plant for Does<F> {
    fn over(&self, _: bool) -> Outcome { (self.0)() }
    fn over_unheard(&self) -> Result<(), SystemException> { (self.0)().map(drop) }
    fn level(&self) -> Outcome { (self.0)() }
    fn calm(&self) -> Outcome { (self.0)() }
    fn late(&self) -> Outcome { (self.0)() }
    fn mostly_late(&self) -> Outcome { (self.0)() }
    fn untimed(&self) -> Outcome { (self.0)() }
}

/// An ORB with a scheduler, and its current.
fn orb_with(scheduler: impl Scheduler) -> (Orb, SchedulingCurrent) {
    let orb = server_of(real_time()).deadline_propagation(true).scheduler(scheduler).build().unwrap();
    let current = orb.scheduling_current().unwrap();
    (orb, current)
}

/// A scheduler that takes any parameter and gives nothing.
struct Lenient;

impl Scheduler for Lenient {
    fn scheduling_discipline_name(&self) -> &str {
        "Lenient"
    }

    fn begin_new_scheduling_segment(
        &self,
        _: &DistributableThread,
        _: &str,
        _: Option<&SchedulingParameter>,
    ) -> Result<SegmentTerms, SystemException> {
        Ok(SegmentTerms::default())
    }
}

fn lenient() -> (Orb, SchedulingCurrent) {
    orb_with(Lenient)
}

/// The object of a servant of one ORB, as another ORB has it.
fn serve(server: &Orb, client: &Orb, upcall: impl Fn() -> Outcome + Send + Sync + 'static) -> PlantRef {
    let object: PlantRef = server.root_poa().activate(Does(upcall)).unwrap();
    client.resolve(&object.object().to_ior_string()).unwrap()
}

fn kind<T: std::fmt::Debug>(result: Result<T, SystemException>) -> SystemExceptionKind {
    result.unwrap_err().kind
}

/// Runs until the calling thread is cancelled.
fn until_cancelled(current: &SchedulingCurrent) -> Outcome {
    loop {
        current.check()?;
        thread::yield_now();
    }
}

#[test]
fn segments_nest_and_their_names_are_innermost_first() {
    let (_orb, current) = lenient();
    assert!(current.id().is_none() && current.segment_names().is_empty());
    assert_eq!(kind(current.end_scheduling_segment("none")), SystemExceptionKind::BadInvOrder);
    assert_eq!(kind(current.update_scheduling_segment("none", None)), SystemExceptionKind::BadInvOrder);
    let ids = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| in_three_segments(&current))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<std::collections::BTreeSet<_>>()
    });
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| current.lookup(*id).is_none()));
}

fn in_three_segments(current: &SchedulingCurrent) -> DistributableThreadId {
    current.begin_scheduling_segment("one", None).unwrap();
    let id = current.id().unwrap();
    current.begin_scheduling_segment("two", None).unwrap();
    current
        .segment("three", None, || {
            assert_eq!(current.segment_names(), ["three", "two", "one"]);
            assert_eq!(current.id(), Some(id));
            assert_eq!(current.lookup(id).unwrap().state(), DistributableThreadState::Active);
        })
        .unwrap();
    current.update_scheduling_segment("second", None).unwrap();
    assert_eq!(current.segment_names(), ["second", "one"]);
    assert_eq!(kind(current.end_scheduling_segment("one")), SystemExceptionKind::BadParam);
    current.end_scheduling_segment("second").unwrap();
    current.end_scheduling_segment("one").unwrap();
    assert_eq!(kind(current.end_scheduling_segment("one")), SystemExceptionKind::BadInvOrder);
    assert!(current.id().is_none());
    id
}

#[test]
fn ids_differ_between_orbs_also_of_equal_seeds() {
    let id = || {
        let mut builder = server_of(real_time()).scheduler(Lenient);
        builder.config().seed = Some(7);
        let current = builder.build().unwrap().scheduling_current().unwrap();
        current.segment("any", None, || current.id().unwrap()).unwrap()
    };
    let ids = [id(), id(), id()];
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
}

#[test]
fn a_guard_ends_its_segment_and_those_within_also_in_a_panic() {
    let (_orb, current) = lenient();
    let outer = current.enter_segment("outer", None).unwrap();
    current.begin_scheduling_segment("inner", None).unwrap();
    drop(outer);
    assert!(current.id().is_none());
    let before = current.enter_segment("before", None).unwrap();
    current.end_scheduling_segment("before").unwrap();
    let after = current.enter_segment("after", None).unwrap();
    drop(before); // of a thread that is over
    assert_eq!(current.segment_names(), ["after"]);
    drop(after);
    let panicked = thread::scope(|scope| {
        let body = || current.segment("panics", None, || panic!("as asked"));
        scope.spawn(move || std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err()).join()
    });
    assert!(panicked.unwrap());
    let open: Vec<_> = (0..SEGMENTS_MAX).map(|_| current.enter_segment("deep", None).unwrap()).collect();
    assert_eq!(kind(current.enter_segment("deeper", None)), SystemExceptionKind::ImpLimit);
    open.into_iter().rev().for_each(drop);
    assert_eq!(kind(current.enter_segment(&"long".repeat(17), None)), SystemExceptionKind::BadParam);
    assert!(current.id().is_none());
}

#[test]
fn a_spawned_thread_is_another_one() {
    let (_orb, current) = lenient();
    assert_eq!(kind(current.spawn("outside", None, || 0)), SystemExceptionKind::BadInvOrder);
    current
        .segment("outer", None, || {
            let urgent = SchedulingParameter::new().importance(Level::High);
            current.set_implicit_scheduling_parameter(Some(urgent));
            let own = current.clone();
            let seen = move || (own.id(), own.segment_names(), own.scheduling_parameter());
            let spawned = current.spawn("spawned", None, seen).unwrap();
            current.set_implicit_scheduling_parameter(None);
            let id = spawned.thread().id();
            assert_ne!(Some(id), current.id());
            let expected = (Some(id), vec!["spawned".to_owned()], Some(urgent));
            assert_eq!(spawned.join().unwrap(), expected);
            assert!(current.lookup(id).is_none());
            let panics = current.spawn("panics", None, || panic!("as asked")).unwrap();
            assert_eq!(kind(panics.join()), SystemExceptionKind::Unknown);
        })
        .unwrap();
}

#[test]
fn four_threads_end_at_their_next_scheduling_points() {
    let (_orb, current) = lenient();
    let ends_of = |end: usize, current: &SchedulingCurrent| match end {
        0 => current.begin_scheduling_segment("more", None),
        1 => current.update_scheduling_segment("other", None),
        2 => current.end_scheduling_segment("thread"),
        _ => current.spawn("more", None, || ()).map(drop),
    };
    let begun = AtomicUsize::new(0);
    thread::scope(|scope| {
        for end in 0..4 {
            let (current, begun) = (&current, &begun);
            let (tell, told) = std::sync::mpsc::channel();
            scope.spawn(move || {
                let outcome = current.segment("thread", None, || {
                    tell.send(current.id().unwrap()).unwrap();
                    let thread = current.thread().unwrap();
                    eventually("the thread is cancelled", || thread.is_cancelled());
                    ends_of(end, current)
                });
                // The point within the segment, or the end of the segment itself.
                assert_eq!(kind(outcome.and_then(|inner| inner)), SystemExceptionKind::ThreadCancelled);
                assert!(current.id().is_none());
                begun.fetch_add(1, Ordering::SeqCst);
            });
            let thread = current.lookup(told.recv().unwrap()).unwrap();
            thread.cancel();
            thread.cancel(); // does nothing
            assert_eq!(thread.state(), DistributableThreadState::Cancelled);
        }
    });
    assert_eq!(begun.load(Ordering::SeqCst), 4);
    let spawned = current.segment("outer", None, || {
        current.spawn("loops", None, {
            let own = current.clone();
            move || until_cancelled(&own)
        })
    });
    let spawned = spawned.unwrap().unwrap();
    spawned.thread().cancel();
    assert_eq!(kind(spawned.join().and_then(|outcome| outcome)), SystemExceptionKind::ThreadCancelled);
}

/// What a servant has seen of its thread: id, names, parameter.
type Seen = Arc<Mutex<Vec<(Option<DistributableThreadId>, Vec<String>, Option<SchedulingParameter>)>>>;

fn note(seen: &Seen, current: &SchedulingCurrent) {
    seen.lock().unwrap().push((current.id(), current.segment_names(), current.scheduling_parameter()));
}

#[test]
fn a_twoway_keeps_the_id_through_hops_and_a_oneway_has_a_new_one() {
    let ((a, at_a), (b, at_b), (c, at_c)) = (lenient(), lenient(), lenient());
    let seen = Seen::default();
    let (notes, last) = (seen.clone(), at_c.clone());
    let c_object = serve(&c, &b, move || {
        note(&notes, &last);
        // A servant cannot end what its client has begun.
        assert_eq!(kind(last.end_scheduling_segment("client")), SystemExceptionKind::BadInvOrder);
        last.begin_scheduling_segment("left open", None)?;
        Ok(0)
    });
    let (notes, middle) = (seen.clone(), at_b.clone());
    let b_object = serve(&b, &a, move || {
        note(&notes, &middle);
        middle.segment("middle", None, || c_object.untimed())?
    });
    assert_eq!(b_object.untimed().unwrap(), 0);
    let parameter = SchedulingParameter::new().priority(priority(7)).criticality(Level::High);
    let id = at_a.segment("client", Some(parameter), || {
        assert_eq!(b_object.untimed().unwrap(), 0);
        assert_eq!(b_object.untimed().unwrap(), 0);
        at_a.id()
    });
    let id = id.unwrap();
    let (names, all_names) = (vec!["client".to_owned()], vec!["middle".to_owned(), "client".to_owned()]);
    let seen_now = std::mem::take(&mut *seen.lock().unwrap());
    // Without a segment the first server sees no thread, and begins one itself.
    assert_eq!(seen_now[0], (None, vec![], None));
    assert_eq!((seen_now[1].0.is_some(), &seen_now[1].1), (true, &vec!["middle".to_owned()]));
    for at in [2, 4] {
        assert_eq!(seen_now[at], (id, names.clone(), Some(parameter)));
        assert_eq!(seen_now[at + 1], (id, all_names.clone(), Some(parameter)));
    }
    let oneway = at_a.segment("client", Some(parameter), || {
        b_object.over_unheard().unwrap();
        at_a.id()
    });
    eventually("the oneway has come", || seen.lock().unwrap().len() == 2);
    let seen_now = seen.lock().unwrap();
    assert!(seen_now[0].0.is_some() && seen_now[0].0 != oneway.unwrap());
    assert_eq!((&seen_now[0].1, seen_now[1].0), (&names, seen_now[0].0));
}

/// Called directly, by a lease, and by a message within the process, as servants are that answer later.
#[test]
fn a_call_within_the_process_goes_on_in_the_thread() {
    let (orb, current) = lenient();
    let seen = Seen::default();
    let (notes, own) = (seen.clone(), current.clone());
    let direct: PlantRef = orb
        .root_poa()
        .activate(Does(move || {
            note(&notes, &own);
            Ok(0)
        }))
        .unwrap();
    let later: PlantRef = orb.root_poa().activate(Deferred(Later(seen.clone(), current.clone()))).unwrap();
    let id = current.segment("caller", None, || {
        (0..4).for_each(|_| assert_eq!(direct.untimed().unwrap(), 0));
        assert_eq!(later.untimed().unwrap(), 1);
        current.id()
    });
    assert_eq!(later.untimed().unwrap(), 1);
    let own = (id.unwrap(), vec!["caller".to_owned()], None);
    let none = (None, vec![], None);
    assert_eq!(*seen.lock().unwrap(), [own.clone(), own.clone(), own.clone(), own.clone(), own, none]);
}

/// A servant that answers from within its upcall, although it need not.
struct Later(Seen, SchedulingCurrent);

#[rustfmt::skip]
impl DeferredPlant for Later {
    fn over(&self, _: bool, reply: Reply<i32, SystemException>) { reply.send(Ok(1)); }
    fn over_unheard(&self) {}
    fn level(&self, reply: Reply<i32, SystemException>) { reply.send(Ok(1)); }
    fn calm(&self, reply: Reply<i32, SystemException>) { reply.send(Ok(1)); }
    fn late(&self, reply: Reply<i32, SystemException>) { reply.send(Ok(1)); }
    fn mostly_late(&self, reply: Reply<i32, SystemException>) { reply.send(Ok(1)); }
    fn untimed(&self, reply: Reply<i32, SystemException>) {
        note(&self.0, &self.1);
        reply.send(Ok(1));
    }
}

#[test]
fn an_orb_without_a_scheduler_passes_nothing_on() {
    let ((a, at_a), (c, at_c)) = (lenient(), lenient());
    let middle = server_of(real_time()).build().unwrap();
    let seen = Seen::default();
    let notes = seen.clone();
    let c_object = serve(&c, &middle, move || {
        note(&notes, &at_c);
        Ok(1)
    });
    let m_object = serve(&middle, &a, move || c_object.untimed());
    assert_eq!(at_a.segment("client", None, || m_object.untimed()).unwrap().unwrap(), 1);
    assert_eq!(*seen.lock().unwrap(), [(None, vec![], None)]);
    assert!(middle.scheduling_current().is_none());
}

/// The origin cancels while the thread is two servers away, each of whose connections is busy with the call.
#[test]
fn cancelling_at_the_origin_reaches_the_server_where_the_thread_is() {
    let ((a, at_a), (b, at_b), (c, at_c)) = (lenient(), lenient(), lenient());
    let come = Arc::new(Mutex::new(None));
    let told = come.clone();
    let c_object = serve(&c, &b, move || {
        *told.lock().unwrap() = at_c.id();
        until_cancelled(&at_c)
    });
    let (middle, outcomes) = (at_b.clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = outcomes.clone();
    let b_object = serve(&b, &a, move || {
        let outcome = c_object.untimed();
        noted
            .lock()
            .unwrap()
            .push((outcome.as_ref().map_err(|e| e.kind).copied(), middle.thread().unwrap().state()));
        Ok(5) // a servant that passes over it
    });
    let caller = thread::spawn({
        let at_a = at_a.clone();
        move || at_a.segment("client", None, || b_object.untimed())
    });
    eventually("the thread is in the last server", || come.lock().unwrap().is_some());
    let id = come.lock().unwrap().unwrap();
    at_a.lookup(id).unwrap().cancel();
    assert_eq!(kind(caller.join().unwrap()), SystemExceptionKind::ThreadCancelled);
    let expected = (Err(SystemExceptionKind::ThreadCancelled), DistributableThreadState::Cancelled);
    assert_eq!(*outcomes.lock().unwrap(), [expected]);
    eventually("the thread is over", || at_a.lookup(id).is_none() && at_b.lookup(id).is_none());
    drop((a, b, c));
}

#[test]
fn cancelling_reaches_all_asynchronous_calls() {
    let ((a, at_a), (b, at_b), (c, at_c)) = (lenient(), lenient(), lenient());
    let come = Arc::new(AtomicUsize::new(0));
    let loops = |current: SchedulingCurrent| {
        let come = come.clone();
        move || {
            come.fetch_add(1, Ordering::SeqCst);
            until_cancelled(&current)
        }
    };
    let (b_object, c_object) = (serve(&b, &a, loops(at_b)), serve(&c, &a, loops(at_c)));
    let outcome = at_a.segment("client", None, || {
        let pending = [b_object.untimed_async(), c_object.untimed_async(), b_object.untimed_async()];
        eventually("both servers serve", || come.load(Ordering::SeqCst) >= 2);
        at_a.thread().unwrap().cancel();
        for reply in pending {
            assert_eq!(kind(reply.wait()), SystemExceptionKind::ThreadCancelled);
        }
    });
    assert_eq!(kind(outcome), SystemExceptionKind::ThreadCancelled);
}

#[test]
fn cancelling_in_a_server_travels_back_to_the_origin() {
    let ((a, at_a), (b, at_b), (c, at_c)) = (lenient(), lenient(), lenient());
    let c_object = serve(&c, &b, move || {
        at_c.lookup(at_c.id().unwrap()).unwrap().cancel();
        Ok(1) // not a scheduling point: the reply is
    });
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let noted = outcomes.clone();
    let b_object = serve(&b, &a, move || {
        let outcomes = [c_object.untimed(), c_object.untimed()];
        noted.lock().unwrap().extend(outcomes.map(|outcome| outcome.map_err(|e| (e.kind, e.completed))));
        at_b.check().map(|()| 2)
    });
    let outcome = at_a.segment("client", None, || {
        let outcome = b_object.untimed();
        assert!(at_a.thread().unwrap().is_cancelled());
        outcome
    });
    assert_eq!(kind(outcome), SystemExceptionKind::ThreadCancelled);
    let cancelled = |completed| Err((SystemExceptionKind::ThreadCancelled, completed));
    let expected = [cancelled(CompletionStatus::Yes), cancelled(CompletionStatus::No)];
    assert_eq!(*outcomes.lock().unwrap(), expected);
}

#[test]
fn other_exceptions_cancel_no_thread() {
    let ((a, at_a), (b, _)) = (lenient(), lenient());
    let object = serve(&b, &a, || {
        let kind = SystemExceptionKind::NoPermission;
        Err(SystemException::new(kind, MinorCode::NONE, CompletionStatus::Yes))
    });
    let outcome = at_a.segment("client", None, || {
        let outcome = object.untimed();
        assert!(!at_a.thread().unwrap().is_cancelled());
        outcome
    });
    assert_eq!(kind(outcome.unwrap()), SystemExceptionKind::NoPermission);
}

#[test]
fn a_cancelled_thread_sends_no_request() {
    let ((a, at_a), (b, _)) = (lenient(), lenient());
    let served = Arc::new(AtomicUsize::new(0));
    let counts = served.clone();
    let object = serve(&b, &a, move || Ok(counts.fetch_add(1, Ordering::SeqCst) as i32));
    let outcome = at_a.segment("client", None, || {
        assert_eq!(object.untimed().unwrap(), 0);
        at_a.thread().unwrap().cancel();
        assert_eq!(kind(object.over_unheard()), SystemExceptionKind::ThreadCancelled);
        object.untimed()
    });
    assert_eq!((kind(outcome), served.load(Ordering::SeqCst)), (SystemExceptionKind::ThreadCancelled, 1));
    assert_eq!(object.untimed().unwrap(), 1);
}

/// A request with these bytes as the context of its thread.
fn request(object: &PlantRef, operation: &str, data: &[u8]) -> Vec<u8> {
    raw::request_with(object.object(), operation, &[(CONTEXT, data.to_vec())], &[])
}

/// A thread whose names and times have these bytes.
fn travels(rest: &[u8]) -> Vec<u8> {
    [&b"\0\x01"[..], &[7; 16], rest].concat()
}

#[test]
fn hostile_contexts_are_none() {
    let (server, at_server) = lenient();
    let seen = Seen::default();
    let notes = seen.clone();
    let object = server.root_poa().activate(Does(move || {
        note(&notes, &at_server);
        Ok(0)
    }));
    let object: PlantRef = object.unwrap();
    let mut stream = raw::connect(object.object());
    let times = [&b"\0\0\xFF\xFF"[..], &[0xFF; 16], b"\0"].concat();
    let with_names = |count: u8, name: &[u8]| {
        let names = [&[name.len() as u8], name].concat().repeat(usize::from(count));
        travels(&[&times[..], &[count], &names].concat())
    };
    let hostile = [
        vec![],
        vec![0; 17],
        travels(b""),
        travels(&[0xFF; 100]),
        with_names(17, b"one"),
        with_names(255, b""),
        with_names(1, &[b'x'; 65]),
        with_names(1, b"\xFF"),
        travels(&[&times[..], b"\x02\x01x"].concat()),
        [&b"\0\x02"[..], &[0; 16]].concat(),
        [&b"\x01\x01"[..], &[7; 16], &times, b"\0"].concat(),
        [&b"\0\x03"[..], &[7; 16]].concat(),
    ];
    let count = hostile.len();
    for data in hostile {
        let request = request(&object, "untimed", &data);
        raw::write(&mut stream, &request);
        let reply = raw::read_message(&mut stream);
        assert_eq!(reply[7], 1);
    }
    assert_eq!(*seen.lock().unwrap(), vec![(None, vec![], None); count]);
    // The longest names and the most of them are served.
    let data = with_names(16, &[b'x'; 64]);
    raw::write(&mut stream, &request(&object, "untimed", &data));
    raw::read_message(&mut stream);
    assert_eq!(seen.lock().unwrap().last().unwrap().1.len(), 16);
}

#[test]
fn a_thread_that_is_cancelled_before_it_comes_is_answered_at_once() {
    let (server, at_server) = lenient();
    let served = Arc::new(AtomicUsize::new(0));
    let counts = served.clone();
    let object = server.root_poa().activate(Does(move || Ok(counts.fetch_add(1, Ordering::SeqCst) as i32)));
    let object: PlantRef = object.unwrap();
    let mut stream = raw::connect(object.object());
    let cancel = [&b"\0\x02"[..], &[7; 16]].concat();
    raw::write(&mut stream, &request(&object, "_non_existent", &cancel));
    assert_eq!(status_of(&raw::read_message(&mut stream)), SYSTEM_EXCEPTION);
    let thread = travels(&[&b"\0\0\xFF\xFF"[..], &[0xFF; 16], b"\0\0"].concat());
    let request = request(&object, "untimed", &thread);
    raw::write(&mut stream, &request);
    let reply = raw::read_message(&mut stream);
    let told = [&b"\0\x03"[..], &[7; 16]].concat();
    assert!(contains(&reply, &told) && contains(&reply, b"IDL:omg.org/CORBA/THREAD_CANCELLED:1.0"));
    assert_eq!(served.load(Ordering::SeqCst), 0);
    // Further requests of it, which may have waited, fare no better. Another thread is served.
    raw::write(&mut stream, &request);
    assert!(contains(&raw::read_message(&mut stream), b"CANCELLED"));
    assert_eq!(served.load(Ordering::SeqCst), 0);
    assert_eq!(object.untimed().unwrap(), 0);
    let id = DistributableThreadId::from_octets([7; 16]).unwrap();
    eventually("the thread is over", || at_server.lookup(id).is_none());
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The status of a GIOP 1.2 reply.
fn status_of(reply: &[u8]) -> u32 {
    u32::from_ne_bytes(reply[16..20].try_into().unwrap())
}

const SYSTEM_EXCEPTION: u32 = 2;

#[test]
fn fixed_priorities_are_those_of_segments_and_reach_servants() {
    let ((a, at_a), (b, _)) = (orb_with(FixedPriority), orb_with(FixedPriority));
    let model = PriorityModel::ClientPropagated { default: Priority::MIN };
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    let poa = b.root_poa().create_poa("propagated", None, policies).unwrap();
    let at_server = b.rt_current().unwrap();
    let object: PlantRef = poa.activate(Does(move || Ok(at_server.priority()?.number().into()))).unwrap();
    let object: PlantRef = a.resolve(&object.object().to_ior_string()).unwrap();
    let rt = a.rt_current().unwrap();
    rt.set_priority(priority(3)).unwrap();
    let with = |number| Some(SchedulingParameter::new().priority(priority(number)));
    at_a.segment("outer", with(100), || {
        assert_eq!(object.untimed().unwrap(), 100);
        at_a.segment("inner", with(200), || assert_eq!(object.untimed().unwrap(), 200)).unwrap();
        at_a.segment("goes on", None, || assert_eq!(object.untimed().unwrap(), 100)).unwrap();
        at_a.update_scheduling_segment("outer", with(50)).unwrap();
        assert_eq!((rt.priority().unwrap(), object.untimed().unwrap()), (priority(50), 50));
    })
    .unwrap();
    assert_eq!(rt.priority().unwrap(), priority(3));
    let e = at_a.enter_segment("none", None).unwrap_err();
    assert_eq!(e.minor, MinorCode::UNSUPPORTED_SCHEDULING_DISCIPLINE);
    assert!(e.to_string().contains("FixedPriority needs a parameter with `priority`"), "{e}");
    assert!(at_a.id().is_none());
}

#[test]
fn deadlines_hold_for_calls_travel_and_choose_bands() {
    let ms = Duration::from_millis;
    let bands = || UrgencyBands::new(priority(0), priority(100), &[Duration::from_secs(100)]);
    let ((a, at_a), (b, at_b)) =
        (orb_with(EarliestDeadline::new(bands())), orb_with(EarliestDeadline::new(bands())));
    let left = Arc::new(Mutex::new(Vec::new()));
    let noted = left.clone();
    let object = serve(&b, &a, move || {
        let parameter = at_b.scheduling_parameter().and_then(|parameter| parameter.deadline);
        noted.lock().unwrap().push((parameter.unwrap(), remaining_time().unwrap()));
        Ok(0)
    });
    let within = |deadline| Some(SchedulingParameter::new().deadline(deadline));
    let rt = a.rt_current().unwrap();
    at_a.segment("urgent", within(ms(90_000)), || {
        object.untimed().unwrap();
        assert_eq!(rt.priority().unwrap(), priority(100));
        // A nested segment cannot give itself more time than the outer one has.
        at_a.segment("calm", within(ms(900_000)), || {
            object.untimed().unwrap();
            assert_eq!(rt.priority().unwrap(), priority(0));
        })
        .unwrap();
        at_a.segment("late", within(Duration::ZERO), || {
            assert_eq!(kind(object.untimed()), SystemExceptionKind::Timeout);
        })
        .unwrap();
        object.untimed().unwrap();
    })
    .unwrap();
    let left = left.lock().unwrap();
    assert_eq!(left.len(), 3);
    assert!(left[0].0 <= ms(90_000) && left[0].1 <= ms(90_000), "{left:?}");
    assert!(left[1].0 > ms(90_000) && left[1].1 <= ms(90_000), "{left:?}");
    assert!(left[2].0 <= left[0].0, "{left:?}");
    assert_eq!(kind(at_a.enter_segment("none", None)), SystemExceptionKind::BadParam);
}

#[test]
fn criticality_counts_before_laxity() {
    let (orb, current) = orb_with(MaximumUrgencyFirst::new(UrgencyBands::default()));
    let rt = orb.rt_current().unwrap();
    let of = |parameter| current.segment("any", Some(parameter), || rt.priority().unwrap()).unwrap();
    let within = |ms| SchedulingParameter::new().deadline(Duration::from_millis(ms));
    let rising = [
        within(5_000).criticality(Level::Low),
        within(0).criticality(Level::Low),
        within(5_000),
        within(5_000).execution_time(Duration::from_millis(4_500)),
        within(5_000).execution_time(Duration::from_millis(6_000)),
        within(5_000).criticality(Level::VeryHigh),
    ];
    let priorities = rising.map(of);
    assert!(priorities.is_sorted_by(|a, b| a < b), "{priorities:?}");
}

/// A scheduler that notes what it is told, and where.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn note(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[rustfmt::skip]
impl Scheduler for Notes {
    fn scheduling_discipline_name(&self) -> &str { "Notes" }
    fn begin_new_scheduling_segment(&self, _: &DistributableThread, name: &str, _: Option<&SchedulingParameter>) -> Result<SegmentTerms, SystemException> {
        self.note(&format!("begin_new {name}"));
        Ok(SegmentTerms::default())
    }
    fn begin_nested_scheduling_segment(&self, _: &DistributableThread, name: &str, _: Option<&SchedulingParameter>) -> Result<SegmentTerms, SystemException> {
        self.note(&format!("begin_nested {name}"));
        Ok(SegmentTerms::default())
    }
    fn update_scheduling_segment(&self, _: &DistributableThread, name: &str, _: Option<&SchedulingParameter>) -> Result<SegmentTerms, SystemException> {
        self.note(&format!("update {name}"));
        Ok(SegmentTerms::default())
    }
    fn end_scheduling_segment(&self, _: &DistributableThread, name: &str) { self.note(&format!("end {name}")); }
    fn end_nested_scheduling_segment(&self, _: &DistributableThread, name: &str) { self.note(&format!("end_nested {name}")); }
    fn send_request(&self, _: &DistributableThread, request: &mut ClientRequestInfo) -> Result<(), SystemException> {
        self.note(&format!("send_request {}", request.operation()));
        Ok(())
    }
    fn receive_request(&self, _: &DistributableThread, _: &mut ServerRequestInfo) -> Result<(), SystemException> {
        self.note("receive_request");
        Ok(())
    }
    fn send_reply(&self, _: &DistributableThread, _: &mut ServerRequestInfo) { self.note("send_reply"); }
    fn send_exception(&self, _: &DistributableThread, _: &mut ServerRequestInfo) { self.note("send_exception"); }
    fn send_other(&self, _: &DistributableThread, _: &mut ServerRequestInfo) { self.note("send_other"); }
    fn receive_reply(&self, _: &DistributableThread, _: &ClientRequestInfo) { self.note("receive_reply"); }
    fn receive_exception(&self, _: &DistributableThread, _: &ClientRequestInfo) { self.note("receive_exception"); }
    fn cancel(&self, _: DistributableThreadId) { self.note("cancel"); }
}

#[test]
fn a_scheduler_sees_all_points() {
    let (client, server) = (Notes::default(), Notes::default());
    let ((a, at_a), (b, at_b)) = (orb_with(client.clone()), orb_with(server.clone()));
    let is_angry = Arc::new(AtomicUsize::new(0));
    let asked = is_angry.clone();
    let object = serve(&b, &a, move || {
        at_b.segment("in the server", None, || ())?;
        match asked.load(Ordering::SeqCst) {
            0 => Ok(0),
            _ => Err(SystemException::new(
                SystemExceptionKind::BadParam,
                MinorCode::NONE,
                CompletionStatus::No,
            )),
        }
    });
    at_a.segment("one", None, || {
        at_a.segment("two", None, || object.untimed().unwrap()).unwrap();
        at_a.update_scheduling_segment("first", None).unwrap();
        is_angry.store(1, Ordering::SeqCst);
        object.untimed().unwrap_err();
    })
    .unwrap();
    let expected = [
        "begin_new one",
        "begin_nested two",
        "send_request untimed",
        "receive_reply",
        "end_nested two",
        "update first",
        "send_request untimed",
        "receive_exception",
        "end first",
    ];
    assert_eq!(client.take(), expected);
    let each = ["receive_request", "begin_nested in the server", "end_nested in the server"];
    let expected = [&each[..], &["send_reply"], &each[..], &["send_exception"]].concat();
    assert_eq!(server.take(), expected);
    is_angry.store(0, Ordering::SeqCst);
    at_a.segment("oneway", None, || object.over_unheard().unwrap()).unwrap();
    eventually("the oneway ends", || {
        server.0.lock().unwrap().last().is_some_and(|last| last == "send_other")
    });
    at_a.segment("mutex", None, || {
        *at_a.create_resource_manager("resource", None).lock();
        at_a.thread().unwrap().cancel();
    })
    .unwrap_err();
    assert!(client.take().contains(&"cancel".to_owned()));
}

/// What servers have been told of threads.
type ToldFacts = Arc<Mutex<Vec<Option<(DistributableThreadId, SchedulingParameter)>>>>;

/// What a request tells of its thread before any servant is called: for what orders requests.
struct Facts(ToldFacts);

impl ServerContext for Facts {
    fn id(&self) -> u32 {
        CONTEXT
    }

    fn serve(
        &self,
        request: &ironorb::interceptor::RequestFacts<'_>,
        _: Option<&[u8]>,
        upcall: &mut dyn FnMut(),
    ) {
        self.0.lock().unwrap().push(request.distributable_thread());
        upcall();
    }
}

#[test]
fn the_facts_of_a_request_have_its_urgency() {
    let (a, at_a) = lenient();
    let facts = ToldFacts::default();
    let b = server_of(real_time()).server_context(Facts(facts.clone())).build().unwrap();
    let object = serve(&b, &a, || Ok(0));
    let parameter = SchedulingParameter::new()
        .execution_time(Duration::from_micros(7))
        .criticality(Level::VeryLow)
        .importance(Level::VeryHigh);
    let id = at_a.segment("client", Some(parameter), || {
        object.untimed().unwrap();
        object.untimed().unwrap();
        at_a.id().unwrap()
    });
    let expected = Some((id.unwrap(), parameter));
    assert_eq!(*facts.lock().unwrap(), [expected, expected]);
}
