//! A small discrete-event model of what the analysis speaks about: preemptive processors, links, resources, queues,
//! jitter and chains. Tests compare its responses with the bounds, and timelines are drawn from it.
//!
//! It shares the steps with the analysis, and none of the formulas.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::analysis::Findings;
use crate::check::TaskSet;
use crate::description::{LanePolicy, Protocol};
use crate::model::{Model, Step, UnitKind};

/// How a run goes.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Whether all tasks are released at once, again after exactly their periods, without jitter, and run as long as
    /// they can. Otherwise all that is chosen at random.
    pub is_worst: bool,
    /// The seed of all choices.
    pub seed: u64,
    /// The end of the run, in nanoseconds.
    pub until: u64,
    /// The most events. The run ends there.
    pub events_max: u64,
    /// Whether to keep what ran when.
    pub keeps_bars: bool,
}

/// What a run shows.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The longest response of each task, in nanoseconds. Releases that have not ended count from their release to the
    /// end of the run.
    pub responses: Vec<u64>,
    /// What ran when, in the order of time.
    pub bars: Vec<Bar>,
    /// The time at the end.
    pub end: u64,
}

/// A step that has a unit for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// The unit.
    pub unit: usize,
    /// The step.
    pub step: usize,
    /// The start.
    pub from: u64,
    /// The end.
    pub to: u64,
}

/// Runs a set with the priorities that the analysis gives it.
pub fn run(set: &TaskSet, plan: Plan) -> Observed {
    run_model(&Findings::of(set).model, plan)
}

pub(crate) fn run_model(model: &Model, plan: Plan) -> Observed {
    let mut simulation = Simulation::of(model, plan);
    simulation.run();
    simulation.observed
}

struct Simulation<'m> {
    model: &'m Model,
    plan: Plan,
    random: Random,
    now: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    units: Vec<Server>,
    holders: Vec<Option<u64>>,
    releases: Vec<Release>,
    successors: Vec<Vec<usize>>,
    /// How steps of equal urgency stand to each other; equal for first in, first out.
    ranks: Vec<u64>,
    observed: Observed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Release(usize),
    Arrival { step: usize, release: usize },
    Tick { unit: usize, generation: u64 },
}

/// One release of a task or interrupt.
struct Release {
    task: Option<usize>,
    at: u64,
    open_steps: usize,
    end: u64,
}

/// A unit at work.
#[derive(Default)]
struct Server {
    jobs: Vec<Job>,
    running: Option<u64>,
    last: Option<u64>,
    since: u64,
    generation: u64,
    /// The running job cannot be preempted before.
    fixed_until: u64,
    /// Whether the running job was spared once already.
    was_spared: bool,
}

/// One release of a step.
struct Job {
    id: u64,
    step: usize,
    release: usize,
    total: u64,
    done: u64,
    switch_left: u64,
    /// Start, length and resource of the sections to come, the next one last.
    sections: Vec<(u64, u64, usize)>,
    /// The resource that is held, and at which progress it is given back.
    held: Option<(usize, u64)>,
    waits_for: Option<usize>,
    has_started: bool,
    /// The end of the frame that is being sent.
    frame_end: u64,
}

impl<'m> Simulation<'m> {
    fn of(model: &'m Model, plan: Plan) -> Self {
        let mut random = Random(plan.seed ^ 0x9e37_79b9_7f4a_7c15);
        let mut successors = vec![Vec::new(); model.steps.len()];
        for (index, step) in model.steps.iter().enumerate() {
            if let Some(predecessor) = step.predecessor {
                successors[predecessor].push(index);
            }
        }
        let is_fifo = plan.is_worst || random.chance(50);
        let ranks = model.steps.iter().map(|_| if is_fifo { 0 } else { random.below(1000) }).collect();
        Simulation {
            model,
            plan,
            random,
            now: 0,
            order: 0,
            events: BinaryHeap::new(),
            units: model.units.iter().map(|_| Server::default()).collect(),
            holders: vec![None; model.resources.len()],
            releases: Vec::new(),
            successors,
            ranks,
            observed: Observed { responses: vec![0; model.task_steps.len()], ..Observed::default() },
        }
    }

    fn run(&mut self) {
        let is_together = self.plan.is_worst || self.random.chance(40);
        for (index, step) in self.model.steps.iter().enumerate() {
            if step.predecessor.is_none() {
                let phase = if is_together { 0 } else { self.random.below(step.period) };
                self.push(phase, Event::Release(index));
            }
        }
        let mut handled = 0;
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            handled += 1;
            if at > self.plan.until || handled > self.plan.events_max {
                break;
            }
            self.now = at;
            match event {
                Event::Release(step) => self.release(step),
                Event::Arrival { step, release } => self.arrive(step, release),
                Event::Tick { unit, generation } if self.units[unit].generation == generation => {
                    self.serve(unit);
                }
                Event::Tick { .. } => {}
            }
        }
        self.finish();
    }

    fn push(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn release(&mut self, root: usize) {
        let step = &self.model.steps[root];
        let open_steps = step.task.map_or(1, |task| self.model.task_steps[task].len());
        self.releases.push(Release { task: step.task, at: self.now, open_steps, end: self.now });
        let jitter = match self.random.below(10) {
            _ if self.plan.is_worst => 0,
            0..4 => step.jitter,
            4..7 => 0,
            _ => self.random.below(step.jitter.saturating_add(1)),
        };
        let release = self.releases.len() - 1;
        self.push(self.now.saturating_add(jitter), Event::Arrival { step: root, release });
        let pause =
            if self.plan.is_worst || self.random.chance(75) { 0 } else { self.random.below(step.period) };
        self.push(self.now.saturating_add(step.period).saturating_add(pause), Event::Release(root));
    }

    fn arrive(&mut self, index: usize, release: usize) {
        let step = &self.model.steps[index];
        self.advance(step.unit);
        let job = self.job(index, release);
        self.units[step.unit].jobs.push(job);
        self.serve(step.unit);
    }

    fn job(&mut self, index: usize, release: usize) -> Job {
        let step = &self.model.steps[index];
        let is_full = self.plan.is_worst || self.random.chance(60);
        let lengths: Vec<u64> = step
            .sections
            .iter()
            .map(|held| if is_full { held.wcet } else { 1 + self.random.below(held.wcet) })
            .collect();
        let inside: u64 = lengths.iter().sum();
        let total =
            if is_full { step.wcet } else { inside.max(1) + self.random.below((step.wcet - inside).max(1)) };
        let total = total.min(step.wcet);
        let mut free = total - inside;
        let mut at = 0;
        let mut sections = Vec::new();
        for (held, length) in step.sections.iter().zip(lengths) {
            let gap = if self.plan.is_worst { 0 } else { self.random.below(free + 1) };
            free -= gap;
            at += gap;
            sections.push((at, length, held.resource));
            at += length;
        }
        sections.reverse();
        self.order += 1;
        Job {
            id: self.order,
            step: index,
            release,
            total,
            done: 0,
            switch_left: 0,
            sections,
            held: None,
            waits_for: None,
            has_started: false,
            frame_end: 0,
        }
    }

    /// Gives the running job the time since it was last looked at.
    fn advance(&mut self, unit: usize) {
        let now = self.now;
        let server = &mut self.units[unit];
        let elapsed = now - std::mem::replace(&mut server.since, now);
        let Some(id) = server.running else { return };
        let Some(job) = server.jobs.iter_mut().find(|job| job.id == id) else { return };
        let switching = elapsed.min(job.switch_left);
        job.switch_left -= switching;
        job.done += elapsed - switching;
        if self.plan.keeps_bars && elapsed > 0 {
            let bar = Bar { unit, step: job.step, from: now - elapsed, to: now };
            match self.observed.bars.iter_mut().rev().find(|last| last.unit == unit) {
                Some(last) if last.step == bar.step && last.to == bar.from => last.to = now,
                _ => self.observed.bars.push(bar),
            }
        }
    }

    /// Looks after a unit: ends what has ended, and chooses what runs until something may change.
    fn serve(&mut self, unit: usize) {
        self.advance(unit);
        self.settle_running(unit);
        loop {
            let Some(chosen) = self.choose(unit) else {
                self.units[unit].running = None;
                self.units[unit].generation += 1;
                return;
            };
            self.switch_to(unit, chosen);
            if self.enter_section(unit, chosen) {
                self.plan_tick(unit, chosen);
                return;
            }
        }
    }

    /// Ends the section or the job that has reached its end.
    fn settle_running(&mut self, unit: usize) {
        let Some(id) = self.units[unit].running else { return };
        let Some(at) = self.units[unit].jobs.iter().position(|job| job.id == id) else { return };
        let job = &mut self.units[unit].jobs[at];
        if let Some((resource, until)) = job.held.filter(|&(_, until)| until == job.done) {
            debug_assert_eq!(until, job.done);
            job.held = None;
            // Giving back is the kernel's work, and counts within the section: the kernel does not spare the job again.
            self.units[unit].fixed_until = 0;
            self.units[unit].was_spared = true;
            self.give_back(resource, unit);
        }
        let job = &self.units[unit].jobs[at];
        if job.done == job.total && job.held.is_none() && job.sections.is_empty() && job.switch_left == 0 {
            let job = self.units[unit].jobs.swap_remove(at);
            self.units[unit].running = None;
            self.units[unit].fixed_until = 0;
            self.end(job);
        }
    }

    fn give_back(&mut self, resource: usize, unit: usize) {
        self.holders[resource] = None;
        for other in 0..self.units.len() {
            if other != unit && !self.model.resources[resource].is_shared {
                continue;
            }
            let mut has_woken = false;
            for job in self.units[other].jobs.iter_mut().filter(|job| job.waits_for == Some(resource)) {
                job.waits_for = None;
                has_woken = true;
            }
            if has_woken && other != unit {
                let generation = self.units[other].generation;
                self.push(self.now, Event::Tick { unit: other, generation });
            }
        }
    }

    fn end(&mut self, job: Job) {
        let step = &self.model.steps[job.step];
        let after = if self.plan.is_worst || self.random.chance(60) {
            step.after
        } else {
            self.random.below(step.after.saturating_add(1))
        };
        let at = self.now.saturating_add(after);
        for successor in 0..self.successors[job.step].len() {
            let step = self.successors[job.step][successor];
            self.push(at, Event::Arrival { step, release: job.release });
        }
        let release = &mut self.releases[job.release];
        release.open_steps -= 1;
        release.end = release.end.max(at);
        if let (Some(task), 0) = (release.task, release.open_steps) {
            let response = release.end - release.at;
            self.observed.responses[task] = self.observed.responses[task].max(response);
        }
    }

    /// The job that a unit should run, or goes on to run.
    fn choose(&mut self, unit: usize) -> Option<u64> {
        let best = self.best(unit)?;
        let server = &self.units[unit];
        let Some(running) = server.running.filter(|&running| running != best) else { return Some(best) };
        let job = server.jobs.iter().find(|job| job.id == running && job.waits_for.is_none());
        let Some(job) = job else { return Some(best) };
        match self.model.units[unit].kind {
            UnitKind::Link if job.done < job.frame_end => return Some(running),
            UnitKind::Processor { non_preemptible, .. } if non_preemptible > 0 && !self.plan.is_worst => {
                if self.now < server.fixed_until {
                    return Some(running);
                }
                if !server.was_spared && self.random.chance(50) {
                    let spared = 1 + self.random.below(non_preemptible);
                    let server = &mut self.units[unit];
                    server.fixed_until = self.now + spared;
                    server.was_spared = true;
                    return Some(running);
                }
            }
            _ => {}
        }
        Some(best)
    }

    fn best(&self, unit: usize) -> Option<u64> {
        let server = &self.units[unit];
        let is_ready = |job: &&Job| job.waits_for.is_none() && self.may_start(server, job);
        let key = |job: &&Job| {
            let step = &self.model.steps[job.step];
            let queue = self.queue_key(step, job);
            (Reverse(self.urgency(server, job)), queue, self.ranks[job.step], job.id)
        };
        server.jobs.iter().filter(is_ready).min_by_key(key).map(|job| job.id)
    }

    /// Whether no other upcall of the job's queue is under way.
    fn may_start(&self, server: &Server, job: &Job) -> bool {
        let step = &self.model.steps[job.step];
        step.queue.is_none()
            || job.has_started
            || !server.jobs.iter().any(|other| {
                other.has_started && {
                    let running = &self.model.steps[other.step];
                    running.queue.is_some() && running.lane == step.lane
                }
            })
    }

    /// The order within a queue: by deadline, or by criticality and laxity.
    fn queue_key(&self, step: &Step, job: &Job) -> (usize, u8, i128) {
        let deadline = i128::from(self.releases[job.release].at) + i128::from(step.deadline);
        match step.queue {
            None => (usize::MAX, 0, 0),
            Some(LanePolicy::Muf) => {
                (step.lane.unwrap_or(0), 4 - step.criticality as u8, deadline - i128::from(step.wcet))
            }
            Some(_) => (step.lane.unwrap_or(0), 0, deadline),
        }
    }

    fn urgency(&self, server: &Server, job: &Job) -> u32 {
        let own = self.model.steps[job.step].urgency;
        let Some((resource, _)) = job.held else { return own };
        let waiting = server.jobs.iter().filter(|other| other.waits_for == Some(resource));
        let inherited = waiting.map(|other| self.model.steps[other.step].urgency).max().unwrap_or(0);
        let ceiling = match self.model.resources[resource].protocol {
            Protocol::Ceiling => self.model.resources[resource].ceiling,
            Protocol::Inheritance => 0,
        };
        own.max(inherited).max(ceiling)
    }

    fn switch_to(&mut self, unit: usize, chosen: u64) {
        let switch = match self.model.units[unit].kind {
            UnitKind::Processor { switch, .. } => switch,
            UnitKind::Link | UnitKind::Floating => 0,
        };
        let server = &mut self.units[unit];
        if server.running != Some(chosen) {
            server.was_spared = false;
            server.fixed_until = 0;
        }
        server.running = Some(chosen);
        let is_new = server.last.replace(chosen) != Some(chosen);
        let Some(job) = server.jobs.iter_mut().find(|job| job.id == chosen) else { return };
        job.has_started = true;
        if is_new {
            job.switch_left = switch;
        }
        let step = &self.model.steps[job.step];
        if self.model.units[unit].kind == UnitKind::Link && job.done >= job.frame_end {
            job.frame_end = job.done.saturating_add(step.frame.max(1)).min(job.total);
        }
    }

    /// Takes the resource of a section that starts here. False if the job has to wait for it.
    fn enter_section(&mut self, unit: usize, chosen: u64) -> bool {
        let Some(job) = self.units[unit].jobs.iter_mut().find(|job| job.id == chosen) else { return true };
        let Some(&(start, length, resource)) = job.sections.last() else { return true };
        if job.held.is_some() || start != job.done || job.switch_left > 0 {
            return true;
        }
        if self.holders[resource].is_some() {
            job.waits_for = Some(resource);
            return false;
        }
        self.holders[resource] = Some(chosen);
        job.held = Some((resource, start + length));
        job.sections.pop();
        true
    }

    /// Comes back when the running job reaches its next boundary.
    fn plan_tick(&mut self, unit: usize, chosen: u64) {
        let server = &mut self.units[unit];
        server.generation += 1;
        let generation = server.generation;
        let Some(job) = server.jobs.iter().find(|job| job.id == chosen) else { return };
        let boundary = match (job.held, job.sections.last()) {
            (Some((_, until)), _) => until,
            (None, Some(&(start, ..))) => start,
            (None, None) => job.total,
        };
        let boundary = if self.model.units[unit].kind == UnitKind::Link {
            boundary.min(job.frame_end)
        } else {
            boundary
        };
        // After a switch, the section that starts at once is looked at again.
        let run = boundary - job.done;
        let mut at = self.now.saturating_add(job.switch_left).saturating_add(run);
        if self.now < server.fixed_until {
            at = at.min(server.fixed_until);
        }
        self.push(at, Event::Tick { unit, generation });
    }

    /// Counts the releases that are under way.
    fn finish(&mut self) {
        self.observed.end = self.now;
        for unit in 0..self.units.len() {
            self.advance(unit);
        }
        for release in &self.releases {
            if let (Some(task), true) = (release.task, release.open_steps > 0) {
                let age = self.now.saturating_sub(release.at);
                self.observed.responses[task] = self.observed.responses[task].max(age);
            }
        }
    }
}

/// Random numbers that a seed repeats (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit; 0 if the limit is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.draw() % limit }
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
