//! The four architectures give the same results.

use std::time::Duration;

use ironorb::dynamic::{OperationDescription, ParameterMode, Request};
use ironorb::giop::typecode::TypeDef;
use ironorb::{CompletionStatus, Orb, SystemExceptionKind, TypedRef};
use ironorb_jobs::{Architecture, Daemon, Job, Jobs, PartEnd, PartOptions, Quorum, Verdict};
use ironorb_tests::testing::probe::RefuseError;
use ironorb_tests::testing::{ProbeAsync, ProbeRef};

use crate::stage::{Stage, elsewhere, server, table};

pub(crate) const ALL: [Architecture; 5] = [
    Architecture::Sequential,
    Architecture::HandleDriven,
    Architecture::Forwarding,
    Architecture::Synchronous,
    Architecture::Auto,
];

#[test]
fn calls_of_references_need_nothing_else() {
    let stage = Stage::new();
    let [a, b] = stage.servers.each_ref().map(|(_, probe)| elsewhere(&stage.client, probe));
    let end = Job::new().call(|| a.add_async(1, 2)).call(|| b.echo_async("żółw 🐢")).run();
    assert!(end.is_met());
    let (PartEnd::Result(sum), PartEnd::Result(text)) = end.parts else { panic!("{:?}", end.parts) };
    assert_eq!((sum, text.as_str()), (3, "żółw 🐢"));
    let all = Job::all((0..10).map(|n| {
        let a = &a;
        move || a.add_async(n, n)
    }))
    .run();
    let sums: Vec<i32> = all.parts.into_iter().filter_map(PartEnd::result).collect();
    assert_eq!(sums, (0..10).map(|n| 2 * n).collect::<Vec<_>>());
}

#[test]
fn names_lead_to_servers_on_every_way() {
    let stage = Stage::new();
    let options = PartOptions::new();
    for architecture in ALL {
        for verifies in [false, true] {
            let end = stage
                .jobs
                .job()
                .call_named("a", options, |probe: &ProbeRef| probe.add_async(20, 3))
                .call_named("b", options, |probe: &ProbeRef| probe.echo_async("żółw 🐢"))
                .call_named("a", options, |probe: &ProbeRef| probe.refuse_async("no"))
                .architecture(architecture)
                .verified(verifies)
                .within(Duration::from_secs(20))
                .run();
            assert_eq!(end.verdict, Verdict::Met, "{architecture:?}");
            match end.parts {
                (
                    PartEnd::Result(23),
                    PartEnd::Result(text),
                    PartEnd::Exception(RefuseError::Refused(refused)),
                ) => assert_eq!((text.as_str(), refused.why.as_str()), ("żółw 🐢", "no")),
                other => panic!("{architecture:?}: {other:?}"),
            }
            assert_eq!(end.times.iter().map(|time| time.attempts).collect::<Vec<_>>(), [1, 1, 1]);
        }
    }
    assert_eq!(stage.fact("jobs_forwarding_total"), 2);
    assert_eq!(stage.fact("jobs_synchronous_total"), 4);
}

/// A reference is a target as any other, and calls that are known only at run time are calls.
#[test]
fn references_and_dynamic_calls_go_through_the_daemon() {
    let stage = Stage::new();
    let probe = elsewhere(&stage.client, &stage.servers[0].1);
    let add = OperationDescription::new("add")
        .returns(&TypeDef::Long)
        .parameter("a", ParameterMode::In, &TypeDef::Long)
        .parameter("b", ParameterMode::In, &TypeDef::Long);
    for architecture in ALL {
        let mut request = Request::new(probe.object(), add.clone());
        request.set(0, &4_i32).unwrap();
        request.set(1, &5_i32).unwrap();
        let job = stage.jobs.job().call(|| probe.add_async(1, 2)).call(|| request.send_deferred());
        let end = job.architecture(architecture).within(Duration::from_secs(20)).run();
        let (PartEnd::Result(3), PartEnd::Result(results)) = end.parts else { panic!("{:?}", end.parts) };
        assert_eq!(results.result().unwrap().extract::<i32>().unwrap(), 9);
    }
}

#[test]
fn what_cannot_be_reached_has_not_been_carried_out() {
    let stage = Stage::new();
    let options = PartOptions::new();
    for architecture in ALL {
        let end = stage
            .jobs
            .job()
            .call_named("a", options, |probe: &ProbeRef| probe.add_async(1, 2))
            .call_named("nobody", options, |probe: &ProbeRef| probe.add_async(3, 4))
            .architecture(architecture)
            .quorum(Quorum::BestEffort)
            .within(Duration::from_secs(20))
            .run();
        match end.parts {
            (PartEnd::Result(3), PartEnd::Exception(e)) => {
                assert_eq!(e.kind, SystemExceptionKind::Transient, "{architecture:?}: {e}");
            }
            other => panic!("{architecture:?}: {other:?}"),
        }
    }
}

/// A system exception of a servant is an answer on every way, whatever it says of the operation.
#[test]
fn a_servant_s_system_exception_is_an_answer() {
    let stage = Stage::new();
    for architecture in ALL {
        let job = stage.jobs.job();
        let job = job.call_named("a", PartOptions::new(), |probe: &ProbeRef| probe.raise_system_async(7));
        let end = job.architecture(architecture).within(Duration::from_secs(20)).run();
        let (PartEnd::Exception(e),) = end.parts else { panic!("{architecture:?}: {:?}", end.parts) };
        let told = (e.kind, e.minor.0, e.completed);
        assert_eq!(told, (SystemExceptionKind::NoPermission, 7, CompletionStatus::Yes), "{architecture:?}");
        assert_eq!(end.verdict, Verdict::Met, "{architecture:?}");
    }
}

/// A server that has gone tells nobody of a part that was forwarded to it. The daemon does, at once, and asks another server of the
/// name first.
#[test]
fn a_part_that_cannot_be_forwarded_is_told_so() {
    let limit = Duration::from_secs(20);
    for has_been_called in [false, true] {
        let servers = [server(), server()];
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let [(gone, mortal), (_there, other)] = &servers;
        let names: [(&str, &[&ProbeRef]); 2] = [("one", &[mortal]), ("any", &[mortal, other])];
        let daemon = Daemon::builder().handles(table(&orb, &names)).serve(&orb).unwrap();
        let client = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let at = daemon.reference().object().to_ior_string();
        let jobs = Jobs::builder(&client).handles(table(&client, &names)).daemon(&at).unwrap().build();
        let run = |name, falls_back| {
            let job =
                jobs.job().call_named(name, PartOptions::new(), |probe: &ProbeRef| probe.add_async(1, 2));
            let job = job.architecture(Architecture::Forwarding).falls_back(falls_back);
            job.within(limit).run().parts.0
        };
        if has_been_called {
            assert!(run("one", false).is_result());
        }
        gone.shutdown(true).unwrap();
        for falls_back in [false, true] {
            let end = run("one", falls_back);
            let PartEnd::Exception(e) = end else { panic!("{has_been_called}, {falls_back}: {end:?}") };
            assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
            assert!(run("any", falls_back).is_result(), "{has_been_called}, {falls_back}");
        }
        let fact = |name: &str| daemon.facts().iter().find(|fact| fact.0 == name).map(|fact| fact.1);
        // One of each part, and a further one for both of which there was another server.
        assert_eq!(fact("parts_total"), Some(4 + u64::from(has_been_called)));
        assert_eq!(fact("further_attempts_total"), Some(2));
        assert_eq!(jobs.counts().awaited, 0);
        // What could not be sent keeps no thread.
        daemon.drain();
    }
}
