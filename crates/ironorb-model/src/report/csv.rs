//! Reports as CSV: a line for each figure.

use std::fmt::Write as _;

use super::*;

/// Experiments as CSV (RFC 4180). Times are in seconds, shares from 0 to 1; an empty half-width is not known.
pub fn experiments_csv(experiments: &[Experiment], origin: &Origin) -> String {
    let mut text = String::from("level,commit,scenario,seed,runs,digest,of,figure,mean,half_width\n");
    for experiment in experiments {
        let mut line = |of: &str, figure: &str, interval: Interval| {
            let Origin { level, commit } = origin;
            let Experiment { scenario, seed, runs, digest, .. } = experiment;
            let _ = writeln!(
                text,
                "{},{},{},{seed},{},{:016x},{},{},{},{}",
                cell(level),
                cell(commit),
                cell(scenario),
                runs.len(),
                digest.value(),
                cell(of),
                cell(figure),
                number(interval.mean),
                number(interval.half_width)
            );
        };
        let names = experiment.runs.first().map_or(&[][..], |run| &run.classes);
        for (class, name) in names.iter().map(|class| class.name.as_str()).enumerate() {
            line(name, "throughput_per_s", experiment.throughput(class));
            line(name, "response_s", experiment.response(class));
            line(name, "failed_per_s", experiment.failed(class));
            line(name, "unfinished", experiment.unfinished(class));
            let all = [
                ("response", experiment.all_responses(class)),
                ("staleness", experiment.all_staleness(class)),
            ];
            for (what, all) in all.iter().filter(|(_, all)| !all.is_empty()) {
                for (at, percentile) in PERCENTILES {
                    let mean = all.value_at_quantile(at) as f64 / 1e9;
                    let unknown = Interval { mean, half_width: f64::INFINITY, count: 1 };
                    line(name, &format!("{what}_{percentile}_s"), unknown);
                }
            }
            if experiment.hits(class).count > 0 {
                line(name, "cache_hits", experiment.hits(class));
            }
            let [probes, carried] = experiment.probes(class);
            if probes.count > 0 {
                line(name, "cache_probes_per_s", probes);
                line(name, "cache_probes_carried_per_s", carried);
            }
        }
        let span = experiment.runs.first().map_or(1.0, |run| run.span.as_secs_f64());
        for resource in resources(experiment) {
            let name = &resource.name;
            line(name, "utilisation", experiment.of_resource(name, |it| it.utilisation));
            line(name, "queue_mean", experiment.of_resource(name, |it| it.queue_mean));
            line(name, "queue_max", experiment.of_resource(name, |it| it.queue_max as f64));
            if name.starts_with("link ") {
                line(name, "octets_per_s", experiment.of_resource(name, |it| it.octets as f64 / span));
            }
        }
        line("all links", "octets_per_s", experiment.octets_per_second());
    }
    text
}

/// A comparison as CSV.
pub fn comparison_csv(comparison: &Comparison, origin: &Origin) -> String {
    let mut text = String::from(
        "level,commit,seed,runs,digest_before,digest_after,of,figure,before,after,difference,half_width\n",
    );
    let Comparison { before, after, .. } = comparison;
    for it in &comparison.differences {
        let _ = writeln!(
            text,
            "{},{},{},{},{:016x},{:016x},{},{},{},{},{},{}",
            cell(&origin.level),
            cell(&origin.commit),
            before.seed,
            before.runs.len(),
            before.digest.value(),
            after.digest.value(),
            cell(&it.of),
            cell(it.figure),
            number(it.before.mean),
            number(it.after.mean),
            number(it.difference.mean),
            number(it.difference.half_width)
        );
    }
    text
}

fn number(number: f64) -> String {
    if number.is_finite() { number.to_string() } else { String::new() }
}

fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
