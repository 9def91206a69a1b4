//! When a job has enough, and what becomes of the rest.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ironorb::{CompletionStatus, MinorCode, ObjectRef, Orb, SystemException, SystemExceptionKind, TypedRef};
use ironorb_jobs::{Architecture, Chosen, Daemon, Job, Jobs, PartEnd, PartOptions, Quorum, Servers, Verdict};
use ironorb_tests::executor::run;
use ironorb_tests::gate::Gate;
use ironorb_tests::testing::{ProbeAsync, ProbeRef};
use ironorb_tests::{Hooked, Probing, eventually};

use crate::stage::{InOrder, Stage, elsewhere, server, slow, table, working};

const LONG: Duration = Duration::from_millis(700);

/// The first of two is enough; the other one's server is told that nobody waits.
#[test]
fn any_result_may_be_enough() {
    let (late, _) = slow(LONG);
    let stage = Stage::of([server(), late], 1);
    let options = PartOptions::new();
    for architecture in [Architecture::HandleDriven, Architecture::Forwarding, Architecture::Synchronous] {
        let job = |quorum| {
            let job = stage.jobs.job().call_named("a", options, |probe: &ProbeRef| probe.add_async(1, 2));
            let job = job.call_named("b", options, |probe: &ProbeRef| probe.add_async(3, 4));
            job.architecture(architecture).quorum(quorum).run()
        };
        // What has not been sent yet needs not be cancelled: connections are made by now.
        assert!(job(Quorum::All).is_met());
        let end = job(Quorum::Any);
        assert_eq!(end.verdict, Verdict::Met);
        assert!(
            matches!(end.parts, (PartEnd::Result(3), PartEnd::Cancelled { may_be_executed: true })),
            "{architecture:?}: {:?}",
            end.parts
        );
    }
    let told = || stage.servers[1].0.status().total("cancel_requests_total");
    eventually("the server is told of those that were cancelled", || told() >= 2);
}

#[test]
fn time_is_over_when_it_is() {
    let (late, _) = slow(LONG);
    let stage = Stage::of([server(), late], 4);
    let options = PartOptions::new();
    for architecture in [Architecture::HandleDriven, Architecture::Forwarding, Architecture::Synchronous] {
        for (quorum, verdict) in [(Quorum::All, Verdict::Deadline), (Quorum::BestEffort, Verdict::Met)] {
            // A daemon tells what it has 20 ms before the time is over: on a busy machine that is too late now and then.
            eventually("the quick part's result comes in time", || {
                let end = stage
                    .jobs
                    .job()
                    .call_named("a", options, |probe: &ProbeRef| probe.add_async(1, 2))
                    .call_named("b", options, |probe: &ProbeRef| probe.add_async(3, 4))
                    .architecture(architecture)
                    .quorum(quorum)
                    .within(Duration::from_millis(600))
                    .run();
                assert_eq!(end.verdict, verdict, "{architecture:?}");
                let (quick, late) = end.parts;
                assert!(
                    matches!(late, PartEnd::Cancelled { may_be_executed: true }),
                    "{architecture:?}: {late:?}"
                );
                assert!(
                    matches!(quick, PartEnd::Result(3) | PartEnd::Cancelled { may_be_executed: true }),
                    "{architecture:?}: {quick:?}"
                );
                quick.is_result()
            });
        }
    }
}

/// What servers would tell of jobs that are over is not waited for.
#[test]
fn nothing_is_awaited_once_a_job_is_over() {
    let (late, _) = slow(LONG);
    let stage = Stage::of([server(), late], 4);
    let end = stage
        .jobs
        .job()
        .call_named("b", PartOptions::new(), |probe: &ProbeRef| probe.add_async(3, 4))
        .architecture(Architecture::Forwarding)
        .within(Duration::from_millis(100))
        .run();
    assert!(matches!(end.parts, (PartEnd::Cancelled { may_be_executed: true },)), "{:?}", end.parts);
    assert_eq!(stage.jobs.counts().awaited, 0);
}

/// A server that does not answer in time is helped out by another, for what may be carried out twice.
#[test]
fn another_server_is_asked_when_one_is_late() {
    let ((_late_orb, late), late_calls) = slow(LONG);
    let asked = late_calls.clone();
    let waits = move || eventually("the late one is asked", || asked.load(Ordering::SeqCst) > 0);
    let ((_quick_orb, quick), quick_calls) = working(waits);
    let stage = Stage::new();
    let servers = [&late, &quick].map(|probe| elsewhere(&stage.client, probe).object().clone());
    let after = Duration::from_millis(30);
    let hedged = PartOptions::new().idempotent().hedged_after(after);
    let end = stage
        .jobs
        .job()
        .call_any(Arc::new(InOrder(servers.to_vec())), hedged, |probe: &ProbeRef| probe.add_async(1, 2))
        .run();
    assert!(matches!(end.parts, (PartEnd::Result(3),)), "{:?}", end.parts);
    assert_eq!(end.times[0].attempts, 2);
    assert_eq!((late_calls.load(Ordering::SeqCst), quick_calls.load(Ordering::SeqCst)), (1, 1));
    // What must not be carried out twice is not.
    let once = PartOptions::new().hedged_after(after);
    let end = stage
        .jobs
        .job()
        .call_any(Arc::new(InOrder(servers.to_vec())), once, |probe: &ProbeRef| probe.add_async(1, 2))
        .run();
    assert!(end.is_met());
    assert_eq!(end.times[0].attempts, 1);
    assert_eq!((late_calls.load(Ordering::SeqCst), quick_calls.load(Ordering::SeqCst)), (2, 1));
}

/// Servers with one name, and a daemon that asks them in this order.
fn behind_a_daemon(servers: &[&ProbeRef]) -> (Daemon, Jobs, [Orb; 2]) {
    let orbs = [(); 2].map(|()| Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap());
    let daemon = Daemon::builder().handles(table(&orbs[0], &[("any", servers)])).serve(&orbs[0]).unwrap();
    let at = daemon.reference().object().to_ior_string();
    let jobs = Jobs::builder(&orbs[1]).daemon(&at).unwrap().build();
    (daemon, jobs, orbs)
}

/// What is idempotent and hedged is so at the daemon, too: after the time that its client says, or by what calls have taken there.
#[test]
fn a_daemon_asks_another_server_when_one_is_late() {
    let gate = Gate::opened();
    let _opens = gate.open_at_end();
    let (late_orb, quick_orb) = (crate::stage::orb(), server());
    let pass = gate.clone();
    let late: ProbeRef = late_orb
        .root_poa()
        .activate(Hooked::new(move || {
            pass.pass();
            Ok(())
        }))
        .unwrap();
    let (daemon, jobs, _orbs) = behind_a_daemon(&[&late, &quick_orb.1]);
    let run = |options: PartOptions| {
        let job = jobs.job().call_named("any", options, |probe: &ProbeRef| probe.ping_async());
        job.architecture(Architecture::Synchronous).within(Duration::from_secs(20)).run().parts.0
    };
    let fact = |name: &str| daemon.facts().iter().find(|fact| fact.0 == name).map(|fact| fact.1);
    let hedged = PartOptions::new().idempotent().hedged();
    // As many as the daemon needs to know what is late.
    for _ in 0..150 {
        assert!(run(hedged).is_result());
    }
    let before = fact("hedges_total").unwrap();
    gate.close();
    assert!(run(hedged).is_result(), "after the time that the daemon has seen");
    assert_eq!(fact("hedges_total"), Some(before + 1));
    assert!(
        run(hedged.hedged_after(Duration::from_millis(2))).is_result(),
        "after the time that the client says"
    );
    assert_eq!(fact("hedges_total"), Some(before + 2));
    // What must not be carried out twice waits.
    let once = PartOptions::new().hedged_after(Duration::from_millis(2)).within(Duration::from_millis(300));
    let end = run(once);
    assert!(matches!(end, PartEnd::Cancelled { may_be_executed: true }), "{end:?}");
    assert_eq!(fact("hedges_total"), Some(before + 2));
}

/// The exception of one server, that it has not carried a part out, says nothing of the one that was asked before.
#[test]
fn what_one_server_has_not_executed_another_may_have() {
    let gate = Gate::closed();
    let _opens = gate.open_at_end();
    let refusing = || -> Result<(), SystemException> {
        Err(SystemException::new(SystemExceptionKind::NoPermission, MinorCode::NONE, CompletionStatus::No))
    };
    let serve = |servant: Hooked| {
        let orb = crate::stage::orb();
        let probe: ProbeRef = orb.root_poa().activate(servant).unwrap();
        (orb, probe)
    };
    let pass = gate.clone();
    let (_late_orb, late) = serve(Hooked::new(move || {
        pass.pass();
        Ok(())
    }));
    let (_refusing_orb, refuses) = serve(Hooked::new(refusing));
    let stage = Stage::new();
    let [late, refuses] = [&late, &refuses].map(|probe| elsewhere(&stage.client, probe).object().clone());
    let options = PartOptions::new().idempotent().hedged_after(Duration::from_millis(1));
    let of = |servers: Vec<ObjectRef>| {
        let job = stage.jobs.job();
        let job = job.call_any(Arc::new(InOrder(servers)), options, |probe: &ProbeRef| probe.ping_async());
        let end = job.run();
        let (PartEnd::Exception(e),) = end.parts else { panic!("{:?}", end.parts) };
        (e.kind, e.completed, end.times[0].attempts)
    };
    assert_eq!(
        of(vec![late, refuses.clone()]),
        (SystemExceptionKind::NoPermission, CompletionStatus::Maybe, 2)
    );
    // Where no other server was asked, the exception says all.
    assert_eq!(of(vec![refuses]), (SystemExceptionKind::NoPermission, CompletionStatus::No, 1));
}

/// A server that is not there has carried nothing out: the next one is asked.
#[test]
fn another_server_is_asked_when_one_has_gone() {
    let stage = Stage::new();
    let gone: ObjectRef = stage.client.string_to_object("corbaloc:iiop:1.2@127.0.0.1:1/gone").unwrap();
    let there = elsewhere(&stage.client, &stage.servers[0].1).object().clone();
    let end = stage
        .jobs
        .job()
        .call_any(Arc::new(InOrder(vec![gone, there])), PartOptions::new(), |probe: &ProbeRef| {
            probe.add_async(1, 2)
        })
        .run();
    assert!(matches!(end.parts, (PartEnd::Result(3),)), "{:?}", end.parts);
    assert_eq!(end.times[0].attempts, 2);
}

/// A choice that panics fails its attempt, also where no caller is there to hear of it.
#[test]
fn a_choice_that_panics_ends_its_part() {
    struct Panics;
    impl Servers for Panics {
        fn count(&self) -> usize {
            2
        }

        fn choose(&self, _: &[ObjectRef]) -> Option<Chosen> {
            panic!("this server is not to be chosen")
        }
    }
    let stage = Stage::new();
    let job = || {
        stage
            .jobs
            .job()
            .call_any(Arc::new(Panics), PartOptions::new(), |probe: &ProbeRef| probe.add_async(1, 2))
    };
    for end in [job().run(), run(job().begin())] {
        let (PartEnd::Exception(e),) = end.parts else { panic!("{:?}", end.parts) };
        assert_eq!(e.kind, ironorb::SystemExceptionKind::Internal);
    }
}

/// A daemon that has no thread and no room refuses a job. The policy `Auto` runs it from here then.
#[test]
fn a_full_daemon_refuses_jobs_and_auto_goes_around_it() {
    let (late, calls) = slow(LONG);
    let stage = Stage::of([server(), late], 1);
    let options = PartOptions::new();
    let job = |architecture| {
        let job = stage.jobs.job().call_named("b", options, |probe: &ProbeRef| probe.add_async(1, 2));
        job.architecture(architecture)
    };
    let busy = [job(Architecture::Synchronous).begin(), job(Architecture::Synchronous).begin()];
    eventually("one job runs, and one waits", || stage.fact("busy") == 1 && stage.fact("queued") == 1);
    let end = job(Architecture::Synchronous).run();
    let (PartEnd::Exception(e),) = end.parts else { panic!("{:?}", end.parts) };
    assert_eq!(e.kind, ironorb::SystemExceptionKind::Transient);
    let quick = stage.jobs.job().call_named("a", options, |probe: &ProbeRef| probe.add_async(3, 4));
    let end = quick.architecture(Architecture::Auto).run();
    assert!(matches!(end.parts, (PartEnd::Result(7),)), "{:?}", end.parts);
    assert_eq!((stage.fact("jobs_refused_total"), stage.jobs.counts().fallbacks), (2, 1));
    for running in busy {
        let end = run(running);
        assert!(matches!(end.parts, (PartEnd::Result(3),)), "{:?}", end.parts);
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// The policy `Auto` does not wait for a thread of the daemon where it could run the job from here.
#[test]
fn auto_waits_for_no_thread_of_the_daemon() {
    let (late, calls) = slow(LONG);
    let stage = Stage::of([server(), late], 1);
    let job = |name, architecture| {
        let job =
            stage.jobs.job().call_named(name, PartOptions::new(), |probe: &ProbeRef| probe.add_async(1, 2));
        job.architecture(architecture)
    };
    let busy = job("b", Architecture::Synchronous).begin();
    eventually("the call has begun", || calls.load(Ordering::SeqCst) == 1);
    let end = job("a", Architecture::Auto).run();
    assert!(matches!(end.parts, (PartEnd::Result(3),)), "{:?}", end.parts);
    assert_eq!((stage.fact("jobs_queued_total"), stage.fact("jobs_refused_total")), (0, 1));
    assert_eq!(stage.jobs.counts().fallbacks, 1);
    assert!(matches!(run(busy).parts, (PartEnd::Result(3),)));
    eventually("the thread is free", || stage.fact("busy") == 0);
    let end = job("a", Architecture::Auto).run();
    assert!(matches!(end.parts, (PartEnd::Result(3),)), "{:?}", end.parts);
    assert_eq!((stage.fact("jobs_synchronous_total"), stage.jobs.counts().fallbacks), (2, 1));
}

#[test]
fn a_job_is_given_up() {
    let ((server, late), calls) = slow(LONG);
    let stage = Stage::new();
    let late = elsewhere(&stage.client, &late);
    let running = Job::new().call(|| late.add_async(1, 2)).begin();
    eventually("the call has begun", || calls.load(Ordering::SeqCst) == 1);
    running.give_up();
    let end = run(running);
    assert_eq!(end.verdict, Verdict::GivenUp);
    assert!(matches!(end.parts, (PartEnd::Cancelled { may_be_executed: true },)), "{:?}", end.parts);
    drop(Job::new().call(|| late.add_async(1, 2)).begin());
    eventually("both are cancelled", || server.status().total("cancel_requests_total") >= 1);
}

/// The daemon gives up what its client has given up, and tells the servers.
#[test]
fn a_daemon_gives_up_what_its_client_does() {
    let (late, calls) = slow(LONG);
    let stage = Stage::of([server(), late], 1);
    let running = stage
        .jobs
        .job()
        .call_named("b", PartOptions::new(), |probe: &ProbeRef| probe.add_async(1, 2))
        .architecture(Architecture::Synchronous)
        .begin();
    eventually("the call has begun", || calls.load(Ordering::SeqCst) == 1);
    drop(running);
    let told = || stage.servers[1].0.status().total("cancel_requests_total");
    eventually("the server is told", || told() == 1);
    eventually("the daemon is idle", || stage.fact("busy") == 0);
    assert_eq!(stage.fact("cancelled_total"), 1);
}

/// Servers that cannot tell results are called by the daemon, part by part: how many the job needs is its client's affair.
#[test]
fn forwarded_parts_of_foreign_servers_count_for_quorums() {
    let foreign = || {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let probe = orb.root_poa().activate(Probing::default()).unwrap();
        (orb, probe)
    };
    let stage = Stage::of([foreign(), foreign()], 1);
    let job = stage.jobs.job().call_named("a", PartOptions::new(), |probe: &ProbeRef| probe.add_async(1, 2));
    let job = job.call_named("b", PartOptions::new(), |probe: &ProbeRef| probe.add_async(3, 4));
    let job = job.architecture(Architecture::Forwarding).within(Duration::from_secs(20));
    let end = job.quorum(Quorum::AtLeast(2)).run();
    assert!(matches!(end.parts, (PartEnd::Result(3), PartEnd::Result(7))), "{:?}", end.parts);
}

/// Jobs that wait are bounded by what they hold, too: a few long ones are as much as many short ones.
#[test]
fn jobs_that_wait_are_bounded_by_their_octets() {
    let (late, calls) = slow(LONG);
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let builder = Daemon::builder().threads(1).queue_max(100).queue_octets_max(100_000);
    let daemon = builder.handles(table(&orb, &[("a", &[&late.1])])).serve(&orb).unwrap();
    let client = Orb::builder().build().unwrap();
    let at = daemon.reference().object().to_ior_string();
    let jobs = Jobs::builder(&client).daemon(&at).unwrap().build();
    let options = PartOptions::new();
    let job = || jobs.job().architecture(Architecture::Synchronous);
    let busy = job().call_named("a", options, |probe: &ProbeRef| probe.add_async(1, 2)).begin();
    eventually("the thread is busy", || calls.load(Ordering::SeqCst) == 1);
    let long = "x".repeat(60_000);
    let waits = || job().call_named("a", options, |probe: &ProbeRef| probe.echo_async(&long)).begin();
    let first = waits();
    let fact = |name: &str| daemon.facts().iter().find(|fact| fact.0 == name).map_or(0, |fact| fact.1);
    eventually("it waits", || fact("queued") == 1);
    assert!((60_000..70_000).contains(&fact("queued_octets")), "{}", fact("queued_octets"));
    let (PartEnd::Exception(e),) = run(waits()).parts else { panic!("it is refused") };
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    // One that is short has room.
    let short = job().call_named("a", options, |probe: &ProbeRef| probe.add_async(1, 2)).begin();
    eventually("both wait", || fact("queued") == 2);
    assert!(run(busy).is_met());
    assert!(matches!(run(first).parts, (PartEnd::Exception(_),)), "its server knows no such operation");
    assert!(run(short).is_met());
    assert_eq!((fact("queued_octets"), fact("jobs_refused_total")), (0, 1));
}

/// What has waited for a thread until its time was over is not sent.
#[test]
fn a_daemon_forwards_nothing_that_is_late() {
    let (counted, calls) = slow(Duration::ZERO);
    let (late, late_calls) = slow(LONG);
    let stage = Stage::of([counted, late], 1);
    let job = |name| {
        let call = |probe: &ProbeRef| probe.add_async(1, 2);
        stage.jobs.job().call_named(name, PartOptions::new(), call)
    };
    let busy = job("b").architecture(Architecture::Synchronous).begin();
    eventually("the call has begun", || late_calls.load(Ordering::SeqCst) == 1);
    let end = job("a").architecture(Architecture::Forwarding).within(Duration::from_millis(50)).run();
    assert_eq!(end.verdict, Verdict::Deadline);
    eventually("it waits", || stage.fact("queued") == 1);
    assert!(matches!(run(busy).parts, (PartEnd::Result(3),)));
    eventually("the daemon is idle", || stage.fact("busy") == 0);
    assert_eq!(stage.fact("jobs_forwarding_total"), 1);
    assert!(job("a").architecture(Architecture::Synchronous).run().is_met());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(stage.fact("parts_total"), 2, "the late one is none");
}
