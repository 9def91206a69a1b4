//! What the program takes from its task file: the times as described, and the table that the analysis makes of it.

use std::fmt;
use std::time::Duration;

use ironorb::rt::Priority;
use ironorb_sched::description::{Description, Task};
use ironorb_sched::{ConnectionEntry, LaneEntry, Nanos, Report, Table, TaskEntry, TaskSet, analyze, table};

/// The task set without overload.
pub const NORMAL: &str = include_str!("../avionics.toml");

/// The task set with a load that is too much.
pub const OVERLOAD: &str = include_str!("../overload.toml");

/// The node of the tasks.
pub const MISSION: &str = "mission";

/// The node of the servants.
pub const PERIPHERAL: &str = "peripheral";

/// A task file, and what its analysis says.
pub struct Plan {
    /// The report of the analysis.
    pub report: Report,
    /// The table that a system looks up.
    pub table: Table,
    set: TaskSet,
}

impl Plan {
    /// Analyses a task set.
    pub fn of_toml(text: &str) -> Result<Plan, BadPlan> {
        let set = TaskSet::from_toml(text).map_err(|problems| {
            BadPlan(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        })?;
        let report = analyze(&set);
        Ok(Plan { table: table(&report), report, set })
    }

    /// The task set as it is described.
    pub fn description(&self) -> &Description {
        self.set.description()
    }

    /// The tasks.
    pub fn tasks(&self) -> &[Task] {
        &self.description().tasks
    }

    /// How long an operation's servant runs, as the task file has it.
    pub fn wcet(&self, operation: &str) -> Option<Duration> {
        let operation = self.description().operations.iter().find(|it| it.name == operation)?;
        Some(duration(operation.wcet))
    }

    /// The lanes of the servants, as the table has them.
    pub fn lanes(&self) -> impl Iterator<Item = &LaneEntry> {
        self.table.lanes.iter().filter(|lane| lane.node == PERIPHERAL)
    }

    /// A task in the table.
    pub fn task(&self, name: &str) -> Option<&TaskEntry> {
        self.table.tasks.iter().find(|task| task.name == name)
    }

    /// The bound of a task's response; `None` if the analysis has none.
    pub fn bound(&self, task: &str) -> Option<Duration> {
        self.task(task)?.response.filter(|bound| *bound != Nanos::MAX).map(duration)
    }

    /// The connection of a task.
    pub fn connection(&self, task: &str) -> Option<&ConnectionEntry> {
        self.table.connections.iter().find(|connection| connection.task == task)
    }
}

/// A number of the task file as a CORBA priority. The analysis has checked that it is one.
pub fn priority(number: u16) -> Priority {
    i16::try_from(number).ok().and_then(Priority::new).unwrap_or(Priority::MAX)
}

/// A time of the task file.
pub fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(time.0)
}

/// A task file with mistakes: a line for each.
#[derive(Debug)]
pub struct BadPlan(String);

impl fmt::Display for BadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPlan {}
