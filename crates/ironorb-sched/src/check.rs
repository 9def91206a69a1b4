//! Checks a description: names, numbers, cycles. What passes is a [`TaskSet`].

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::description::*;
use crate::problem::{Places, Problem, Problems, did_you_mean};
use crate::read;
use crate::time::Nanos;

/// A checked description: all names are known, all numbers are in range, no calls go round in circles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSet {
    description: Description,
}

impl TaskSet {
    /// Checks a description made in code. All problems that are found are returned; they have no places.
    pub fn new(description: Description) -> Result<Self, Vec<Problem>> {
        Self::checked(description, Places::new())
    }

    /// Reads a description in TOML, and checks it. All problems that are found are returned, each with its place.
    pub fn from_toml(text: &str) -> Result<Self, Vec<Problem>> {
        Self::from_toml_with(text, &BTreeMap::new())
    }

    /// Reads a description as [`from_toml`](Self::from_toml) does. An operation without a `wcet` has the one that `wcets` has
    /// under its name, such as from IDL.
    pub fn from_toml_with(text: &str, wcets: &BTreeMap<String, Nanos>) -> Result<Self, Vec<Problem>> {
        let (description, places) = read::read(text, wcets)?;
        Self::checked(description, places)
    }

    /// The description that was checked.
    pub fn description(&self) -> &Description {
        &self.description
    }

    fn checked(description: Description, places: Places) -> Result<Self, Vec<Problem>> {
        let mut checker = Checker::of(&description, Problems::with_places(places));
        checker.check();
        let problems = checker.problems;
        if problems.is_empty() { Ok(TaskSet { description }) } else { Err(problems.into_sorted()) }
    }
}

struct Checker<'d> {
    all: &'d Description,
    nodes: HashMap<&'d str, &'d Node>,
    lanes: HashMap<&'d str, &'d Lane>,
    links: HashSet<&'d str>,
    resources: HashSet<&'d str>,
    operations: HashMap<&'d str, usize>,
    problems: Problems,
}

impl<'d> Checker<'d> {
    fn of(all: &'d Description, problems: Problems) -> Self {
        Checker {
            all,
            nodes: all.nodes.iter().map(|node| (node.name.as_str(), node)).collect(),
            lanes: all.lanes.iter().map(|lane| (lane.name.as_str(), lane)).collect(),
            links: all.links.iter().map(|link| link.name.as_str()).collect(),
            resources: all.resources.iter().map(|resource| resource.name.as_str()).collect(),
            operations: all
                .operations
                .iter()
                .enumerate()
                .map(|(index, operation)| (operation.name.as_str(), index))
                .collect(),
            problems,
        }
    }

    fn check(&mut self) {
        self.unique("node", self.all.nodes.iter().map(|it| it.name.as_str()));
        self.unique("link", self.all.links.iter().map(|it| it.name.as_str()));
        self.unique("lane", self.all.lanes.iter().map(|it| it.name.as_str()));
        self.unique("resource", self.all.resources.iter().map(|it| it.name.as_str()));
        self.unique("interrupt", self.all.interrupts.iter().map(|it| it.name.as_str()));
        self.unique("operation", self.all.operations.iter().map(|it| it.name.as_str()));
        self.unique("task", self.all.tasks.iter().map(|it| it.name.as_str()));
        if self.all.priorities.lowest > self.all.priorities.highest
            || self.all.priorities.highest > PriorityRange::CORBA_MAX
        {
            self.problems.at(
                "analysis.priorities",
                "`priorities` is no range of CORBA priorities",
                "the lowest comes first, and the highest is at most 32767",
            );
        }
        self.check_nodes();
        self.check_links();
        self.check_lanes();
        self.check_interrupts();
        self.check_operations();
        self.check_tasks();
        if self.problems.is_empty() {
            self.check_circles();
        }
        if self.problems.is_empty() {
            self.check_size();
        }
    }

    fn unique(&mut self, kind: &str, names: impl Iterator<Item = &'d str>) {
        let mut seen = HashSet::new();
        for (index, name) in names.enumerate() {
            let path = format!("{kind}.{index}.name");
            if name.is_empty() {
                self.problems.at(&path, format!("a {kind} has no name"), "give it a name that is not empty");
            } else if !seen.insert(name) {
                self.problems.at(&path, format!("there are two {kind}s `{name}`"), "rename one of them");
            }
        }
    }

    fn check_nodes(&mut self) {
        for (index, node) in self.all.nodes.iter().enumerate() {
            let path = format!("node.{index}");
            if !(1..=1024).contains(&node.processors) {
                self.problems.at(
                    &format!("{path}.processors"),
                    format!("node `{}` has {} processors", node.name, node.processors),
                    "write a number from 1 to 1024",
                );
            }
            self.in_range(&path, "context_switch", node.context_switch, 0);
            self.in_range(&path, "non_preemptible", node.non_preemptible, 0);
        }
    }

    fn check_links(&mut self) {
        for (index, link) in self.all.links.iter().enumerate() {
            let path = format!("link.{index}");
            self.in_range(&path, "delay", link.delay, 0);
            if link.bandwidth == 0 {
                self.problems.at(
                    &format!("{path}.bandwidth"),
                    format!("link `{}` carries nothing", link.name),
                    "write the bits a second, at least 1",
                );
            }
            if link.frame == Some(0) {
                self.problems.at(
                    &format!("{path}.frame"),
                    format!("the frames of link `{}` are empty", link.name),
                    "write the most bytes of a frame, such as 1500, or leave it out",
                );
            }
            if matches!(link.order, LinkOrder::Priority { classes } if !(1..=7).contains(&classes)) {
                self.problems.at(
                    &format!("{path}.classes"),
                    format!("link `{}` cannot have so many classes", link.name),
                    "write a number from 1 to 7",
                );
            }
        }
    }

    fn check_lanes(&mut self) {
        for (index, lane) in self.all.lanes.iter().enumerate() {
            let path = format!("lane.{index}");
            self.known_node(&format!("{path}.node"), &lane.node);
            for &processor in &lane.processors {
                let key = if lane.processors.len() == 1 { "processor" } else { "processors" };
                self.known_processor(&format!("{path}.{key}"), &lane.node, processor);
            }
            if lane.threads == Some(0) {
                self.problems.at(
                    &format!("{path}.threads"),
                    format!("lane `{}` has no thread", lane.name),
                    "write a number of at least 1, or leave it out",
                );
            }
            self.known_priority(&path, lane.priority);
            if lane.policy != LanePolicy::FixedPriority && lane.priority.is_none() {
                self.problems.at(
                    &format!("{path}.policy"),
                    format!("lane `{}` orders its queue, but has no priority among other threads", lane.name),
                    "add `priority = ...`",
                );
            }
        }
    }

    fn check_interrupts(&mut self) {
        for (index, interrupt) in self.all.interrupts.iter().enumerate() {
            let path = format!("interrupt.{index}");
            self.known_node(&format!("{path}.node"), &interrupt.node);
            self.known_processor(&format!("{path}.processor"), &interrupt.node, interrupt.processor);
            self.in_range(&path, "period", interrupt.period, 1);
            self.in_range(&path, "wcet", interrupt.wcet, 1);
        }
    }

    fn check_operations(&mut self) {
        for (index, operation) in self.all.operations.iter().enumerate() {
            let path = format!("operation.{index}");
            self.known_lane(&format!("{path}.lane"), &operation.lane);
            self.in_range(&path, "wcet", operation.wcet, 1);
            self.check_sections(&format!("{path}.uses"), &operation.sections, operation.wcet);
            let node = self.lanes.get(operation.lane.as_str()).map(|lane| lane.node.as_str());
            self.check_calls(&path, node, &operation.calls);
        }
    }

    fn check_tasks(&mut self) {
        for (index, task) in self.all.tasks.iter().enumerate() {
            let path = format!("task.{index}");
            self.in_range(&path, "period", task.period, 1);
            self.in_range(&path, "deadline", task.deadline(), 1);
            self.in_range(&path, "jitter", task.jitter, 0);
            self.in_range(&path, "wcet", task.wcet, 1);
            self.check_sections(&format!("{path}.uses"), &task.sections, task.wcet);
            self.known_priority(&path, task.priority);
            let mut lane_priority = None;
            let node = match &task.home {
                Home::Lane(name) => {
                    self.known_lane(&format!("{path}.lane"), name);
                    let lane = self.lanes.get(name.as_str());
                    lane_priority = lane.and_then(|lane| lane.priority);
                    lane.map(|lane| lane.node.as_str())
                }
                Home::Processor { node, processor } => {
                    self.known_node(&format!("{path}.node"), node);
                    self.known_processor(&format!("{path}.processor"), node, *processor);
                    Some(node.as_str())
                }
            };
            self.check_calls(&path, node, &task.calls);
            if self.all.assignment == Assignment::Explicit && task.priority.or(lane_priority).is_none() {
                self.problems.at(
                    &path,
                    format!("priorities are explicit, but task `{}` has none", task.name),
                    "add `priority = ...` to the task or its lane, or choose another `assignment`",
                );
            }
        }
    }

    fn check_calls(&mut self, path: &str, node: Option<&str>, calls: &[Call]) {
        for (index, call) in calls.iter().enumerate() {
            let path = format!("{path}.calls.{index}");
            self.in_range(&path, "then", call.then, 0);
            self.check_sections(&format!("{path}.then_uses"), &call.then_sections, call.then);
            for (key, link) in [("link", &call.link), ("reply_link", &call.reply_link)] {
                if let Some(link) = link.as_deref().filter(|link| !self.links.contains(link)) {
                    let mend = did_you_mean(link, self.all.links.iter().map(|it| it.name.as_str()));
                    self.problems.at(&format!("{path}.{key}"), format!("there is no link `{link}`"), mend);
                }
            }
            if call.link.is_none() && call.reply_link.is_some() {
                self.problems.at(
                    &format!("{path}.reply_link"),
                    "the reply has a link, but the request has none",
                    "add `link = \"...\"`",
                );
            }
            let Some(&operation) = self.operations.get(call.operation.as_str()) else {
                let mend =
                    did_you_mean(&call.operation, self.all.operations.iter().map(|it| it.name.as_str()));
                self.problems.at(
                    &format!("{path}.operation"),
                    format!("there is no operation `{}`", call.operation),
                    mend,
                );
                continue;
            };
            let lane = self.lanes.get(self.all.operations[operation].lane.as_str());
            if let (Some(caller), Some(lane), None) = (node, lane, &call.link)
                && lane.node != caller
            {
                self.problems.at(
                    &path,
                    format!("`{}` is served on node `{}`, not on `{caller}`", call.operation, lane.node),
                    "add the `link` that carries the request",
                );
            }
        }
    }

    fn check_sections(&mut self, path: &str, sections: &[Section], wcet: Nanos) {
        let mut sum = Nanos::ZERO;
        for (index, section) in sections.iter().enumerate() {
            let path = format!("{path}.{index}");
            self.in_range(&path, "wcet", section.wcet, 1);
            sum = sum.plus(section.wcet);
            if !self.resources.contains(section.resource.as_str()) {
                let mend =
                    did_you_mean(&section.resource, self.all.resources.iter().map(|it| it.name.as_str()));
                self.problems.at(
                    &format!("{path}.resource"),
                    format!("there is no resource `{}`", section.resource),
                    mend,
                );
            }
        }
        if sum > wcet {
            self.problems.at(
                path,
                format!("the critical sections take {sum}, longer than the whole run of {wcet}"),
                "sections count within the run: shorten them, or lengthen the run",
            );
        }
    }

    fn in_range(&mut self, path: &str, key: &str, time: Nanos, least: u64) {
        if time.0 < least {
            self.problems.at(
                &format!("{path}.{key}"),
                format!("`{key}` is zero"),
                "write a time of at least 1ns",
            );
        } else if time > Nanos::DESCRIBED_MAX {
            let most = Nanos::DESCRIBED_MAX;
            self.problems.at(
                &format!("{path}.{key}"),
                format!("`{key}` is {time}"),
                format!("times are at most {most}"),
            );
        }
    }

    fn known_node(&mut self, path: &str, name: &str) {
        if !self.nodes.contains_key(name) {
            let mend = did_you_mean(name, self.all.nodes.iter().map(|it| it.name.as_str()));
            self.problems.at(path, format!("there is no node `{name}`"), mend);
        }
    }

    fn known_processor(&mut self, path: &str, node: &str, processor: u32) {
        if let Some(node) = self.nodes.get(node).filter(|node| processor >= node.processors) {
            self.problems.at(
                path,
                format!("node `{}` has no processor {processor}", node.name),
                format!("write a number below {}, or give the node more `processors`", node.processors),
            );
        }
    }

    fn known_lane(&mut self, path: &str, name: &str) {
        if !self.lanes.contains_key(name) {
            let mend = did_you_mean(name, self.all.lanes.iter().map(|it| it.name.as_str()));
            self.problems.at(path, format!("there is no lane `{name}`"), mend);
        }
    }

    fn known_priority(&mut self, path: &str, priority: Option<u16>) {
        if let Some(priority) = priority.filter(|&priority| priority > PriorityRange::CORBA_MAX) {
            self.problems.at(
                &format!("{path}.priority"),
                format!("{priority} is no CORBA priority"),
                "write a number from 0 to 32767",
            );
        }
    }

    /// Finds operations that call themselves, directly or through others.
    fn check_circles(&mut self) {
        let mut state = vec![Visit::New; self.all.operations.len()];
        for start in 0..self.all.operations.len() {
            // A stack of its own, lest a long chain of calls overflow the thread's.
            let mut stack = vec![(start, 0)];
            while let Some((operation, next)) = stack.pop() {
                if next == 0 {
                    if state[operation] != Visit::New {
                        continue;
                    }
                    state[operation] = Visit::Open;
                }
                let Some(call) = self.all.operations[operation].calls.get(next) else {
                    state[operation] = Visit::Done;
                    continue;
                };
                stack.push((operation, next + 1));
                let callee = self.operations[call.operation.as_str()];
                match state[callee] {
                    Visit::New => stack.push((callee, 0)),
                    Visit::Done => {}
                    Visit::Open => self.report_circle(operation, next, callee, &stack),
                }
            }
        }
    }

    fn report_circle(&mut self, operation: usize, call: usize, callee: usize, stack: &[(usize, usize)]) {
        let from = stack.iter().position(|&(open, _)| open == callee).unwrap_or(0);
        let names: Vec<&str> = stack[from..]
            .iter()
            .map(|&(open, _)| open)
            .chain([callee])
            .map(|index| self.all.operations[index].name.as_str())
            .collect();
        self.problems.at(
            &format!("operation.{operation}.calls.{call}.operation"),
            format!("operations call each other in a circle: {}", names.join(" -> ")),
            "remove one of the calls; a chain of calls has an end",
        );
    }

    /// Bounds the steps that all chains have together, which calls of calls can multiply, and their depth.
    fn check_size(&mut self) {
        let mut sizes: Vec<Option<(u64, u32)>> = vec![None; self.all.operations.len()];
        let mut total = 0u64;
        for (index, task) in self.all.tasks.iter().enumerate() {
            let (steps, depth) = self.size_of(&task.calls, &mut sizes);
            total = total.saturating_add(steps);
            if depth > DEPTH_MAX {
                self.problems.at(
                    &format!("task.{index}"),
                    format!("the calls of task `{}` nest {depth} deep", task.name),
                    format!("nest at most {DEPTH_MAX} calls"),
                );
                return;
            }
            if total > STEPS_MAX {
                self.problems.at(
                    &format!("task.{index}"),
                    format!("the chains of calls have more than {STEPS_MAX} steps together"),
                    "describe fewer calls: sum up operations that always follow each other",
                );
                return;
            }
        }
    }

    /// The number of steps and the depth of some calls. Not recursive: the callees' sizes come first.
    fn size_of(&self, calls: &[Call], sizes: &mut [Option<(u64, u32)>]) -> (u64, u32) {
        let mut stack: Vec<usize> = self.callees(calls).collect();
        while let Some(&operation) = stack.last() {
            if sizes[operation].is_some() {
                stack.pop();
                continue;
            }
            let calls = &self.all.operations[operation].calls;
            let missing: Vec<usize> = self.callees(calls).filter(|&callee| sizes[callee].is_none()).collect();
            if missing.is_empty() {
                sizes[operation] = Some(self.sum_of(calls, sizes));
                stack.pop();
            }
            stack.extend(missing);
        }
        self.sum_of(calls, sizes)
    }

    fn callees<'s>(&'s self, calls: &'s [Call]) -> impl Iterator<Item = usize> + 's {
        calls.iter().map(|call| self.operations[call.operation.as_str()])
    }

    /// A run, and for each call a request, a reply and a run afterwards beside the callee's own.
    fn sum_of(&self, calls: &[Call], sizes: &[Option<(u64, u32)>]) -> (u64, u32) {
        self.callees(calls).filter_map(|callee| sizes[callee]).fold((1, 1), |(steps, depth), callee| {
            (steps.saturating_add(callee.0).saturating_add(3), depth.max(callee.1.saturating_add(1)))
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Open,
    Done,
}

/// The most steps of all chains together. A step takes some 200 bytes.
const STEPS_MAX: u64 = 100_000;

/// The deepest nesting of calls.
const DEPTH_MAX: u32 = 64;
