//! Cases of calls that take time, and of calls from many threads.

use std::time::Duration;

use ironorb::{CompletionStatus, Context, SystemExceptionKind, TypedRef, with_timeout};

use super::runner::{Cases, expect_exception};
use super::values::*;
use crate::interop::*;
use crate::process::wait_until;

/// The time that the server waits for oneways that have been sent, in ms.
const ARRIVAL_MS: u32 = 60_000;

pub(super) fn control(cases: &mut Cases<'_>) {
    cases.run("oneway", |suite| {
        suite.take_tokens(0, 0).unwrap();
        (1..=100).for_each(|token| suite.notify(token).unwrap());
        let mut got = suite.take_tokens(100, ARRIVAL_MS).unwrap();
        // A server with many threads may execute them in any order.
        got.sort_unstable();
        assert_eq!(got, (1..=100).collect::<Vec<i32>>());
    });
    cases.run("oneway/blob", |suite| {
        suite.take_tokens(0, 0).unwrap();
        suite.notify_blob(&octets(300_000), "a large oneway").unwrap();
        suite.notify_blob(&[], "").unwrap();
        let mut got = suite.take_tokens(2, ARRIVAL_MS).unwrap();
        got.sort_unstable();
        assert_eq!(got, [0, 300_000]);
    });
    cases.run("context/none", |suite| {
        assert_eq!(suite.with_context(1).unwrap(), Vec::<String>::new());
        // No property that the clause names.
        let unnamed = Context::new().with("other", "v-other").with("Region", "v-Region");
        assert_eq!(unnamed.enter(|| suite.with_context(1)).unwrap(), Vec::<String>::new());
    });
    // Servers without support for contexts must accept them too.
    cases.run("context/sent", |suite| {
        let context = Context::new().with("region", "north").with("colors", "x".repeat(10_000));
        context.enter(|| suite.with_context(1)).unwrap();
        assert_eq!(suite.echo_long(1, 2).unwrap(), (1, 1, 2));
    });
    cases.run("context/values", |suite| {
        let names = ["color", "color_depth", "region", "other"];
        let context = names.iter().fold(Context::new(), |c, name| c.with(*name, format!("v-{name}")));
        let expected = ["color=v-color", "color_depth=v-color_depth", "region=v-region"];
        assert_eq!(context.enter(|| suite.with_context(1)).unwrap(), expected);
        // A call sees the innermost of nested contexts.
        let inner = Context::new().with("region", "");
        assert_eq!(context.enter(|| inner.enter(|| suite.with_context(1))).unwrap(), ["region="]);
    });
    cases.run("block", |suite| {
        std::thread::scope(|threads| {
            let blocked = threads.spawn(|| suite.block("rust"));
            wait_for_one(suite, "rust");
            // The blocked call must not stop others.
            (0..20).for_each(|_| suite.nothing().unwrap());
            assert_eq!(suite.release("rust").unwrap(), 1);
            assert!(blocked.join().unwrap().unwrap() >= 1);
        });
    });
    cases.run("block/many", |suite| {
        std::thread::scope(|threads| {
            let blocked: Vec<_> = (0..6).map(|_| threads.spawn(|| suite.block("many"))).collect();
            wait_until("not all calls arrived", || suite.waiting("many").unwrap() == 6);
            assert_eq!(suite.echo_long(1, 2).unwrap(), (1, 1, 2));
            assert_eq!(suite.release("many").unwrap(), 6);
            blocked.into_iter().for_each(|call| assert!(call.join().unwrap().unwrap() >= 1));
        });
    });
    cases.run("timeout", |suite| {
        let hurried = suite.with_timeout(Some(Duration::from_millis(200)));
        expect_exception(hurried.block("timeout"), SystemExceptionKind::Timeout, CompletionStatus::Maybe);
        // The server still runs, and still holds the abandoned call.
        wait_for_one(suite, "timeout");
        assert_eq!(suite.release("timeout").unwrap(), 1);
        // The late reply is dropped: the next calls get their own replies.
        (0..20).for_each(|i| assert_eq!(suite.echo_long(i, -i).unwrap(), (i, i, -i)));
        let result = with_timeout(Some(Duration::from_millis(200)), || suite.block("timeout"));
        expect_exception(result, SystemExceptionKind::Timeout, CompletionStatus::Maybe);
        wait_for_one(suite, "timeout");
        assert_eq!(suite.release("timeout").unwrap(), 1);
    });
}

fn wait_for_one(suite: &SuiteRef, gate: &str) {
    wait_until("the blocked call never arrived", || suite.waiting(gate).unwrap() == 1);
}

pub(super) fn threads(cases: &mut Cases<'_>) {
    cases.run("threads", |suite| {
        std::thread::scope(|threads| {
            for thread in 0..8 {
                threads.spawn(move || {
                    for round in 0..60 {
                        let number = round * 8 + thread;
                        assert_eq!(suite.echo_long(number, thread).unwrap(), (number, number, thread));
                        let sent = octets(round as usize * 97 * (thread as usize + 1));
                        assert!(suite.reflect_octets(&sent).unwrap() == sent);
                        let (a, b) = (thread.to_string(), round.to_string());
                        assert_eq!(suite.type_(&a, &b).unwrap(), format!("{a}&{b}"));
                        match suite.raise_one_of(2) {
                            Err(faults::RaiseOneOfError::Refused(e)) => assert_eq!(e.code, 2),
                            other => panic!("{other:?}"),
                        }
                    }
                });
            }
        });
    });
}
