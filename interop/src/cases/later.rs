//! Cases of asynchronous calls, and of replies in another order than their requests.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use ironorb::{SystemExceptionKind, TypedRef};

use super::parts::part;
use super::runner::Cases;
use super::values::*;
use crate::interop::*;
use crate::process::{PEER_TIMEOUT, wait_until};

/// The number of calls that wait in the server at a time. Servers of other ORBs have a thread for each, and
/// some have only a few.
const HELD: i32 = 12;

/// The number of calls in flight that the server answers at once.
const FLYING: i32 = 300;

pub(super) fn later(cases: &mut Cases<'_>) {
    cases.run("later/answers", |suite| {
        let later: LaterRef = part(suite, "later");
        std::thread::scope(|threads| {
            let callers: Vec<_> = (0..HELD)
                .map(|i| {
                    let later = &later;
                    threads.spawn(move || (i, later.hold(i, &format!("caller {i}"))))
                })
                .collect();
            wait_until("not all calls arrived", || later.held().unwrap() == HELD as u32);
            (0..20).for_each(|_| suite.nothing().unwrap());
            assert_eq!(later.answer_all().unwrap(), HELD as u32);
            for caller in callers {
                let (i, answer) = caller.join().unwrap();
                assert_eq!(answer, Ok((i, format!("caller {i}"))));
            }
        });
    });
    cases.run("asynchronous/futures", |suite| {
        let sent: Vec<_> = (0..FLYING).map(|i| octets(i as usize * 7 % 2000)).collect();
        let calls: Vec<_> = sent.iter().map(|sent| suite.reflect_octets_async(sent)).collect();
        let names = suite.orb_name_async();
        // In reverse order: each call has its own answer.
        for (sent, call) in sent.iter().zip(calls).rev() {
            assert!(block_on(call).unwrap() == *sent);
        }
        assert_eq!(block_on(names).unwrap(), suite.orb_name().unwrap());
    });
    cases.run("asynchronous/wait", |suite| {
        let calls: Vec<_> = (0..FLYING).map(|i| suite.echo_long_async(i, -i)).collect();
        for (i, call) in (0..).zip(calls) {
            assert_eq!(call.wait().unwrap(), (i, i, -i));
        }
    });
    cases.run("asynchronous/callbacks", |suite| {
        let (sender, answers) = channel();
        for i in 0..FLYING {
            let sender = sender.clone();
            // The receiver is gone when the case has failed.
            suite.raise_one_of_async(i % 5).on_reply(move |answer| drop(sender.send((i, answer))));
        }
        let mut received: Vec<_> = (0..FLYING).map(|_| answers.recv_timeout(PEER_TIMEOUT).unwrap()).collect();
        received.sort_unstable_by_key(|(i, _)| *i);
        for (expected, (i, answer)) in (0..).zip(received) {
            use faults::RaiseOneOfError as Raised;
            assert_eq!(i, expected);
            let refused = || Refused { why: "asked".to_owned(), code: 2 };
            assert_eq!(
                answer,
                match i % 5 {
                    1 => Err(Raised::Empty(Empty {})),
                    2 => Err(Raised::Refused(refused())),
                    3 => Err(Raised::Occupied(Occupied { holder: None })),
                    which => Ok(2 * which + 1),
                }
            );
        }
    });
    cases.run("asynchronous/out_of_order", |suite| {
        let later: LaterRef = part(suite, "later");
        let calls: Vec<_> = (0..HELD).map(|i| later.hold_async(i - 1, "kept")).collect();
        wait_until("not all calls arrived", || later.held().unwrap() == HELD as u32);
        // Other calls complete meanwhile.
        assert_eq!(suite.echo_long_async(7, 8).wait().unwrap(), (7, 7, 8));
        assert!(!calls.iter().any(ironorb::Pending::is_ready));
        assert_eq!(later.answer_all().unwrap(), HELD as u32);
        for (i, call) in (-1..).zip(calls) {
            let refused = Refused { why: "late".to_owned(), code: i };
            let expected = if i < 0 { Err(refused.into()) } else { Ok((i, "kept".to_owned())) };
            assert_eq!(block_on(call), expected);
        }
    });
    cases.run("asynchronous/given_up", |suite| {
        let later: LaterRef = part(suite, "later");
        (0..4).for_each(|i| drop(later.hold_async(i, "dropped")));
        let kept = later.hold_async(4, "kept");
        let hurried = later.with_timeout(Some(Duration::from_millis(200)));
        match hurried.hold_async(5, "late").wait() {
            Err(later::HoldError::System(e)) => assert_eq!(e.kind, SystemExceptionKind::Timeout, "{e}"),
            other => panic!("{other:?}"),
        }
        wait_until("not all calls arrived", || later.held().unwrap() == 6);
        assert_eq!(later.answer_all().unwrap(), 6);
        // No call gets the answers of abandoned calls.
        assert_eq!(kept.wait(), Ok((4, "kept".to_owned())));
        (0..20).for_each(|i| assert_eq!(suite.echo_long(i, -i).unwrap(), (i, i, -i)));
    });
}

/// The smallest executor for a future.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
