//! Layered queueing networks: clients wait for servers' threads, which wait for processors, locks and other servers. Solvers of
//! these (LQNS, LQSIM, LINE) know the software's own bottlenecks, which product form does not.
//!
//! [`of_scenario`] makes one, [`Lqn::to_xml`] writes it as LQNX, [`check`] says what of a text breaks the rules of that format.

mod check;
mod of_scenario;
mod write;

pub use check::check;
pub use of_scenario::of_scenario;

/// A layered queueing network. Times are seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Lqn {
    /// Its name.
    pub name: String,
    /// What of the scenario it leaves out, for those who read the file.
    pub comment: String,
    /// Its processors, each with its tasks.
    pub processors: Vec<Processor>,
}

/// What tasks run on.
#[derive(Debug, Clone, PartialEq)]
pub struct Processor {
    /// Its name; no other processor has it.
    pub name: String,
    /// How many there are; `None`: as many as there are requests.
    pub multiplicity: Option<u32>,
    /// Whether they take turns, instead of serving in order of arrival.
    pub takes_turns: bool,
    /// What runs on it: at least one.
    pub tasks: Vec<Task>,
}

/// A client, or threads of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its name; no other task has it.
    pub name: String,
    /// What it is.
    pub kind: TaskKind,
    /// What it can be asked: at least one.
    pub entries: Vec<Entry>,
    /// Activities that fork and join, for entries without phases.
    pub graph: Graph,
}

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TaskKind {
    /// So many clients, who think between their cycles: what LQN calls a reference task.
    Clients {
        /// Their number.
        number: u32,
        /// Mean seconds between cycles.
        think: f64,
    },
    /// So many threads.
    Threads(u32),
    /// A thread for each request.
    Unbounded,
}

/// What can be asked of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its name; no other entry of any task has it.
    pub name: String,
    /// Requests a second that come from nowhere.
    pub open_rate: Option<f64>,
    /// What it does until it answers; `None` if the task's graph says it.
    pub phase: Option<Activity>,
}

/// Work, and calls meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// Its name, which no other one of the task has.
    pub name: String,
    /// Mean seconds on the processor.
    pub demand: f64,
    /// The squared coefficient of variation of that time.
    pub variation: f64,
    /// The entry that it begins.
    pub begins: Option<String>,
    /// Calls that it makes.
    pub calls: Vec<EntryCall>,
}

/// Calls of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryCall {
    /// The entry's name.
    pub entry: String,
    /// The mean number of calls.
    pub times: f64,
    /// Whether the caller waits.
    pub waits: bool,
}

/// Activities in their order.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Graph {
    /// All activities.
    pub activities: Vec<Activity>,
    /// Which follow on which.
    pub steps: Vec<Step>,
    /// By entry, the activity after which it answers.
    pub replies: Vec<(String, String)>,
}

/// What follows on what.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// One after the other.
    Then(String, String),
    /// All of several at once.
    Fork(String, Vec<String>),
    /// One, after all of several.
    Join(Vec<String>, String),
}
