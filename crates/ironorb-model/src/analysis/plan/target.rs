//! What is to be kept: `p99 of browse <= 5 ms`.

use std::fmt;
use std::str::FromStr;

use crate::analysis::bounds::{ClassBounds, bounds};
use crate::analysis::demands::{Demands, UNBOUNDED};
use crate::analysis::network::Load;
use crate::scenario::{Class, Scenario};
use crate::{ClassObservations, Observations, SeenTimes};

/// A bound that a deployment is to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// What is bounded.
    pub measure: Measure,
    /// Of which class, or of which resource; `None`: of each.
    pub of: Option<String>,
    /// Whether it is an upper bound.
    pub at_most: bool,
    /// The bound: seconds, cycles a second, octets a second, or a part of 1.
    pub limit: f64,
    text: String,
}

/// What a target bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// A percentile of the response time: 0 to 100.
    Percentile(f64),
    /// The mean response time.
    Mean,
    /// A percentile of how old cached reads are.
    Staleness(f64),
    /// Cycles a second.
    Throughput,
    /// Octets a second over all links.
    Octets,
    /// The busy part of the busiest resource.
    Utilisation,
    /// The part of the cycles that fail.
    Failed,
}

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no target: {why}")]
pub struct NoTarget {
    /// The text.
    pub text: String,
    /// Why.
    pub why: String,
}

impl FromStr for Target {
    type Err = NoTarget;

    fn from_str(text: &str) -> Result<Target, NoTarget> {
        let no = |why: String| NoTarget { text: text.trim().to_owned(), why };
        let (left, at_most, limit) = split(text).ok_or_else(|| {
            no("write a measure, `<=` or `>=`, and a limit, such as `p99 <= 5 ms`".to_owned())
        })?;
        let (name, of) = match left.split_once(" of ") {
            Some((name, of)) => (name.trim(), Some(of.trim().trim_matches('"').to_owned())),
            None => (left.trim(), None),
        };
        let measure = measure(name).ok_or_else(|| no(format!("`{name}` is no measure; {MEASURES}")))?;
        let limit = measure
            .limit(limit.trim())
            .ok_or_else(|| no(format!("`{}` is no limit; {}", limit.trim(), measure.units())))?;
        let is_good_above = measure == Measure::Throughput;
        if at_most == is_good_above {
            let wanted = if is_good_above { ">=" } else { "<=" };
            return Err(no(format!("a limit of `{name}` is written with `{wanted}`")));
        }
        Ok(Target { measure, of, at_most, limit, text: text.trim().to_owned() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn split(text: &str) -> Option<(&str, bool, &str)> {
    for (sign, at_most) in [("<=", true), (">=", false), ("≤", true), ("≥", false)] {
        if let Some((left, right)) = text.split_once(sign) {
            return Some((left, at_most, right));
        }
    }
    None
}

fn measure(name: &str) -> Option<Measure> {
    let percentile = |text: &str| {
        let percent: f64 = text.strip_prefix('p')?.parse().ok()?;
        (percent > 0.0 && percent < 100.0).then_some(percent)
    };
    match name {
        "mean" => Some(Measure::Mean),
        "throughput" => Some(Measure::Throughput),
        "octets" => Some(Measure::Octets),
        "utilisation" | "utilization" => Some(Measure::Utilisation),
        "failed" => Some(Measure::Failed),
        _ => match name.split_once(' ') {
            Some((percent, "staleness")) => percentile(percent).map(Measure::Staleness),
            Some(_) => None,
            None => percentile(name).map(Measure::Percentile),
        },
    }
}

impl Measure {
    fn limit(self, text: &str) -> Option<f64> {
        match self {
            Measure::Percentile(_) | Measure::Mean | Measure::Staleness(_) => {
                ironorb_units::nanos(text).ok().map(|nanos| nanos as f64 / 1e9)
            }
            Measure::Throughput => scaled(text, &[("M/s", 1e6), ("k/s", 1e3), ("/s", 1.0)]),
            Measure::Octets => scaled(text, &[("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)]),
            Measure::Utilisation | Measure::Failed => {
                scaled(text, &[("%", 0.01)]).filter(|part| *part <= 1.0)
            }
        }
    }

    fn units(self) -> &'static str {
        match self {
            Measure::Percentile(_) | Measure::Mean | Measure::Staleness(_) => "write a time, such as `5 ms`",
            Measure::Throughput => "write cycles a second, such as `1000 /s` or `20 k/s`",
            Measure::Octets => "write octets a second, such as `10 MB/s`",
            Measure::Utilisation | Measure::Failed => "write a percentage, such as `70 %`",
        }
    }
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let number: f64 = number.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * factor)
}

impl Target {
    /// Whether what it is of may be in a scenario. Names of resources are known when one has been simulated.
    ///
    /// # Errors
    /// There is no such class, the measure is of nothing in particular, or of caches that nobody has.
    pub fn check(&self, scenario: &Scenario) -> Result<(), NoTarget> {
        if matches!(self.measure, Measure::Staleness(_))
            && !scenario.classes.iter().any(|it| self.is_of_cache(it))
        {
            let whose = self.of.as_ref().map_or_else(
                || "no class has a `cache`".to_owned(),
                |of| format!("class `{of}` has no `cache`"),
            );
            return Err(self.no(whose));
        }
        let Some(of) = &self.of else { return Ok(()) };
        match self.measure {
            Measure::Octets => Err(self.no("octets are those of all links: leave `of …` out".to_owned())),
            Measure::Utilisation => Ok(()),
            _ if scenario.classes.iter().any(|class| class.name == *of) => Ok(()),
            _ => {
                let names: Vec<&str> = scenario.classes.iter().map(|class| &*class.name).collect();
                Err(self.no(format!("there is no class `{of}`; classes are `{}`", names.join("`, `"))))
            }
        }
    }

    fn is_of_cache(&self, class: &Class) -> bool {
        class.cache.is_some() && self.of.as_ref().is_none_or(|of| *of == class.name)
    }

    /// That it is of a resource which runs do not have.
    pub(super) fn check_resources(&self, runs: &[Observations]) -> Result<(), NoTarget> {
        let (Measure::Utilisation, Some(of), Some(first)) = (self.measure, &self.of, runs.first()) else {
            return Ok(());
        };
        let names: Vec<&str> = first.resources.iter().map(|resource| &*resource.name).collect();
        if names.iter().any(|name| self.means(&names)(name)) {
            return Ok(());
        }
        Err(self.no(format!("no resource begins with `{of}`; resources are `{}`", names.join("`, `"))))
    }

    fn no(&self, why: String) -> NoTarget {
        NoTarget { text: self.text.clone(), why }
    }

    /// Whether a value keeps the target.
    pub fn is_kept_by(&self, value: f64) -> bool {
        if self.at_most { value <= self.limit } else { value >= self.limit }
    }

    /// The value that runs of one scenario have shown: the worst of the classes or resources that are meant. `None` if
    /// none is meant, or if no cycle ended.
    pub fn measured(&self, runs: &[Observations]) -> Option<f64> {
        let first = runs.first()?;
        let values = match self.measure {
            Measure::Octets => vec![mean(runs, |run| {
                let octets: u64 = run.resources.iter().map(|resource| resource.octets).sum();
                octets as f64 / run.span.as_secs_f64()
            })],
            Measure::Utilisation => {
                let names: Vec<&str> = first.resources.iter().map(|resource| &*resource.name).collect();
                let is_meant = self.means(&names);
                (0..names.len())
                    .filter(|&index| is_meant(names[index]))
                    .map(|index| mean(runs, |run| run.resources.get(index).map_or(0.0, |it| it.utilisation)))
                    .collect()
            }
            _ => (0..first.classes.len())
                .filter(|&index| self.of.as_ref().is_none_or(|of| *of == first.classes[index].name))
                .map(|index| self.of_class(runs, index))
                .collect::<Option<Vec<f64>>>()?,
        };
        values.into_iter().reduce(if self.at_most { f64::max } else { f64::min })
    }

    fn of_class(&self, runs: &[Observations], index: usize) -> Option<f64> {
        let seen = || runs.iter().map(|run| &run.classes[index]);
        let nanos = match self.measure {
            Measure::Percentile(percent) => {
                let mut all: SeenTimes = seen().map(|class| &class.response).collect();
                all.add(&self.late(seen()));
                (!all.is_empty()).then(|| all.value_at_percentile(percent) as f64)?
            }
            Measure::Mean => {
                let late = self.late(seen());
                let count = seen().map(|class| class.completed).sum::<u64>() + late.len();
                let sum = seen().map(|class| class.response_ns).sum::<u128>() as f64;
                (count > 0).then(|| (sum + late.mean() * late.len() as f64) / count as f64)?
            }
            Measure::Staleness(percent) => {
                let all: SeenTimes = seen().map(|class| &class.staleness).collect();
                all.value_at_percentile(percent) as f64
            }
            Measure::Throughput => {
                return Some(mean(runs, |run| run.classes[index].completed as f64 / run.span.as_secs_f64()));
            }
            _ => {
                let failed = seen().map(|class| class.failed).sum::<u64>();
                let ended = failed + seen().map(|class| class.completed).sum::<u64>();
                return (ended > 0).then(|| failed as f64 / ended as f64);
            }
        };
        Some(nanos / 1e9)
    }

    /// Cycles that had not ended, and had taken longer than the limit by then. They count with that time, since it is the least that they
    /// will take; of younger ones nothing is known.
    fn late<'a>(&self, classes: impl Iterator<Item = &'a ClassObservations>) -> SeenTimes {
        let all: SeenTimes = classes.map(|class| &class.unfinished).collect();
        all.beyond((self.limit * 1e9) as u64)
    }

    /// Whether a resource of these is meant: one of this name, on whichever host; or, if there is none, one whose name begins so.
    fn means<'a>(&'a self, names: &[&str]) -> impl Fn(&str) -> bool + use<'a> {
        let of = self.of.as_deref();
        let is_whole = of.is_some_and(|of| names.iter().any(|name| is_named(name, of)));
        move |name| of.is_none_or(|of| if is_whole { is_named(name, of) } else { name.starts_with(of) })
    }

    /// Why no deployment with these demands keeps the target, if that is proven.
    pub fn excluded_by(&self, demands: &Demands) -> Option<String> {
        if let Some(why) = self.overloaded(demands) {
            return Some(why);
        }
        let all = bounds(demands);
        let meant = all.iter().filter(|class| self.of.as_ref().is_none_or(|of| *of == class.name));
        meant.filter_map(|class| self.excluded_by_class(class)).next()
    }

    fn excluded_by_class(&self, class: &ClassBounds) -> Option<String> {
        let name = &class.name;
        match self.measure {
            Measure::Percentile(_) if class.least > self.limit => {
                Some(format!("a cycle of {name} takes {} at least", Seconds(class.least)))
            }
            Measure::Mean if class.response.lower > self.limit => {
                Some(format!("the mean of {name} is {} at least", Seconds(class.response.lower)))
            }
            Measure::Throughput if class.throughput.upper < self.limit => Some(format!(
                "{name} makes {:.4} cycles/s at most, for {}",
                class.throughput.upper, class.limited_by
            )),
            _ => None,
        }
    }

    /// A resource for which what arrives from outside demands more than there is, or than the target leaves.
    ///
    /// A queue that grows without end keeps no bound of a response time: of some class, if all are meant. But one class may keep its
    /// bound beside others that ask for too much, since it goes before them or has its share: then only its own demands count.
    fn overloaded(&self, demands: &Demands) -> Option<String> {
        let is_of_response = matches!(self.measure, Measure::Percentile(_) | Measure::Mean);
        let counts = |name: &str| !is_of_response || self.of.as_ref().is_none_or(|of| of == name);
        let names: Vec<&str> = demands.resources.iter().map(|resource| &*resource.name).collect();
        let is_meant = self.means(&names);
        let most = |name: &str| match self.measure {
            Measure::Utilisation if is_meant(name) => self.limit,
            _ if is_of_response => 1.0,
            _ => f64::INFINITY,
        };
        demands.resources.iter().filter(|resource| resource.servers != UNBOUNDED).find_map(|resource| {
            let asked: f64 = demands
                .classes
                .iter()
                .zip(&resource.demands)
                .filter(|(class, _)| counts(&class.name))
                .map(|(class, demand)| match class.load {
                    Load::Open { rate } if class.is_steady => rate * demand.seconds,
                    Load::Open { .. } | Load::Closed { .. } => 0.0,
                })
                .sum();
            let part = asked / (f64::from(resource.servers) * f64::from(resource.copies));
            (part > most(&resource.name))
                .then(|| format!("{} is asked for {:.0} % of its time", resource.name, part * 100.0))
        })
    }

    /// A value of the measure, with its unit.
    pub fn in_words(&self, value: f64) -> String {
        match self.measure {
            Measure::Percentile(_) | Measure::Mean | Measure::Staleness(_) => Seconds(value).to_string(),
            Measure::Throughput => format!("{value:.4} /s"),
            Measure::Octets => format!("{value:.0} B/s"),
            Measure::Utilisation | Measure::Failed => format!("{:.1} %", value * 100.0),
        }
    }
}

/// Whether a resource is called so, beside the number of its host or lane, or how many it is the mean of.
fn is_named(resource: &str, name: &str) -> bool {
    let rest = resource.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || [", ", "[", " ("].iter().any(|end| rest.starts_with(end)))
}

fn mean(runs: &[Observations], of: impl Fn(&Observations) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

/// Seconds as people write them: three digits and a unit.
#[derive(Debug, Clone, Copy)]
pub struct Seconds(pub f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0;
        let (value, unit) = match seconds {
            _ if !seconds.is_finite() => return f.write_str("without end"),
            _ if seconds >= 1.0 => (seconds, "s"),
            _ if seconds >= 1e-3 => (seconds * 1e3, "ms"),
            _ => (seconds * 1e6, "us"),
        };
        let digits = if value >= 100.0 {
            1
        } else if value >= 10.0 {
            2
        } else {
            3
        };
        write!(f, "{value:.digits$} {unit}")
    }
}

const MEASURES: &str = "known are `p50`, `p99`, `p99.9` and so on, `mean`, `p99 staleness`, `throughput`, `octets`, `utilisation`, `failed`";
