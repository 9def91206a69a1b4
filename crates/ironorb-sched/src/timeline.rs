//! The start of a run in which all tasks are released at once, drawn as SVG or HTML.

use std::fmt::Write;

use serde::Serialize;

use crate::description::Description;
use crate::model::Model;
use crate::report::Report;
use crate::simulation::{Plan, run_model};
use crate::time::Nanos;

/// What runs when, if all tasks are released at time zero and run as long as they can. It is an example, not the worst
/// case of every task.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Timeline {
    /// The end of what is shown.
    pub until: Nanos,
    /// The processors and links that do something.
    pub rows: Vec<Row>,
}

/// What a processor or link does.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// `node/processor`, or the link.
    pub unit: String,
    /// What it does, in the order of time.
    pub bars: Vec<TimelineBar>,
}

/// A run, or a part of one between preemptions.
#[derive(Debug, Clone, Serialize)]
pub struct TimelineBar {
    /// The task or interrupt.
    pub task: String,
    /// The step.
    pub step: String,
    /// The start.
    pub from: Nanos,
    /// The end.
    pub to: Nanos,
    /// The number of the task, for its colour.
    pub colour: usize,
}

impl Timeline {
    pub(crate) fn of(model: &Model, all: &Description) -> Self {
        let longest = all.tasks.iter().map(|task| task.period.0.max(task.deadline().0)).max().unwrap_or(0);
        let until = longest.saturating_mul(2);
        let observed = run_model(
            model,
            Plan { is_worst: true, seed: 0, until, events_max: EVENTS_MAX, keeps_bars: true },
        );
        let mut rows: Vec<Row> =
            model.units.iter().map(|unit| Row { unit: unit.name.clone(), bars: Vec::new() }).collect();
        for bar in &observed.bars {
            let step = &model.steps[bar.step];
            rows[bar.unit].bars.push(TimelineBar {
                task: step.task.map_or_else(|| step.label.clone(), |task| all.tasks[task].name.clone()),
                step: step.label.clone(),
                from: Nanos(bar.from),
                to: Nanos(bar.to),
                colour: step.task.map_or(usize::MAX, |task| task),
            });
        }
        rows.retain(|row| !row.bars.is_empty());
        Timeline { until: Nanos(observed.end.min(until)), rows }
    }
}

impl Report {
    /// The timeline as an SVG document, 1,000 units wide.
    pub fn to_svg(&self) -> String {
        let timeline = &self.timeline;
        let height = timeline.rows.len() * ROW_HEIGHT + 40;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n"
        );
        for (number, row) in timeline.rows.iter().enumerate() {
            let top = number * ROW_HEIGHT + 10;
            // Writing to a `String` cannot fail.
            let _ = writeln!(svg, "<text x=\"4\" y=\"{}\">{}</text>", top + 15, escape(&row.unit));
            for bar in &row.bars {
                self.draw(&mut svg, bar, top);
            }
        }
        let bottom = height - 10;
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{bottom}\">0</text>");
        let until = timeline.until;
        let _ =
            writeln!(svg, "<text x=\"{WIDTH}\" y=\"{bottom}\" text-anchor=\"end\">{until}</text>\n</svg>");
        svg
    }

    /// The report as a page of HTML that needs nothing else: the timeline, and the text.
    pub fn to_html(&self) -> String {
        let verdict = self.verdict.word();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{verdict}</title></head>\n\
             <body>\n<h1>{verdict}</h1>\n{}<pre>{}</pre>\n</body></html>\n",
            self.to_svg(),
            escape(&self.to_string())
        )
    }

    fn draw(&self, svg: &mut String, bar: &TimelineBar, top: usize) {
        let place = |time: Nanos| {
            let scaled = u128::from(time.0) * (WIDTH - LEFT) as u128 * 100;
            let hundredths = scaled / u128::from(self.timeline.until.0.max(1));
            LEFT as f64 + hundredths as f64 / 100.0
        };
        let (from, to) = (place(bar.from), place(bar.to));
        let colour = if bar.colour == usize::MAX { "#888".to_owned() } else { hue(bar.colour) };
        let _ = writeln!(
            svg,
            "<rect x=\"{from:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"20\" fill=\"{colour}\"><title>{}: {}, {} to \
             {}</title></rect>",
            (to - from).max(0.2),
            escape(&bar.task),
            escape(&bar.step),
            bar.from,
            bar.to
        );
    }
}

/// A colour for each number; neighbours differ well.
fn hue(number: usize) -> String {
    format!("hsl({}, 60%, 60%)", number * 137 % 360)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const WIDTH: usize = 1000;

/// The space for the names.
const LEFT: usize = 120;

const ROW_HEIGHT: usize = 26;

/// The most events of the run that is shown.
const EVENTS_MAX: u64 = 4_000;
