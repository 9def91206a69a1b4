//! Observations from one process to another, exact to the bit: level L2 runs in a program of its own.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BatchMeans, ClassObservations, Observations, ResourceObservations, SeenTimes};
use crate::Digest;

/// What was handed over cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// It is no JSON, or not of this form.
    #[error("it is not of the form that is expected: {0}")]
    Form(#[from] serde_json::Error),
    /// A number is out of range.
    #[error("`{0}` is out of range")]
    Range(&'static str),
}

/// Numbers with a point are handed over by their bits: texts of them would have to be rounded.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    span_ns: u64,
    messages: u64,
    octets: u64,
    calls: u64,
    events: u64,
    digest: u64,
    classes: Vec<Class>,
    resources: Vec<Resource>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Class {
    name: String,
    completed: u64,
    failed: u64,
    response: Counts,
    /// The higher half, and the lower one.
    response_ns: (u64, u64),
    unfinished: Counts,
    series: Series,
    staleness: Counts,
    cache_hits: u64,
    cache_misses: u64,
    cache_probes: u64,
    cache_probes_carried: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Series {
    size: u32,
    batches: Vec<(u64, u64)>,
    open_sum: u64,
    open_count: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Resource {
    name: String,
    utilisation: u64,
    queue_mean: u64,
    queue_max: u64,
    octets: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Counts {
    /// Times, and how often each came.
    times: Vec<(u64, u64)>,
    longest: u64,
}

impl Observations {
    /// A text for [`from_text`](Self::from_text), in one line of JSON.
    pub fn to_text(&self) -> String {
        let run = Run {
            span_ns: u64::try_from(self.span.as_nanos()).unwrap_or(u64::MAX),
            messages: self.messages,
            octets: self.octets,
            calls: self.calls,
            events: self.events,
            digest: self.digest.value(),
            classes: self.classes.iter().map(Class::of).collect(),
            resources: self.resources.iter().map(Resource::of).collect(),
        };
        serde_json::to_string(&run).expect("numbers and texts become JSON")
    }

    /// The observations of which [`to_text`](Self::to_text) has made a text.
    ///
    /// # Errors
    /// It is no such text.
    pub fn from_text(text: &str) -> Result<Observations, HandOverError> {
        let run: Run = serde_json::from_str(text)?;
        Ok(Observations {
            span: Duration::from_nanos(run.span_ns),
            classes: run.classes.into_iter().map(Class::observations).collect::<Result<_, _>>()?,
            resources: run.resources.into_iter().map(Resource::observations).collect(),
            messages: run.messages,
            octets: run.octets,
            calls: run.calls,
            events: run.events,
            digest: Digest::with_value(run.digest),
        })
    }
}

impl Class {
    fn of(seen: &ClassObservations) -> Class {
        let BatchMeans { size, batches, open_sum, open_count } = &seen.series;
        Class {
            name: seen.name.clone(),
            completed: seen.completed,
            failed: seen.failed,
            response: counts_of(&seen.response),
            response_ns: ((seen.response_ns >> 64) as u64, seen.response_ns as u64),
            unfinished: counts_of(&seen.unfinished),
            series: Series {
                size: *size,
                batches: batches.iter().map(|(mean, at)| (mean.to_bits(), *at)).collect(),
                open_sum: open_sum.to_bits(),
                open_count: *open_count,
            },
            staleness: counts_of(&seen.staleness),
            cache_hits: seen.cache_hits,
            cache_misses: seen.cache_misses,
            cache_probes: seen.cache_probes,
            cache_probes_carried: seen.cache_probes_carried,
        }
    }

    fn observations(self) -> Result<ClassObservations, HandOverError> {
        let Series { size, batches, open_sum, open_count } = self.series;
        if size == 0 {
            return Err(HandOverError::Range("size"));
        }
        let (high, low) = self.response_ns;
        Ok(ClassObservations {
            name: self.name,
            completed: self.completed,
            failed: self.failed,
            response: times_of(&self.response, "response")?,
            response_ns: u128::from(high) << 64 | u128::from(low),
            unfinished: times_of(&self.unfinished, "unfinished")?,
            series: BatchMeans {
                size,
                batches: batches.into_iter().map(|(mean, at)| (f64::from_bits(mean), at)).collect(),
                open_sum: f64::from_bits(open_sum),
                open_count,
            },
            staleness: times_of(&self.staleness, "staleness")?,
            cache_hits: self.cache_hits,
            cache_misses: self.cache_misses,
            cache_probes: self.cache_probes,
            cache_probes_carried: self.cache_probes_carried,
        })
    }
}

impl Resource {
    fn of(seen: &ResourceObservations) -> Resource {
        Resource {
            name: seen.name.clone(),
            utilisation: seen.utilisation.to_bits(),
            queue_mean: seen.queue_mean.to_bits(),
            queue_max: seen.queue_max,
            octets: seen.octets,
        }
    }

    fn observations(self) -> ResourceObservations {
        ResourceObservations {
            name: self.name,
            utilisation: f64::from_bits(self.utilisation),
            queue_mean: f64::from_bits(self.queue_mean),
            queue_max: self.queue_max,
            octets: self.octets,
        }
    }
}

fn counts_of(times: &SeenTimes) -> Counts {
    let counted = times.iter_recorded().map(|it| (it.value_iterated_to(), it.count_at_value()));
    Counts { times: counted.collect(), longest: times.max() }
}

fn times_of(counts: &Counts, name: &'static str) -> Result<SeenTimes, HandOverError> {
    SeenTimes::of_counts(&counts.times, counts.longest).ok_or(HandOverError::Range(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    fn without_histograms(seen: &Observations) -> String {
        let mut seen = seen.clone();
        for class in &mut seen.classes {
            class.response.reset();
            class.unfinished.reset();
            class.staleness.reset();
        }
        format!("{seen:?}")
    }

    /// Response times of all sizes, resources, and a series that has thrown batches together.
    #[test]
    fn what_is_handed_over_is_the_same_to_the_bit() {
        let text = r#"
            span = "4 s"
            hosts = [{ name = "a" }, { name = "b" }]
            link = { latency = "10 us", bandwidth = "100 Mbit/s" }
            servers = [{ name = "s", hosts = "b", threads = 2, operations = [{ name = "op", demand = { exponential = "30 us" } }] }]
            classes = [{ name = "c", hosts = "a", clients = 3, think = { exponential = "10 us" }, mix = [{ calls = [{ call = "s.op" }] }] }]
        "#;
        let scenarios = scenario::read(text, "hand-over.toml").unwrap();
        let mut seen = crate::queueing::run(&scenarios[0], 7, Duration::ZERO).unwrap();
        seen.classes[0].staleness.record(12_345_678);
        seen.classes[0].response_ns |= 1 << 80;
        assert!(seen.classes[0].series.size > super::super::FIRST_BATCH, "more than 20,480 cycles");
        let back = Observations::from_text(&seen.to_text()).unwrap();
        assert_eq!(without_histograms(&back), without_histograms(&seen));
        for (was, is) in seen.classes.iter().zip(&back.classes) {
            assert_eq!((&was.response, &was.staleness), (&is.response, &is.staleness));
            assert_eq!(was.unfinished, is.unfinished);
            assert!(!was.unfinished.is_empty(), "three clients are always under way, but for their thinking");
        }
        // Histograms are equal when their counts are: what else they know of values is rounded.
        let quantile = |seen: &Observations| seen.classes[0].response.value_at_quantile(0.99);
        assert_eq!(quantile(&back), quantile(&seen));
        let cut = Observations::from_text(&seen.to_text()[1..]).unwrap_err();
        assert!(matches!(cut, HandOverError::Form(_)), "{cut}");
    }
}
