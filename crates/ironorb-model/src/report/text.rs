//! Reports as text.

use std::fmt::Write as _;

use super::*;

/// Experiments for people to read.
pub fn experiments_text(experiments: &[Experiment], origin: &Origin) -> String {
    let mut text = String::new();
    for experiment in experiments {
        if !text.is_empty() {
            text.push('\n');
        }
        head(&mut text, experiment, origin);
        classes(&mut text, experiment);
        used(&mut text, experiment);
    }
    text
}

/// A comparison for people to read.
pub fn comparison_text(comparison: &Comparison, origin: &Origin) -> String {
    let mut text = String::new();
    for experiment in [&comparison.before, &comparison.after] {
        head(&mut text, experiment, origin);
        text.push('\n');
    }
    let Comparison { before, after, differences, left_out } = comparison;
    let mut grid = Grid::new(&["of", "figure", &before.scenario, &after.scenario, "difference", "", "share"]);
    for difference in differences {
        grid.line(difference_cells(difference));
    }
    grid.write(&mut text);
    let confidence = shown_share(before.confidence);
    let _ = writeln!(
        text,
        "\nThe difference is that of runs with the same seed, with its interval of {confidence} confidence. Where it says `?`, the \
         interval has zero in it."
    );
    for line in left_out {
        let _ = writeln!(text, "Not compared: {line}.");
    }
    text
}

pub(super) fn difference_cells(difference: &Difference) -> Vec<String> {
    let Difference { of, figure, before, after, difference: by, .. } = difference;
    let show = |value: f64| shown_figure(figure, value);
    let share = by.mean / before.mean;
    vec![
        of.clone(),
        figure.split(' ').next().unwrap_or_default().to_owned(),
        show(before.mean),
        show(after.mean),
        format!("{} +- {}", show(by.mean), show(by.half_width)),
        if difference.is_clear() { String::new() } else { "?".to_owned() },
        if share.is_finite() { format!("{:+.1} %", share * 100.0) } else { "-".to_owned() },
    ]
}

fn shown_figure(figure: &str, value: f64) -> String {
    match figure.rsplit(' ').next() {
        _ if !value.is_finite() => "?".to_owned(),
        Some("s") => shown_time(value),
        Some("/s") => format!("{}/s", shown(value)),
        _ => shown_share(value),
    }
}

fn head(text: &mut String, experiment: &Experiment, origin: &Origin) {
    let Experiment { scenario, seed, warm_up, runs, digest, .. } = experiment;
    let _ = writeln!(
        text,
        "{scenario}\n{} runs at level {}, seeds {seed} to {}, commit {}, digest {:016x}",
        runs.len(),
        origin.level,
        seed + runs.len() as u64 - 1,
        origin.commit,
        digest.value()
    );
    let span = runs.first().map_or(Duration::ZERO, |run| run.span);
    let _ = writeln!(text, "each observed for {span:?} after a warm-up of {warm_up:?}");
    for note in experiment.notes() {
        let _ = writeln!(text, "{note}");
    }
}

fn classes(text: &mut String, experiment: &Experiment) {
    let mut heads = vec!["class", "throughput", "response", "+-"];
    heads.extend(PERCENTILES.iter().map(|(_, name)| *name));
    heads.push("failed");
    let mut grid = Grid::new(&heads);
    let names = experiment.runs.first().map_or(&[][..], |run| &run.classes);
    for (class, name) in names.iter().map(|class| &class.name).enumerate() {
        let response = experiment.response(class);
        let all = experiment.all_responses(class);
        let mut cells = vec![
            name.clone(),
            format!("{}/s", shown(experiment.throughput(class).mean)),
            time_or_nothing(response.mean),
            time_or_nothing(response.half_width),
        ];
        cells.extend(PERCENTILES.iter().map(|(at, _)| match all.is_empty() {
            true => "-".to_owned(),
            false => shown_time(all.value_at_quantile(*at) as f64 / 1e9),
        }));
        cells.push(experiment.runs.iter().map(|run| run.classes[class].failed).sum::<u64>().to_string());
        grid.line(cells);
    }
    text.push('\n');
    grid.write(text);
    for (class, name) in names.iter().map(|class| &class.name).enumerate() {
        let hits = experiment.hits(class);
        if hits.count > 0 {
            let stale = experiment.all_staleness(class);
            let _ = writeln!(
                text,
                "{name}: caches answered {} of the reads, with values that were old by {} (p50), {} (p99), {} at most",
                shown_share(hits.mean),
                shown_time(stale.value_at_quantile(0.5) as f64 / 1e9),
                shown_time(stale.value_at_quantile(0.99) as f64 / 1e9),
                shown_time(stale.max() as f64 / 1e9),
            );
            let [probes, carried] = experiment.probes(class);
            if probes.count > 0 {
                let (probes, carried) = (shown(probes.mean), shown(carried.mean));
                let _ = writeln!(
                    text,
                    "{name}: caches asked what has changed {probes}/s, and with calls {carried}/s"
                );
            }
        }
    }
}

fn used(text: &mut String, experiment: &Experiment) {
    let mut grid = Grid::new(&["resource", "used", "+-", "queue", "at most", "octets/s"]);
    for resource in resources(experiment) {
        let of_runs =
            |figure: fn(&ResourceObservations) -> f64| experiment.of_resource(&resource.name, figure);
        let used = of_runs(|it| it.utilisation);
        let most = experiment.runs.iter().flat_map(|run| &run.resources);
        let most = most.filter(|it| it.name == resource.name).map(|it| it.queue_max).max().unwrap_or(0);
        let span = experiment.runs.first().map_or(1.0, |run| run.span.as_secs_f64());
        let octets = of_runs(|it| it.octets as f64).mean / span;
        grid.line(vec![
            resource.name.clone(),
            shown_share(used.mean),
            if used.half_width.is_finite() { shown_share(used.half_width) } else { "?".to_owned() },
            shown(of_runs(|it| it.queue_mean).mean),
            most.to_string(),
            if resource.name.starts_with("link ") { shown(octets) } else { String::new() },
        ]);
    }
    text.push('\n');
    grid.write(text);
    let Some(run) = experiment.runs.first() else { return };
    let _ = writeln!(
        text,
        "\nfirst run with its warm-up: {} calls, {} messages, {} octets, {} events",
        run.calls, run.messages, run.octets, run.events
    );
}

fn time_or_nothing(seconds: f64) -> String {
    if seconds.is_finite() { shown_time(seconds) } else { "?".to_owned() }
}

/// Columns as wide as their contents: the first to the left, the others to the right.
pub(super) struct Grid {
    lines: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn new(heads: &[&str]) -> Grid {
        Grid { lines: vec![heads.iter().map(|head| (*head).to_owned()).collect()] }
    }

    pub(super) fn line(&mut self, cells: Vec<String>) {
        self.lines.push(cells);
    }

    fn write(&self, text: &mut String) {
        let long = |cell: &String| cell.chars().count();
        let columns = self.lines[0].len();
        let width = |column: usize| {
            self.lines.iter().filter_map(|line| line.get(column)).map(long).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for line in &self.lines {
            let mut shown = String::new();
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let _ = match column {
                    0 => write!(shown, "{cell:<width$}"),
                    _ => write!(shown, "  {cell:>width$}"),
                };
            }
            text.push_str(shown.trim_end());
            text.push('\n');
        }
    }
}
