//! The cases: which suite measures, and what is simulated of each of its rows.

use std::time::Duration;

use ironorb_model::profile::{Kept, Placement, Profile, Situation};
use ironorb_model::scenario::{
    Architecture, Arrivals, Asking, Cache, CacheMode, Call, Choice, Class, Cycle, Lane, OperationKind,
    Scenario, Spread, Target, Weighted,
};

use super::Validate;
use super::compare::Bar;
use super::scenes::{
    Seen, calls, clients, dwell, empty, host, machine, one_call, operation, placement, server, simulate,
};
use crate::error::BenchError;
use crate::machine::cores;
use crate::row::Row;

/// A case.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What the level leaves out of it.
    pub(super) notes: &'static str,
    /// The suite with its options.
    pub(super) line: fn(&Validate) -> String,
    /// Further options of the second measurement, whose draws are others.
    pub(super) again: &'static str,
    /// How many times each of the two measurements runs the suite, in turn with the other one; of each figure the middle one
    /// counts. What disturbs a machine for minutes disturbs one run.
    pub(super) runs: usize,
    /// Why it cannot be run here, if it cannot.
    pub(super) cannot: fn(&Validate) -> Option<String>,
    /// The table with its rows.
    pub(super) kind: &'static str,
    /// What identifies a row.
    pub(super) keys: &'static [&'static str],
    /// What is simulated of a row; none if the row is of no interest.
    pub(super) foresee: Foresee,
}

type Foresee = fn(&Row, &Profile, &Validate) -> Result<Option<Vec<Foreseen>>, BenchError>;

/// A figure of a row, simulated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Foreseen {
    /// The row's name for it.
    pub(super) figure: &'static str,
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) simulated: f64,
    pub(super) bar: Bar,
}

/// In the order in which they are most worth it.
pub(super) const CASES: [Case; 8] = [
    Case {
        name: "par-04",
        title: "the tables of the paper on parallel interaction (2004)",
        notes: "R and X of jobs of two parts of 50 and 55 ms; stations sleep, or burn their processors with --burn",
        line: |options| FIXED.line(options),
        again: "",
        runs: 1,
        cannot: par_04_cannot,
        kind: "runs",
        keys: &["daemon", "architecture", "clients"],
        foresee: |row, profile, options| FIXED.foresee(row, profile, options),
    },
    Case {
        name: "par-04-exponential",
        title: "that paper's jobs, with exponential demands",
        notes: "means of 10 and 11 ms, a fifth of the paper's: a mean of 3,000 cycles varies by some 2 %, and so many take minutes. The \
                second measurement draws other demands",
        line: |options| EXPONENTIAL.line(options),
        again: " --seed 1001",
        runs: 1,
        cannot: par_04_cannot,
        kind: "runs",
        keys: &["daemon", "architecture", "clients"],
        foresee: |row, profile, options| EXPONENTIAL.foresee(row, profile, options),
    },
    Case {
        name: "objects",
        title: "MinORB's case 1: a call by the number of objects",
        notes: "random elements of an extent; the profile has other numbers of them, and what lies between two comes from both",
        line: |options| match options.quick {
            true => "extents --quick --repetitions 1 --objects 10000 --file-objects 100 --peers ironorb"
                .to_owned(),
            false => {
                "extents --objects 1000000 --file-objects 1000 --peers ironorb --repetitions 5".to_owned()
            }
        },
        again: "",
        runs: 3,
        cannot: |_| None,
        kind: "latency",
        keys: &["row", "layout", "objects"],
        foresee: objects,
    },
    Case {
        name: "throughput",
        title: "MinORB's case 2: calls a second of clients with many in flight",
        notes: "all clients are on one processor and the server on another, or all on one: where the kernel puts threads that it may \
                move is not modelled",
        line: |options| {
            let line =
                "caching --parts throughput --objects 30000 --placements one-core,core-each --peers ironorb";
            with_repetitions(options, line, 5)
        },
        again: "",
        runs: 3,
        cannot: |_| None,
        kind: "throughput",
        keys: &["layout", "clients", "side"],
        foresee: throughput,
    },
    Case {
        name: "shares",
        title: "MinORB's case 3: a call by the share of reads and of cached objects",
        notes: "caches that ask: a read behind a write of the same client is answered by the reply to that write, or by a probe",
        line: |options| with_repetitions(options, "caching --parts shares --peers ironorb", 5),
        again: "",
        runs: 3,
        cannot: |_| None,
        kind: "shares",
        keys: &["layout", "cached_percent", "read_percent"],
        foresee: shares,
    },
    Case {
        name: "lags",
        title: "MinORB's case 4: a write by the lag of a client that reads",
        notes: "the reader asks whenever what it has read last is older than the lag",
        line: |options| with_repetitions(options, "caching --parts lags --objects 30000", 7),
        again: "",
        runs: 3,
        cannot: |_| (cores().len() < 2).then(|| "it needs two processors".to_owned()),
        kind: "lags",
        keys: &["layout", "lag_us"],
        foresee: lags,
    },
    Case {
        name: "latency",
        title: "the latency suite: types, sizes and numbers of objects",
        notes: "an octet of a type costs what it costs in bodies of 8 KiB",
        line: latency_line,
        again: "",
        runs: 3,
        cannot: |_| None,
        kind: "latency",
        keys: &["layout", "type", "units", "objects"],
        foresee: latency,
    },
    Case {
        name: "realtime",
        title: "RT-99's test: a client of high priority beside others",
        notes: "all on one processor, by fixed priorities; servants of low priorities burn 60 % of it",
        line: |options| match options.quick {
            true => "realtime --quick --sides lanes --clients 0,2 --calls 5 --seed 1".to_owned(),
            false => "realtime --sides lanes --clients 0,5,20 --minutes 1 --seed 1".to_owned(),
        },
        again: "",
        runs: 3,
        cannot: |_| None,
        kind: "high",
        keys: &["side", "since", "clients"],
        foresee: realtime,
    },
];

fn with_repetitions(options: &Validate, line: &str, repetitions: usize) -> String {
    match options.quick {
        true => format!("{line} --quick --repetitions 1"),
        false => format!("{line} --repetitions {repetitions}"),
    }
}

fn number(row: &Row, name: &str) -> f64 {
    row.count(name).unwrap_or(0.0)
}

/// Microseconds of calls.
fn of_calls(figure: &'static str, seen: Seen) -> Vec<Foreseen> {
    let of =
        |what, simulated: f64, bar| Foreseen { figure, what, unit: "us", simulated: simulated * 1e6, bar };
    vec![of("mean", seen.mean, Bar::Mean), of("p99", seen.p99, Bar::Reported)]
}

// PAR-04.

/// The jobs of a case.
struct Jobs {
    /// How demands are distributed: for the suite, and for the simulation.
    distribution: &'static str,
    spread: fn(Duration) -> Spread,
    /// The means of a job's parts, in milliseconds.
    demands: [u64; 2],
    /// The options that say how much is measured.
    turns: &'static str,
    /// How long a run of the simulation is: a mean of random demands then varies by some thousandths.
    span: Duration,
}

const FIXED: Jobs = Jobs {
    distribution: "fixed",
    spread: Spread::Fixed,
    demands: [50, 55],
    turns: "--cycles 100 --repetitions 2",
    span: Duration::from_secs(30),
};

const EXPONENTIAL: Jobs = Jobs {
    distribution: "exponential",
    spread: Spread::Exponential,
    demands: [10, 11],
    turns: "--cycles 1000 --repetitions 3",
    span: Duration::from_secs(600),
};

impl Jobs {
    /// In a quick run other demands say as much about the command, in less time.
    fn demands(&self, options: &Validate) -> [u64; 2] {
        if options.quick { [4, 5] } else { self.demands }
    }

    fn line(&self, options: &Validate) -> String {
        let distribution = self.distribution;
        let stations = if options.burn { "burn" } else { "sleep" };
        let [first, second] = self.demands(options);
        let turns = match options.quick {
            true => "--quick --repetitions 1 --clients 1,2 --daemons multi --architectures sp".to_owned(),
            false => format!("{} --clients 1,4,10", self.turns),
        };
        format!(
            "jobs --sides processes --stations {stations} --distributions {distribution} --demand {first},{second} {turns}"
        )
    }

    fn foresee(
        &self,
        row: &Row,
        profile: &Profile,
        options: &Validate,
    ) -> Result<Option<Vec<Foreseen>>, BenchError> {
        let architecture = match &*row.text("architecture") {
            "S" => Architecture::Sequential,
            "HP" => Architecture::HandleDriven,
            "FP" => Architecture::Forwarding,
            "SP" => Architecture::Synchronous,
            _ => return Ok(None),
        };
        let demands = self.demands(options);
        let daemon_threads = if row.is(&[("daemon", "single")]) { 1 } else { 64 };
        let mut scenario = empty("par-04", dwell(profile, &available(profile))?, self.span);
        scenario.hosts = vec![host("machine", cores().len().max(1) as u32)];
        for station in 0..4 {
            let mut serve = operation("serve", 58, 54);
            serve.demand = (self.spread)(Duration::from_millis(demands[station % 2]));
            serve.sleeps = !options.burn;
            scenario.servers.push(server(&format!("station-{station}"), 0, Some(1), vec![serve]));
        }
        scenario.servers.push(server("daemon", 0, Some(daemon_threads), vec![operation("run", 0, 0)]));
        let set = |first: usize| {
            let part = |server| Call { server, operation: 0, times: 1, target: Target::Object(0) };
            let parts = vec![part(first), part(first + 1)];
            Weighted { weight: 1.0, cycle: Cycle::Job { architecture, parts, daemon: 4 } }
        };
        let jobs = clients("jobs", 0, number(row, "clients") as u32, vec![set(0), set(2)]);
        scenario.classes = vec![Class { choice: Choice::InTurn, ..jobs }];
        let Some(seen) = simulate(&scenario)?.pop() else { return Ok(None) };
        let foreseen =
            |figure, what, unit, simulated| Foreseen { figure, what, unit, simulated, bar: Bar::Tight };
        Ok(Some(vec![
            foreseen("response_ms", "R", "ms", seen.mean * 1e3),
            foreseen("cycles_s", "X", "1/s", seen.rate),
        ]))
    }
}

fn par_04_cannot(options: &Validate) -> Option<String> {
    let processors = cores().len();
    (options.burn && processors < 4)
        .then(|| format!("four stations that burn need four processors, and there are {processors}"))
}

/// Threads that may run anywhere: on two processors, where there are two.
fn available(profile: &Profile) -> Situation {
    let has_two = profile.calls.iter().any(|row| row.placement == Placement::CoreEach);
    let placement = if has_two { Placement::CoreEach } else { Placement::OneCore };
    Situation { placement, ..Situation::default() }
}

// MinORB's four cases.

fn objects(row: &Row, profile: &Profile, _: &Validate) -> Result<Option<Vec<Foreseen>>, BenchError> {
    let situation = Situation {
        placement: placement(&row.text("layout")),
        objects: number(row, "objects") as u64,
        kept: Kept::Elements,
        ..Situation::default()
    };
    let (request, reply) = if row.is(&[("row", "read")]) { (0, 4) } else { (4, 0) };
    Ok(Some(of_calls("subject", calls(profile, &situation, (request, reply))?)))
}

/// Calls of a client in flight, as the suite has them.
const IN_FLIGHT: u32 = 32;

fn throughput(row: &Row, profile: &Profile, _: &Validate) -> Result<Option<Vec<Foreseen>>, BenchError> {
    if !row.is(&[("side", "ironorb")]) {
        return Ok(None);
    }
    let number_of = number(row, "clients") as u32;
    let placement = placement(&row.text("layout"));
    let situation = Situation { placement, in_flight: IN_FLIGHT, ..Situation::default() };
    let mut scenario = empty("throughput", dwell(profile, &situation)?, Duration::from_millis(500));
    let (hosts, of_server) = match placement {
        Placement::OneCore => (vec![host("machine", 1)], 0),
        // A processor that all clients share, and the server's.
        _ => (vec![host("client", 1), host("server", 1)], 1),
    };
    scenario.hosts = hosts;
    scenario.servers = vec![server("items", of_server, Some(number_of), vec![operation("write", 4, 0)])];
    scenario.classes = vec![clients("writers", 0, number_of * IN_FLIGHT, vec![one_call(0, 0, 1.0)])];
    let Some(seen) = simulate(&scenario)?.pop() else { return Ok(None) };
    let (figure, what, unit) = ("subject", "rate", "1/s");
    Ok(Some(vec![Foreseen { figure, what, unit, simulated: seen.rate, bar: Bar::Mean }]))
}

/// Octets of an update of the suite's objects: a long.
const UPDATE: u32 = 36;

const ASKED: CacheMode = CacheMode::Asked(Asking::DEFAULT);

/// A lag that never ends, as that of the suite's objects.
const LAG: Duration = Duration::from_secs(3_600);

fn shares(row: &Row, profile: &Profile, options: &Validate) -> Result<Option<Vec<Foreseen>>, BenchError> {
    let objects = if options.quick { 100 } else { 100_000 };
    let (cached, read) = (number(row, "cached_percent") / 100.0, number(row, "read_percent") / 100.0);
    let situation = Situation { placement: placement(&row.text("layout")), objects, ..Situation::default() };
    let mut scenario = empty("shares", dwell(profile, &situation)?, Duration::from_millis(500));
    scenario.hosts = vec![machine(situation.placement)];
    let mut items = server("items", 0, Some(1), vec![operation("value", 0, 4), operation("write", 4, 0)]);
    items.operations[0].kind = OperationKind::Read;
    items.operations[1].kind = OperationKind::Write;
    items.objects = objects;
    scenario.servers = vec![items];
    let mix = [(0, read), (1, 1.0 - read)].into_iter().filter(|(_, weight)| *weight > 0.0);
    let mix = mix.map(|(operation, weight)| one_call(0, operation, weight)).collect();
    let mut client = clients("client", 0, 1, mix);
    if cached > 0.0 {
        client.cache = Some(Cache { lag: LAG, capacity: cached, update_octets: UPDATE, mode: ASKED });
    }
    scenario.classes = vec![client];
    let Some(seen) = simulate(&scenario)?.pop() else { return Ok(None) };
    // A sample of the suite is a batch: its percentiles are those of batches.
    Ok(Some(of_calls("subject", seen).into_iter().filter(|it| it.what == "mean").collect()))
}

fn lags(row: &Row, profile: &Profile, _: &Validate) -> Result<Option<Vec<Foreseen>>, BenchError> {
    let lag = Duration::from_micros(number(row, "lag_us") as u64);
    let situation = Situation { placement: Placement::OneCore, objects: 30_000, ..Situation::default() };
    let mut scenario = empty("lags", dwell(profile, &situation)?, Duration::from_millis(500));
    scenario.hosts = vec![host("writer and server", 1), host("reader", 1)];
    let mut items = server("items", 0, None, vec![operation("value", 0, 4), operation("write", 4, 0)]);
    items.operations[0].kind = OperationKind::Read;
    items.operations[1].kind = OperationKind::Write;
    items.objects = situation.objects;
    scenario.servers = vec![items];
    let mut reader = clients("reader", 1, 1, vec![one_call(0, 0, 1.0)]);
    // It reads without a pause from its cache, which costs the others nothing: some reads tell as much, if they find soon that the lag
    // is over.
    reader.arrivals = Arrivals::Closed { clients: 1, think: Spread::Fixed(Duration::from_micros(2)) };
    reader.cache = Some(Cache { lag, capacity: 1.0, update_octets: UPDATE, mode: ASKED });
    scenario.classes = vec![clients("writer", 0, 1, vec![one_call(0, 1, 1.0)]), reader];
    let writer = simulate(&scenario)?.first().copied();
    Ok(writer.map(|seen| of_calls("subject", seen).into_iter().filter(|it| it.what == "mean").collect()))
}

// The latency suite.

fn latency_line(options: &Validate) -> String {
    let ours = "latency --peers ironorb --invocations sii --modes twoway";
    match options.quick {
        true => format!("{ours} --quick --repetitions 1 --types void,octet --units 64 --objects 7"),
        false => format!(
            "{ours} --types void,octet,long,struct --units 1,64,1024 --objects 7,300,500 --placements one-core,core-each \
             --repetitions 3"
        ),
    }
}

fn latency(row: &Row, profile: &Profile, _: &Validate) -> Result<Option<Vec<Foreseen>>, BenchError> {
    // In the suite an element of each type takes so many octets.
    let (body, element) = match &*row.text("type") {
        "void" => ("octets", 0),
        "octet" => ("octets", 1),
        "long" => ("longs", 4),
        "struct" => ("structs", 24),
        _ => return Ok(None),
    };
    let situation = Situation {
        placement: placement(&row.text("layout")),
        objects: number(row, "objects") as u64,
        body: body.to_owned(),
        ..Situation::default()
    };
    let request = element * number(row, "units") as u32;
    Ok(Some(of_calls("subject", calls(profile, &situation, (request, 0))?)))
}

// RT-99.

/// Periods of the suite's clients, and the part of the processor that servants of low priorities burn.
const HIGH_PERIOD: Duration = Duration::from_millis(50);
const LOW_PERIOD: Duration = Duration::from_millis(100);
const LOAD: f64 = 0.6;

fn realtime(row: &Row, profile: &Profile, _: &Validate) -> Result<Option<Vec<Foreseen>>, BenchError> {
    if !row.is(&[("side", "lanes"), ("since", "call")]) {
        return Ok(None);
    }
    let low = number(row, "clients") as u32;
    let situation = Situation { placement: Placement::OneCore, ..Situation::default() };
    let scenario = beside_others(low, dwell(profile, &situation)?);
    let Some(high) = simulate(&scenario)?.first().copied() else { return Ok(None) };
    let us = |figure, what, seconds: f64, bar| Foreseen {
        figure,
        what,
        unit: "us",
        simulated: seconds * 1e6,
        bar,
    };
    Ok(Some(vec![us("mean_us", "mean", high.mean, Bar::Mean), us("p99_us", "p99", high.p99, Bar::Reported)]))
}

fn beside_others(low: u32, dwell: ironorb_model::scenario::DwellTimes) -> Scenario {
    let mut scenario = empty("realtime", dwell, Duration::from_secs(20));
    scenario.hosts = vec![machine(Placement::OneCore)];
    let mut burn = operation("burn", 4, 0);
    let each = LOW_PERIOD.mul_f64(LOAD / f64::from(low.max(1)));
    burn.demand = Spread::Fixed(each);
    let mut serving = server("server", 0, None, vec![operation("call", 4, 0), burn]);
    serving.lanes = vec![Lane { priority: 0, threads: low.max(1) }, Lane { priority: 100, threads: 1 }];
    scenario.servers = vec![serving];
    let periodic = |name, period, burst, operation, priority| Class {
        arrivals: Arrivals::Open { between: Spread::Fixed(period), burst },
        priority: Some(priority),
        ..clients(name, 0, 1, vec![one_call(0, operation, 1.0)])
    };
    scenario.classes = vec![periodic("high", HIGH_PERIOD, 1, 0, 100)];
    if low > 0 {
        scenario.classes.push(periodic("low", LOW_PERIOD, low, 1, 1));
    }
    scenario
}

#[cfg(test)]
mod tests {
    use ironorb_model::profile::{CallRow, ProfileOrigin, Steps, Times};

    use super::*;
    use crate::row::parameters;

    /// Steps of 20 us a call, in both placements.
    fn profile() -> Profile {
        let row = |placement| CallRow {
            placement,
            idle_ns: 0.0,
            is_busy: false,
            kept: Kept::Servants,
            objects: 1,
            in_flight: 1,
            calls: 1,
            steps: Steps {
                write_request: 5_000.0,
                read_request: 5_000.0,
                write_reply: 5_000.0,
                ..Steps::default()
            },
            thread_switch: Times { mean_ns: 2_500.0, quantiles_ns: vec![2_000.0, 3_000.0] },
            response: Times::default(),
        };
        let text = || "test".to_owned();
        Profile {
            not_modelled: Vec::new(),
            origin: ProfileOrigin {
                processor: text(),
                processors: 2,
                kernel: text(),
                preemption: text(),
                compiler: text(),
                commit: text(),
                date: text(),
                orb: text(),
                method: text(),
                load: 0.0,
                others_percent: 0.0,
                is_quick: true,
            },
            sleep: None,
            calls: vec![row(Placement::OneCore), row(Placement::CoreEach)],
            bodies: Vec::new(),
            cached_reads: Vec::new(),
            wake_ups: Vec::new(),
        }
    }

    fn options() -> Validate {
        Validate {
            profile: "profile.toml".into(),
            cases: Vec::new(),
            burn: false,
            measured: None,
            json: None,
            markdown: None,
            quick: false,
        }
    }

    fn foreseen(case: &str, row: crate::row::Parameters) -> Vec<(&'static str, f64)> {
        let case = CASES.iter().find(|known| known.name == case).unwrap();
        let row = Row { parameters: row, outcome: Ok(Vec::new()) };
        let foreseen = (case.foresee)(&row, &profile(), &options()).unwrap().unwrap();
        foreseen.iter().map(|it| (it.what, it.simulated)).collect()
    }

    fn near(found: f64, wanted: f64) -> bool {
        (found / wanted - 1.0).abs() < 0.02
    }

    #[test]
    fn a_call_takes_its_steps_and_two_switches() {
        for (case, row) in [
            ("objects", parameters![row = "read", layout = "one core", objects = 100]),
            ("latency", parameters![layout = "a core each", type = "void", units = 0, objects = 1]),
            ("shares", parameters![layout = "one core", cached_percent = 0, read_percent = 50]),
            ("realtime", parameters![side = "lanes", since = "call", clients = 20]),
        ] {
            let foreseen = foreseen(case, row);
            assert!(foreseen[0].0 == "mean" && near(foreseen[0].1, 20.0), "{case}: {foreseen:?}");
        }
    }

    #[test]
    fn jobs_take_their_longest_part_and_stations_bound_their_rate() {
        let row = |daemon: &str, architecture: &str, clients: u64| {
            parameters![daemon = daemon, architecture = architecture, clients = clients]
        };
        for (daemon, architecture, clients, response, rate) in [
            ("multi", "SP", 1, 55.0, 1e3 / 55.0),
            ("multi", "S", 1, 105.0, 1e3 / 105.0),
            ("multi", "SP", 10, 275.0, 2e3 / 55.0),
            ("single", "SP", 10, 550.0, 1e3 / 55.0),
        ] {
            let foreseen = foreseen("par-04", row(daemon, architecture, clients));
            let is_so = near(foreseen[0].1, response) && near(foreseen[1].1, rate);
            assert!(is_so, "{daemon} {architecture} {clients}: {foreseen:?}");
        }
    }

    #[test]
    fn reads_behind_writes_ask_where_these_have_not() {
        let row = parameters![layout = "one core", cached_percent = 100, read_percent = 50];
        // Of 18 writes 16 carry the question of the next read. Two do not: the read behind them asks, and others take no time.
        let mean = foreseen("shares", row)[0].1;
        assert!(near(mean, 0.5 * 20.0 * (1.0 + 1.0 / 18.0)), "{mean}");
    }

    #[test]
    fn a_reader_that_asks_takes_its_time_of_the_server() {
        let mean = |lag: u64| foreseen("lags", parameters![layout = "one core", lag_us = lag])[0].1;
        // A question takes the server 12.5 us with the switch. Its age counts from when it leaves, and the reader looks each 2 us.
        assert!(near(mean(100), 20.0 / (1.0 - 12.5 / 101.5)), "{}", mean(100));
        assert!(near(mean(10_000), 20.0), "{}", mean(10_000));
    }

    #[test]
    fn stations_that_burn_need_their_processors() {
        let burning = Validate { burn: true, ..options() };
        assert_eq!(par_04_cannot(&burning).is_some(), cores().len() < 4);
        assert!(par_04_cannot(&options()).is_none());
    }
}
