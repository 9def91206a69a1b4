//! The program in virtual time. Stubs, servants, adapters, requests with their priorities and deadlines are those of the
//! real program; the processors, the bus and the threads of lanes are modelled.

mod bus;
mod processor;
mod world;

use std::error::Error;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ironorb::engine::Time;
use ironorb::rt::{Priority, RealTimeConfig, RtCurrent, SchedulingPolicy};
use ironorb::{Orb, OrbBuilder};
use ironorb_sched::description::{Description, Home};
use ironorb_sched::{Nanos, Row, TimelineBar};

use crate::plan::{Plan, duration, priority};
use crate::platform::Platform;
use crate::servants;
use crate::tally::Tally;
use crate::tasks::{PeriodicTask, References, Shared};
use bus::Bus;
use processor::Processor;
use world::World;

/// How a simulation goes.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long tasks are released.
    pub length: Duration,
    /// The seed of the tasks' first releases; with 0 all are released at once, which is about the worst case.
    pub seed: u64,
}

/// What a simulation has shown.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// A tally for each task, in the order of the task file.
    pub tallies: Vec<Tally>,
    /// Requests that were not carried out, because their callers had given up.
    pub refused: u64,
    /// Requests by which the ORBs of the peripherals missed a deadline of `@rt`.
    pub deadlines_missed: u64,
    /// The longest message on the bus, in bytes.
    pub message_bytes_max: usize,
    /// What ran when: a row for each processor.
    pub rows: Vec<Row>,
}

/// When the first tasks are released: connections are made before.
const START: Duration = Duration::from_millis(100);

/// Runs a plan in virtual time.
pub fn simulate(plan: &Plan, settings: Settings) -> Result<Outcome, Box<dyn Error>> {
    let world = world_of(plan.description());
    let (servers, references, platform) = peripherals(&world, plan)?;
    let tallies = mission(&world, plan, settings, &references, &platform)?;
    world.run();
    let mut tallies = std::mem::take(&mut *tallies.lock().expect("no thread is left"));
    let place = |tally: &Tally| plan.tasks().iter().position(|task| task.name == tally.task);
    tallies.sort_by_key(place);
    let message_bytes_max = world.lock().bus.message_bytes_max;
    let missed = |orb: &Orb| orb.status().total("deadlines_missed_total");
    Ok(Outcome {
        tallies,
        refused: servers.iter().map(Orb::late_requests).sum(),
        deadlines_missed: servers.iter().map(missed).sum(),
        message_bytes_max,
        rows: rows(&world, plan),
    })
}

/// The clock and the processors of the world.
struct Virtual {
    world: Weak<World>,
    current: RtCurrent,
    resources: Vec<String>,
}

impl Virtual {
    fn run(&self, time: Duration, resource: Option<usize>) {
        // The priority that the ORB has given this thread: that of its lane, of the request, or of the task.
        let priority = self.current.priority().map_or(-1, |priority| priority.number().into());
        if let Some(world) = self.world.upgrade() {
            world.compute(priority, time, resource);
        }
    }
}

impl Platform for Virtual {
    fn now(&self) -> Duration {
        self.world.upgrade().map_or(Duration::ZERO, |world| world.now().since(Time::ZERO))
    }

    fn wait_until(&self, at: Duration) {
        if let Some(world) = self.world.upgrade() {
            world.wait_until(Time::ZERO + at);
        }
    }

    fn compute(&self, time: Duration) {
        self.run(time, None);
    }

    fn compute_holding(&self, resource: &str, time: Duration) {
        self.run(time, self.resources.iter().position(|name| name == resource));
    }
}

/// The processors, the bus and the interrupts of a task file.
fn world_of(description: &Description) -> Arc<World> {
    let processors = description.nodes.iter().flat_map(|node| {
        let switch = duration(node.context_switch);
        (0..node.processors).map(move |number| Processor::new(format!("{}/{number}", node.name), switch))
    });
    let world = World::new(Bus::new(&description.links[0]), processors.collect());
    for interrupt in &description.interrupts {
        let processor = processor_of(description, &interrupt.node, interrupt.processor);
        world.add_interrupt(processor, duration(interrupt.period), duration(interrupt.wcet));
    }
    world
}

/// The number of a node's processor in the world.
fn processor_of(description: &Description, node: &str, number: u32) -> usize {
    let before = description.nodes.iter().take_while(|it| it.name != node);
    before.map(|node| node.processors as usize).sum::<usize>() + number as usize
}

fn builder() -> OrbBuilder {
    let real_time = RealTimeConfig::new().scheduling(SchedulingPolicy::Other);
    Orb::builder().real_time(real_time).deadline_propagation(true)
}

type Peripherals = (Vec<Orb>, References, Arc<dyn Platform>);

/// The ORBs of the peripherals. Each lane is one: in virtual time a server has one address.
fn peripherals(world: &Arc<World>, plan: &Plan) -> Result<Peripherals, Box<dyn Error>> {
    let mut orbs = Vec::new();
    let mut references = References::new();
    let any = world.add_orb("clock", 0, builder());
    let platform: Arc<dyn Platform> = Arc::new(Virtual {
        world: Arc::downgrade(world),
        current: any.rt_current().ok_or("a real-time ORB has one")?,
        resources: plan.description().resources.iter().map(|resource| resource.name.clone()).collect(),
    });
    for (number, lane) in plan.lanes().enumerate() {
        let orb = world.add_orb(&lane.name, 0, builder());
        references.push((lane.name.clone(), servants::activate(&orb, lane, plan, &platform)?));
        let processor = processor_of(plan.description(), &lane.node, lane.affinity[0]);
        for _ in 0..lane.threads.unwrap_or(THREADS_OF_UNBOUNDED) {
            world.spawn_server(number + 1, &lane.name, processor);
        }
        orbs.push(orb);
    }
    Ok((orbs, references, platform))
}

/// Threads of a lane for which no number suffices.
const THREADS_OF_UNBOUNDED: u32 = 8;

/// The tasks, each with an ORB of its own: its connection is private, and its messages have a class.
fn mission(
    world: &Arc<World>,
    plan: &Plan,
    settings: Settings,
    references: &References,
    platform: &Arc<dyn Platform>,
) -> Result<Arc<Mutex<Vec<Tally>>>, Box<dyn Error>> {
    let tallies = Arc::new(Mutex::new(Vec::new()));
    let shared = Shared::default();
    let mut random = settings.seed;
    for task in plan.tasks() {
        let priority = plan.task(&task.name).map_or(Priority::MIN, |entry| priority(entry.priority));
        let class = plan.connection(&task.name).map_or(0, |connection| connection.dscp);
        let orb = world.add_orb(&format!("task-{}", task.name), class, builder());
        let current = orb.rt_current().ok_or("a real-time ORB has one")?;
        let mut task_of_thread = PeriodicTask::new(&orb, plan, task, references, &shared, platform)?;
        let Home::Processor { node, processor } = &task.home else {
            return Err(format!("task {} has no processor of its own", task.name).into());
        };
        let processor = processor_of(plan.description(), node, *processor);
        let first = START + phase(&mut random, duration(task.period));
        let (noted, end) = (tallies.clone(), START + settings.length);
        world.spawn_task(&task.name, processor, move || {
            let _orb = orb;
            current.set_priority(priority).expect("without classes of the system all are granted");
            task_of_thread.connect().expect("the lane's server is there");
            let tally = task_of_thread.run(first, end);
            noted.lock().expect("one thread runs at a time").push(tally);
        });
    }
    Ok(tallies)
}

/// A first release within a task's period: 0 with the seed 0, else at random (splitmix64).
fn phase(seed: &mut u64, period: Duration) -> Duration {
    if *seed == 0 {
        return Duration::ZERO;
    }
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15).max(1);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Duration::from_nanos((mixed ^ (mixed >> 31)) % (period.as_nanos() as u64))
}

/// What the processors did from the first release on.
fn rows(world: &World, plan: &Plan) -> Vec<Row> {
    let state = world.lock();
    let since_start = |time: Time| Nanos(time.since(Time::ZERO + START).as_nanos() as u64);
    let row = |processor: &Processor| {
        let bars = processor.bars.iter().filter(|bar| bar.to > Time::ZERO + START);
        let bars = bars.map(|bar| {
            let name = state.name_of(bar.runner).to_owned();
            let colour = plan.tasks().iter().position(|task| task.name == name);
            let (from, to) = (since_start(bar.from), since_start(bar.to));
            TimelineBar { colour: colour.unwrap_or(usize::MAX), step: name.clone(), task: name, from, to }
        });
        Row { unit: processor.name.clone(), bars: bars.collect() }
    };
    state.processors.iter().map(row).collect()
}
