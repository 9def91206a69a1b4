//! Layered queueing networks: what is written keeps the format's rules, and solvers, where one is installed, find what
//! we find.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use ironorb_model::analysis::demands::demands;
use ironorb_model::analysis::lqn::{Step, TaskKind, check, of_scenario};
use ironorb_model::analysis::mva::solve;
use ironorb_model::scenario::*;

use super::chains::assert_near;
use super::scenarios::*;

const ARCHITECTURES: [Architecture; 4] = [
    Architecture::Sequential,
    Architecture::HandleDriven,
    Architecture::Forwarding,
    Architecture::Synchronous,
];

/// A scenario with all that a network has a place for.
fn everything() -> Scenario {
    let mut scenario = open_queue(50, ms(2), 2, Some(4));
    scenario.name = "all & \"everything\" <1>".to_owned();
    scenario.hosts[1].count = 3;
    scenario.hosts.push(host("ledgers", 1));
    scenario.default_link = Link { latency: us(100), bandwidth: Some(100_000_000), loss: 0.001, ..link() };
    let mut put = operation("put", Spread::Uniform(ms(1), ms(2)));
    put.sleeps = true;
    let log = Operation { is_oneway: true, ..operation("log", Spread::Fixed(us(10))) };
    let mut ledger = server("ledger", 2, None, vec![put, log]);
    ledger.lanes = vec![Lane { priority: 0, threads: 2 }, Lane { priority: 100, threads: 1 }];
    scenario.servers.push(ledger);
    scenario.servers[0].lock = ServerLock::Process;
    scenario.servers[0].operations[0].calls =
        vec![Call { times: 2, ..call(1, 0) }, Call { target: Target::Object(3), ..call(1, 1) }];
    let think = Spread::Exponential(ms(100));
    let closed = |clients| Arrivals::Closed { clients, think: think.clone() };
    let job = Cycle::Job {
        architecture: Architecture::HandleDriven,
        parts: vec![call(0, 0), call(1, 0)],
        daemon: 0,
    };
    let mut urgent = class("urgent 1", 0, closed(5), vec![Cycle::Calls(vec![call(0, 0)]), job]);
    urgent.priority = Some(200);
    scenario.classes.push(urgent);
    scenario.classes.push(class(
        "traced",
        0,
        Arrivals::Trace(vec![ms(10), ms(500)]),
        vec![Cycle::Calls(vec![call(1, 1)])],
    ));
    scenario
}

fn samples() -> Vec<Scenario> {
    let jobs = ARCHITECTURES.map(|it| par_04(it, 10, Some(1), Spread::Fixed));
    let mut closed = open_queue(100, ms(5), 2, Some(3));
    closed.classes[0].arrivals = Arrivals::Closed { clients: 8, think: Spread::Exponential(ms(20)) };
    let mut many = open_queue(100, ms(5), 2, None);
    many.hosts[1].count = 1000;
    jobs.into_iter().chain([everything(), closed, many, open_queue(150, ms(5), 1, None)]).collect()
}

#[test]
fn what_is_written_keeps_the_rules() {
    for scenario in samples() {
        let text = of_scenario(&scenario).unwrap().to_xml();
        assert_eq!(check(&text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_rules_find_what_breaks_them() {
    let text = of_scenario(&par_04(Architecture::Synchronous, 2, Some(1), Spread::Fixed)).unwrap().to_xml();
    for (from, to, problem) in [
        ("<lqn-model", "<lqn", "no well-formed XML"),
        ("multiplicity=\"4\"", "multiplicity=\"0\"", "`multiplicity` cannot be `0`"),
        ("type=\"NONE\"", "type=\"NOTHING\"", "`type` cannot be `NOTHING`"),
        ("host-demand-mean=\"0\"", "host-demand-mean=\"-1\"", "`host-demand-mean` cannot be `-1`"),
        ("scheduling=\"ref\"", "order=\"ref\"", "`order` is no attribute of it"),
        ("dest=\"A_work\"", "dest=\"A_walk\"", "`A_walk` is called and is no entry"),
        ("task name=\"B\"", "task name=\"A\"", "two task elements are named `A`"),
        ("<solver-params", "<solver-params/><solver-params", "`solver-params` stands there 2 times"),
        ("<post-AND>", "<post-AND><activity name=\"nothing\"/>", "`nothing` is no activity of `daemon`"),
        (
            "bound-to-entry=\"daemon_jobs_cycle_1_1\"",
            "bound-to-entry=\"jobs\"",
            "`jobs` is no entry of `daemon`",
        ),
        (
            "<reply-entry ",
            "<precedence><pre><activity name=\"x\"/></pre></precedence><entry ",
            "no well-formed XML",
        ),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let problems = check(&text.replacen(from, to, 1));
        assert!(problems.iter().any(|it| it.contains(problem)), "{from}: {problems:?}");
    }
    assert_eq!(check("<model/>"), ["its root is `model` instead of `lqn-model`"]);
}

#[test]
fn threads_locks_and_jobs_have_their_places() {
    let network = of_scenario(&par_04(Architecture::Synchronous, 10, Some(1), Spread::Fixed)).unwrap();
    let tasks: Vec<_> = network.processors.iter().flat_map(|it| &it.tasks).collect();
    let of = |name: &str| *tasks.iter().find(|task| task.name == name).unwrap();
    assert_eq!(of("jobs").kind, TaskKind::Clients { number: 10, think: 0.0 });
    assert_eq!(of("A").kind, TaskKind::Threads(1));
    assert_eq!(of("A_servants").kind, TaskKind::Unbounded);
    assert_eq!(of("daemon").kind, TaskKind::Threads(1));
    let forks = of("daemon")
        .graph
        .steps
        .iter()
        .filter(|step| matches!(step, Step::Fork(_, parts) if parts.len() == 2));
    assert_eq!(forks.count(), 2);
    assert!(network.comment.contains("fork and join"), "{}", network.comment);
    let all = of_scenario(&everything()).unwrap();
    let kind = |name: &str| {
        let mut tasks = all.processors.iter().flat_map(|it| &it.tasks);
        tasks.find(|task| task.name == name).map(|task| task.kind)
    };
    for host in 0..3 {
        assert_eq!(kind(&format!("accounts_{host}_lock")), Some(TaskKind::Threads(1)));
        assert_eq!(kind(&format!("accounts_{host}")), Some(TaskKind::Threads(4)));
    }
    assert_eq!(kind("ledger_lane_100"), Some(TaskKind::Threads(1)));
    let calls = all
        .processors
        .iter()
        .flat_map(|it| &it.tasks)
        .flat_map(|it| &it.entries)
        .filter_map(|it| it.phase.as_ref());
    assert!(calls.flat_map(|phase| &phase.calls).any(|call| !call.waits), "oneway calls wait for nothing");
}

/// Where a program is installed.
fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn run(program: &Path, arguments: &[&str], folder: &Path) -> Output {
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

/// Schemas come with LQNS: `IRONORB_TEST_LQN_SCHEMA` names the file `lqn.xsd`.
#[test]
fn the_schema_takes_what_is_written_where_it_is_installed() {
    let (Some(xmllint), Some(schema)) = (installed("xmllint"), std::env::var_os("IRONORB_TEST_LQN_SCHEMA"))
    else {
        eprintln!("skipped: xmllint is not installed, or IRONORB_TEST_LQN_SCHEMA does not name lqn.xsd");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (number, scenario) in samples().iter().enumerate() {
        let file = format!("{number}.lqnx");
        std::fs::write(folder.path().join(&file), of_scenario(scenario).unwrap().to_xml()).unwrap();
        let done = run(&xmllint, &["--noout", "--schema", schema.to_str().unwrap(), &file], folder.path());
        assert!(done.status.success(), "{file}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// Customers that think, and queue for a processor: of product form, so the solver has to find what we do.
#[test]
fn an_independent_solver_agrees_where_it_is_installed() {
    let Some(lqns) = installed("lqns") else {
        eprintln!("skipped: lqns is not installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (clients, cores) in [(1, 1), (4, 1), (12, 1)] {
        let mut scenario = open_queue(100, ms(5), cores, None);
        scenario.classes[0].arrivals = Arrivals::Closed { clients, think: Spread::Exponential(ms(20)) };
        scenario.default_link.latency = Duration::from_micros(500);
        let ours = solve(&demands(&scenario).unwrap().network()).chains[0].throughput;
        std::fs::write(folder.path().join("it.lqnx"), of_scenario(&scenario).unwrap().to_xml()).unwrap();
        let done = run(&lqns, &["-x", "it.lqnx"], folder.path());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let solved = std::fs::read_to_string(folder.path().join("it.lqxo")).unwrap();
        assert_near(throughput(&solved, "calls"), ours, 0.03);
    }
}

/// The throughput that a solution tells of a task.
fn throughput(solved: &str, task: &str) -> f64 {
    let (_, behind) = solved.split_once(&format!("<task name=\"{task}\"")).unwrap();
    let (_, behind) = behind.split_once("<result-task").unwrap();
    let (_, behind) = behind.split_once(" throughput=\"").unwrap();
    behind.split_once('"').unwrap().0.parse().unwrap()
}

#[test]
fn a_trace_that_begins_all_at_once_has_no_rate() {
    let mut at_once = open_queue(100, ms(5), 2, Some(3));
    at_once.classes[0].arrivals = Arrivals::Trace(vec![Duration::ZERO; 3]);
    let text = of_scenario(&at_once).unwrap().to_xml();
    assert!(check(&text).is_empty(), "{text}");
    assert!(!text.contains("open-arrival-rate"), "{text}");
}
