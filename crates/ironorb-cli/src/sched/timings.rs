//! What IDL says of the timing of operations (`@rt`), for task sets.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ironorb_idl::compile_file;
use ironorb_idl::model::{self, DefKind, Model, Timing};
use ironorb_sched::Nanos;
use ironorb_sched::description::{Description, Home, Lane, Level, Node, Task};

use crate::failure::Failure;
use crate::idl;

/// The timings of operations and attributes by their scoped names, such as `plant::Valve::set`.
pub(super) type Timings = BTreeMap<String, Timing>;

/// Reads the timings of IDL files.
pub(super) fn read(files: &[PathBuf], settings: &idl::Settings) -> Result<Timings, Failure> {
    let mut timings = Timings::new();
    for file in files {
        let outcome = compile_file(file, &settings.options());
        match &outcome.model {
            Some(model) => timings.extend(of_model(model)),
            None => {
                let failure = Failure::new(format!("{} has errors", file.display())).of_usage();
                return Err(failure.with_body(outcome.render(false)));
            }
        }
    }
    Ok(timings)
}

fn of_model(model: &Model) -> impl Iterator<Item = (String, Timing)> {
    model.definitions().iter().filter_map(|definition| {
        let timing = match &definition.kind {
            DefKind::Operation(operation) => operation.timing,
            DefKind::Attribute(attribute) => attribute.timing,
            _ => None,
        };
        Some((model.scoped_name(definition.id).join("::"), timing?))
    })
}

/// How long operations run at most, by their names.
pub(super) fn wcets(timings: &Timings) -> BTreeMap<String, Nanos> {
    let known = timings.iter().filter_map(|(name, timing)| Some((name.clone(), nanos(timing.wcet?))));
    known.collect()
}

/// The task set in which each operation with a period and a wcet is called once a period, all on one processor.
pub(super) fn task_set(timings: &Timings) -> Result<Description, Failure> {
    let is_half = |(_, timing): &(&String, &Timing)| timing.period.is_some() != timing.wcet.is_some();
    let half: String = timings.iter().filter(is_half).map(|(name, _)| format!("{name}\n")).collect();
    if !half.is_empty() {
        return Err(Failure::usage("operations have a `period` without `wcet`, or the other way around")
            .with_help("give both in `@rt`, or describe in TOML who calls them: `ironorb sched analyze tasks.toml FILE.idl`")
            .with_body(half));
    }
    let tasks: Vec<Task> = timings.iter().filter_map(|(name, timing)| task(name, timing)).collect();
    if tasks.is_empty() {
        return Err(Failure::usage("no operation has a period and a wcet")
            .with_help("write `@rt(period = \"10ms\", wcet = \"2ms\")` before operations"));
    }
    Ok(Description {
        nodes: vec![Node::new(NODE)],
        lanes: vec![Lane::new(LANE, NODE).on(0)],
        tasks,
        ..Description::default()
    })
}

fn task(name: &str, timing: &Timing) -> Option<Task> {
    let (period, wcet) = (nanos(timing.period?), nanos(timing.wcet?));
    Some(Task {
        deadline: timing.deadline.map(nanos),
        criticality: timing.criticality.map(level).unwrap_or_default(),
        importance: timing.importance.map(level).unwrap_or_default(),
        ..Task::new(name, Home::Lane(LANE.to_owned()), period, wcet)
    })
}

fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn level(level: model::Level) -> Level {
    match level {
        model::Level::VeryLow => Level::VeryLow,
        model::Level::Low => Level::Low,
        model::Level::Medium => Level::Medium,
        model::Level::High => Level::High,
        model::Level::VeryHigh => Level::VeryHigh,
    }
}

/// The names of the node and of the lane that stand for what IDL does not say.
const NODE: &str = "host";
const LANE: &str = "operations";
