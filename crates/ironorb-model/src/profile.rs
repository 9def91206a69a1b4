//! Profiles: what the steps of a call take on a machine, as it was measured there. A scenario names one for its dwell times:
//! `dwell = { profile = "machine.toml", placement = "core-each", idle = "1 ms", objects = 10_000 }`.
//!
//! A profile has rows for situations: where client and server run, how long the threads have not run, among how many objects calls
//! choose, how many calls are in flight. [`Profile::dwell`] takes what lies between two rows from both, on logarithmic axes.
//! Beyond the last row it takes the last row.
//!
//! What pauses make longer is known for processors that slept as well as for those that were busy with others. So a simulation
//! can add it by how long each thread and each processor has had a pause; or a situation names one pause for all calls.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::scenario::{DwellTimes, Spread};
use crate::{PauseTimes, Pauses};

/// What was measured on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What a simulation by this profile leaves out.
    pub not_modelled: Vec<String>,
    /// Where and when.
    pub origin: ProfileOrigin,
    /// How late a thread wakes up that sleeps for a time.
    pub sleep: Option<Times>,
    /// Calls by situation; at least one.
    pub calls: Vec<CallRow>,
    /// What octets of bodies take.
    #[serde(default)]
    pub bodies: Vec<BodyRow>,
    /// Reads that a cache answers.
    #[serde(default)]
    pub cached_reads: Vec<CachedRow>,
    /// Wake-ups of threads that wait at a socket, without the ORB. They explain the switches of `calls`.
    #[serde(default)]
    pub wake_ups: Vec<WakeUpRow>,
}

/// Where and when a profile was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileOrigin {
    /// The processor's model.
    pub processor: String,
    /// How many processors the measurement could use.
    pub processors: u32,
    /// The kernel's release.
    pub kernel: String,
    /// How its threads preempt its own work.
    pub preemption: String,
    /// The compiler, and the profile of the build.
    pub compiler: String,
    /// The commit of the sources.
    pub commit: String,
    /// The date, in UTC.
    pub date: String,
    /// The ORB whose calls were measured.
    pub orb: String,
    /// How calls were divided into steps.
    pub method: String,
    /// The system's load in the minute before.
    pub load: f64,
    /// Processor time that other programs had during the measurement, in per cent of the time that it took.
    #[serde(default)]
    pub others_percent: f64,
    /// Whether the measurement was too short to be relied on.
    pub is_quick: bool,
}

/// Where client and server run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Both on one processor.
    OneCore,
    /// Each on a processor of its own.
    CoreEach,
    /// Each in a network of its own, which virtual interfaces join, and on a processor of its own.
    Networks,
    /// The same, through a program on the client's processor that passes all octets on. What that takes is in the switches.
    Relayed,
}

/// How a server has its objects, and a client their references.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// Each object was activated with a servant of its own, and the client has a reference to each.
    #[default]
    Servants,
    /// They are elements of an extent, whose references the client computes.
    Elements,
}

/// A distribution of times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// The mean, in nanoseconds.
    pub mean_ns: f64,
    /// The middle of each of as many equal parts of the sorted times, in nanoseconds.
    pub quantiles_ns: Vec<f64>,
}

/// Calls in one situation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRow {
    /// Where client and server ran.
    pub placement: Placement,
    /// How long the client slept before each call, in nanoseconds; 0 for calls one after another.
    pub idle_ns: f64,
    /// Whether other threads kept the processors busy meanwhile.
    #[serde(default)]
    pub is_busy: bool,
    /// Among how many objects each call chose.
    pub objects: u64,
    /// How these were kept.
    #[serde(default)]
    pub kept: Kept,
    /// How many calls were in flight.
    pub in_flight: u32,
    /// How many calls were measured.
    pub calls: u64,
    /// What the steps took, in nanoseconds.
    pub steps: Steps,
    /// From the wake-up of a waiting thread to its first instruction, at either side.
    pub thread_switch: Times,
    /// Whole calls, as the client saw them.
    pub response: Times,
}

/// What the steps of a call take, in nanoseconds. The work of the loopback's protocols is in the steps of the side that does it:
/// a send carries the message through to the receiver's socket.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "they are the steps of DwellTimes")]
pub struct Steps {
    pub find_proxy: f64,
    pub write_request: f64,
    pub read_request: f64,
    pub find_object: f64,
    pub execute: f64,
    pub write_reply: f64,
    pub read_reply: f64,
}

/// What octets of bodies take in one placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyRow {
    /// What the body consists of: `octets`, `longs`, `structs`.
    pub body: String,
    /// Where client and server ran.
    pub placement: Placement,
    /// At either side, for each 1,000 octets, in nanoseconds.
    pub per_kilo_octet_ns: f64,
}

/// Reads that a cache answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachedRow {
    /// Among how many objects each read chose.
    pub objects: u64,
    /// Such a read, in nanoseconds.
    pub read_ns: f64,
    /// The client: taking an update that an answer has.
    #[serde(default)]
    pub apply_ns: f64,
    /// The server: noting a write, and having it in an answer.
    #[serde(default)]
    pub tell_ns: f64,
    /// Either side: a question that a call carries, and its answer.
    #[serde(default)]
    pub carry_ns: f64,
}

/// Wake-ups of a thread that waits at a socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WakeUpRow {
    /// Where the two threads ran.
    pub placement: Placement,
    /// How long the thread had waited, in nanoseconds.
    pub idle_ns: f64,
    /// From the end of the other thread's send to the first instruction.
    pub wake_up: Times,
    /// The send, with the work of the protocols.
    pub send: Times,
}

/// The situation of a scenario's calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Situation {
    /// Where client and server run.
    pub placement: Placement,
    /// How long threads have not run before a call; `None` if the simulation is to add what pauses make longer, which it does not to calls
    /// in flight.
    pub idle: Option<Duration>,
    /// Among how many objects calls choose.
    pub objects: u64,
    /// How these are kept: as servants where the profile has nothing else.
    pub kept: Kept,
    /// How many calls of a client are in flight.
    pub in_flight: u32,
    /// What bodies consist of.
    pub body: String,
}

impl Default for Situation {
    /// A processor each, one call after another, one object, bodies of octets.
    fn default() -> Self {
        Situation {
            placement: Placement::CoreEach,
            idle: None,
            objects: 1,
            kept: Kept::Servants,
            in_flight: 1,
            body: "octets".to_owned(),
        }
    }
}

/// Why a profile cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// It is no TOML, or has other keys.
    #[error("this is no profile: {0}")]
    Malformed(String),
    /// A number makes no sense.
    #[error("the profile's {what} is {number}, which is no time from 0 to an hour")]
    Number {
        /// Which one.
        what: String,
        /// The number.
        number: String,
    },
    /// There is nothing for a situation.
    #[error("the profile has no {0}")]
    Missing(String),
}

/// An hour.
const NS_MAX: f64 = 3.6e12;

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// The text is no profile, or has numbers that are no times.
    pub fn read(text: &str) -> Result<Profile, ProfileError> {
        let profile: Profile =
            toml::from_str(text).map_err(|e| ProfileError::Malformed(e.to_string().trim().to_owned()))?;
        profile.check()?;
        Ok(profile)
    }

    /// The profile's text: [`Profile::read`] gives the profile back.
    pub fn write(&self) -> String {
        // A profile has neither maps with other keys than text nor enums that TOML cannot hold.
        toml::to_string(self).unwrap_or_default()
    }

    fn check(&self) -> Result<(), ProfileError> {
        if self.calls.is_empty() {
            return Err(ProfileError::Missing("[[calls]]".to_owned()));
        }
        let mut numbers: Vec<(String, f64)> = Vec::new();
        let mut take = |what: &str, numbers_of: &[f64]| {
            numbers.extend(numbers_of.iter().map(|number| (what.to_owned(), *number)));
        };
        for row in &self.calls {
            take("calls.steps", &row.steps.all());
            take("calls.idle_ns", &[row.idle_ns]);
            take("calls.thread_switch", &row.thread_switch.all());
            take("calls.response", &row.response.all());
        }
        for row in &self.wake_ups {
            take("wake_ups", &[&row.wake_up.all()[..], &row.send.all(), &[row.idle_ns]].concat());
        }
        self.bodies.iter().for_each(|row| take("bodies.per_kilo_octet_ns", &[row.per_kilo_octet_ns]));
        for row in &self.cached_reads {
            take("cached_reads", &[row.read_ns, row.apply_ns, row.tell_ns, row.carry_ns]);
        }
        self.sleep.iter().for_each(|times| take("sleep", &times.all()));
        match numbers.into_iter().find(|(_, number)| !(0.0..=NS_MAX).contains(number)) {
            Some((what, number)) => Err(ProfileError::Number { what, number: number.to_string() }),
            None => Ok(()),
        }
    }

    /// The dwell times of calls in a situation.
    ///
    /// # Errors
    /// Nothing was measured in this placement, with these bodies.
    pub fn dwell(&self, situation: &Situation) -> Result<DwellTimes, ProfileError> {
        let (steps, switch) = self.steps(situation)?;
        let fixed = |ns: f64| Spread::Fixed(nanoseconds(ns));
        let cached = |of: fn(&CachedRow) -> f64| fixed(self.cached_ns(situation.objects, of));
        Ok(DwellTimes {
            find_proxy: fixed(steps.find_proxy),
            write_request: fixed(steps.write_request),
            read_request: fixed(steps.read_request),
            channel: fixed(0.0),
            find_object: fixed(steps.find_object),
            execute: fixed(steps.execute),
            write_reply: fixed(steps.write_reply),
            read_reply: fixed(steps.read_reply),
            thread_switch: switch.spread(),
            cached_read: cached(|row| row.read_ns),
            apply_update: cached(|row| row.apply_ns),
            tell_update: cached(|row| row.tell_ns),
            carry_probe: cached(|row| row.carry_ns),
            per_kilo_octet: nanoseconds(self.per_kilo_octet_ns(situation)?),
            pauses: match (situation.idle, situation.in_flight) {
                (None, 0..=1) => self.pauses(situation.placement),
                // Calls in flight are those of a thread that goes on with others.
                _ => PauseTimes::default(),
            },
        })
    }

    /// What pauses make longer. A pause of a client is one of both threads of a call. Calls one after another have pauses, too: of
    /// as long as a call takes, whose effect is in the steps.
    fn pauses(&self, placement: Placement) -> PauseTimes {
        let of_one = |row: &&CallRow| (row.placement, row.objects, row.in_flight) == (placement, 1, 1);
        let (paused, at_once): (Vec<&CallRow>, Vec<&CallRow>) =
            self.calls.iter().filter(of_one).partition(|row| row.idle_ns > 0.0);
        let Some(least) = at_once.first().map(|row| row.response.mean_ns) else {
            return PauseTimes::default();
        };
        let points = |is_busy: bool, share: &dyn Fn(&CallRow) -> f64| {
            let mut points = vec![(nanoseconds(least), Duration::ZERO)];
            for row in paused.iter().filter(|row| row.is_busy == is_busy && row.idle_ns > least) {
                points.push((nanoseconds(row.idle_ns), nanoseconds(share(row))));
            }
            if points.len() > 1 { Pauses::new(points) } else { Pauses::default() }
        };
        let of_thread = points(true, &|row| (row.response.mean_ns - least) / 2.0);
        // Where both are on one processor the client's work has woken it up for the server.
        let processors = if placement == Placement::OneCore { 1.0 } else { 2.0 };
        let of_processor = points(false, &|row| {
            let of_threads = 2.0 * of_thread.more(nanoseconds(row.idle_ns)).as_nanos() as f64;
            (row.response.mean_ns - least - of_threads) / processors
        });
        PauseTimes { of_thread, of_processor }
    }

    fn steps(&self, situation: &Situation) -> Result<(Steps, Times), ProfileError> {
        let of_placement = |row: &&CallRow| row.placement == situation.placement;
        let rows: Vec<&CallRow> = self.calls.iter().filter(of_placement).collect();
        // Calls in flight are not interpolated: a client either waits for each or it does not.
        let distance = |row: &&&CallRow| row.in_flight.abs_diff(situation.in_flight);
        let Some(nearest) = rows.iter().min_by_key(distance).map(|row| row.in_flight) else {
            return Err(ProfileError::Missing(format!("[[calls]] with placement {:?}", situation.placement)));
        };
        let is_it = |row: &&CallRow| row.in_flight == nearest && !row.is_busy;
        let rows: Vec<&CallRow> = rows.into_iter().filter(is_it).collect();
        let objects_min = rows.iter().map(|row| row.objects).min().unwrap_or(1);
        let idle_min = rows.iter().map(|row| row.idle_ns).fold(f64::INFINITY, f64::min);
        let idle = situation.idle.unwrap_or_default().as_nanos() as f64;
        let by_idle = rows.iter().filter(|row| row.objects == objects_min).map(|row| (row.idle_ns, *row));
        let (mut steps, mut switch) = between(by_idle.collect(), idle.max(1.0));
        let kept =
            if rows.iter().any(|row| row.kept == situation.kept) { situation.kept } else { Kept::Servants };
        let by_objects = || {
            // One object is the same, however others are kept.
            let is_it = |row: &&&CallRow| row.kept == kept || row.objects == objects_min;
            let rows = rows.iter().filter(|row| row.idle_ns == idle_min).filter(is_it);
            rows.map(|row| (row.objects as f64, *row)).collect::<Vec<_>>()
        };
        let (many, many_switch) = between(by_objects(), situation.objects as f64);
        let (few, few_switch) = between(by_objects(), objects_min as f64);
        steps = steps.and(&many, 1.0).and(&few, -1.0);
        let more = many_switch.mean_ns - few_switch.mean_ns;
        switch = switch.with_mean((switch.mean_ns + more).max(0.0));
        Ok((steps.at_least_zero(), switch))
    }

    fn cached_ns(&self, objects: u64, of: fn(&CachedRow) -> f64) -> f64 {
        let rows = self.cached_reads.iter().map(|row| (row.objects as f64, of(row))).collect();
        interpolated(rows, objects as f64).map_or(0.0, |(low, high, part)| low + (high - low) * part)
    }

    fn per_kilo_octet_ns(&self, situation: &Situation) -> Result<f64, ProfileError> {
        if self.bodies.is_empty() {
            return Ok(0.0);
        }
        let of_body = self.bodies.iter().filter(|row| row.body == situation.body);
        let of_body: Vec<&BodyRow> = of_body.collect();
        let here = of_body.iter().find(|row| row.placement == situation.placement).or(of_body.first());
        let missing = || ProfileError::Missing(format!("[[bodies]] of `{}`", situation.body));
        here.map(|row| row.per_kilo_octet_ns).ok_or_else(missing)
    }
}

/// What lies at `at` on a logarithmic axis: the rows before and behind it, and how far it is from the first to the second.
fn interpolated<T: Copy>(mut rows: Vec<(f64, T)>, at: f64) -> Option<(T, T, f64)> {
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let behind = rows.iter().position(|(place, _)| *place >= at);
    let (low, high) = match behind {
        None => (*rows.last()?, *rows.last()?),
        Some(0) => (rows[0], rows[0]),
        Some(behind) => (rows[behind - 1], rows[behind]),
    };
    // Below a microsecond, and below one object, all is alike.
    let [from, to, at] = [low.0, high.0, at].map(|place| libm::log(place.max(1.0)));
    let part = if to > from { (at - from) / (to - from) } else { 0.0 };
    Some((low.1, high.1, part))
}

fn between(rows: Vec<(f64, &CallRow)>, at: f64) -> (Steps, Times) {
    let Some((low, high, part)) = interpolated(rows, at) else { return Default::default() };
    let steps = low.steps.and(&high.steps, part).and(&low.steps, -part);
    let mean = low.thread_switch.mean_ns * (1.0 - part) + high.thread_switch.mean_ns * part;
    let shape = if part < 0.5 { &low.thread_switch } else { &high.thread_switch };
    (steps, shape.with_mean(mean))
}

fn nanoseconds(ns: f64) -> Duration {
    Duration::from_nanos((ns + 0.5).clamp(0.0, NS_MAX) as u64)
}

impl Default for Times {
    fn default() -> Self {
        Times { mean_ns: 0.0, quantiles_ns: Vec::new() }
    }
}

impl Times {
    /// The mean and the quantiles of measured times; a tenth of a nanosecond is the last digit.
    pub fn of(mut ns: Vec<f64>, quantiles: usize) -> Times {
        if ns.is_empty() {
            return Times::default();
        }
        ns.sort_by(f64::total_cmp);
        let mean = ns.iter().sum::<f64>() / ns.len() as f64;
        let at = |part: usize| ns[(2 * part + 1) * ns.len() / (2 * quantiles)];
        Times { mean_ns: tenth(mean), quantiles_ns: (0..quantiles).map(|part| tenth(at(part))).collect() }
    }

    /// The same shape around another mean.
    #[must_use]
    pub fn with_mean(&self, mean_ns: f64) -> Times {
        let of_quantiles = self.quantiles_ns.iter().sum::<f64>() / self.quantiles_ns.len().max(1) as f64;
        let quantiles_ns = match of_quantiles > 0.0 {
            true => self.quantiles_ns.iter().map(|ns| tenth(ns * mean_ns / of_quantiles)).collect(),
            false => Vec::new(),
        };
        Times { mean_ns: tenth(mean_ns), quantiles_ns }
    }

    /// As a scenario has it.
    pub fn spread(&self) -> Spread {
        match self.quantiles_ns.is_empty() {
            true => Spread::Fixed(nanoseconds(self.mean_ns)),
            // The mean is what bars are about; the quantiles' own may be off.
            false => {
                let quantiles = self.with_mean(self.mean_ns).quantiles_ns;
                Spread::Samples(quantiles.into_iter().map(nanoseconds).collect())
            }
        }
    }

    fn all(&self) -> Vec<f64> {
        [&[self.mean_ns], &self.quantiles_ns[..]].concat()
    }
}

fn tenth(ns: f64) -> f64 {
    libm::round(ns * 10.0) / 10.0
}

impl Steps {
    /// All of them, in their order.
    pub fn all(&self) -> [f64; 7] {
        let Steps { find_proxy, write_request, read_request, find_object, execute, write_reply, read_reply } =
            *self;
        [find_proxy, write_request, read_request, find_object, execute, write_reply, read_reply]
    }

    /// From all of them, in their order.
    pub fn of(all: [f64; 7]) -> Steps {
        let [find_proxy, write_request, read_request, find_object, execute, write_reply, read_reply] =
            all.map(tenth);
        Steps { find_proxy, write_request, read_request, find_object, execute, write_reply, read_reply }
    }

    /// What all of them take together.
    pub fn sum(&self) -> f64 {
        self.all().iter().sum()
    }

    fn and(&self, other: &Steps, times: f64) -> Steps {
        let (mut all, others) = (self.all(), other.all());
        all.iter_mut().zip(others).for_each(|(step, other)| *step += other * times);
        Steps::of(all)
    }

    fn at_least_zero(&self) -> Steps {
        Steps::of(self.all().map(|step| step.max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(idle_ns: f64, objects: u64, find_object: f64, switch: f64) -> CallRow {
        CallRow {
            placement: Placement::OneCore,
            idle_ns,
            is_busy: false,
            kept: Kept::Servants,
            objects,
            in_flight: 1,
            calls: 1_000,
            steps: Steps { find_object, write_request: 4_000.0, ..Steps::default() },
            thread_switch: Times { mean_ns: switch, quantiles_ns: vec![switch / 2.0, switch, switch * 1.5] },
            response: Times::default(),
        }
    }

    fn profile() -> Profile {
        Profile {
            origin: ProfileOrigin {
                processor: "a \"processor\"".to_owned(),
                processors: 2,
                kernel: "6.1".to_owned(),
                preemption: "none".to_owned(),
                compiler: "rustc".to_owned(),
                commit: "0123".to_owned(),
                date: "2026-11-28".to_owned(),
                orb: "ironorb".to_owned(),
                method: "differences".to_owned(),
                load: 0.25,
                others_percent: 0.5,
                is_quick: true,
            },
            not_modelled: vec!["placement".to_owned()],
            sleep: Some(Times { mean_ns: 52_000.0, quantiles_ns: vec![50_000.0, 54_000.0] }),
            calls: vec![
                row(0.0, 1, 100.0, 1_000.0),
                row(1e6, 1, 100.0, 3_000.0),
                row(1e8, 1, 100.0, 5_000.0),
                row(0.0, 100, 200.0, 1_000.0),
                row(0.0, 10_000, 400.0, 1_000.0),
                CallRow { kept: Kept::Elements, ..row(0.0, 10_000, 200.0, 1_000.0) },
            ],
            bodies: vec![BodyRow {
                body: "octets".to_owned(),
                placement: Placement::OneCore,
                per_kilo_octet_ns: 120.4,
            }],
            cached_reads: vec![
                CachedRow { objects: 1, read_ns: 30.0, apply_ns: 200.0, tell_ns: 300.0, carry_ns: 100.0 },
                CachedRow {
                    objects: 10_000,
                    read_ns: 70.0,
                    apply_ns: 600.0,
                    tell_ns: 500.0,
                    carry_ns: 100.0,
                },
            ],
            wake_ups: vec![WakeUpRow {
                placement: Placement::CoreEach,
                idle_ns: 1e5,
                wake_up: Times { mean_ns: 9_000.5, quantiles_ns: vec![8_000.0, 10_001.0] },
                send: Times { mean_ns: 3_000.0, quantiles_ns: vec![3_000.0] },
            }],
        }
    }

    #[test]
    fn a_written_profile_reads_back() {
        let profile = profile();
        assert_eq!(Profile::read(&profile.write()), Ok(profile));
    }

    #[test]
    fn what_is_no_profile_is_told() {
        let text = profile().write();
        let told = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}: {text}");
            Profile::read(&text.replacen(from, to, 1)).unwrap_err().to_string()
        };
        assert!(told("find_object = 100.0", "find_object = -1.0").contains("calls.steps is -1"));
        assert!(told("find_object = 100.0", "find_object = nan").contains("NaN"));
        assert!(told("find_object = 100.0", "seek_object = 1.0").contains("seek_object"));
        assert!(told("\"one-core\"", "\"nowhere\"").contains("nowhere"));
        let empty = Profile { calls: Vec::new(), ..profile() };
        assert!(Profile::read(&empty.write()).unwrap_err().to_string().contains("[[calls]]"));
    }

    #[test]
    fn what_lies_between_rows_comes_from_both() {
        let profile = profile();
        let dwell = |idle, objects| {
            let placement = Placement::OneCore;
            profile
                .dwell(&Situation { placement, idle: Some(idle), objects, ..Situation::default() })
                .unwrap()
        };
        let ms = Duration::from_millis;
        let ns = |spread: &Spread| spread.mean().as_nanos();
        assert_eq!(ns(&dwell(Duration::ZERO, 1).thread_switch), 1_000);
        assert_eq!(ns(&dwell(ms(1), 1).thread_switch), 3_000);
        assert_eq!(ns(&dwell(ms(10), 1).thread_switch), 4_000, "half of the way on a logarithmic axis");
        assert_eq!(ns(&dwell(Duration::from_secs(9), 1).thread_switch), 5_000, "beyond the last row");
        assert_eq!(ns(&dwell(ms(1), 1).find_object), 100);
        assert_eq!(ns(&dwell(ms(1), 1_000).find_object), 300);
        assert_eq!(ns(&dwell(ms(1), 1_000_000).find_object), 400);
        let elements = |objects| Situation {
            placement: Placement::OneCore,
            objects,
            kept: Kept::Elements,
            ..Situation::default()
        };
        let found = |objects| ns(&profile.dwell(&elements(objects)).unwrap().find_object);
        assert_eq!([1, 100, 10_000].map(found), [100, 150, 200], "from one object, which is neither");
        assert_eq!(ns(&dwell(ms(1), 1_000).write_request), 4_000);
        assert_eq!(ns(&dwell(ms(1), 100).cached_read), 50);
        let of_updates = dwell(ms(1), 100);
        let of_updates = [&of_updates.apply_update, &of_updates.tell_update, &of_updates.carry_probe];
        assert_eq!(of_updates.map(ns), [400, 400, 100]);
        assert_eq!(dwell(ms(1), 1).body(10_000), Duration::from_nanos(1_200));
        let missing = profile.dwell(&Situation::default()).unwrap_err().to_string();
        assert!(missing.contains("CoreEach"), "{missing}");
        let body =
            Situation { placement: Placement::OneCore, body: "unions".to_owned(), ..Situation::default() };
        assert!(profile.dwell(&body).unwrap_err().to_string().contains("unions"));
    }

    #[test]
    fn pauses_make_threads_slower_and_processors_that_sleep_still_more() {
        let response = |idle_ns, is_busy, mean_ns| CallRow {
            is_busy,
            response: Times { mean_ns, quantiles_ns: Vec::new() },
            ..row(idle_ns, 1, 100.0, 1_000.0)
        };
        let calls = vec![
            response(0.0, false, 20_000.0),
            response(1e6, false, 35_000.0),
            response(1e6, true, 30_000.0),
            response(1e8, false, 95_000.0),
            response(1e8, true, 60_000.0),
        ];
        let profile = Profile { calls, ..profile() };
        let situation = Situation { placement: Placement::OneCore, ..Situation::default() };
        let PauseTimes { of_thread, of_processor } = profile.dwell(&situation).unwrap().pauses;
        let us = Duration::from_micros;
        assert_eq!(of_thread.points(), [(us(20), us(0)), (us(1_000), us(5)), (us(100_000), us(20))]);
        assert_eq!(of_processor.points(), [(us(20), us(0)), (us(1_000), us(5)), (us(100_000), us(35))]);
        let fixed = Situation { idle: Some(us(1_000)), ..situation };
        assert!(profile.dwell(&fixed).unwrap().pauses.is_empty(), "they are in the steps");
        let in_flight = Situation { idle: None, in_flight: 32, ..fixed };
        assert!(profile.dwell(&in_flight).unwrap().pauses.is_empty(), "one thread has all of them");
    }

    #[test]
    fn times_keep_their_mean_and_their_shape() {
        let times = Times::of((1..=1_000).map(f64::from).collect(), 4);
        assert_eq!(times, Times { mean_ns: 500.5, quantiles_ns: vec![126.0, 376.0, 626.0, 876.0] });
        let Spread::Samples(samples) = times.with_mean(2_002.0).spread() else { panic!("samples") };
        let mean = samples.iter().sum::<Duration>().as_nanos() / 4;
        assert!(mean.abs_diff(2_002) <= 1, "{mean}");
        assert_eq!(
            Times { mean_ns: 7.0, quantiles_ns: Vec::new() }.spread(),
            Spread::Fixed(nanoseconds(7.0))
        );
        assert_eq!(Times::of(Vec::new(), 4), Times::default());
    }
}
