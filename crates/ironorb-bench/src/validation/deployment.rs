//! The case `deployment`: a system is recorded, its recording becomes a scenario, and what the scenario says of other deployments is
//! compared to what they do once they are built.
//!
//! A prediction knows the recording of the first deployment and what is changed, and nothing else: no profile, and none of the
//! demands that the programs have.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use ironorb::ObjectRef;
use ironorb_baseline::relay::{Relay, RelayPort};
use ironorb_model::queueing;
use ironorb_model::record::{ArrivalsOf, Recording, WorkloadOptions, workload};
use ironorb_model::scenario::{
    self, Arrivals, Call, Cycle, HostGroup, Link, LinkRule, Replications, Scenario, WarmUp,
};

use super::compare::{Bar, Compared, ratios};
use super::measured::Earlier;
use super::scenes::{Seen, simulate};
use super::two_tiers::{BACK, CLASSES, CLIENTS, FRONT, Measured, Setup};
use super::{Outcome, Validate};
use crate::error::BenchError;
use crate::machine::cores;
use crate::process::Process;
use crate::settings::Settings;

pub(super) const NAME: &str = "deployment";

/// What may differ from the recorded deployment.
#[derive(Debug, Clone, Copy)]
struct Deployment {
    name: &'static str,
    front_threads: u32,
    /// Of each process of the back.
    back_threads: u32,
    backs: u32,
    /// How many times as many clients there are.
    times_clients: u32,
    /// Whether the back is on the front's processor, instead of the clients'.
    shares_processor: bool,
    /// How much longer an octet is under way between front and back.
    link: Duration,
}

const RECORDED: Deployment = Deployment {
    name: "recorded",
    front_threads: 1,
    back_threads: 1,
    backs: 1,
    times_clients: 1,
    shares_processor: false,
    link: Duration::ZERO,
};

const FOUR_THREADS: Deployment = Deployment { name: "front of 4 threads", front_threads: 4, ..RECORDED };

const CROWD: Deployment = Deployment {
    name: "twice the clients, 4 threads each",
    back_threads: 4,
    times_clients: 2,
    ..FOUR_THREADS
};

/// The first one is recorded. Threads, a second process, more clients, another processor, another link: what operators change.
const DEPLOYMENTS: [Deployment; 7] = [
    RECORDED,
    FOUR_THREADS,
    Deployment { name: "front of 4 threads, two backs", backs: 2, ..FOUR_THREADS },
    Deployment { name: "front of 4 threads, back 3 ms away", link: Duration::from_millis(3), ..FOUR_THREADS },
    Deployment { name: "twice the clients", times_clients: 2, ..RECORDED },
    CROWD,
    Deployment { name: "the same, all on one processor", shares_processor: true, ..CROWD },
];

/// How long clients measure.
const SECONDS: f64 = 40.0;
const QUICK_SECONDS: f64 = 0.5;

/// What the recorded deployment and the others have shown.
struct Course {
    /// What the replay of the recording has to give exactly.
    replayed: Vec<Compared>,
    /// The recorded deployment, as its recording tells it.
    recorded: Scenario,
    /// What each was predicted to do, by class.
    predicted: Vec<Vec<Seen>>,
    /// What each has done in both measurements, by class.
    measured: Vec<Vec<[Measured; 2]>>,
}

/// Runs the case, or judges what an earlier run has measured.
pub(super) fn run(options: &Validate, earlier: Option<&Earlier>) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome {
        name: NAME,
        title: "a system of two tiers, and deployments that its recording predicts",
        notes: "R and X of clients of a front that computes and calls a back that sleeps or computes; predicted from the recording of the \
                first deployment alone, without a profile",
        ratios_to: "the recorded deployment",
        figures: Vec::new(),
        ratios: Vec::new(),
        missing: None,
        scenario: None,
    };
    let course = match earlier {
        Some(earlier) => measured_before(earlier)?,
        None => measured_now(options)?,
    };
    let course = match course {
        Ok(course) => course,
        Err(why) => return Ok(Outcome { missing: Some(why), ..outcome }),
    };
    outcome.figures = course.replayed;
    for ((deployment, measured), predicted) in DEPLOYMENTS.iter().zip(&course.measured).zip(&course.predicted)
    {
        for ((class, measured), seen) in CLASSES.iter().zip(measured).zip(predicted) {
            outcome.figures.extend(compared(&place_of(deployment, class.name), *measured, *seen));
        }
    }
    // Of each class to what it is as recorded. The replay has no ratio.
    let judged: Vec<&Compared> = outcome.figures.iter().filter(|it| it.bar == Bar::Mean).collect();
    let of_recorded = 2 * CLASSES.len();
    let pairs = judged.iter().enumerate().skip(of_recorded);
    let pairs = pairs.map(|(number, one)| [judged[number % of_recorded].clone(), (*one).clone()]);
    outcome.ratios = pairs.flat_map(|pair| ratios(&pair)).collect();
    outcome.scenario = Some(scenario::write(&course.recorded));
    Ok(outcome)
}

/// Records the first deployment, predicts all of them, and builds and measures each twice. Else why not.
fn measured_now(options: &Validate) -> Result<Result<Course, String>, BenchError> {
    let [first, second, ..] = cores()[..] else {
        return Ok(Err("it needs two processors".to_owned()));
    };
    let seconds = if options.quick { QUICK_SECONDS } else { SECONDS };
    let site = |seed| Site { front: first, others: second, seconds, seed };
    let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for a recording"))?;
    crate::note(format_args!("{NAME}: recording"));
    let mut firsts = vec![RECORDED.measure(site(1), Some(folder.path()))?];
    let recording = Recording::read_files([folder.path()]).map_err(unusable)?;
    recording.notes.iter().for_each(|note| crate::note(format_args!("{NAME}: {note}")));
    crate::note(format_args!("{NAME}: predicting"));
    let replayed = replayed(&recording)?.into();
    let recorded = closed(&recording);
    // All before any of them is built.
    let predicted = predictions(&recorded)?;
    for deployment in &DEPLOYMENTS[1..] {
        crate::note(format_args!("{NAME}: first measurement of {}", deployment.name));
        firsts.push(deployment.measure(site(1), None)?);
    }
    let mut measured = Vec::new();
    for (deployment, first) in DEPLOYMENTS.iter().zip(firsts) {
        crate::note(format_args!("{NAME}: second measurement of {}", deployment.name));
        let again = deployment.measure(site(2), None)?;
        measured.push(first.into_iter().zip(again).map(|(one, other)| [one, other]).collect());
    }
    Ok(Ok(Course { replayed, recorded, predicted, measured }))
}

/// Takes the measurements of an earlier run, and predicts anew by the scenario of its recording. Else why not.
fn measured_before(earlier: &Earlier) -> Result<Result<Course, String>, BenchError> {
    let Some(stored) = earlier.stored(NAME) else { return Ok(Err("the file has nothing of it".to_owned())) };
    let Some(text) = &stored.scenario else {
        return Ok(Err("the file has no scenario of its recording".to_owned()));
    };
    let recorded = scenario::read(text, NAME).ok().and_then(|all| all.into_iter().next());
    let recorded = recorded.ok_or_else(|| unusable("the scenario in the file cannot be read"))?;
    let of_class = |deployment: &Deployment, class: &str| -> Result<[Measured; 2], BenchError> {
        let place = place_of(deployment, class);
        let twice = |what| {
            stored.twice(&place, what).ok_or_else(|| unusable(format!("the file has no {what} of {place}")))
        };
        let [response, rate, p99] = [twice("R")?, twice("X")?, twice("p99")?];
        Ok([0, 1].map(|which| Measured {
            completed: 0,
            response_ms: response[which],
            calls_a_second: rate[which],
            p99_ms: p99[which],
        }))
    };
    let of_deployment = |deployment: &Deployment| -> Result<Vec<_>, BenchError> {
        CLASSES.iter().map(|class| of_class(deployment, class.name)).collect()
    };
    let measured = DEPLOYMENTS.iter().map(of_deployment).collect::<Result<Vec<_>, _>>()?;
    let predicted = predictions(&recorded)?;
    Ok(Ok(Course { replayed: Vec::new(), recorded, predicted, measured }))
}

fn predictions(recorded: &Scenario) -> Result<Vec<Vec<Seen>>, BenchError> {
    DEPLOYMENTS.iter().map(|it| it.predict(recorded)).collect()
}

/// What a figure is of.
fn place_of(deployment: &Deployment, class: &str) -> String {
    format!("{}: {class}", deployment.name)
}

fn unusable(why: impl std::fmt::Display) -> BenchError {
    BenchError::Unusable(format!("{NAME}: {why}"))
}

/// R and X of a class, its percentile beside them.
fn compared(place: &str, [one, other]: [Measured; 2], seen: Seen) -> [Compared; 3] {
    let of = |what, unit, read: fn(&Measured) -> f64, simulated, bar| {
        Compared::of(place.to_owned(), what, unit, [read(&one), read(&other)], simulated, bar)
    };
    [
        of("R", "ms", |it| it.response_ms, seen.mean * 1e3, Bar::Mean),
        of("X", "1/s", |it| it.calls_a_second, seen.rate, Bar::Mean),
        of("p99", "ms", |it| it.p99_ms, seen.p99 * 1e3, Bar::Reported),
    ]
}

/// A replay at the recorded times has exactly the calls and the octets of bodies that were recorded.
fn replayed(recording: &Recording) -> Result<[Compared; 2], BenchError> {
    let trace = workload(recording, &WorkloadOptions::default()).scenario;
    let seen = queueing::run(&trace, trace.seed, Duration::ZERO).map_err(unusable)?;
    let octets: u64 = recording.calls.iter().map(|call| call.request_octets + call.reply_octets).sum();
    let exact = |what, unit, recorded: u64, replayed: u64| Compared {
        allowed: Some(0.0),
        holds: Some(recorded == replayed),
        ..Compared::of("replay".to_owned(), what, unit, [recorded as f64; 2], replayed as f64, Bar::Tight)
    };
    Ok([
        exact("calls", "in all", recording.calls.len() as u64, seen.calls),
        exact("bodies", "octets", octets, octets_of(&trace)),
    ])
}

/// Octets of bodies that the traces of a scenario have.
fn octets_of(scenario: &Scenario) -> u64 {
    fn of(scenario: &Scenario, call: &Call) -> u64 {
        let operation = &scenario.servers[call.server].operations[call.operation];
        let nested: u64 = operation.calls.iter().map(|nested| of(scenario, nested)).sum();
        let own = u64::from(operation.request_octets) + u64::from(operation.reply_octets);
        (own + nested) * u64::from(call.times)
    }
    let classes = scenario.classes.iter().map(|class| match (&class.arrivals, &class.mix[..]) {
        (Arrivals::Trace(begins), [only]) => match &only.cycle {
            Cycle::Calls(calls) => {
                begins.len() as u64 * calls.iter().map(|call| of(scenario, call)).sum::<u64>()
            }
            Cycle::Job { .. } => 0,
        },
        _ => 0,
    });
    classes.sum()
}

/// The recording as clients that wait for their calls.
fn closed(recording: &Recording) -> Scenario {
    let options =
        WorkloadOptions { name: NAME.to_owned(), arrivals: ArrivalsOf::Closed, ..WorkloadOptions::default() };
    let scenario = workload(recording, &options).scenario;
    let warm_up = WarmUp::Fixed(scenario.span / 20);
    let replications = Replications { min: 5, max: 20, half_width: 0.01, ..Replications::default() };
    Scenario { warm_up, replications, ..scenario }
}

/// Where and how long a system runs.
#[derive(Debug, Clone, Copy)]
struct Site {
    /// The front's processor.
    front: usize,
    /// That of all others.
    others: usize,
    seconds: f64,
    seed: u64,
}

impl Site {
    fn setup(self, core: usize, number: u64, clients: u32) -> String {
        // No two processes draw the same.
        let seed = 100 * self.seed + number;
        let setup = Setup { core: Some(core), seed, clients: clients as usize, seconds: self.seconds };
        format!("--setup={setup}")
    }
}

impl Deployment {
    /// What clients of each class would see, by the scenario of the recorded deployment.
    fn predict(&self, recorded: &Scenario) -> Result<Vec<Seen>, BenchError> {
        let scenario = self.derived(recorded)?;
        let seen = simulate(&scenario)?;
        let of_class = |name: &str| {
            let class = scenario.classes.iter().position(|class| class.name == name);
            class
                .and_then(|class| seen.get(class).copied())
                .ok_or_else(|| unusable(format!("no {name} are recorded")))
        };
        CLASSES.iter().map(|class| of_class(class.name)).collect()
    }

    /// The scenario of this deployment: the recorded one with other data.
    fn derived(&self, recorded: &Scenario) -> Result<Scenario, BenchError> {
        let mut scenario = Scenario { name: self.name.to_owned(), ..recorded.clone() };
        let server = |name: &str| {
            let found = recorded.servers.iter().position(|server| server.name == name);
            found.ok_or_else(|| unusable(format!("no {name} is recorded")))
        };
        let (front, back) = (server("front")?, server("back")?);
        let (at_front, at_back) = (recorded.servers[front].hosts, recorded.servers[back].hosts);
        scenario.servers[front].threads = Some(self.front_threads);
        scenario.servers[back].threads = Some(self.back_threads);
        for class in &mut scenario.classes {
            if let Arrivals::Closed { clients, .. } = &mut class.arrivals {
                *clients *= self.times_clients;
            }
        }
        if self.shares_processor {
            scenario.servers[back].hosts = at_front;
        }
        if self.backs > 1 || !self.link.is_zero() {
            // A host for each, which the clients are not on.
            let own =
                HostGroup { name: "back".to_owned(), count: self.backs, ..recorded.hosts[at_back].clone() };
            scenario.hosts.push(own);
            let at = scenario.hosts.len() - 1;
            scenario.servers[back].hosts = at;
            let known = recorded.link_between(at_front, at_back);
            let link = Link { latency: known.latency + self.link, ..*known };
            scenario.links.push(LinkRule::new((at_front, at), link));
        }
        Ok(scenario)
    }

    /// Builds it, and tells what its clients of each class have measured. With a folder each program is recorded there.
    fn measure(&self, site: Site, recording: Option<&Path>) -> Result<Vec<Measured>, BenchError> {
        let under = |name: &str, threads: Option<u32>| -> Vec<OsString> {
            let mut words: Vec<OsString> = vec!["env".into()];
            words.extend(threads.map(|threads| format!("IRONORB_CONCURRENCY=pool:{threads}").into()));
            if let Some(folder) = recording {
                let mut setting = OsString::from("IRONORB_RECORDING=");
                setting.push(folder.join(format!("{name}.jsonl")));
                words.push(setting);
            }
            words
        };
        let at = if self.shares_processor { site.front } else { site.others };
        let (mut backs, mut relays, mut items) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..self.backs {
            let setup = site.setup(at, 1 + u64::from(number), 1);
            let mut back = Process::start(&under("back", Some(self.back_threads)), BACK, &[setup])?;
            let mut told = back.address()?;
            if !self.link.is_zero() {
                let (relay, through) = behind_link(&told, self.link)?;
                relays.push(relay);
                told = through;
            }
            items.push(told);
            backs.push(back);
        }
        let args = [site.setup(site.front, 10, 1), format!("--at={}", items.join(" "))];
        let mut front = Process::start(&under("front", Some(self.front_threads)), FRONT, &args)?;
        let at = format!("--at={}", front.address()?);
        let mut clients = Vec::new();
        for (number, class) in (20..).zip(&CLASSES) {
            let setup = site.setup(site.others, number, class.clients as u32 * self.times_clients);
            let args = [setup, at.clone(), format!("--row={}", class.name)];
            clients.push(Process::start(&under(class.name, None), CLIENTS, &args)?);
        }
        let mut measured = Vec::new();
        for mut process in clients {
            let told = process.answer("its setup")?;
            measured.push(serde_json::from_str(&told).map_err(unusable)?);
            process.wait()?;
        }
        front.end()?;
        backs.into_iter().try_for_each(Process::end)?;
        Ok(measured)
    }
}

/// A link to items, each octet of which takes longer by `delay`, and the references that lead over it.
fn behind_link(items: &str, delay: Duration) -> Result<(Relay, String), BenchError> {
    let reader = Settings::default().builder().no_endpoint().build()?;
    let objects = items.split(' ').map(|item| reader.string_to_object(item));
    let objects: Vec<ObjectRef> = objects.collect::<Result<_, _>>()?;
    let profile = objects.first().and_then(|object| object.ior().iiop_profiles().next());
    let profile = profile.ok_or_else(|| unusable("an item has no address"))?;
    let server = (profile.host().to_owned(), profile.port());
    let io = || BenchError::io("relay messages");
    let relay = RelayPort::listen().and_then(|port| port.to(server, delay)).map_err(io())?;
    let through = objects.iter().map(|object| relay.reference_to(object).map(|ior| ior.to_string()));
    let through: Vec<String> = through.collect::<Result<_, _>>().map_err(io())?;
    reader.shutdown(true)?;
    Ok((relay, through.join(" ")))
}

#[cfg(test)]
mod tests {
    use ironorb_model::scenario::{DwellTimes, Server, Spread, Target};

    use super::*;
    use crate::validation::scenes::{clients, empty, host, one_call, operation, server};

    const MS: Duration = Duration::from_millis(1);

    /// A front that computes for 1 ms and calls a back, which sleeps for 2 ms and computes for 1.
    fn recorded() -> Scenario {
        let mut scenario = empty(NAME, DwellTimes::default(), Duration::from_secs(20));
        scenario.hosts = vec![host("others", 1), host("the front's", 1)];
        let exponential = |server: &mut Server, operation: usize, mean: Duration| {
            server.operations[operation].demand = Spread::Exponential(mean);
        };
        let mut back = server("back", 0, Some(1), vec![operation("find", 0, 500), operation("price", 4, 4)]);
        back.objects = 8;
        back.operations[0].sleeps = true;
        exponential(&mut back, 0, 2 * MS);
        exponential(&mut back, 1, MS);
        let mut front = server("front", 1, Some(1), vec![operation("browse", 4, 2_000)]);
        let call = |operation| Call { server: 0, operation, times: 1, target: Target::Random };
        front.operations[0].calls = vec![call(0), call(1)];
        exponential(&mut front, 0, MS);
        scenario.servers = vec![back, front];
        let class = |name: &str, number| {
            let mut class = clients(name, 0, number, vec![one_call(1, 0, 1.0)]);
            class.arrivals = Arrivals::Closed { clients: number, think: Spread::Exponential(15 * MS) };
            class
        };
        scenario.classes = vec![class("buyers", 2), class("browsers", 3)];
        scenario
    }

    #[test]
    fn each_deployment_differs_from_the_recorded_one_as_its_name_says() {
        let recorded = recorded();
        let [as_it_is, threads, backs, away, crowd, four_each, one_processor] =
            DEPLOYMENTS.each_ref().map(|it| it.predict(&recorded).unwrap());
        // In the order of the classes, whatever that of the scenario is.
        let direct = simulate(&recorded).unwrap();
        assert_eq!(as_it_is, [direct[1], direct[0]]);
        let [as_it_is, threads, backs, away, crowd, four_each, one_processor] =
            [&as_it_is, &threads, &backs, &away, &crowd, &four_each, &one_processor]
                .map(|seen| seen[0].mean * 1e3);
        // The front's one thread takes 4 ms for each of five clients: it is in use nearly all of the time.
        assert!(
            as_it_is > 1.1 * threads && threads > 1.2 * backs && backs > 4.0,
            "{as_it_is} {threads} {backs}"
        );
        // Two calls, each of which goes there and back.
        assert!(away > 4.0 + 4.0 * 3.0 && away < threads + 4.0 * 3.0, "{away}");
        // Ten clients have to wait for a thread that is free 250 times a second: 40 ms from one call of theirs to the next.
        assert!((crowd - 25.0).abs() < 1.0, "{crowd}");
        assert!(four_each < crowd / 2.0 && one_processor > 1.1 * four_each, "{four_each} {one_processor}");
    }

    #[test]
    fn a_recording_of_other_programs_predicts_nothing() {
        let mut other = recorded();
        other.servers[1].name = "centre".to_owned();
        assert!(RECORDED.predict(&other).unwrap_err().to_string().contains("no front is recorded"));
        let mut other = recorded();
        other.classes.pop();
        assert!(RECORDED.predict(&other).unwrap_err().to_string().contains("no browsers are recorded"));
    }
}
