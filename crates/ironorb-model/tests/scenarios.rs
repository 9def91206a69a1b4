//! Scenario files: what they say, and what is said of bad ones.

use std::time::Duration;

use ironorb_model::analysis::demands::demands;
use ironorb_model::analysis::lqn::of_scenario;
use ironorb_model::queueing;
use ironorb_model::scenario::{
    self, Architecture, Arrivals, Asking, CacheMode, Choice, Cycle, KEYS, Key, OperationKind, ServerLock,
    Spread, Target, WarmUp,
};

/// Every key.
const ALL: &str = include_str!("scenarios/all.toml");

#[test]
fn a_file_with_every_key_reads_back() {
    let scenario = scenario::read(ALL, "all").expect("a good file").remove(0);
    let text = scenario::write(&scenario);
    let again = scenario::read(&text, "other").unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
    assert_eq!(again, [scenario]);
    // What a profile says is written as the times that it gives; a test of its own reads them.
    let of_profile = |key: &&Key| key.table == "[dwell]" && key.meaning.contains("profile");
    let elsewhere = |key: &&Key| ["sweep", "plan"].contains(&key.key) || of_profile(key);
    for key in KEYS.iter().filter(|key| !elsewhere(key)) {
        let is_written = |text: &str| {
            text.contains(&format!("{} =", key.key))
                || text.contains(&format!("[{}]", key.key))
                || text.contains(&format!(".{}]", key.key))
        };
        assert!(is_written(ALL), "the file has no `{}` of {}", key.key, key.table);
        assert!(is_written(&text), "`{}` of {} is not written", key.key, key.table);
    }
}

#[test]
fn values_have_their_meaning() {
    let scenario = scenario::read(ALL, "all").expect("a good file").remove(0);
    assert_eq!((scenario.name.as_str(), scenario.seed), ("all \"keys\"", 7));
    assert_eq!((scenario.span, scenario.warm_up), (Duration::from_secs(10), WarmUp::Found));
    assert_eq!(scenario.replications.half_width, 0.02);
    assert_eq!(scenario.default_link.mtu, 1_448);
    let link = scenario.link_between(1, 0);
    assert_eq!((link.bandwidth, link.loss), (Some(2_500_000_000), 0.001));
    assert_eq!(scenario.link_between(0, 0), &scenario.default_link);
    let registry = &scenario.servers[0];
    assert_eq!((registry.threads, registry.lock), (Some(8), ServerLock::Object));
    assert_eq!(registry.operations[0].kind, OperationKind::Read);
    assert_eq!(registry.operations[0].demand, Spread::Exponential(Duration::from_micros(20)));
    let urgent = &scenario.servers[1];
    assert_eq!((urgent.threads, urgent.lanes.len(), urgent.lanes[1].priority), (None, 2, 100));
    let call = &urgent.operations[0].calls[1];
    assert_eq!((call.server, call.operation, call.times), (0, 1, 3));
    assert_eq!(call.target, Target::Object(5));
    let [callers, jobs, open, trace] = &scenario.classes[..] else { panic!("{:?}", scenario.classes) };
    assert!(matches!(callers.arrivals, Arrivals::Closed { clients: 12, .. }));
    let cache = callers.cache.expect("a cache");
    assert_eq!(cache.capacity, 0.5);
    assert_eq!(cache.mode, CacheMode::Asked(Asking { carried_probes: 5, is_warm: false }));
    assert_eq!(jobs.choice, Choice::InTurn);
    let Cycle::Job { architecture, parts, daemon } = &jobs.mix[0].cycle else { panic!("{:?}", jobs.mix) };
    assert_eq!((*architecture, parts.len(), *daemon), (Architecture::Forwarding, 2, 2));
    assert!(
        matches!(&open.arrivals, Arrivals::Open { burst: 10, between: Spread::Samples(it) } if it.len() == 2)
    );
    assert!(matches!(&trace.arrivals, Arrivals::Trace(times) if times.len() == 3));
    assert_eq!(scenario.dwell.per_kilo_octet, Duration::from_nanos(1_250));
    assert_eq!(scenario.dwell.body(2_000), Duration::from_nanos(2_500));
}

#[test]
fn a_sweep_gives_a_scenario_for_each_combination() {
    let text = format!(
        "{SMALL}\n[sweep]\n\"classes.c.clients\" = [1, 2]\n\"servers.s.operations.get.demand\" = [\"1ms\", {{ exponential = \"2ms\" }}]\n"
    );
    let all = scenario::read(&text, "small").expect("a good file");
    let names: Vec<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "small [clients=1, demand=1ms]",
            "small [clients=1, demand=exponential 2ms]",
            "small [clients=2, demand=1ms]",
            "small [clients=2, demand=exponential 2ms]",
        ]
    );
    assert!(matches!(all[2].classes[0].arrivals, Arrivals::Closed { clients: 2, .. }));
    assert_eq!(all[3].servers[0].operations[0].demand, Spread::Exponential(Duration::from_millis(2)));
}

#[test]
fn names_of_swept_scenarios_tell_equal_keys_apart() {
    let text = format!(
        "{SMALL}\n[[hosts]]\nname = \"g\"\n[sweep]\nseed = [5]\n\"hosts.h.cores\" = [1, 2]\n\"hosts.g.cores\" = [4]\n\
         \"classes.c.clients\" = [3]\n"
    );
    let all = scenario::read(&text, "small").expect("a good file");
    let names: Vec<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
    let name = |cores| format!("small [seed=5, h.cores={cores}, g.cores=4, clients=3]");
    assert_eq!(names, [name(1), name(2)]);
}

const SMALL: &str = r#"span = "1s"
[[hosts]]
name = "h"
[[servers]]
name = "s"
hosts = "h"
operations = [{ name = "get" }, { name = "note", oneway = true }]
[[classes]]
name = "c"
hosts = "h"
clients = 1
mix = [{ calls = [{ call = "s.get" }] }]
"#;

/// Checks that a text has exactly one problem, in a line, whose message and mend contain these words.
fn check(text: &str, line: u32, words: &str, mend: &str) {
    let problems = scenario::read(text, "bad").expect_err(words);
    let all: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    assert_eq!(problems.len(), 1, "{all}");
    assert_eq!(problems[0].line, line, "{all}");
    assert!(problems[0].message.contains(words), "{all}");
    assert!(problems[0].mend.contains(mend), "{all}");
}

#[test]
fn bad_files_get_line_mistake_and_mend() {
    assert!(scenario::read(SMALL, "small").is_ok());
    for (from, to, line, words, mend) in [
        (
            "span = \"1s\"",
            "span = \"0s\"",
            1,
            "`span` is \"0ns\"; it must be from \"1µs\"",
            "write `span = \"1µs\"`",
        ),
        ("span = \"1s\"", "span = 1", 1, "`span` is no time", "a number with one of the units `ns`, `us`"),
        ("span = \"1s\"", "span = \"1\"", 1, "`span` has no unit", "write `span = \"1 ms\"`"),
        ("span = \"1s\"", "span = \"-1s\"", 1, "`span` is negative", "write `span = \"1s\"`"),
        ("span = \"1s\"", "", 1, "`span` is missing", "add `span`: time, 1 us to 30 days"),
        (
            "span = \"1s\"",
            "span = \"1s\"\nspeed = 1",
            2,
            "`speed` has no meaning here",
            "do you mean `seed`?",
        ),
        (
            "name = \"h\"\n",
            "name = \"h\"\n[link]\noutages = []\n",
            5,
            "`[link]` has no outages",
            "under the `[[links]]`",
        ),
        (
            "name = \"h\"\n",
            "name = \"h\"\n[[links]]\nbetween = [\"h\", \"h\"]\noutages = [{ from = \"2s\", until = \"1s\" }]\n",
            6,
            "ends before it begins",
            "behind `from`",
        ),
        (
            "name = \"h\"\n",
            "name = \"h\"\n[[links]]\nbetween = [\"h\", \"h\"]\noutages = [{ from = \"1s\", until = \"3s\" }, { from = \"2s\", until = \"4s\" }]\n",
            6,
            "outages overlap",
            "in the order of time",
        ),
        (
            "name = \"h\"\n",
            "name = \"h\"\ncores = 0\n",
            4,
            "`cores` is 0; it must be from 1 to 1024",
            "write `cores = 1`",
        ),
        (
            "name = \"h\"\n",
            "name = \"h\"\ncount = 50_000\ncores = 16\n[[hosts]]\nname = \"g\"\ncount = 1_000\ncores = 1024\n",
            6,
            "up to `g` the hosts have 1824000 processors",
            "write `count = 195`",
        ),
        (
            "name = \"h\"\n",
            "name = \"h\"\ncount = 100_000\ncores = 10\n[[hosts]]\nname = \"g\"\n[[hosts]]\nname = \"f\"\n",
            6,
            "all groups together may have 1000000",
            "here or of groups before",
        ),
        ("name = \"c\"", "name = \"c.d\"", 9, "`c.d` is no name", "without a point"),
        (
            "name = \"h\"\n",
            "name = \"h\"\nspeed = 0.0\n",
            4,
            "`speed` is 0; it must be from 0.001 to 1000",
            "write `speed = 0.001`",
        ),
        (
            "name = \"h\"\n",
            "name = \"h\"\nspeed = \"fast\"\n",
            4,
            "`speed` is no number",
            "write a number from 0.001 to 1000",
        ),
        ("name = \"h\"\n", "name = \"h\"\n[[hosts]]\nname = \"h\"\n", 4, "there are two `h`", "another name"),
        (
            "name = \"s\"\nhosts = \"h\"",
            "name = \"s\"\nhosts = \"g\"",
            6,
            "no host group `g`",
            "do you mean `h`?",
        ),
        (
            "name = \"s\"\n",
            "name = \"s\"\nlock = \"objekt\"\n",
            6,
            "`objekt` is no value of `lock`",
            "`object`?",
        ),
        ("s.get", "s.gte", 12, "no operation `gte`", "do you mean `get`?"),
        ("s.get", "sget", 12, "names no operation", "server.operation"),
        (
            "\"s.get\"",
            "\"s.get\", target = { object = -1 }",
            12,
            "`object` is no whole number",
            "a whole number from 0",
        ),
        (
            "\"s.get\"",
            "\"s.get\", target = { object = 1 }",
            12,
            "`object` is 1; it must be from 0 to 0",
            "write `object = 0`",
        ),
        ("\"s.get\"", "\"s.get\", target = 5", 12, "`target` is no target", "{ object = 7 }"),
        ("clients = 1", "", 8, "nothing says when cycles begin", "`clients` for a closed class"),
        ("clients = 1", "clients = 1\nbetween = \"1ms\"", 8, "exclude each other", "`trace`"),
        (
            "clients = 1",
            "clients = 1\nburst = 2",
            12,
            "`burst` belongs to `between`",
            "in the place of `clients`",
        ),
        ("clients = 1", "between = \"0s\"", 8, "`between` is zero", "above zero"),
        ("clients = 1", "trace = [\"2ms\", \"1ms\"]", 8, "out of order", "sort"),
        (
            "clients = 1",
            "clients = 1\ncache = { lag = \"1ms\", update_octets = 4 }",
            8,
            "reads nothing",
            "kind = \"read\"",
        ),
        (
            "mix = [{ calls = [{ call = \"s.get\" }] }]",
            "cache = { lag = \"1ms\", update_octets = 4 }\n\
             mix = [{ job = \"synchronous\", parts = [{ call = \"s.get\" }], daemon = \"s\" }]",
            8,
            "has jobs alone, which use no cache",
            "leave `cache` out",
        ),
        ("oneway = true", "oneway = true, reply_octets = 4", 7, "a oneway has no reply", "leave"),
        (
            "name = \"get\"",
            "name = \"get\", demand = { normal = \"1ms\" }",
            7,
            "no distribution",
            "exponential",
        ),
        (
            "name = \"get\"",
            "name = \"get\", demand = { uniform = [\"2ms\", \"1ms\"] }",
            7,
            "no range",
            "least",
        ),
        (
            "name = \"get\"",
            "name = \"get\", calls = [{ call = \"s.get\" }]",
            7,
            "s.get -> s.get",
            "remove one",
        ),
        (
            "name = \"s\"\n",
            "name = \"s\"\nlanes = [{ priority = 5, threads = 1 }, { priority = 5, threads = 1 }]\n",
            6,
            "do not rise",
            "lowest",
        ),
        (
            "name = \"s\"\n",
            "name = \"s\"\nlanes = [{ priority = 5, threads = 1 }]\n",
            9,
            "lanes that begin at priority 5",
            "`priority = 5`",
        ),
        (
            "name = \"s\"\n",
            "name = \"s\"\nthreads = 1\nlanes = [{ priority = 0, threads = 1 }]\n",
            6,
            "no `threads` beside",
            "leave it out",
        ),
        ("calls = [{ call = \"s.get\" }]", "calls = []", 12, "calls nothing", "add `calls"),
        (
            "calls = [{ call = \"s.get\" }]",
            "calls = [{ call = \"s.get\" }], daemon = \"s\"",
            12,
            "`daemon` has no meaning",
            "a job has",
        ),
        (
            "calls = [{ call = \"s.get\" }]",
            "job = \"synchronous\", parts = [{ call = \"s.note\" }], daemon = \"s\"",
            12,
            "one call with a reply",
            "twoway",
        ),
        (
            "calls = [{ call = \"s.get\" }]",
            "job = \"synchronous\", parts = [{ call = \"s.get\" }]",
            12,
            "`daemon` is missing",
            "name of a server",
        ),
        (
            "[[hosts]]",
            "[link]\nloss = \"57 %\"\n[[hosts]]",
            3,
            "`loss` is \"57 %\"; it must be from \"0 %\" to \"50 %\"",
            "write `loss = \"50 %\"`",
        ),
        ("[[hosts]]", "[link]\nloss = \"2\"\n[[hosts]]", 3, "`loss` is no share", "a number with `%`"),
        (
            "[[hosts]]",
            "[link]\nbandwidth = \"10 MB/s\"\n[[hosts]]",
            3,
            "`bandwidth` is no bandwidth",
            "`Mbit/s` and `Gbit/s` from \"1 bit/s\" to \"10000 Gbit/s\"",
        ),
        (
            "[[hosts]]",
            "[link]\nbandwidth = \"10001 Gbit/s\"\n[[hosts]]",
            3,
            "`bandwidth` is \"10001 Gbit/s\"",
            "write `bandwidth = \"10000 Gbit/s\"`",
        ),
        ("[[hosts]]", "[[links]]\nbetween = [\"h\"]\n[[hosts]]", 3, "does not name two", "between = ["),
        (
            "name = \"h\"\n",
            "name = \"h\"\n[[hosts]]\nname = \"g\"\n[[links]]\nbetween = [\"h\", \"g\"]\n[[links]]\nbetween = [\"g\", \"h\"]\n",
            8,
            "two links between `g` and `h`",
            "leave one of them out",
        ),
        (
            "name = \"h\"\n",
            "name = \"h\"\n[[links]]\nbetween = [\"h\", \"h\"]\n[[links]]\nbetween = [\"h\", \"h\"]\n",
            6,
            "two links between `h` and `h`",
            "leave one of them out",
        ),
        (
            "[[hosts]]",
            "[replications]\nmin = 9\nmax = 3\n[[hosts]]",
            2,
            "`max` is less than `min`",
            "max = 9",
        ),
        (
            "[[hosts]]",
            "[sweep]\n\"classes.d.clients\" = [1]\n[[hosts]]",
            3,
            "nothing of this file",
            "names of the tables",
        ),
        (
            "[[hosts]]",
            "[sweep]\n\"classes.c.clients\" = 1\n[[hosts]]",
            3,
            "is no list of values",
            "[1, 2, 4]",
        ),
        (
            "[[hosts]]",
            "[sweep]\n\"classes.c.clients\" = [1, 0]\n[[hosts]]",
            3,
            "`clients` is 0; it must be from 1",
            "write `clients = 1`",
        ),
        (
            "[[hosts]]",
            "[dwell]\nper_octet = \"1 ns\"\n[[hosts]]",
            3,
            "`per_octet` has no meaning here",
            "write `per_kilo_octet`, the time for 1,000 octets",
        ),
        (
            "[[hosts]]",
            "[dwell]\nthread_pause = \"1ms\"\n[[hosts]]",
            3,
            "`thread_pause` is no list of points",
            "[[\"100 us\", \"5 us\"]]",
        ),
        (
            "[[hosts]]",
            "[dwell]\nthread_pause = [[\"1ms\"]]\n[[hosts]]",
            3,
            "has not two times",
            "a pause, and",
        ),
        (
            "[[hosts]]",
            "[dwell]\nprocessor_pause = [[\"1ms\", \"2s\"]]\n[[hosts]]",
            3,
            "more than 1 s longer",
            "a pause, and",
        ),
        (
            "[[hosts]]",
            "[dwell]\nthread_pause = [[\"1ms\", \"1us\"],\n[\"2ms\", \"2us\"],\n[\"1000us\", \"3us\"]]\n[[hosts]]",
            5,
            "`thread_pause` has two points for a pause of 1ms",
            "leave one of them out",
        ),
        ("[[hosts]]", "[hosts]", 2, "`hosts` is no list of tables", "[[hosts]]"),
        ("[[hosts]]", "[[hosts]", 2, "this is no TOML", "mend the syntax"),
    ] {
        assert!(SMALL.contains(from), "{from}");
        check(&SMALL.replacen(from, to, 1), line, words, mend);
    }
}

#[test]
fn a_class_has_the_priority_of_lanes_that_operations_call_for_it() {
    let with = |priority: &str| {
        let nested = "[[servers]]\nname = \"between\"\nhosts = \"h\"\n\
                      operations = [{ name = \"pass\", calls = [{ call = \"urgent.get\" }] }]\n\
                      [[servers]]\nname = \"urgent\"\nhosts = \"h\"\nlanes = [{ priority = 5, threads = 1 }]\n\
                      operations = [{ name = \"get\" }]\n[[classes]]";
        let calls = "name = \"get\", calls = [{ call = \"between.pass\" }]";
        let text = SMALL.replace("[[classes]]", nested).replacen("name = \"get\"", calls, 1);
        text.replace("clients = 1", &format!("clients = 1\n{priority}"))
    };
    check(&with(""), 17, "calls lanes that begin at priority 5, or others do", "write `priority = 5`");
    check(&with("priority = 4"), 17, "begin at priority 5", "write `priority = 5`");
    assert!(scenario::read(&with("priority = 5"), "urgent").is_ok());
}

/// Operations each of which calls the next, and the last one `after`. The one with number n is that with number n / `servers` of
/// the server with number n % `servers`.
fn chain(operations: usize, servers: usize, after: &str) -> String {
    let name = |number: usize| format!("s{}.o{}", number % servers, number / servers);
    let mut text = "span = \"1s\"\n[[hosts]]\nname = \"h\"\n[[classes]]\nname = \"c\"\nhosts = \"h\"\n\
                    clients = 1\nthink = \"1 ms\"\nmix = [{ calls = [{ call = \"s0.o0\" }] }]\n"
        .to_owned();
    for server in 0..servers {
        text += &format!("[[servers]]\nname = \"s{server}\"\nhosts = \"h\"\n");
        // A search has them in another order than runs.
        for number in (server..operations).step_by(servers).rev() {
            let next = if number + 1 < operations { name(number + 1) } else { after.to_owned() };
            let calls = if next.is_empty() { String::new() } else { format!("{{ call = \"{next}\" }}") };
            text += &format!("[[servers.operations]]\nname = \"o{}\"\ncalls = [{calls}]\n", number / servers);
        }
    }
    text
}

#[test]
fn chains_of_calls_are_followed_as_far_as_files_may_have_them() {
    for servers in [1, 256] {
        let scenario = scenario::read(&chain(256, servers, ""), "chain").expect("a good file").remove(0);
        let demanded = demands(&scenario).expect("demands");
        let of_class = &demanded.classes[0];
        assert_eq!((of_class.calls, of_class.messages), (256.0, if servers == 1 { 2.0 } else { 512.0 }));
        assert!(!of_scenario(&scenario).expect("a network").processors.is_empty());
        let seen = queueing::run(&scenario, 1, Duration::ZERO).expect("a run");
        assert_eq!(seen.calls, 256 * seen.classes[0].completed);
        check(
            &chain(257, servers, ""),
            if servers == 1 { 781 } else { 16 },
            "`s0.o0` begins a chain of 257 operations, each of which calls the next; there may be 256",
            "shorten the chain",
        );
    }
}

#[test]
fn long_chains_and_circles_of_calls_are_found() {
    let long = |after| scenario::read(&chain(20_000, 40, after), "long").expect_err("too long").remove(0);
    assert!(long("").message.contains("a chain of 20000 operations"));
    let circle = long("s39.o498").message;
    assert!(circle.contains(": s0.o499 -> s1.o499 -> s2.o499 -> "), "{circle}");
    assert!(circle.ends_with(" -> s39.o499 -> s39.o498 -> s0.o499"), "{circle}");
}

#[test]
fn a_class_with_jobs_caches_what_its_other_cycles_read() {
    let read = SMALL.replace("name = \"get\"", "name = \"get\", kind = \"read\"");
    let with = |calls: &str| {
        let mix = format!(
            "cache = {{ lag = \"1ms\", update_octets = 4 }}\n\
             mix = [{{ calls = [{{ call = \"{calls}\" }}] }}, \
             {{ job = \"synchronous\", parts = [{{ call = \"s.get\" }}], daemon = \"s\" }}]"
        );
        read.replace("mix = [{ calls = [{ call = \"s.get\" }] }]", &mix)
    };
    assert!(scenario::read(&with("s.get"), "both").is_ok());
    check(&with("s.note"), 8, "reads nothing", "that its `calls` name");
}

#[test]
fn no_text_panics() {
    for end in (0..ALL.len()).step_by(7).filter(|&end| ALL.is_char_boundary(end)) {
        let _ = scenario::read(&ALL[..end], "cut");
        let _ = scenario::read(&ALL[end..], "cut");
    }
}

#[test]
fn the_documentation_has_every_key() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulation.md");
    let docs = std::fs::read_to_string(docs).expect("docs/simulation.md");
    let table = scenario::markdown();
    assert!(docs.contains(table.trim()), "put this into docs/simulation.md:\n{table}");
}

#[test]
fn the_examples_are_good_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a file");
        let read = scenario::read(&text, "example").unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
        for scenario in read {
            let again =
                scenario::read(&scenario::write(&scenario), "other").expect("a file that was written");
            assert_eq!(again, [scenario]);
        }
        count += 1;
    }
    assert!(count >= 4, "{count}");
}

#[test]
fn a_profile_gives_the_times_that_the_file_does_not() {
    let profile = r#"
        not_modelled = []
        [origin]
        processor = "p"
        processors = 1
        kernel = "k"
        preemption = "none"
        compiler = "c"
        commit = "0"
        date = "d"
        orb = "ironorb"
        method = "differences"
        load = 0.0
        is_quick = true
        [[calls]]
        placement = "one-core"
        idle_ns = 0.0
        objects = 1
        in_flight = 1
        calls = 10
        steps = { find_proxy = 10.0, write_request = 20.0, read_request = 30.0, find_object = 40.0, execute = 50.0, write_reply = 60.0, read_reply = 70.0 }
        thread_switch = { mean_ns = 80.0, quantiles_ns = [] }
        response = { mean_ns = 500.0, quantiles_ns = [] }
    "#;
    let profiles = |name: &str| match name {
        "here.toml" => Ok(profile.to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let read = |dwell: &str| scenario::read_with(&format!("{SMALL}\n[dwell]\n{dwell}"), "small", &profiles);
    let named = "profile = \"here.toml\"\nplacement = \"one-core\"\nexecute = \"1 us\"";
    let dwell = read(named).unwrap().remove(0).dwell;
    assert_eq!(dwell.find_object.mean(), Duration::from_nanos(40));
    assert_eq!(dwell.thread_switch.mean(), Duration::from_nanos(80));
    assert_eq!(dwell.execute.mean(), Duration::from_micros(1), "what the file says takes precedence");
    let told = |dwell: &str| read(dwell).unwrap_err().remove(0).to_string();
    assert!(told("profile = \"there.toml\"").contains("`there.toml`: no such file"));
    assert!(told("profile = \"here.toml\"").contains("no [[calls]] with placement CoreEach"));
    assert!(told("idle = \"1 ms\"").contains("`idle` says nothing without a profile"));
}
