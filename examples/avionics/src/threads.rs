//! The program on threads, sockets and lanes.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use ironorb::rt::{
    ClientPolicies, CodePoint, NetworkPriority, Priority, RealTimeConfig, RtMutex, SchedulingPolicy,
    TimingFault, set_thread_policies,
};
use ironorb::{LaneConfig, Orb, OrbBuilder, ServerConcurrency, SystemException, ThreadPoolConfig};
use ironorb_sched::description::{Home, Task};
use ironorb_sched::{ConnectionEntry, LaneEntry};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::plan::{Plan, priority};
use crate::platform::Platform;
use crate::servants;
use crate::tally::Tally;
use crate::tasks::{PeriodicTask, References, Shared};

/// The share of each time of the task file that is really computed. The rest is left for the ORB and for a machine that
/// is no target system.
const COMPUTED: f64 = 0.5;

/// Serves the peripherals until the process ends, and writes their references to a file.
pub fn serve(plan: &Plan, scheduling: SchedulingPolicy, references: &Path) -> Result<(), Box<dyn Error>> {
    let orb = server_orb(plan, scheduling)?;
    let platform: Arc<dyn Platform> = Arc::new(Threads::new(plan));
    let mut lines = String::new();
    for lane in plan.lanes() {
        let reference = servants::activate(&orb, lane, plan, &platform)?;
        lines.push_str(&format!("{} {reference}\n", lane.name));
    }
    fs::write(references, lines)?;
    println!("serving: the references are in {}", references.display());
    orb.run()?;
    Ok(())
}

/// A lane of the table with a priority is a lane of the ORB. The one without is its default lane, whose threads take the
/// priority of each request.
fn server_orb(plan: &Plan, scheduling: SchedulingPolicy) -> Result<Orb, Box<dyn Error>> {
    let mut builder = builder(scheduling).endpoint("iiop://127.0.0.1:0")?;
    for lane in plan.lanes() {
        builder = match lane.priority {
            Some(number) => builder.lane(lane_of(lane, priority(number))),
            None => builder.concurrency(pool_of(lane)),
        };
    }
    Ok(builder.build()?)
}

fn builder(scheduling: SchedulingPolicy) -> OrbBuilder {
    let tell =
        |fault: &TimingFault<'_>| eprintln!("{}: {:?} after {:?}", fault.operation, fault.kind, fault.ran);
    let real_time = RealTimeConfig::new().scheduling(scheduling).on_timing_fault(tell);
    Orb::builder().real_time(real_time).deadline_propagation(true)
}

fn lane_of(lane: &LaneEntry, priority: Priority) -> LaneConfig {
    let config = LaneConfig::new(&lane.name).endpoint("iiop://127.0.0.1:0").priority(priority);
    let config = config.concurrency(pool_of(lane));
    let processors: Vec<usize> = lane.affinity.iter().filter_map(|&number| on_this_machine(number)).collect();
    if processors.is_empty() { config } else { config.processors(processors) }
}

/// Threads that exist always: one that is made on demand costs time in the call that needs it.
fn pool_of(lane: &LaneEntry) -> ServerConcurrency {
    let threads = lane.threads.unwrap_or(THREADS_OF_UNBOUNDED) as usize;
    ServerConcurrency::ThreadPool(ThreadPoolConfig::new(threads))
}

/// Threads of a lane for which no number suffices.
const THREADS_OF_UNBOUNDED: u32 = 8;

/// Runs the tasks for so long against a server, each on a thread of its own.
pub fn call(
    plan: &Plan,
    scheduling: SchedulingPolicy,
    references: &Path,
    length: Duration,
) -> Result<Vec<Tally>, Box<dyn Error>> {
    let orb = builder(scheduling).no_endpoint().build()?;
    let references = read(references)?;
    let platform: Arc<dyn Platform> = Arc::new(Threads::new(plan));
    let shared = Shared::default();
    let first = platform.now() + START;
    let tasks = plan.tasks().iter().map(|task| {
        let periodic = PeriodicTask::new(&orb, plan, task, &references, &shared, &platform)?;
        let surroundings = Surroundings::of(plan, task);
        let orb = orb.clone();
        Ok(thread::spawn(move || surroundings.run(&orb, periodic, first, first + length)))
    });
    let tasks = tasks.collect::<Result<Vec<_>, SystemException>>()?;
    tasks.into_iter().map(|task| Ok(task.join().map_err(|_| "a task has panicked")??)).collect()
}

/// When the first tasks are released: connections are made before.
const START: Duration = Duration::from_millis(100);

/// What the table says of a task's thread.
struct Surroundings {
    priority: Priority,
    processor: Option<usize>,
    policies: ClientPolicies,
}

impl Surroundings {
    fn of(plan: &Plan, task: &Task) -> Surroundings {
        let number = plan.task(&task.name).map_or(0, |entry| entry.priority);
        let processor = match task.home {
            Home::Processor { processor, .. } => on_this_machine(processor),
            Home::Lane(_) => None,
        };
        let policies = plan.connection(&task.name).map_or(ClientPolicies::NONE, policies_of);
        Surroundings { priority: priority(number), processor, policies }
    }

    /// Gives the calling thread what the table says, and runs the task on it.
    fn run(
        &self,
        orb: &Orb,
        mut task: PeriodicTask,
        first: Duration,
        end: Duration,
    ) -> Result<Tally, SystemException> {
        if let Some(processor) = self.processor {
            let mut set = CpuSet::new();
            set.set(processor);
            // Where the system refuses, the thread runs on the processors that it has.
            let _ = sched_setaffinity(None, &set);
        }
        if let Some(current) = orb.rt_current()
            && let Err(e) = current.set_priority(self.priority)
        {
            eprintln!("{e}");
        }
        set_thread_policies(self.policies);
        task.connect()?;
        Ok(task.run(first, end))
    }
}

/// How a connection is told apart, and how its packets are marked.
fn policies_of(connection: &ConnectionEntry) -> ClientPolicies {
    let mark = CodePoint::new(connection.dscp).map(NetworkPriority::Fixed);
    ClientPolicies {
        private_connection: Some(connection.private),
        network_priority: mark,
        ..ClientPolicies::NONE
    }
}

fn read(references: &Path) -> Result<References, Box<dyn Error>> {
    let text = fs::read_to_string(references).map_err(|e| {
        format!(
            "cannot read {}: {e}; start `avionics server` first, with the same file",
            references.display()
        )
    })?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .collect())
}

/// The number of a processor, if this machine has it.
fn on_this_machine(number: u32) -> Option<usize> {
    let there = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some(number as usize).filter(|number| *number < there)
}

/// The clock and the processors of the machine.
struct Threads {
    begun: Instant,
    resources: BTreeMap<String, RtMutex<()>>,
}

impl Threads {
    fn new(plan: &Plan) -> Threads {
        let resources = plan.description().resources.iter();
        let resources = resources.map(|resource| (resource.name.clone(), RtMutex::new(()))).collect();
        Threads { begun: Instant::now(), resources }
    }
}

impl Platform for Threads {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn wait_until(&self, at: Duration) {
        thread::sleep(at.saturating_sub(self.now()));
    }

    /// Uses the processor for a share of the time, however often the thread is preempted.
    fn compute(&self, time: Duration) {
        let used = || clock_gettime(ClockId::ThreadCPUTime);
        let begun = used();
        let nanos = |at: rustix::time::Timespec| at.tv_sec * 1_000_000_000 + at.tv_nsec;
        let wanted = (time.as_nanos() as f64 * COMPUTED) as i64;
        while nanos(used()) - nanos(begun) < wanted {
            std::hint::spin_loop();
        }
    }

    fn compute_holding(&self, resource: &str, time: Duration) {
        let _held = self.resources.get(resource).map(RtMutex::lock);
        self.compute(time);
    }
}
