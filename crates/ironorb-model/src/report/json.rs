//! Reports as JSON.

use serde_json::{Value, json};

use super::*;

/// Experiments as one JSON object. SeenTimes are in seconds, shares from 0 to 1; what was not seen is `null`.
pub fn experiments_json(experiments: &[Experiment], origin: &Origin) -> String {
    let all: Vec<Value> = experiments.iter().map(experiment_value).collect();
    let Origin { level, commit } = origin;
    pretty(&json!({ "level": level, "commit": commit, "experiments": all }))
}

/// A comparison as one JSON object.
pub fn comparison_json(comparison: &Comparison, origin: &Origin) -> String {
    let Origin { level, commit } = origin;
    let differences = comparison.differences.iter().map(|it| {
        json!({
            "of": it.of,
            "figure": it.figure,
            "before": interval(&it.before),
            "after": interval(&it.after),
            "difference": interval(&it.difference),
            "is_clear": it.is_clear(),
        })
    });
    pretty(&json!({
        "level": level,
        "commit": commit,
        "before": experiment_value(&comparison.before),
        "after": experiment_value(&comparison.after),
        "differences": differences.collect::<Vec<_>>(),
        "not_compared": comparison.left_out,
    }))
}

fn experiment_value(experiment: &Experiment) -> Value {
    let names = experiment.runs.first().map_or(&[][..], |run| &run.classes);
    let classes = names.iter().enumerate().map(|(number, class)| {
        let all = experiment.all_responses(number);
        let stale = experiment.all_staleness(number);
        let [probes, carried] = experiment.probes(number);
        let percentiles = |all: &SeenTimes| {
            let of = |(at, name): &(f64, &str)| {
                let value = (!all.is_empty()).then(|| all.value_at_quantile(*at) as f64 / 1e9);
                ((*name).to_owned(), json!(value))
            };
            Value::Object(PERCENTILES.iter().map(of).collect())
        };
        json!({
            "name": class.name,
            "completed": experiment.runs.iter().map(|run| run.classes[number].completed).sum::<u64>(),
            "failed": experiment.runs.iter().map(|run| run.classes[number].failed).sum::<u64>(),
            "unfinished": experiment.all_unfinished(number).len(),
            "oldest_unfinished_s": experiment.all_unfinished(number).max() as f64 / 1e9,
            "throughput_per_s": interval(&experiment.throughput(number)),
            "response_s": interval(&experiment.response(number)),
            "response_percentiles_s": percentiles(&all),
            "cache_hits": interval(&experiment.hits(number)),
            "cache_probes_per_s": interval(&probes),
            "cache_probes_carried_per_s": interval(&carried),
            "staleness_percentiles_s": percentiles(&stale),
        })
    });
    let resources = resources(experiment).map(|resource| {
        let mean = |figure: fn(&ResourceObservations) -> f64| {
            interval(&experiment.of_resource(&resource.name, figure))
        };
        json!({
            "name": resource.name,
            "utilisation": mean(|it| it.utilisation),
            "queue_mean": mean(|it| it.queue_mean),
            "queue_max": mean(|it| it.queue_max as f64),
            "octets": mean(|it| it.octets as f64),
        })
    });
    let runs = experiment.runs.iter().enumerate().map(|(number, run)| {
        json!({
            "seed": experiment.seed + number as u64,
            "calls": run.calls,
            "messages": run.messages,
            "octets": run.octets,
            "events": run.events,
            "digest": format!("{:016x}", run.digest.value()),
        })
    });
    json!({
        "scenario": experiment.scenario,
        "seed": experiment.seed,
        "digest": format!("{:016x}", experiment.digest.value()),
        "span_s": experiment.runs.first().map(|run| run.span.as_secs_f64()),
        "warm_up_s": experiment.warm_up.as_secs_f64(),
        "warm_up_note": experiment.warm_up_note,
        "notes": experiment.notes(),
        "confidence": experiment.confidence,
        "is_precise": experiment.is_precise,
        "classes": classes.collect::<Vec<_>>(),
        "resources": resources.collect::<Vec<_>>(),
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn interval(interval: &Interval) -> Value {
    let number = |number: f64| if number.is_finite() { json!(number) } else { Value::Null };
    json!({ "mean": number(interval.mean), "half_width": number(interval.half_width) })
}

fn pretty(value: &Value) -> String {
    let mut text = format!("{value:#}");
    text.push('\n');
    text
}
