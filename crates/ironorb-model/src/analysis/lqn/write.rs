//! LQNX.

use std::io;

use quick_xml::Writer;
use quick_xml::writer::ElementWriter;

use super::{Activity, Entry, Graph, Lqn, Processor, Step, Task, TaskKind};

impl Lqn {
    /// The network as LQNX, the XML of LQNS and LQSIM.
    pub fn to_xml(&self) -> String {
        let mut text = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
        let mut writer = Writer::new_with_indent(&mut text, b' ', 2);
        self.model(&mut writer).expect("memory takes all that is written");
        text.push(b'\n');
        String::from_utf8(text).expect("names and numbers are UTF-8")
    }

    fn model<W: io::Write>(&self, to: &mut Writer<W>) -> io::Result<()> {
        let model = to.create_element("lqn-model").with_attribute(("name", self.name.as_str()));
        model.write_inner_content(|to| {
            to.create_element("solver-params")
                .with_attribute(("comment", self.comment.as_str()))
                .with_attribute(("conv_val", "1e-06"))
                .with_attribute(("it_limit", "200"))
                .with_attribute(("print_int", "10"))
                .with_attribute(("underrelax_coeff", "0.7"))
                .write_empty()?;
            self.processors.iter().try_for_each(|it| processor(it, to))
        })?;
        Ok(())
    }
}

fn processor<W: io::Write>(processor: &Processor, to: &mut Writer<W>) -> io::Result<()> {
    let element = to.create_element("processor").with_attribute(("name", processor.name.as_str()));
    let element = match (processor.multiplicity, processor.takes_turns) {
        (None, _) => element.with_attribute(("scheduling", "inf")),
        (Some(count), true) => multiple(element, count)
            .with_attribute(("scheduling", "ps"))
            .with_attribute(("quantum", number(SLICE).as_str())),
        (Some(count), false) => multiple(element, count).with_attribute(("scheduling", "fcfs")),
    };
    element.write_inner_content(|to| processor.tasks.iter().try_for_each(|it| task(it, to)))?;
    Ok(())
}

fn task<W: io::Write>(task: &Task, to: &mut Writer<W>) -> io::Result<()> {
    let element = to.create_element("task").with_attribute(("name", task.name.as_str()));
    let element = match task.kind {
        TaskKind::Clients { number: count, think } => multiple(element, count)
            .with_attribute(("scheduling", "ref"))
            .with_attribute(("think-time", number(think).as_str())),
        TaskKind::Threads(count) => multiple(element, count).with_attribute(("scheduling", "fcfs")),
        TaskKind::Unbounded => element.with_attribute(("scheduling", "inf")),
    };
    element.write_inner_content(|to| {
        task.entries.iter().try_for_each(|it| entry(it, to))?;
        if task.graph.activities.is_empty() { Ok(()) } else { graph(&task.graph, to) }
    })?;
    Ok(())
}

fn entry<W: io::Write>(entry: &Entry, to: &mut Writer<W>) -> io::Result<()> {
    let kind = if entry.phase.is_some() { "PH1PH2" } else { "NONE" };
    let mut element = to
        .create_element("entry")
        .with_attribute(("name", entry.name.as_str()))
        .with_attribute(("type", kind));
    if let Some(rate) = entry.open_rate {
        element = element.with_attribute(("open-arrival-rate", number(rate).as_str()));
    }
    match &entry.phase {
        None => element.write_empty()?,
        Some(phase) => element.write_inner_content(|to| {
            to.create_element("entry-phase-activities")
                .write_inner_content(|to| activity(phase, true, to))?;
            Ok(())
        })?,
    };
    Ok(())
}

fn activity<W: io::Write>(activity: &Activity, is_phase: bool, to: &mut Writer<W>) -> io::Result<()> {
    let mut element = to
        .create_element("activity")
        .with_attribute(("name", activity.name.as_str()))
        .with_attribute(("host-demand-mean", number(activity.demand).as_str()))
        .with_attribute(("host-demand-cvsq", number(activity.variation).as_str()));
    if is_phase {
        element = element.with_attribute(("phase", "1"));
    }
    if let Some(entry) = &activity.begins {
        element = element.with_attribute(("bound-to-entry", entry.as_str()));
    }
    // Whole numbers of calls are always as many; others vary about their mean.
    if activity.calls.iter().all(|call| call.times.fract() == 0.0) && !activity.calls.is_empty() {
        element = element.with_attribute(("call-order", "DETERMINISTIC"));
    }
    if activity.calls.is_empty() {
        element.write_empty()?;
        return Ok(());
    }
    element.write_inner_content(|to| {
        activity.calls.iter().try_for_each(|call| {
            to.create_element(if call.waits { "synch-call" } else { "asynch-call" })
                .with_attribute(("dest", call.entry.as_str()))
                .with_attribute(("calls-mean", number(call.times).as_str()))
                .write_empty()?;
            Ok(())
        })
    })?;
    Ok(())
}

fn graph<W: io::Write>(graph: &Graph, to: &mut Writer<W>) -> io::Result<()> {
    to.create_element("task-activities").write_inner_content(|to| {
        graph.activities.iter().try_for_each(|it| activity(it, false, to))?;
        graph.steps.iter().try_for_each(|it| step(it, to))?;
        graph.replies.iter().try_for_each(|(entry, after)| {
            to.create_element("reply-entry").with_attribute(("name", entry.as_str())).write_inner_content(
                |to| {
                    to.create_element("reply-activity")
                        .with_attribute(("name", after.as_str()))
                        .write_empty()?;
                    Ok(())
                },
            )?;
            Ok(())
        })
    })?;
    Ok(())
}

fn step<W: io::Write>(step: &Step, to: &mut Writer<W>) -> io::Result<()> {
    let one = std::slice::from_ref;
    let (before, after) = match step {
        Step::Then(before, after) => (("pre", one(before)), ("post", one(after))),
        Step::Fork(before, after) => (("pre", one(before)), ("post-AND", after.as_slice())),
        Step::Join(before, after) => (("pre-AND", before.as_slice()), ("post", one(after))),
    };
    to.create_element("precedence").write_inner_content(|to| {
        [before, after].iter().try_for_each(|(name, activities)| {
            to.create_element(*name).write_inner_content(|to| {
                activities.iter().try_for_each(|name| {
                    to.create_element("activity").with_attribute(("name", name.as_str())).write_empty()?;
                    Ok(())
                })
            })?;
            Ok(())
        })
    })?;
    Ok(())
}

fn multiple<'a, W: io::Write>(element: ElementWriter<'a, W>, count: u32) -> ElementWriter<'a, W> {
    if count == 1 { element } else { element.with_attribute(("multiplicity", count.to_string().as_str())) }
}

/// Short, and exact: the shortest digits that read back as the same number.
fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 { format!("{value:e}") } else { format!("{value}") }
}

/// Seconds that a thread runs before another one takes its turn: the order of magnitude of Linux's.
const SLICE: f64 = 0.003;
