//! From a task set of two nodes to a table, and from the table to two ORBs that a loopback connects.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use ironorb::poa::PoaError;
use ironorb::rt::{CodePoint, NetworkPriority, thread_policies};
use ironorb::{Orb, PoaPolicies, TypedRef};
use ironorb_sched::{Table, TaskSet, Verdict, analyze, table};
use ironorb_scheduler::{NameKind, NodeSchedule, ScheduleError, UnknownName};
use ironorb_tests::real_time::{priority, real_time, server_of};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Hooked, eventually};
use rustix::thread::{CpuSet, sched_getaffinity};

/// A processor that this process may use.
fn processor() -> usize {
    let allowed = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).find(|number| allowed.is_set(*number)).unwrap()
}

/// The station's two tasks have different priorities, so their connections to the board's lanes are their own.
fn task_set(processor: usize) -> String {
    let processors = processor + 1;
    format!(
        r#"
[[node]]
name = "station"
processors = {processors}

[[node]]
name = "board"
processors = {processors}

[[link]]
name = "net"
bandwidth = "1 Gbit/s"
delay = "100us"
order = "priority"
classes = 2

[[lane]]
name = "control"
node = "board"
processor = {processor}
priority = 30000
threads = 2

[[lane]]
name = "callers"
node = "board"
processor = {processor}

[[operation]]
name = "plant::Valve::set"
lane = "control"
wcet = "200us"

[[operation]]
name = "plant::Valve::state"
lane = "control"
wcet = "100us"

[[operation]]
name = "plant::Log::write"
lane = "callers"
wcet = "200us"

[[operation]]
name = "plant::Log::urgent"
lane = "control"
wcet = "100us"

[[task]]
name = "steer"
node = "station"
processor = {processor}
period = "20ms"
deadline = "10ms"
wcet = "1ms"
calls = [
    {{ operation = "plant::Valve::set", link = "net", request = 100, reply = 100 }},
    {{ operation = "plant::Log::write", link = "net", request = 100, reply = 100 }},
]

[[task]]
name = "report"
node = "station"
processor = {processor}
period = "100ms"
wcet = "2ms"
calls = [
    {{ operation = "plant::Log::write", link = "net", request = 1000, reply = 100 }},
    {{ operation = "plant::Valve::state", link = "net", request = 100, reply = 100 }},
]

[[task]]
name = "local"
lane = "control"
period = "100ms"
wcet = "1ms"
"#
    )
}

/// The table, as its file brings it.
fn read_table() -> Table {
    let report = analyze(&TaskSet::from_toml(&task_set(processor())).unwrap());
    assert_eq!(report.verdict, Verdict::Fits, "{report}");
    Table::from_toml(&table(&report).to_toml().unwrap()).unwrap()
}

/// What a servant sees: its lane, its priority, and the processors of its thread.
type Seen = Arc<Mutex<Vec<(String, Option<i16>, Vec<usize>)>>>;

fn own_processors() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect()
}

/// A servant that notes what it sees.
fn noting(orb: &Orb, seen: &Seen) -> Hooked {
    let (orb, seen) = (orb.clone(), seen.clone());
    Hooked::new(move || {
        let at = orb.rt_current().unwrap().priority().ok().map(|priority| priority.number());
        seen.lock().unwrap().push((orb.current_lane().name().to_owned(), at, own_processors()));
        Ok(())
    })
}

fn board(table: &Table) -> (Orb, NodeSchedule) {
    let node = NodeSchedule::new(table.clone(), "board").unwrap();
    let listen = |_: &str| Some("iiop://127.0.0.1:0".to_owned());
    let orb = node.configure(server_of(real_time()), listen).unwrap().build().unwrap();
    (orb, node)
}

/// How many connections from clients a lane has now.
fn clients_of(orb: &Orb, lane: &str) -> usize {
    let status = orb.status();
    let number = status.lanes.iter().find(|it| it.name == lane).unwrap().number;
    status.connections.iter().filter(|it| it.lane == number && it.direction == "in").count()
}

#[test]
fn two_orbs_run_as_the_table_says() {
    let table = read_table();
    let (server, node) = board(&table);
    let scheduler = node.server_scheduler(&server).unwrap();
    let root = server.root_poa();
    // The names are those of an interface, of an operation, and of a lane.
    let valves = scheduler.create_poa(&root, "plant::Valve", None, PoaPolicies::default()).unwrap();
    let logs = scheduler.create_poa(&root, "plant::Log::write", None, PoaPolicies::default()).unwrap();
    let seen = Seen::default();
    let valve: ProbeRef = valves.activate(noting(&server, &seen)).unwrap();
    let log: ProbeRef = logs.activate(noting(&server, &seen)).unwrap();
    let valve = scheduler.schedule_object(&valves, &valve, "plant::Valve").unwrap();
    let log = scheduler.schedule_object(&logs, &log, "callers").unwrap();

    let station = NodeSchedule::new(table.clone(), "station").unwrap();
    let client = station.configure(server_of(real_time()), |_| None).unwrap().build().unwrap();
    let valve: ProbeRef = client.resolve(&valve.object().to_ior_string()).unwrap();
    let log: ProbeRef = client.resolve(&log.object().to_ior_string()).unwrap();
    let activities = station.client_scheduler(&client).unwrap();
    let current = client.rt_current().unwrap();
    let (before, policies) = (own_processors(), thread_policies());
    let priorities = ["steer", "report"].map(|task| {
        let activity = activities.schedule_activity(task).unwrap();
        let entry = table.task(task).unwrap();
        assert_eq!(activity.task(), entry);
        assert_eq!(current.priority().unwrap(), priority(entry.priority as i16));
        assert_eq!(own_processors(), [processor()]);
        let marks = thread_policies().network_priority;
        let dscp = table.connections.iter().find(|it| it.task == task).unwrap().dscp;
        assert_eq!(marks, CodePoint::new(dscp).filter(|it| it.number() > 0).map(NetworkPriority::Fixed));
        let own_valve = activity.connect(&valve, "control").unwrap();
        let own_log = activity.connect(&log, "callers").unwrap();
        assert_eq!(own_valve.object().effective_client_policies().private_connection, Some(true));
        own_valve.ping().unwrap();
        own_log.ping().unwrap();
        (entry.priority as i16, own_valve, own_log)
    });
    // The thread is what it was.
    assert!(current.priority().is_err() && own_processors() == before && thread_policies() == policies);
    let (on, own) = (vec![processor()], |lane: &str| lane.to_owned());
    let expected = [
        (own("control"), Some(30_000), on.clone()),
        (own("callers"), Some(priorities[0].0), on.clone()),
        (own("control"), Some(30_000), on.clone()),
        (own("callers"), Some(priorities[1].0), on),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert!(priorities[0].0 > priorities[1].0);
    // Each task has a connection of its own to each lane; they end with the references.
    assert_eq!((clients_of(&server, "control"), clients_of(&server, "callers")), (2, 2));
    drop(priorities);
    eventually("the connections are closed", || {
        clients_of(&server, "control") + clients_of(&server, "callers") == 0
    });
}

#[test]
fn an_activity_in_a_lane_is_in_it() {
    let (server, node) = board(&read_table());
    let activities = node.client_scheduler(&server).unwrap();
    assert_eq!(server.current_lane().name(), "");
    let activity = activities.schedule_activity("local").unwrap();
    assert_eq!(server.current_lane().name(), "control");
    drop(activity);
    assert_eq!(server.current_lane().name(), "");
}

#[test]
fn unknown_names_list_near_ones() {
    let table = read_table();
    let near = |near: &[&str]| near.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let unknown = |result: Result<(), ScheduleError>| match result.unwrap_err() {
        ScheduleError::UnknownName(unknown) => unknown,
        other => panic!("{other}"),
    };
    let of =
        |kind, name: &str, names: &[&str]| UnknownName { kind, name: name.to_owned(), near: near(names) };
    let node = unknown(NodeSchedule::new(table.clone(), "bored").map(drop));
    assert_eq!(node, of(NameKind::Node, "bored", &["board"]));
    let (server, node) = board(&table);
    let scheduler = node.server_scheduler(&server).unwrap();
    let create = |name: &str| scheduler.create_poa(&server.root_poa(), name, None, PoaPolicies::default());
    let object = unknown(create("contrl").map(drop));
    assert_eq!(object, of(NameKind::Object, "contrl", &["control"]));
    let task = unknown(node.client_scheduler(&server).unwrap().schedule_activity("x").map(drop));
    assert_eq!(task, of(NameKind::Task, "x", &["local", "steer", "report"]));
    assert_eq!(
        task.to_string(),
        "the table has no task \"x\": take one of [\"local\", \"steer\", \"report\"], or describe it in the task set and \
         write the table again"
    );
    let said = create("plant::Log").unwrap_err().to_string();
    assert!(said.contains("\"plant::Log\" are in the lanes [\"callers\", \"control\"]"), "{said}");
    create("control").unwrap();
    assert!(matches!(create("control").unwrap_err(), ScheduleError::Poa(PoaError::AdapterAlreadyExists)));
}

#[test]
fn what_does_not_fit_the_table_is_an_error_with_its_place() {
    let table = read_table();
    let said = |result: Result<(), ScheduleError>, words: &str| {
        let said = result.unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    };
    let (server, node) = board(&table);
    let plain = Orb::builder().no_endpoint().build().unwrap();
    said(
        node.server_scheduler(&plain).map(drop),
        "the ORB has no lane \"callers\", which the table has for this node",
    );
    let station = NodeSchedule::new(table.clone(), "station").unwrap();
    said(station.client_scheduler(&plain).map(drop), "build it with `OrbBuilder::real_time`");
    let activities = node.client_scheduler(&server).unwrap();
    said(
        activities.schedule_activity("steer").map(drop),
        "task \"steer\" belongs to node \"station\" of the table",
    );
    let activity = activities.schedule_activity("local").unwrap();
    let nil = server.root_poa().create_reference("IDL:testing/Probe:1.0").unwrap();
    let valve = ProbeRef::from_object(nil);
    said(activity.connect(&valve, "control").map(drop), "task \"local\" calls nothing in lane \"control\"");

    let changed = |change: &dyn Fn(&mut Table)| {
        let mut table = table.clone();
        change(&mut table);
        NodeSchedule::new(table, "board").unwrap()
    };
    let configure = |node: &NodeSchedule| node.configure(server_of(real_time()), |_| None).map(drop);
    said(
        configure(&changed(&|table| table.lanes[0].threads = None)),
        "lane \"callers\" has no `threads` in the table",
    );
    said(
        configure(&changed(&|table| table.lanes[1].priority = Some(40_000))),
        "lane \"control\" has priority 40000",
    );
    let on_none = changed(&|table| table.tasks[0].processor = Some(u32::MAX));
    let activities = on_none.client_scheduler(&server).unwrap();
    said(
        activities.schedule_activity("local").map(drop),
        "task \"local\" runs on processor 4294967295 in the table",
    );
    let far = changed(&|table| table.lanes[0].affinity = vec![1_000]);
    let listen = |_: &str| Some("iiop://127.0.0.1:0".to_owned());
    let refused = far.configure(server_of(real_time()), listen).unwrap().build().map(drop).unwrap_err();
    assert!(refused.to_string().contains("callers"), "{refused}");
    // What the mapping does not map.
    let mapping = ironorb::rt::ContinuousMapping { min: 1, max: 10 };
    let fifo = real_time().mapping(mapping).scheduling(ironorb::rt::SchedulingPolicy::Fifo);
    let unmapped = NodeSchedule::new(table.clone(), "station").unwrap();
    let orb = Orb::builder().no_endpoint().real_time(fifo).build().unwrap();
    let activities = unmapped.client_scheduler(&orb).unwrap();
    said(activities.schedule_activity("steer").map(drop), "task \"steer\" has priority");
    let old = table.to_toml().unwrap().replace("version = 1", "version = 2");
    let said = Table::from_toml(&old).unwrap_err().to_string();
    assert!(said.contains("version 2") && said.contains("ironorb sched table"), "{said}");
    assert_eq!(
        table.lanes.iter().map(|lane| &*lane.name).collect::<BTreeSet<_>>(),
        ["callers", "control"].into()
    );
}
