//! The workloads that recordings are.

use std::time::Duration;

use ironorb_model::queueing;
use ironorb_model::record::{ArrivalsOf, CallId, Recording, Workload, WorkloadOptions, workload};
use ironorb_model::scenario::{
    self, Arrivals, Call, Cycle, DwellTimes, Operation, OperationKind, Scenario, Spread, Target,
};

use super::{call, head, read, served, written};

const fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// A client with two threads calls `ping` 10 times each, one of them with an upcall that calls `add` of a third program twice.
/// The other reads an attribute at the end.
fn three_programs() -> Recording {
    let id = |recording, number| Some(CallId { recording, number });
    let is_nested = |number: u64| number % 2 == 1;
    let reading = "_get_balance";
    let client = written(&head(1, "client", "here"), |to| {
        for number in 0..20 {
            let origin = super::Origin { thread: 1 + number as u32 % 2, name: "caller" };
            let time_ns = if is_nested(number) { 7_000 } else { 2_000 };
            to.call(&super::CallSeen { origin, time_ns, ..call(number, number * 20_000) }).unwrap();
        }
        let read =
            super::CallSeen { operation: reading, request_octets: 0, reply_octets: 8, ..call(20, 500_000) };
        to.call(&super::CallSeen { time_ns: 2_000, ..read }).unwrap();
    });
    let server = written(&head(2, "server", "here"), |to| {
        for number in 0..20 {
            let begin_ns = number * 20_000 + 500;
            let (time_ns, processor_ns) = if is_nested(number) { (6_000, 1_900) } else { (1_000, 900) };
            let request = super::RequestSeen { time_ns, ..served(number, id(1, number), begin_ns) };
            to.served(&super::RequestSeen { processor_ns: Some(processor_ns), ..request }).unwrap();
            for nested in 0..2 * u64::from(is_nested(number)) {
                let add = call(100 + 2 * number + nested, begin_ns + 100 + 2_500 * nested);
                let add = super::CallSeen { operation: "add", server: "third:1", object: number, ..add };
                let origin = served(0, None, 0).origin;
                to.call(&super::CallSeen { within: id(2, number), time_ns: 2_000, origin, ..add }).unwrap();
            }
        }
        let read =
            super::RequestSeen { operation: reading, time_ns: 1_000, ..served(20, id(1, 20), 500_500) };
        let read = super::RequestSeen { request_octets: 0, reply_octets: 8, ..read };
        to.served(&super::RequestSeen { processor_ns: Some(100), ..read }).unwrap();
    });
    let third = written(&head(3, "third", "there"), |to| {
        for number in (0..20).filter(|number| is_nested(*number)) {
            for nested in 0..2 {
                let place = 100 + 2 * number + nested;
                let add = super::RequestSeen { operation: "add", ..served(place, id(2, place), 10 * place) };
                to.served(&super::RequestSeen { time_ns: 100 + nested * 50, object: number, ..add }).unwrap();
            }
        }
    });
    read(&[&client, &server, &third])
}

fn operation<'s>(scenario: &'s Scenario, call: &Call) -> &'s Operation {
    &scenario.servers[call.server].operations[call.operation]
}

/// Calls, and octets of bodies, that a scenario with traces has, counted by walking it.
fn counted(scenario: &Scenario) -> (u64, u64) {
    fn of(scenario: &Scenario, call: &Call) -> (u64, u64) {
        let it = operation(scenario, call);
        let own = (1, u64::from(it.request_octets) + u64::from(it.reply_octets));
        let all = it.calls.iter().map(|nested| of(scenario, nested)).fold(own, |a, b| (a.0 + b.0, a.1 + b.1));
        (all.0 * u64::from(call.times), all.1 * u64::from(call.times))
    }
    let mut sum = (0, 0);
    for class in &scenario.classes {
        let Arrivals::Trace(begins) = &class.arrivals else { panic!("{} has no trace", class.name) };
        let [only] = &class.mix[..] else { panic!("{} has a choice", class.name) };
        let Cycle::Calls(calls) = &only.cycle else { panic!("a job") };
        for call in calls {
            let (calls, octets) = of(scenario, call);
            sum = (sum.0 + calls * begins.len() as u64, sum.1 + octets * begins.len() as u64);
        }
    }
    sum
}

#[test]
fn a_trace_has_the_calls_and_octets_of_the_recording_exactly() {
    let recording = three_programs();
    let octets: u64 = recording.calls.iter().map(|call| call.request_octets + call.reply_octets).sum();
    assert_eq!((recording.calls.len(), octets), (41, 41 * 12 - 4));
    let made = workload(&recording, &WorkloadOptions::default());
    let scenario = &made.scenario;
    assert_eq!(counted(scenario), (41, octets));
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(scenario.hosts.iter().map(|it| &it.name).collect()), ["here", "there"]);
    assert_eq!(names(scenario.servers.iter().map(|it| &it.name).collect()), ["server", "third"]);
    assert_eq!(
        names(scenario.classes.iter().map(|it| &it.name).collect()),
        ["client: ping", "client: ping (2)", "client: _get_balance"]
    );
    assert_eq!(
        scenario.servers.iter().map(|it| (it.hosts, it.threads, it.objects)).collect::<Vec<_>>(),
        [(0, Some(1), 1), (1, Some(1), 10)]
    );
    // The longest call took 7,000 ns.
    assert_eq!(scenario.span, ns(502_000 + 4 * 7_000));
    let Arrivals::Trace(begins) = &scenario.classes[1].arrivals else { panic!("no trace") };
    assert_eq!(begins[..3], [ns(20_000), ns(60_000), ns(100_000)]);
    // Half of what calls within a host take beside their services. Those to the other host take more, 1,875 ns: half of the rest.
    assert_eq!(scenario.dwell.thread_switch, Spread::Fixed(ns(500)));
    let [link] = &scenario.links[..] else { panic!("{:?}", scenario.links) };
    assert_eq!((link.between, link.link.latency), ((0, 1), ns(437)));
    let measured = WorkloadOptions { dwell: Some(DwellTimes::default()), ..WorkloadOptions::default() };
    assert_eq!(workload(&recording, &measured).scenario.links, []);
}

#[test]
fn demands_are_services_without_nested_calls() {
    let scenario = workload(&three_programs(), &WorkloadOptions::default()).scenario;
    let [plain, nested, reading] = &scenario.servers[0].operations[..] else { panic!("three operations") };
    assert_eq!((&plain.name[..], &nested.name[..], &reading.name[..]), ("ping", "ping#2", "_get_balance"));
    assert_eq!((&plain.demand, plain.calls.len()), (&Spread::Fixed(ns(1_000)), 0));
    assert_eq!(nested.demand, Spread::Fixed(ns(2_000)));
    assert_eq!(nested.calls, [Call { server: 1, operation: 0, times: 2, target: Target::Random }]);
    assert_eq!((reading.kind, plain.kind), (OperationKind::Read, OperationKind::Plain));
    // It had a processor for a tenth of its time.
    assert_eq!((plain.sleeps, reading.sleeps), (false, true));
    let add = &scenario.servers[1].operations[0];
    let mut samples = [vec![ns(100); 10], vec![ns(150); 10]].concat();
    assert_eq!(add.demand, Spread::Samples(samples.clone()));
    // Few of them are as evenly spread.
    let options = WorkloadOptions { samples_max: 4, ..WorkloadOptions::default() };
    let scenario = workload(&three_programs(), &options).scenario;
    samples = [vec![ns(100); 2], vec![ns(150); 2]].concat();
    assert_eq!(scenario.servers[1].operations[0].demand, Spread::Samples(samples));
}

#[test]
fn closed_classes_think_as_their_threads_did() {
    let options = WorkloadOptions { arrivals: ArrivalsOf::Closed, ..WorkloadOptions::default() };
    let scenario = workload(&three_programs(), &options).scenario;
    let [client] = &scenario.classes[..] else { panic!("{:?}", scenario.classes) };
    let Arrivals::Closed { clients, think: Spread::Samples(thinks) } = &client.arrivals else {
        panic!("not closed")
    };
    // 18 times from the end of a call to the next of the thread, and one before the attribute is read.
    assert_eq!(
        (*clients, thinks.len(), &thinks[..18]),
        (2, 19, &[[ns(33_000); 9], [ns(38_000); 9]].concat()[..])
    );
    assert_eq!(thinks[18], ns(500_000 - 18 * 20_000 - 2_000));
    assert_eq!(client.mix.iter().map(|it| it.weight).collect::<Vec<_>>(), [10.0, 10.0, 1.0]);
}

#[test]
fn open_classes_have_the_times_between_calls() {
    let options = WorkloadOptions { arrivals: ArrivalsOf::Open, ..WorkloadOptions::default() };
    let scenario = workload(&three_programs(), &options).scenario;
    assert_eq!(scenario.classes[0].arrivals, Arrivals::Open { between: Spread::Fixed(ns(40_000)), burst: 1 });
    // A single call has no time to the next.
    assert_eq!(scenario.classes[2].arrivals, Arrivals::Trace(vec![ns(500_000)]));
}

#[test]
fn operations_with_many_sizes_get_their_means_and_a_note() {
    let text = written(&head(1, "client", "here"), |to| {
        for number in 0..100 {
            let request_octets = if number == 0 { 0 } else { number };
            to.call(&super::CallSeen { request_octets, reply_octets: 10 * number, ..call(number, number) })
                .unwrap();
        }
    });
    let recording = read(&[&text]);
    let exact = workload(&recording, &WorkloadOptions { variants_max: 100, ..WorkloadOptions::default() });
    assert_eq!(exact.scenario.servers[0].operations.len(), 100);
    assert_eq!(counted(&exact.scenario), (100, 11 * 4950));
    let options = WorkloadOptions { variants_max: 99, ..WorkloadOptions::default() };
    let averaged = workload(&recording, &options);
    let [only] = &averaged.scenario.servers[0].operations[..] else { panic!("one operation") };
    assert_eq!((only.request_octets, only.reply_octets), (50, 495));
    assert!(
        averaged.notes.iter().any(|note| note.contains("`ping` has more than 99 sizes")),
        "{:?}",
        averaged.notes
    );
    // What no server has recorded is a time without a processor.
    assert!(only.sleeps && only.demand == Spread::Fixed(ns(1_000)));
    assert!(
        averaged.notes.iter().any(|note| note.contains("100 of 100 calls have no record of their server"))
    );
}

#[test]
fn nested_calls_that_overlap_count_once_and_are_told() {
    let id = Some(CallId { recording: 1, number: 1 });
    let text = written(&head(1, "server", "here"), |to| {
        to.served(&super::RequestSeen { time_ns: 1_000, ..served(1, None, 0) }).unwrap();
        for (number, begin_ns) in [(2, 100), (3, 200)] {
            to.call(&super::CallSeen {
                within: id,
                time_ns: 500,
                operation: "add",
                ..call(number, begin_ns)
            })
            .unwrap();
        }
    });
    let made = workload(&read(&[&text]), &WorkloadOptions::default());
    let ping =
        made.scenario.servers.iter().flat_map(|it| &it.operations).find(|it| it.name == "ping").unwrap();
    assert_eq!(ping.demand, Spread::Fixed(ns(400)));
    assert!(
        made.notes.iter().any(|note| note.contains("1 nested calls ran beside others")),
        "{:?}",
        made.notes
    );
}

/// A client with two threads, and two programs that serve it, each with its processors.
fn pinned(processors: [(&str, u32); 3]) -> Recording {
    let on = |id, program, (processors, cores): (&str, u32)| super::Head {
        processors: processors.to_owned(),
        cores,
        ..head(id, program, "here")
    };
    let [client, front, back] = processors;
    let (client, front, back) = (on(1, "client", client), on(2, "front", front), on(3, "back", back));
    let client = written(&client, |to| {
        for (number, server) in [(1, "front:1"), (2, "back:1")] {
            to.call(&super::CallSeen { server, ..call(number, number * 10_000) }).unwrap();
        }
    });
    let serve = |head: &super::Head, number: u64| {
        let of = Some(CallId { recording: 1, number });
        written(head, |to| to.served(&served(1, of, number * 10_000 + 300)).unwrap())
    };
    read(&[&client, &serve(&front, 1), &serve(&back, 2)])
}

#[test]
fn programs_that_share_no_processor_have_hosts_of_their_own() {
    let made = |processors| workload(&pinned(processors), &WorkloadOptions::default());
    let groups = |made: &Workload| {
        let groups = made.scenario.hosts.iter().map(|group| (group.name.clone(), group.cores));
        let at: Vec<usize> = made.scenario.servers.iter().map(|server| server.hosts).collect();
        (groups.collect::<Vec<_>>(), made.scenario.classes[0].hosts, at)
    };
    let named = |names: &[(&str, u32)]| {
        names.iter().map(|(name, cores)| ((*name).to_owned(), *cores)).collect::<Vec<_>>()
    };
    let apart = made([("2-3", 2), ("0", 1), ("2-3", 2)]);
    let both = named(&[("here, processors 2 3", 2), ("here, processors 0", 1)]);
    assert_eq!(groups(&apart), (both, 0, vec![1, 0]));
    // Between them is no link: what calls took beside their services is the wake-up of threads.
    assert_eq!(
        (apart.scenario.links.len(), &apart.scenario.dwell.thread_switch),
        (0, &Spread::Fixed(ns(300)))
    );
    assert_eq!(
        scenario::read(&scenario::write(&apart.scenario), "recorded.toml").unwrap(),
        std::slice::from_ref(&apart.scenario)
    );
    assert!(!apart.notes.iter().any(|note| note.contains("share some")), "{:?}", apart.notes);
    // Some in common: all of them, and a note.
    let in_part = made([("1-2", 2), ("0", 1), ("2,3", 2)]);
    let both = named(&[("here, processors 1 2 3", 3), ("here, processors 0", 1)]);
    assert_eq!(groups(&in_part), (both, 0, vec![1, 0]));
    assert!(in_part.notes.iter().any(|note| note.contains("share some")), "{:?}", in_part.notes);
    // A program that may use them all joins the others; one with half of their time has one of two.
    let joined = made([("0-3", 4), ("0", 1), ("3", 1)]);
    assert_eq!(groups(&joined), (named(&[("here", 4)]), 0, vec![0, 0]));
    let limited = made([("0-1", 1), ("0-1", 1), ("0-1", 1)]);
    assert_eq!(groups(&limited), (named(&[("here", 1)]), 0, vec![0, 0]));
    // What is not told, or is no list, tells nothing.
    for unknown in ["", "all", "9-"] {
        let untold = made([("0", 1), (unknown, 4), ("2", 1)]);
        assert_eq!(groups(&untold), (named(&[("here", 4)]), 0, vec![0, 0]), "{unknown:?}");
    }
}

/// Of 20 calls two find the server's processor awake.
#[test]
fn wake_ups_of_idle_processors_are_nobodys_work() {
    let made = |processors: [&str; 2]| {
        let on = |id, program, processors: &str| super::Head {
            processors: processors.to_owned(),
            cores: 1,
            ..head(id, program, "here")
        };
        let client = written(&on(1, "client", processors[0]), |to| {
            for number in 0..20 {
                let time_ns = if number < 2 { 600 } else { 1_600 };
                to.call(&super::CallSeen { time_ns, ..call(number, number * 10_000) }).unwrap();
            }
        });
        let server = written(&on(2, "server", processors[1]), |to| {
            for number in 0..20 {
                let of = Some(CallId { recording: 1, number });
                to.served(&served(number, of, number * 10_000 + 50)).unwrap();
            }
        });
        workload(&read(&[&client, &server]), &WorkloadOptions::default()).scenario
    };
    // Beside services of 400 ns, threads work for 200; the rest is waited for.
    let apart = made(["0", "1"]);
    assert_eq!(apart.dwell.thread_switch, Spread::Fixed(ns(100)));
    let [link] = &apart.links[..] else { panic!("{:?}", apart.links) };
    assert_eq!((link.between, link.link.latency), ((0, 1), ns(18 * 1_000 / 20 / 2)));
    let (together, seen) = (made(["0", "0"]), queueing::run(&apart, 1, Duration::ZERO).unwrap());
    assert_eq!(seen.classes[0].response.mean().round(), (2.0 * 600.0 + 18.0 * 1_600.0) / 20.0);
    // On one processor no other one wakes up.
    assert_eq!(together.links, []);
    assert_eq!(together.dwell.thread_switch, Spread::Samples([vec![ns(100); 2], vec![ns(600); 18]].concat()));
}

/// Calls of three clients at a server with one thread: two of them wait for those before.
#[test]
fn waiting_for_a_servers_thread_is_no_part_of_a_wake_up() {
    // After the first one's begin: when each begins, and when its service does.
    let moments = [(1, 0, 100), (2, 50, 900), (3, 60, 1_700)];
    let all =
        || (0..10).flat_map(|turn| moments.map(|(number, begin, service)| (turn, number, begin, service)));
    let client = written(&head(1, "client", "here"), |to| {
        for (turn, number, begin, service) in all() {
            let origin = super::Origin { thread: number, name: "caller" };
            let seen = call(3 * turn + u64::from(number), turn * 10_000 + begin);
            to.call(&super::CallSeen { origin, time_ns: service - begin + 900, ..seen }).unwrap();
        }
    });
    let server = |host: &str| {
        written(&head(2, "server", host), |to| {
            for (turn, number, _, service) in all() {
                let number = 3 * turn + u64::from(number);
                let of = Some(CallId { recording: 1, number });
                let seen = served(number, of, turn * 10_000 + service);
                to.served(&super::RequestSeen { time_ns: 800, ..seen }).unwrap();
            }
        })
    };
    let made = |host| workload(&read(&[&client, &server(host)]), &WorkloadOptions::default()).scenario;
    // Each call but the first of a turn takes 100 ns beside its service: they have waited 850 and 1,640. The first one takes 200. All
    // have met others, so the faster half counts.
    assert_eq!(made("here").dwell.thread_switch, Spread::Fixed(ns(50)));
    // Another host's clock does not tell how long: 10 have waited for nothing, and 5 of the faster half for 850.
    assert_eq!(made("there").links[0].link.latency, ns((10 * 200 + 5 * 950) / 15 / 2));
}

/// Calls of two clients at a server with one thread. The second one waits, and begins 60 ns after the first one has ended: so long
/// threads work for a call. The rest of what it takes is the wake-up of its client.
#[test]
fn threads_for_which_calls_wait_tell_what_they_do_for_each() {
    // After the begin of a turn: when each begins, when its service does, and when it ends.
    let moments = [(1, 0, 500, 1_800), (2, 100, 1_360, 2_660)];
    let all = || (0..20).flat_map(|turn| moments.map(|moments| (turn, moments)));
    let on = |id, program, processors: &str| super::Head {
        processors: processors.to_owned(),
        cores: 1,
        ..head(id, program, "here")
    };
    let made = |processors: [&str; 2]| {
        let client = written(&on(1, "client", processors[0]), |to| {
            for (turn, (number, begin, _, end)) in all() {
                let origin = super::Origin { thread: number, name: "caller" };
                let seen = call(2 * turn + u64::from(number), turn * 100_000 + begin);
                to.call(&super::CallSeen { origin, time_ns: end - begin, ..seen }).unwrap();
            }
        });
        let server = written(&on(2, "server", processors[1]), |to| {
            for (turn, (number, _, service, _)) in all() {
                let number = 2 * turn + u64::from(number);
                let of = Some(CallId { recording: 1, number });
                let seen = served(number, of, turn * 100_000 + service);
                to.served(&super::RequestSeen { time_ns: 800, ..seen }).unwrap();
            }
        });
        workload(&read(&[&client, &server]), &WorkloadOptions::default()).scenario
    };
    // The faster half takes 560 beside its service and its wait.
    let apart = made(["0", "1"]);
    assert_eq!(apart.dwell.thread_switch, Spread::Fixed(ns(60)));
    assert_eq!(apart.links[0].link.latency, ns((560 - 2 * 60) / 2));
    // On one processor no other one wakes up.
    assert_eq!(made(["0", "0"]).dwell.thread_switch, Spread::Fixed(ns(280)));
}

#[test]
fn calls_that_meet_no_other_ones_tell_what_wake_ups_take() {
    let made = |alone: u64| {
        let crowd = 1_000_000;
        let client = written(&head(1, "client", "here"), |to| {
            for number in 0..alone {
                to.call(&call(number, number * 10_000)).unwrap();
            }
            for number in 100..160 {
                let origin = super::Origin { thread: number as u32, name: "caller" };
                to.call(&super::CallSeen { origin, time_ns: 5_000, ..call(number, crowd + number) }).unwrap();
            }
        });
        let server = written(&head(2, "server", "here"), |to| {
            for number in (0..alone).chain(100..160) {
                let of = Some(CallId { recording: 1, number });
                let origin = super::Origin { thread: number as u32, name: "worker" };
                let begin_ns = if number < 100 { number * 10_000 } else { crowd + number } + 200;
                to.served(&super::RequestSeen { origin, ..served(number, of, begin_ns) }).unwrap();
            }
        });
        workload(&read(&[&client, &server]), &WorkloadOptions::default()).scenario.dwell.thread_switch
    };
    // They take 600 ns beside their services of 400; those that have met others 4,600.
    assert_eq!(made(20), Spread::Fixed(ns(300)));
    // Of few nothing can be told: all count, but for the slower half.
    assert_eq!(made(1), Spread::Samples([vec![ns(300)], vec![ns(2_300); 30]].concat()));
}

/// Two servants that compute on one processor, side by side.
#[test]
fn servants_that_waited_for_a_processor_take_what_they_had_of_it() {
    let made = |cores: u32| {
        let text = written(&super::Head { cores, ..head(1, "server", "here") }, |to| {
            for number in 0..20 {
                let origin = super::Origin { thread: number as u32 % 2, name: "worker" };
                let processor_ns = Some(if number < 10 { 400 } else { 1_000 });
                // Pairs at first, and then one after the other.
                let begin_ns = if number < 10 { number / 2 * 10_000 } else { number * 10_000 };
                let seen = super::RequestSeen { origin, processor_ns, ..served(number, None, begin_ns) };
                to.served(&super::RequestSeen { time_ns: 1_000, ..seen }).unwrap();
            }
        });
        let scenario = workload(&read(&[&text]), &WorkloadOptions::default()).scenario;
        let [only] = &scenario.servers[0].operations[..] else { panic!("one operation") };
        (only.sleeps, only.demand.clone())
    };
    let shared = Spread::Samples([vec![ns(400); 10], vec![ns(1_000); 10]].concat());
    assert_eq!(made(1), (false, shared));
    // On two processors they have waited for something else.
    assert_eq!(made(2), (false, Spread::Fixed(ns(1_000))));
}

/// The file that is written has the same scenario: names that a file could not have are changed.
#[test]
fn workloads_are_scenario_files() {
    for arrivals in [ArrivalsOf::Trace, ArrivalsOf::Closed, ArrivalsOf::Open] {
        let options = WorkloadOptions { arrivals, ..WorkloadOptions::default() };
        let made = workload(&three_programs(), &options).scenario;
        let read_back = scenario::read(&scenario::write(&made), "recorded.toml").unwrap();
        assert_eq!(read_back, [made]);
    }
    let text = written(&head(1, "a.out", "host.example.org"), |to| {
        let names = super::CallSeen { operation: "a.b#\u{7}", server: "10.0.0.2:1", ..call(1, 0) };
        to.call(&names).unwrap();
        to.call(&super::CallSeen {
            operation: "",
            server: "",
            reply_octets: 5,
            is_oneway: true,
            ..call(2, 0)
        })
        .unwrap();
    });
    let made = workload(&read(&[&text]), &WorkloadOptions::default()).scenario;
    assert_eq!(
        scenario::read(&scenario::write(&made), "recorded.toml").unwrap(),
        std::slice::from_ref(&made)
    );
    assert_eq!(made.servers[0].operations[0].name, "a-b--");
}

/// The queueing level makes as many calls as were recorded, and their responses take as long as services and links do.
#[test]
fn the_queueing_level_replays_a_recording() {
    let recording = three_programs();
    let scenario = workload(&recording, &WorkloadOptions::default()).scenario;
    let seen = queueing::run(&scenario, 1, Duration::ZERO).unwrap();
    assert_eq!((seen.calls, seen.messages), (41, 2 * 41));
    let completed: u64 = seen.classes.iter().map(|class| class.completed).sum();
    assert_eq!(completed, 21);
    let mean = |class: usize| seen.classes[class].response.mean();
    let recorded = |name: &str, has_children: bool| {
        let of = |index: usize| recording.calls.iter().any(|call| call.parent == Some(index)) == has_children;
        let is_root = |index: usize| recording.calls[index].parent.is_none();
        let is_it = |index: &usize| {
            recording.operations[recording.calls[*index].operation].name == name
                && is_root(*index)
                && of(*index)
        };
        let times =
            (0..recording.calls.len()).filter(is_it).map(|index| recording.calls[index].time.unwrap());
        times.clone().sum::<Duration>().as_nanos() as f64 / times.count() as f64
    };
    for (class, name, has_children) in [(0, "ping", false), (1, "ping", true), (2, "_get_balance", false)] {
        let (simulated, recorded) = (mean(class), recorded(name, has_children));
        assert!(
            (simulated - recorded).abs() <= 0.01 * recorded,
            "{name}: {simulated} ns, recorded {recorded} ns"
        );
    }
}

/// Means of operations that call one another would never end.
#[test]
fn averaged_operations_that_call_one_another_end() {
    let text = written(&head(1, "server", "here"), |to| {
        for number in 0..40 {
            // `ping` and `pong` in turn, each in the upcall of the one before.
            let operation = if number % 2 == 0 { "ping" } else { "pong" };
            let of = Some(CallId { recording: 1, number: 1_000 + number });
            let time_ns = 10_000 - 200 * number;
            let serving = super::RequestSeen { operation, time_ns, ..served(number, of, 100 * number) };
            to.served(&super::RequestSeen { request_octets: number, ..serving }).unwrap();
            let within = (number > 0).then(|| CallId { recording: 1, number: number - 1 });
            let calling = super::CallSeen {
                operation,
                within,
                time_ns: time_ns + 50,
                ..call(1_000 + number, 100 * number)
            };
            to.call(&super::CallSeen { request_octets: number, ..calling }).unwrap();
        }
    });
    let options = WorkloadOptions { variants_max: 3, ..WorkloadOptions::default() };
    let made = workload(&read(&[&text]), &options);
    assert!(made.notes.iter().any(|note| note.contains("lead back")), "{:?}", made.notes);
    assert_eq!(scenario::read(&scenario::write(&made.scenario), "recorded.toml").unwrap(), [made.scenario]);
}
