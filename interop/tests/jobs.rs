//! Jobs over plain servers of omniORB, JacORB and IronORB at once: from the client, and through the daemon.

use std::thread;
use std::time::Duration;

use ironorb::giop::CharSet;
use ironorb::{CompletionStatus, Orb, SystemExceptionKind, TypedRef};
use ironorb_interop::interop::faults::{RaiseDetailedError, RaiseOneOfError};
use ironorb_interop::interop::{
    Basics, BasicsAsync, Completion, Control, ControlAsync, Fault, FaultsAsync, Node, References,
    ReferencesAsync, Suite, SuiteRef, TextsAsync, TextsRef, WideAsync,
};
use ironorb_interop::ours::{builder, client, serve};
use ironorb_interop::peer::Peer;
use ironorb_interop::process::{Process, ironorb_command, wait_until};
use ironorb_interop::results::{Side, case};
use ironorb_jobs::{Architecture, InTurn, Jobs, PartEnd, PartOptions, Quorum, Verdict};

/// Bounds what would hang.
const LONG: Duration = Duration::from_secs(60);

/// Each way, and whether servers are asked by a LocateRequest before. Forwarded parts of these servers are called by the daemon,
/// which tells the client: they know nothing of it.
const WAYS: [(Architecture, bool); 7] = [
    (Architecture::Sequential, true),
    (Architecture::Sequential, false),
    (Architecture::HandleDriven, true),
    (Architecture::HandleDriven, false),
    (Architecture::Synchronous, false),
    (Architecture::Forwarding, false),
    (Architecture::Auto, false),
];

/// Characters of ISO 8859-1, and such beyond it.
const LATIN: &str = "caf\u{e9} \u{ff} \u{a3}";
const BEYOND: &str = "z\u{fc} \u{20ac} \u{4e16} \u{1f600}";

/// A server of each ORB, and the daemon.
struct Stage {
    servers: [Process; 3],
    daemon: Process,
    iors: [String; 3],
    /// The daemon's address.
    at: String,
}

impl Stage {
    /// With these options of the servers of omniORB, JacORB and IronORB.
    fn new(options: [&[&str]; 3]) -> Stage {
        let (omniorb, first) = Peer::OmniOrb.start_server(options[0]);
        let (jacorb, second) = Peer::JacOrb.start_server(options[1]);
        let (ours, third) = serve(options[2]);
        let daemon = Process::start(ironorb_command(), &["job", "serve", "--endpoint", "iiop://127.0.0.1:0"]);
        let at = loop {
            if let Some(at) = daemon.line().strip_prefix("ready ") {
                break at.to_owned();
            }
        };
        Stage { servers: [omniorb, jacorb, ours], daemon, iors: [first, second, third], at }
    }

    fn jobs(&self, orb: &Orb) -> Jobs {
        Jobs::builder(orb).daemon(&self.at).unwrap().build()
    }

    /// The objects of the servers, in their order.
    fn suites(&self, orb: &Orb) -> [SuiteRef; 3] {
        self.iors.each_ref().map(|ior| orb.resolve(ior).unwrap())
    }

    /// All still serve, and end in order.
    fn end(self) {
        let names = self.suites(&client()).map(|suite| suite.orb_name().unwrap());
        assert_eq!(names, ["omniORB", "JacORB", "IronORB"]);
        for process in std::iter::once(self.daemon).chain(self.servers) {
            let finished = process.terminate();
            assert!(finished.status.success(), "{finished:?}");
        }
    }
}

/// A case of both peers.
fn both(name: &str, body: impl FnOnce()) {
    case(Peer::OmniOrb, Side::Client, name, || case(Peer::JacOrb, Side::Client, name, body));
}

#[test]
fn one_job_calls_servers_of_three_orbs_on_each_way() {
    both("jobs/calls", || {
        let stage = Stage::new([&[]; 3]);
        let orb = client();
        let (jobs, [omniorb, jacorb, ours]) = (stage.jobs(&orb), stage.suites(&orb));
        let expected = [&omniorb, &jacorb, &ours].map(|suite| suite.mix("left", -7, 250, -2.5).unwrap());
        for (architecture, verifies) in WAYS {
            let end = jobs
                .job()
                .call(|| omniorb.mix_async("left", -7, 250, -2.5))
                .call(|| jacorb.mix_async("left", -7, 250, -2.5))
                .call(|| ours.mix_async("left", -7, 250, -2.5))
                .call(|| omniorb.raise_one_of_async(2))
                .call(|| jacorb.raise_detailed_async(3))
                .call(|| jacorb.raise_system_async(Fault::NoPermission, 7, Completion::CompletedYes))
                .architecture(architecture)
                .verified(verifies)
                .within(LONG)
                .run();
            assert_eq!(end.verdict, Verdict::Met, "{architecture:?}: {:?}", end.parts);
            match end.parts {
                (
                    PartEnd::Result(first),
                    PartEnd::Result(second),
                    PartEnd::Result(third),
                    PartEnd::Exception(RaiseOneOfError::Refused(refused)),
                    PartEnd::Exception(RaiseDetailedError::Detailed(detailed)),
                    PartEnd::Exception(e),
                ) => {
                    assert_eq!([first, second, third], expected, "{architecture:?}");
                    assert_eq!((refused.why.as_str(), refused.code), ("asked", 2));
                    assert_eq!((detailed.at.s, detailed.trail.len()), (3, 3));
                    let told = (e.kind, e.minor.0, e.completed);
                    assert_eq!(told, (SystemExceptionKind::NoPermission, 7, CompletionStatus::Yes), "{e}");
                }
                other => panic!("{architecture:?}: {other:?}"),
            }
            // References go through the daemon as they are: each server calls the other's object.
            let nodes = [&omniorb, &jacorb].map(|suite| suite.create_node(40).unwrap().unwrap());
            let end = jobs
                .job()
                .call(|| omniorb.id_of_async(Some(&nodes[1])))
                .call(|| jacorb.id_of_async(Some(&nodes[0])))
                .call(|| jacorb.create_node_async(41))
                .architecture(architecture)
                .verified(verifies)
                .within(LONG)
                .run();
            match end.parts {
                (PartEnd::Result(40), PartEnd::Result(40), PartEnd::Result(Some(node))) => {
                    assert_eq!(node.id().unwrap(), 41);
                }
                other => panic!("{architecture:?}: {other:?}"),
            }
            // Wide strings are UTF-16 at both, and user exceptions have them, too.
            let end = jobs
                .job()
                .call(|| omniorb.echo_wstring_async(BEYOND, LATIN))
                .call(|| jacorb.echo_wstring_async(BEYOND, LATIN))
                .call(|| jacorb.raise_wide_async(BEYOND))
                .architecture(architecture)
                .verified(verifies)
                .within(LONG)
                .run();
            match end.parts {
                (PartEnd::Result(first), PartEnd::Result(second), PartEnd::Exception(e)) => {
                    for (result, kept, given) in [first, second] {
                        assert_eq!((&*result, &*kept, &*given), (BEYOND, BEYOND, LATIN));
                    }
                    assert!(e.to_string().contains("WideError"), "{e}");
                }
                other => panic!("{architecture:?}: {other:?}"),
            }
        }
        stage.end();
    });
}

fn scalars(text: &str) -> Vec<u32> {
    text.chars().map(u32::from).collect()
}

/// Servers that work in ISO 8859-1, and clients that work in either code set. The daemon reads no character, so each server must
/// be told what the client has written; it says which characters it saw.
#[test]
fn servers_see_the_characters_that_were_written() {
    both("jobs/code_sets", || {
        let omniorb = ["-ORBnativeCharCodeSet", "ISO-8859-1"];
        let jacorb = ["--property", "jacorb.native_char_codeset=ISO8859_1"];
        let stage = Stage::new([&omniorb, &jacorb, &["--native", "latin1"]]);
        for native in [CharSet::Utf8, CharSet::Latin1] {
            let mut builder = builder();
            builder.config().native_char_set = native;
            let orb = builder.build().unwrap();
            let jobs = stage.jobs(&orb);
            for suite in stage.suites(&orb) {
                let orb_name = suite.orb_name().unwrap();
                let texts: TextsRef = suite.part("texts").unwrap().unwrap().narrow_unchecked();
                let known = texts.clone();
                // A stand-in for whichever server, or the server itself.
                let any = InTurn::new([texts.object().clone()]);
                let options = PartOptions::new();
                for (architecture, verifies) in WAYS {
                    let end = jobs
                        .job()
                        .call(|| known.characters_of_async(LATIN))
                        .call(|| known.wide_characters_of_async(BEYOND))
                        .call_any(any.clone(), options, |texts: &TextsRef| texts.characters_of_async(LATIN))
                        .call_any(any.clone(), options, |texts: &TextsRef| {
                            texts.wide_characters_of_async(BEYOND)
                        })
                        .call_any(any.clone(), options, |texts: &TextsRef| {
                            texts.text_of_async(&scalars(LATIN))
                        })
                        .call_any(any.clone(), options, |texts: &TextsRef| {
                            texts.wide_text_of_async(&scalars(BEYOND))
                        })
                        .architecture(architecture)
                        .verified(verifies)
                        .within(LONG)
                        .run();
                    match end.parts {
                        (
                            PartEnd::Result(narrow),
                            PartEnd::Result(wide),
                            PartEnd::Result(any_narrow),
                            PartEnd::Result(any_wide),
                            PartEnd::Result(text),
                            PartEnd::Result(wide_text),
                        ) => {
                            let at = format!("{orb_name} {native:?} {architecture:?}");
                            assert_eq!([narrow, any_narrow], [scalars(LATIN), scalars(LATIN)], "{at}");
                            assert_eq!([wide, any_wide], [scalars(BEYOND), scalars(BEYOND)], "{at}");
                            assert_eq!((text.as_str(), &*wide_text), (LATIN, BEYOND), "{at}");
                        }
                        other => panic!("{orb_name} {native:?} {architecture:?}: {other:?}"),
                    }
                }
            }
        }
        stage.end();
    });
}

/// What is not needed any more is given up, and the servers survive that. omniORB's are told nothing: they would not.
#[test]
fn servers_survive_that_they_are_not_needed() {
    both("jobs/losers", || {
        let stage = Stage::new([&["-ORBtraceLevel", "40"], &[], &[]]);
        let orb = client();
        let (jobs, suites) = (stage.jobs(&orb), stage.suites(&orb));
        let [omniorb, jacorb, ours] = &suites;
        // Of a client of its own, whose connections nothing of the jobs disturbs.
        let other = client();
        let others = stage.suites(&other);
        for (architecture, _) in WAYS.into_iter().skip(2) {
            // Another call of the client's, over the same connection.
            let beside = [omniorb, jacorb].map(|suite| suite.block_async("beside"));
            let job = jobs
                .job()
                .call(|| omniorb.block_async("gate"))
                .call(|| jacorb.block_async("gate"))
                .call(|| ours.block_async("first"))
                .architecture(architecture)
                .quorum(Quorum::Any)
                .within(LONG);
            let end = thread::scope(|scope| {
                let running = scope.spawn(|| job.run());
                for suite in &others[..2] {
                    wait_until("the losers do not block", || suite.waiting("gate").unwrap() == 1);
                }
                wait_until("the winner does not block", || others[2].waiting("first").unwrap() == 1);
                others[2].release("first").unwrap();
                running.join().unwrap()
            });
            assert_eq!(end.verdict, Verdict::Met, "{architecture:?}");
            let (first, second, third) = &end.parts;
            assert!(third.is_result(), "{architecture:?}: {third:?}");
            for lost in [first, second] {
                assert!(
                    matches!(lost, PartEnd::Cancelled { may_be_executed: true }),
                    "{architecture:?}: {lost:?}"
                );
            }
            // Over the connections on which requests were given up.
            for (pending, other) in beside.into_iter().zip(&others) {
                wait_until("it has not come", || other.waiting("beside").unwrap() == 1);
                other.release("beside").unwrap();
                pending.wait().unwrap();
            }
            for (suite, other) in suites.iter().zip(&others).take(2) {
                assert_eq!(other.release("gate").unwrap(), 1, "{architecture:?}");
                suite.nothing().unwrap();
            }
        }
        for server in &stage.servers {
            wait_until("a server loops", || server.is_asleep());
        }
        let trace = stage.servers[0].errors();
        assert!(trace.contains("inputMessage") && !trace.contains("Received a CancelRequest"), "{trace}");
        stage.end();
    });
}
