//! What the jobs of a client and a daemon count, and how the status of their ORBs shows it.

use std::sync::Arc;
use std::time::Duration;

use ironorb::status::{Snapshot, prometheus};
use ironorb::{ObjectRef, Orb, TypedRef};
use ironorb_jobs::{Architecture, JobWay, Jobs, PartEnd, PartOptions, Quorum, WayCounts};
use ironorb_tests::eventually;
use ironorb_tests::executor::run;
use ironorb_tests::testing::{ProbeAsync, ProbeRef};

use crate::stage::{InOrder, Stage, elsewhere, server, slow};

const LONG: Duration = Duration::from_millis(700);

fn met(seen: &Snapshot, way: JobWay) -> u64 {
    seen.total_where("jobs_met_total", "architecture", way.name())
}

#[test]
fn jobs_are_counted_by_the_way_that_they_went() {
    let stage = Stage::new();
    let run = |architecture| {
        let job =
            stage.jobs.job().call_named("a", PartOptions::new(), |probe: &ProbeRef| probe.add_async(1, 2));
        let job = job.call_named("b", PartOptions::new(), |probe: &ProbeRef| probe.add_async(3, 4));
        assert!(job.architecture(architecture).run().is_met());
    };
    let asked = [
        (Architecture::Sequential, JobWay::Sequential, 1),
        (Architecture::HandleDriven, JobWay::HandleDriven, 2),
        (Architecture::Forwarding, JobWay::Forwarding, 3),
        (Architecture::Synchronous, JobWay::Synchronous, 4),
        (Architecture::Auto, JobWay::AutoSynchronous, 5),
    ];
    for (architecture, _, times) in asked {
        (0..times).for_each(|_| run(architecture));
    }
    let (counts, seen) = (stage.jobs.counts(), stage.client.status());
    for (_, way, times) in asked {
        assert_eq!(counts.of(way), WayCounts { met: times, ..WayCounts::default() }, "{way:?}");
        assert_eq!(met(&seen, way), times, "{way:?}");
    }
    assert_eq!((counts.jobs, counts.parts, counts.under_way()), (15, 30, 0));
    assert_eq!((seen.total("jobs_total"), seen.total("job_parts_total")), (15, 30));
    // Those of the daemon's ORB are its own: what it carries out is no job of its clients.
    let seen = stage.orb.status();
    assert_eq!((seen.total("jobs_total"), seen.total("job_daemon_threads")), (0, 4));
    assert_eq!(seen.total("job_daemon_jobs_synchronous_total"), 4 + 5);
    assert_eq!(seen.total("job_daemon_jobs_forwarding_total"), 3);
    let page = prometheus(&seen);
    assert!(page.contains("\nironorb_job_daemon_queue_max{lane=\"0\"} 1\n"), "{page}");
}

#[test]
fn the_ends_of_jobs_and_the_queue_of_a_daemon_are_seen() {
    let (late, _) = slow(LONG);
    let stage = Stage::of([server(), late], 1);
    let job = |name, architecture| {
        let job =
            stage.jobs.job().call_named(name, PartOptions::new(), |probe: &ProbeRef| probe.add_async(1, 2));
        job.architecture(architecture)
    };
    let busy = [job("b", Architecture::Synchronous).begin(), job("b", Architecture::Synchronous).begin()];
    let queued = || stage.orb.status().total("job_daemon_queued");
    eventually("one job runs, and one waits", || {
        queued() == 1 && stage.orb.status().total("job_daemon_busy") == 1
    });
    let counts = stage.jobs.counts();
    assert_eq!((counts.under_way(), stage.client.status().total("jobs_under_way")), (2, 2));
    // The daemon refuses it, so it goes from here.
    assert!(job("a", Architecture::Auto).run().is_met());
    let late = job("b", Architecture::HandleDriven).within(Duration::from_millis(50)).run();
    assert!(!late.is_met());
    let nobody =
        stage.jobs.job().call_named("c", PartOptions::new(), |probe: &ProbeRef| probe.add_async(1, 2));
    let nobody = nobody.architecture(Architecture::HandleDriven).quorum(Quorum::Any).run();
    assert!(!nobody.is_met());
    drop(job("b", Architecture::Sequential).begin());
    for running in busy {
        assert!(run(running).is_met());
    }
    let over = |way| stage.jobs.counts().of(way);
    assert_eq!(over(JobWay::AutoHandleDriven), WayCounts { met: 1, ..WayCounts::default() });
    assert_eq!(over(JobWay::HandleDriven), WayCounts { late: 1, unmet: 1, ..WayCounts::default() });
    eventually("the job is given up", || {
        over(JobWay::Sequential).given_up + over(JobWay::Sequential).met == 1
    });
    let seen = stage.client.status();
    assert_eq!((seen.total("job_fallbacks_total"), seen.total("jobs_late_total")), (1, 1));
    assert_eq!(seen.total("jobs_unmet_total"), 1);
    assert_eq!((queued(), stage.orb.status().total("job_daemon_jobs_refused_total")), (0, 1));
}

/// A hedge begins beside an attempt that is not answered, a retry after one that has failed.
#[test]
fn hedges_and_retries_are_told_apart() {
    let ((_late_orb, late), _) = slow(LONG);
    let ((_quick_orb, quick), _) = slow(Duration::ZERO);
    let stage = Stage::new();
    let [late, quick] = [&late, &quick].map(|probe| elsewhere(&stage.client, probe).object().clone());
    let gone: ObjectRef = stage.client.string_to_object("corbaloc:iiop:1.2@127.0.0.1:1/gone").unwrap();
    let hedged = PartOptions::new().idempotent().hedged_after(Duration::from_millis(30));
    let run = |servers: Vec<ObjectRef>, options| {
        let job = stage
            .jobs
            .job()
            .call_any(Arc::new(InOrder(servers)), options, |probe: &ProbeRef| probe.add_async(1, 2));
        let end = job.run();
        assert!(matches!(end.parts, (PartEnd::Result(3),)), "{:?}", end.parts);
    };
    run(vec![late.clone(), quick.clone()], hedged);
    let counts = stage.jobs.counts();
    assert_eq!((counts.hedges, counts.hedges_won, counts.retries, counts.cancelled), (1, 1, 0, 1));
    run(vec![gone, quick], PartOptions::new());
    let counts = stage.jobs.counts();
    assert_eq!((counts.hedges, counts.hedges_won, counts.retries), (1, 1, 1));
    // The first one answers before its hedge, whose server is as slow.
    run(
        vec![late.clone(), elsewhere(&stage.client, &stage.servers[0].1).object().clone()],
        PartOptions::new(),
    );
    let ((_other_orb, other), _) = slow(LONG * 4);
    run(vec![late, elsewhere(&stage.client, &other).object().clone()], hedged);
    let counts = stage.jobs.counts();
    assert_eq!((counts.hedges, counts.hedges_won, counts.retries), (2, 1, 1));
    assert_eq!(counts.attempts.further, counts.hedges + counts.retries);
    let seen = stage.client.status();
    let requests = |kind| seen.total_where("job_requests_total", "kind", kind);
    assert_eq!(["first", "retry", "hedge"].map(requests), [4, 1, 2]);
    assert_eq!((seen.total("job_hedges_won_total"), seen.total("job_requests_refused_total")), (1, 0));
}

/// Totals never go back, and what several `Jobs` of an ORB count is added up.
#[test]
fn counts_outlive_the_jobs_that_have_made_them() {
    let stage = Stage::new();
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let probe = elsewhere(&orb, &stage.servers[0].1);
    let [one, other] = [(); 2].map(|()| Jobs::builder(&orb).build());
    let run = |jobs: &Jobs| assert!(jobs.job().call(|| probe.add_async(1, 2)).run().is_met());
    run(&one);
    run(&other);
    run(&other);
    assert_eq!((other.counts().jobs, met(&orb.status(), JobWay::HandleDriven)), (2, 3));
    drop(other);
    let seen = orb.status();
    assert_eq!((seen.total("jobs_total"), met(&seen, JobWay::HandleDriven)), (3, 3));
    // One series of each.
    assert_eq!(seen.metrics.iter().filter(|metric| metric.name == "jobs_total").count(), 1);
    run(&one);
    assert_eq!(orb.status().total("jobs_total"), 4);
}
