//! What the analysis computes with: steps on units. A step is a run on a processor, or a message on a link. A task is
//! a tree of steps: each starts when its predecessor ends.

use std::collections::HashMap;

use crate::check::TaskSet;
use crate::description::*;

/// Steps, and the units that serve them.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// All steps. A predecessor stands before its successors.
    pub(crate) steps: Vec<Step>,
    /// All processors, then all links, then one floating unit for each node.
    pub(crate) units: Vec<Unit>,
    /// All resources.
    pub(crate) resources: Vec<ModelResource>,
    /// The steps of each task: a range of indices.
    pub(crate) task_steps: Vec<std::ops::Range<usize>>,
    /// The CORBA priority of each task.
    pub(crate) priorities: Vec<u16>,
}

/// A run on a processor, or a message on a link.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The task; `None` for interrupts.
    pub(crate) task: Option<usize>,
    /// What it is, such as the operation's name.
    pub(crate) label: String,
    /// The unit that serves it.
    pub(crate) unit: usize,
    /// More urgent steps have higher numbers: CORBA priorities on processors, above them interrupts; classes on links.
    pub(crate) urgency: u32,
    /// The longest run or transfer as described, in nanoseconds.
    pub(crate) wcet: u64,
    /// The longest run with the switches between threads, in nanoseconds.
    pub(crate) cost: u64,
    /// The least time between two releases of the task.
    pub(crate) period: u64,
    /// The release jitter of the task, in a first step.
    pub(crate) jitter: u64,
    /// The step whose end starts this one.
    pub(crate) predecessor: Option<usize>,
    /// What passes from its end to the start of its successors.
    pub(crate) after: u64,
    /// The task's deadline.
    pub(crate) deadline: u64,
    /// The task's criticality.
    pub(crate) criticality: Level,
    /// The critical sections, in order.
    pub(crate) sections: Vec<Held>,
    /// The lane that it runs in.
    pub(crate) lane: Option<usize>,
    /// The order of the lane's queue, if its upcalls do not preempt each other.
    pub(crate) queue: Option<LanePolicy>,
    /// The longest part of a message that is sent without a pause.
    pub(crate) frame: u64,
    /// Of a step in an unpinned lane: the processors it may run on.
    pub(crate) floats_over: Vec<usize>,
    /// The bytes of the request that starts it.
    pub(crate) request_bytes: u64,
    /// Whether its thread waits for a reply after it.
    pub(crate) waits: bool,
    /// Whether it goes on with the thread of an earlier step, after a call.
    pub(crate) resumes: bool,
}

/// A critical section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    /// The resource.
    pub(crate) resource: usize,
    /// The longest time, in nanoseconds.
    pub(crate) wcet: u64,
}

/// A resource, and how many processors' steps use it.
#[derive(Debug, Clone)]
pub(crate) struct ModelResource {
    /// Its protocol.
    pub(crate) protocol: Protocol,
    /// The steps that use it.
    pub(crate) users: Vec<usize>,
    /// The highest urgency of a user.
    pub(crate) ceiling: u32,
    /// Whether steps of several units use it.
    pub(crate) is_shared: bool,
}

/// What serves steps, one at a time.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// The name: `node/0`, or the link's.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: UnitKind,
    /// Its steps, the most urgent first.
    pub(crate) steps: Vec<usize>,
}

/// What serves steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// A processor, preemptive.
    Processor {
        /// The longest non-preemptible time of the kernel, in nanoseconds.
        non_preemptible: u64,
        /// The cost of a switch, in nanoseconds.
        switch: u64,
    },
    /// A link; messages are not preempted within a frame.
    Link,
    /// All processors of a node, for lanes that are not pinned to one.
    Floating,
}

/// The urgency of interrupts, above that of all priorities.
pub(crate) const INTERRUPT_URGENCY: u32 = 1 << 16;

impl Model {
    /// Lays out the steps of a set whose tasks have these priorities.
    pub(crate) fn of(set: &TaskSet, priorities: Vec<u16>) -> Model {
        let mut layout = Layout::of(set.description(), priorities);
        layout.interrupts();
        layout.tasks();
        layout.finish()
    }

    /// Sorts the steps of units and looks for the users of resources. Needed after urgencies change.
    pub(crate) fn settle(&mut self) {
        for unit in &mut self.units {
            unit.steps.sort_by_key(|&step| (std::cmp::Reverse(self.steps[step].urgency), step));
        }
        for resource in &mut self.resources {
            let users = || resource.users.iter().map(|&user| &self.steps[user]);
            resource.ceiling = users().map(|step| step.urgency).max().unwrap_or(0);
            resource.is_shared = users().any(|step| step.unit != self.steps[resource.users[0]].unit);
        }
    }
}

struct Layout<'d> {
    all: &'d Description,
    model: Model,
    processors: HashMap<&'d str, usize>,
    floating: HashMap<&'d str, usize>,
    lanes: HashMap<&'d str, usize>,
    links: HashMap<&'d str, usize>,
    link_units: usize,
    resources: HashMap<&'d str, usize>,
    operations: HashMap<&'d str, usize>,
    classes: Vec<Classes>,
}

/// The classes of a priority-ordered link, by the ranks of the priorities that use it.
type Classes = HashMap<u16, u32>;

/// Where a run happens: what a task's home or an operation's lane says.
#[derive(Clone)]
struct Site {
    unit: usize,
    urgency: u32,
    lane: Option<usize>,
    queue: Option<LanePolicy>,
    floats_over: Vec<usize>,
}

impl<'d> Layout<'d> {
    fn of(all: &'d Description, priorities: Vec<u16>) -> Self {
        let mut units = Vec::new();
        let mut processors = HashMap::new();
        for node in &all.nodes {
            processors.insert(node.name.as_str(), units.len());
            let kind = UnitKind::Processor {
                non_preemptible: node.non_preemptible.0,
                switch: node.context_switch.0,
            };
            units.extend((0..node.processors).map(|number| unit(format!("{}/{number}", node.name), kind)));
        }
        let link_units = units.len();
        units.extend(all.links.iter().map(|link| unit(link.name.clone(), UnitKind::Link)));
        let mut floating = HashMap::new();
        for node in &all.nodes {
            floating.insert(node.name.as_str(), units.len());
            units.push(unit(format!("{}/*", node.name), UnitKind::Floating));
        }
        let resources = all.resources.iter().map(|resource| ModelResource {
            protocol: resource.protocol,
            users: Vec::new(),
            ceiling: 0,
            is_shared: false,
        });
        let model = Model {
            steps: Vec::new(),
            units,
            resources: resources.collect(),
            task_steps: Vec::new(),
            priorities,
        };
        let mut layout = Layout {
            all,
            model,
            processors,
            floating,
            lanes: index(all.lanes.iter().map(|lane| lane.name.as_str())),
            links: index(all.links.iter().map(|link| link.name.as_str())),
            link_units,
            resources: index(all.resources.iter().map(|resource| resource.name.as_str())),
            operations: index(all.operations.iter().map(|operation| operation.name.as_str())),
            classes: Vec::new(),
        };
        layout.classes = layout.classes_of_links();
        layout
    }

    fn interrupts(&mut self) {
        for interrupt in &self.all.interrupts {
            let unit = self.processors[interrupt.node.as_str()] + interrupt.processor as usize;
            let site =
                Site { unit, urgency: INTERRUPT_URGENCY, lane: None, queue: None, floats_over: Vec::new() };
            let step = Step {
                label: interrupt.name.clone(),
                wcet: interrupt.wcet.0,
                period: interrupt.period.0,
                deadline: u64::MAX,
                ..blank(None, &site)
            };
            self.push(step);
        }
    }

    fn tasks(&mut self) {
        for index in 0..self.all.tasks.len() {
            let first = self.model.steps.len();
            self.task(index);
            self.model.task_steps.push(first..self.model.steps.len());
        }
    }

    fn task(&mut self, index: usize) {
        let task = &self.all.tasks[index];
        let site = self.home(index);
        let root = Step {
            label: task.name.clone(),
            wcet: task.wcet.0,
            jitter: task.jitter.0,
            sections: self.held(&task.sections),
            ..self.step_of(index, &site)
        };
        let root = self.push(root);
        self.calls(index, &task.calls, &task.name, site, root);
    }

    /// Lays out calls in turn. Returns the step after whose end the caller is done. Recursive: the depth of calls is
    /// bounded by the check.
    fn calls(&mut self, task: usize, calls: &'d [Call], caller: &str, site: Site, from: usize) -> usize {
        let mut last = from;
        let mut own = from;
        for call in calls {
            let end = self.call(task, call, last);
            self.model.steps[own].waits |= !call.is_oneway;
            let continues_at = if call.is_oneway { last } else { end };
            last = continues_at;
            if call.then.0 > 0 {
                let then = Step {
                    label: format!("{caller} after {}", call.operation),
                    wcet: call.then.0,
                    sections: self.held(&call.then_sections),
                    predecessor: Some(continues_at),
                    resumes: true,
                    ..self.step_of(task, &site)
                };
                last = self.push(then);
                own = last;
            }
        }
        last
    }

    fn call(&mut self, task: usize, call: &'d Call, from: usize) -> usize {
        let all = self.all;
        let operation = &all.operations[self.operations[call.operation.as_str()]];
        let arrived = self.message(task, call.link.as_deref(), call.request_bytes, from, &call.operation);
        let site = self.lane_site(&operation.lane, self.model.priorities[task]);
        let run = Step {
            label: operation.name.clone(),
            wcet: operation.wcet.0,
            sections: self.held(&operation.sections),
            predecessor: Some(arrived),
            request_bytes: call.request_bytes,
            ..self.step_of(task, &site)
        };
        let run = self.push(run);
        let done = self.calls(task, &operation.calls, &operation.name, site, run);
        if call.is_oneway {
            return done;
        }
        let link = call.reply_link.as_deref().or(call.link.as_deref());
        self.message(task, link, call.reply_bytes, done, &call.operation)
    }

    fn message(&mut self, task: usize, link: Option<&str>, bytes: u64, from: usize, label: &str) -> usize {
        let Some(name) = link else { return from };
        let number = self.links[name];
        let link = &self.all.links[number];
        let urgency = self.classes[number].get(&self.model.priorities[task]).copied().unwrap_or(0);
        let site = Site {
            unit: self.link_units + number,
            urgency,
            lane: None,
            queue: None,
            floats_over: Vec::new(),
        };
        let wcet = transfer_time(link, bytes);
        let step = Step {
            label: format!("{label} over {name}"),
            wcet,
            after: link.delay.0,
            frame: link.frame.map_or(wcet, |frame| wcet.min(transfer_time(link, frame.min(bytes)))),
            predecessor: Some(from),
            ..self.step_of(task, &site)
        };
        self.push(step)
    }

    fn push(&mut self, mut step: Step) -> usize {
        let index = self.model.steps.len();
        let switch = match self.model.units[step.unit].kind {
            UnitKind::Processor { switch, .. } => switch,
            UnitKind::Link | UnitKind::Floating => 0,
        };
        // One switch to it, one back. Waiting for a resource costs two more.
        let waits = step.sections.iter().filter(|held| self.inherits(held)).count() as u64;
        step.cost = step.wcet.saturating_add(switch.saturating_mul(2 + 2 * waits));
        for held in &step.sections {
            let users = &mut self.model.resources[held.resource].users;
            if users.last() != Some(&index) {
                users.push(index);
            }
        }
        self.model.units[step.unit].steps.push(index);
        self.model.steps.push(step);
        index
    }

    fn inherits(&self, held: &Held) -> bool {
        self.model.resources[held.resource].protocol == Protocol::Inheritance
    }

    fn held(&self, sections: &[Section]) -> Vec<Held> {
        let held = |section: &Section| Held {
            resource: self.resources[section.resource.as_str()],
            wcet: section.wcet.0,
        };
        sections.iter().map(held).collect()
    }

    fn step_of(&self, task: usize, site: &Site) -> Step {
        let described = &self.all.tasks[task];
        Step {
            period: described.period.0,
            deadline: described.deadline().0,
            criticality: described.criticality,
            ..blank(Some(task), site)
        }
    }

    /// Where a task runs: in its lane at its own priority, which may differ from the lane's.
    fn home(&self, task: usize) -> Site {
        let priority = self.model.priorities[task];
        match &self.all.tasks[task].home {
            Home::Lane(name) => {
                let site = self.lane_site(name, priority);
                let is_fixed = self.all.lanes[self.lanes[name.as_str()]].policy == LanePolicy::FixedPriority;
                Site { urgency: if is_fixed { priority.into() } else { site.urgency }, ..site }
            }
            Home::Processor { node, processor } => Site {
                unit: self.processors[node.as_str()] + *processor as usize,
                urgency: priority.into(),
                lane: None,
                queue: None,
                floats_over: Vec::new(),
            },
        }
    }

    fn lane_site(&self, name: &str, caller: u16) -> Site {
        let number = self.lanes[name];
        let lane = &self.all.lanes[number];
        let node = lane.node.as_str();
        let first = self.processors[node];
        let count = self.all.nodes.iter().find(|it| it.name == node).map_or(1, |it| it.processors);
        let mut over: Vec<usize> = match lane.processors.as_slice() {
            [] => (0..count as usize).map(|number| first + number).collect(),
            some => some.iter().map(|&number| first + number as usize).collect(),
        };
        over.sort_unstable();
        over.dedup();
        let is_pinned = over.len() == 1;
        Site {
            unit: if is_pinned { over[0] } else { self.floating[node] },
            urgency: lane.priority.unwrap_or(caller).into(),
            lane: Some(number),
            // Several threads start upcalls in the queue's order, but do not finish one before the next.
            queue: Some(lane.policy)
                .filter(|&policy| policy != LanePolicy::FixedPriority && lane.threads.unwrap_or(1) == 1),
            floats_over: if is_pinned { Vec::new() } else { over },
        }
    }

    /// Which priorities use each link, divided evenly among its classes.
    fn classes_of_links(&self) -> Vec<Classes> {
        let mut users: Vec<Vec<u16>> = vec![Vec::new(); self.all.links.len()];
        let mut links_of: Vec<Option<Vec<usize>>> = vec![None; self.all.operations.len()];
        for (task, priority) in self.all.tasks.iter().zip(&self.model.priorities) {
            for link in self.links_of_calls(&task.calls, &mut links_of) {
                users[link].push(*priority);
            }
        }
        let classes = users.into_iter().zip(&self.all.links).map(|(mut priorities, link)| {
            let LinkOrder::Priority { classes } = link.order else { return Classes::new() };
            priorities.sort_unstable();
            priorities.dedup();
            let count = priorities.len().max(1);
            let class = |rank: usize| (rank * usize::from(classes) / count) as u32;
            // With fewer priorities than classes, the highest classes are used.
            let lift = u32::from(classes).saturating_sub(count as u32);
            priorities
                .iter()
                .enumerate()
                .map(|(rank, &priority)| {
                    let class = if count <= usize::from(classes) { rank as u32 + lift } else { class(rank) };
                    (priority, class)
                })
                .collect()
        });
        classes.collect()
    }

    fn links_of_calls(&self, calls: &[Call], known: &mut Vec<Option<Vec<usize>>>) -> Vec<usize> {
        let mut links = Vec::new();
        for call in calls {
            links.extend(
                [&call.link, &call.reply_link].into_iter().flatten().map(|it| self.links[it.as_str()]),
            );
            let operation = self.operations[call.operation.as_str()];
            if known[operation].is_none() {
                let found = self.links_of_calls(&self.all.operations[operation].calls, known);
                known[operation] = Some(found);
            }
            links.extend(known[operation].iter().flatten());
        }
        links.sort_unstable();
        links.dedup();
        links
    }

    fn finish(mut self) -> Model {
        self.model.settle();
        self.model
    }
}

/// The time that a message occupies a link, in nanoseconds, rounded up, at least 1.
pub(crate) fn transfer_time(link: &Link, bytes: u64) -> u64 {
    let frames = link.frame.map_or(1, |frame| bytes.div_ceil(frame).max(1));
    let all = u128::from(bytes).saturating_add(u128::from(frames).saturating_mul(link.frame_overhead.into()));
    let nanos = all.saturating_mul(8 * 1_000_000_000).div_ceil(u128::from(link.bandwidth.max(1)));
    u64::try_from(nanos).unwrap_or(u64::MAX).max(1)
}

fn unit(name: String, kind: UnitKind) -> Unit {
    Unit { name, kind, steps: Vec::new() }
}

fn blank(task: Option<usize>, site: &Site) -> Step {
    Step {
        task,
        label: String::new(),
        unit: site.unit,
        urgency: site.urgency,
        wcet: 0,
        cost: 0,
        period: 1,
        jitter: 0,
        predecessor: None,
        after: 0,
        deadline: 0,
        criticality: Level::default(),
        sections: Vec::new(),
        lane: site.lane,
        queue: site.queue,
        frame: 0,
        floats_over: site.floats_over.clone(),
        request_bytes: 0,
        waits: false,
        resumes: false,
    }
}

fn index<'d>(names: impl Iterator<Item = &'d str>) -> HashMap<&'d str, usize> {
    names.enumerate().map(|(index, name)| (name, index)).collect()
}
