//! Requests of asynchronous calls that leave together: with fewer sends than calls, in order, all of them, and none later than
//! its caller waits for a reply.
//!
//! A transport counts the sends. The idle reaper sends nothing, and where a test has the receiver leave connections unchecked,
//! neither does that. Then a request that its caller does not send stays behind, and the server waits for it in vain. The reapers
//! of all tests of the process stop, so these tests are a program of their own.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use ironorb::{CompletionStatus, Orb, Pending, SystemException, SystemExceptionKind, TypedRef};
use ironorb_tests::gate::GatedTransport;
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{eventually, raw};

/// So many calls in flight that further requests wait for others.
const MANY: i32 = 32;

type Sum = Pending<i32, SystemException>;

/// A client and a server that a test plays, over one connection. The thread that plays the client has made it.
struct Scene {
    orb: Orb,
    probe: ProbeRef,
    transport: GatedTransport,
}

impl Scene {
    /// Runs `client` on a thread of its own, and the server here: with the first connection, and what accepts others.
    fn play<R: Send>(
        client: impl FnOnce(&Scene) -> R + Send,
        server: impl FnOnce(TcpStream, &TcpListener) + Send,
    ) -> R {
        #[cfg(debug_assertions)]
        ironorb::testing::send_no_rests();
        let (listener, port) = raw::listen();
        let transport = GatedTransport::opened();
        let orb = Orb::builder().transport(Arc::new(transport.clone())).no_endpoint().build().unwrap();
        let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/x");
        let object = orb.string_to_object(&url).unwrap();
        let probe = orb.string_to_object(&GatedTransport::reference(&object)).unwrap().narrow_unchecked();
        let scene = Scene { orb, probe, transport };
        let result = thread::scope(|scope| {
            let client = scope.spawn(|| {
                scene.probe.ping().unwrap(); // makes the connection
                client(&scene)
            });
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            answer(&mut stream, 0);
            server(stream, &listener);
            client.join().unwrap()
        });
        let _unless_the_client_has = scene.orb.shutdown(true);
        result
    }

    /// Begins calls with these arguments.
    fn begin(&self, numbers: std::ops::Range<i32>) -> Vec<Sum> {
        numbers.map(|n| self.probe.add_async(n, 0)).collect()
    }
}

/// Reads a request and answers it with a number.
fn answer(stream: &mut TcpStream, number: u8) {
    let request = raw::read_message(stream);
    answer_to(stream, &request, number);
}

fn answer_to(stream: &mut TcpStream, request: &[u8], number: u8) {
    raw::write(stream, &raw::reply(raw::id_of(request), 0, &[0, 0, 0, number]));
}

/// Reads the requests of calls with these arguments, in this order.
fn read(stream: &mut TcpStream, numbers: std::ops::Range<i32>) -> Vec<Vec<u8>> {
    let mut read_one = |n: i32| {
        let request = raw::read_message(stream);
        assert_eq!(number_of(&request), n);
        request
    };
    numbers.map(&mut read_one).collect()
}

/// The first argument of a request.
fn number_of(request: &[u8]) -> i32 {
    i32::from_ne_bytes(request[request.len() - 8..][..4].try_into().unwrap())
}

/// Answers calls with their first argument until the client ends, and returns these.
fn serve(stream: &mut TcpStream) -> Vec<i32> {
    let mut served = Vec::new();
    loop {
        let request = raw::read_message(stream);
        if request.is_empty() || request[7] == raw::CLOSE {
            return served;
        }
        served.push(number_of(&request));
        answer_to(stream, &request, number_of(&request) as u8);
    }
}

#[test]
fn many_calls_need_fewer_sends_than_there_are() {
    Scene::play(
        |scene| {
            // The receiver sends what waits once in a while, on a slow machine for each call.
            eventually("calls share sends", || {
                let before = scene.transport.send.passed();
                let pending = scene.begin(0..MANY);
                pending.into_iter().enumerate().for_each(|(n, it)| assert_eq!(it.wait(), Ok(n as i32)));
                scene.transport.send.passed() - before <= MANY as usize / 2
            });
            scene.orb.shutdown(true).unwrap();
        },
        |mut stream, _| {
            serve(&mut stream);
        },
    );
}

#[cfg(debug_assertions)]
#[test]
fn few_calls_leave_at_once() {
    Scene::play(
        |scene| {
            ironorb::testing::leave_no_receiver_checks();
            let before = scene.transport.send.passed();
            let pending = scene.begin(0..7);
            assert_eq!(scene.transport.send.passed() - before, 7);
            pending.into_iter().for_each(|it| assert_eq!(it.wait(), Ok(1)));
        },
        |mut stream, _| (0..7).for_each(|_| answer(&mut stream, 1)),
    );
}

/// The server answers nothing before it has all requests.
#[cfg(debug_assertions)]
#[test]
fn who_waits_sends_what_has_been_held_back() {
    Scene::play(
        |scene| {
            ironorb::testing::leave_no_receiver_checks();
            let before = scene.transport.send.passed();
            let mut pending = scene.begin(0..MANY).into_iter();
            assert!(scene.transport.send.passed() - before < MANY as usize);
            // Its own request has left long since.
            assert_eq!(pending.next().unwrap().wait(), Ok(7));
            pending.for_each(|it| assert_eq!(it.wait(), Ok(7)));
        },
        |mut stream, _| {
            let requests = read(&mut stream, 0..MANY);
            requests.iter().for_each(|request| answer_to(&mut stream, request, 7));
        },
    );
}

/// The client's thread does nothing more until the server has all requests.
#[cfg(debug_assertions)]
#[test]
fn who_asks_sends_what_has_been_held_back() {
    held_and_then(|scene| {
        let last = scene.begin(MANY..MANY + 1).remove(0);
        assert!(!last.is_ready());
        Box::new(move || assert_eq!(last.wait(), Ok(7)))
    });
    held_and_then(|scene| {
        let mut last = scene.begin(MANY..MANY + 1).remove(0);
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut last).poll(&mut context).is_pending());
        Box::new(move || assert_eq!(last.wait(), Ok(7)))
    });
    held_and_then(|scene| {
        let (tell, told) = mpsc::channel();
        scene.probe.add_async(MANY, 0).on_reply(move |outcome| tell.send(outcome).unwrap());
        Box::new(move || assert_eq!(told.recv().unwrap(), Ok(7)))
    });
}

/// A call that must end soon, one whose reply is given up, and a synchronous one. Each takes along what waits before it.
#[cfg(debug_assertions)]
#[test]
fn urgent_calls_leave_at_once_with_all_before_them() {
    held_and_then(|scene| {
        let hasty = scene.probe.with_timeout(Some(Duration::from_millis(90)));
        let before = scene.transport.send.passed();
        let hasty = hasty.add_async(MANY, 0);
        assert_eq!(scene.transport.send.passed() - before, 1);
        Box::new(move || {
            // On a slow machine the time may be over before the server has answered.
            let outcome = hasty.wait();
            let is_late = |e: &SystemException| e.kind == SystemExceptionKind::Timeout;
            assert!(outcome.as_ref().map_or_else(is_late, |sum| *sum == 7), "{outcome:?}");
        })
    });
    held_and_then(|scene| {
        drop(scene.probe.add_async(MANY, 0));
        Box::new(|| {})
    });
    held_and_then(|scene| {
        assert_eq!(scene.probe.add(MANY, 0), Ok(7));
        Box::new(|| {})
    });
}

/// The receiver's thread may have a lower one.
#[cfg(debug_assertions)]
#[test]
fn a_thread_with_a_priority_sends_by_itself() {
    Scene::play(
        |scene| {
            let (probe, sends) = (scene.probe.clone(), scene.transport.send.clone());
            let (tell, told) = mpsc::channel();
            ironorb::testing::spawn_real_time(move || {
                ironorb::testing::leave_no_receiver_checks();
                probe.ping().unwrap();
                let before = sends.passed();
                let pending: Vec<_> = (0..MANY).map(|n| probe.add_async(n, 0)).collect();
                let sent = sends.passed() - before;
                let sums: i32 = pending.into_iter().map(|it| it.wait().unwrap()).sum();
                tell.send((sent, sums)).unwrap();
            });
            let seen = told.recv().unwrap();
            scene.orb.shutdown(true).unwrap();
            assert_eq!(seen, (MANY as usize, (0..MANY).sum()));
        },
        |_, listener| {
            let (mut stream, _) = listener.accept().unwrap();
            answer(&mut stream, 0);
            serve(&mut stream);
        },
    );
}

/// What remains to be done once the server has answered.
type Rest = Box<dyn FnOnce()>;

/// Begins many calls, and then one more by `last`.
#[cfg(debug_assertions)]
fn held_and_then(last: impl FnOnce(&Scene) -> Rest + Send) {
    let (tell, told) = mpsc::channel();
    Scene::play(
        move |scene| {
            ironorb::testing::leave_no_receiver_checks();
            let before = scene.transport.send.passed();
            let pending = scene.begin(0..MANY);
            assert!(scene.transport.send.passed() - before < MANY as usize);
            let rest = last(scene);
            told.recv().unwrap();
            rest();
            pending.into_iter().for_each(|it| assert_eq!(it.wait(), Ok(7)));
        },
        move |mut stream, _| {
            let requests = read(&mut stream, 0..MANY + 1);
            requests.iter().for_each(|request| answer_to(&mut stream, request, 7));
            tell.send(()).unwrap();
        },
    );
}

/// Nobody waits, polls or begins another call: the receiver sends the last ones.
#[test]
fn no_request_of_a_burst_stays_behind() {
    const BURSTS: [i32; 12] = [1, 9, 40, 3, 17, 8, 33, 100, 12, 64, 31, 10];
    let (go_on, may_go_on) = mpsc::channel();
    Scene::play(
        move |scene| {
            for count in BURSTS {
                let pending = scene.begin(0..count);
                may_go_on.recv().unwrap();
                pending.into_iter().for_each(|it| assert_eq!(it.wait(), Ok(7)));
            }
        },
        move |mut stream, _| {
            for count in BURSTS {
                let requests = read(&mut stream, 0..count);
                requests.iter().for_each(|request| answer_to(&mut stream, request, 7));
                go_on.send(()).unwrap();
            }
        },
    );
}

/// Answers the calls that come over new connections until the client is done, and returns their numbers.
fn serve_again(listener: &TcpListener, is_done: &mpsc::Receiver<()>) -> Vec<i32> {
    listener.set_nonblocking(true).unwrap();
    let mut served = Vec::new();
    while is_done.try_recv().is_err() {
        if let Ok((mut stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            served.extend(serve(&mut stream));
        }
        thread::sleep(Duration::from_millis(1));
    }
    served
}

/// What has left with the end of a connection may have been carried out, and is not sent again. All else is.
#[cfg(debug_assertions)]
#[test]
fn each_request_that_waits_learns_of_the_end() {
    for says_so in [false, true] {
        let ((cut, is_cut), (done, is_done), (tell, told)) =
            (mpsc::channel(), mpsc::channel(), mpsc::channel());
        let outcomes = Scene::play(
            move |scene| {
                ironorb::testing::leave_no_receiver_checks();
                let before = scene.transport.send.passed();
                let pending = scene.begin(0..MANY);
                assert!(scene.transport.send.passed() - before < MANY as usize);
                is_cut.recv().unwrap();
                let outcomes: Vec<_> = pending.into_iter().map(Pending::wait).collect();
                scene.orb.shutdown(true).unwrap();
                done.send(()).unwrap();
                outcomes
            },
            move |mut stream, listener| {
                read(&mut stream, 0..1);
                if says_so {
                    raw::write(&mut stream, &raw::message(raw::CLOSE, &[]));
                }
                // Who has said so waits for the client to close.
                let _open = says_so.then_some(stream);
                cut.send(()).unwrap();
                tell.send(serve_again(listener, &is_done)).unwrap();
            },
        );
        let served = told.recv().unwrap();
        let once: BTreeSet<_> = served.iter().copied().collect();
        assert_eq!(once.len(), served.len(), "twice: {served:?}");
        for (n, outcome) in (0..).zip(outcomes) {
            match outcome {
                Ok(sum) => assert!(sum == n && once.contains(&n)),
                Err(e) => {
                    assert_eq!(
                        (e.kind, e.completed),
                        (SystemExceptionKind::CommFailure, CompletionStatus::Maybe)
                    );
                    assert!(!once.contains(&n), "{n} was sent twice");
                }
            }
        }
        assert_eq!(once.contains(&0), says_so, "CloseConnection promises that it was not carried out");
    }
}
