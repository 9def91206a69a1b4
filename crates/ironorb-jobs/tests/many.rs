//! Many jobs at a time, of all kinds: all end, and leave nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::Pending;
use ironorb::SystemException;
use ironorb_jobs::{Architecture, PartEnd, PartOptions, Quorum, Verdict};
use ironorb_tests::eventually;
use ironorb_tests::testing::{ProbeAsync as _, ProbeRef};

use crate::stage::{Stage, server, slow};

const CLIENTS: usize = 8;
const JOBS: usize = 60;

#[test]
fn all_jobs_end_and_leave_nothing() {
    let (late, _) = slow(Duration::from_millis(3));
    let stage = Stage::of([server(), late], 2);
    let (met, other) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let ways = [
        Architecture::Sequential,
        Architecture::HandleDriven,
        Architecture::Forwarding,
        Architecture::Synchronous,
        Architecture::Auto,
    ];
    let quorums = [Quorum::All, Quorum::Any, Quorum::AtLeast(2), Quorum::BestEffort];
    let run = |client: usize| {
        let mut random = fastrand::Rng::with_seed(client as u64);
        for _ in 0..JOBS {
            let mut job = stage.jobs.job().list::<Pending<i32, SystemException>>();
            let parts = random.usize(1..4);
            for _ in 0..parts {
                let name = if random.u8(..4) == 0 { "b" } else { "a" };
                let options =
                    if random.bool() { PartOptions::new().idempotent().hedged() } else { PartOptions::new() };
                job = job.call_named(name, options, |probe: &ProbeRef| probe.add_async(1, 2));
            }
            let quorum = *random.choice(&quorums).unwrap();
            // Deadlines that some jobs meet and some do not, or none but for safety.
            let within = if random.u8(..3) == 0 { random.u64(1..6) } else { 20_000 };
            job = job.architecture(*random.choice(&ways).unwrap()).quorum(quorum).falls_back(random.bool());
            job = job.within(Duration::from_millis(within)).verified(random.bool());
            let end = match random.u8(..3) {
                0 => {
                    let running = job.begin();
                    if random.bool() {
                        running.give_up();
                    }
                    ironorb_tests::executor::run(running)
                }
                _ => job.run(),
            };
            assert_eq!(end.parts.len(), parts);
            assert!(end.parts.iter().all(|part| !matches!(part, PartEnd::Result(sum) if *sum != 3)));
            let is_met = end.verdict == Verdict::Met;
            if is_met { &met } else { &other }.fetch_add(1, Ordering::Relaxed);
        }
    };
    let run = &run;
    std::thread::scope(|scope| (0..CLIENTS).for_each(|client| drop(scope.spawn(move || run(client)))));
    let [met, other] = [met, other].map(AtomicUsize::into_inner);
    assert_eq!(met + other, CLIENTS * JOBS);
    assert!(met > other && other > 0, "{met} were met, and {other} were not");
    eventually("the daemon is idle", || stage.fact("busy") == 0 && stage.fact("queued") == 0);
    assert_eq!(stage.jobs.counts().awaited, 0);
}
