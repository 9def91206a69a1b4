//! Which configurations are measured, and for how long.

use std::time::Duration;

use clap::ValueEnum;

use super::schedule::Shape;
use crate::error::BenchError;
use crate::options::Run;
use crate::paced::class::{Class, PRIORITY_MAX};
use crate::paced::setup::{Kind, Way};
use crate::peers::paced::PacedOrb;
use crate::row::{Parameters, parameters};
use crate::variant::name;

/// `ironorb bench realtime`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RealtimeOptions {
    /// What the processors do meanwhile.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Regime::Pinned])]
    pub(crate) regimes: Vec<Regime>,
    /// Per cent of the pinned processor that the servants of low priorities burn together.
    #[arg(long, value_delimiter = ',', default_values_t = [60])]
    pub(crate) loads: Vec<u32>,
    /// Whether the clients of a pinned processor call at the same times.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Phases::Aligned])]
    pub(crate) phases: Vec<Phases>,
    /// The scheduling class of clients and servants.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Class::Fifo])]
    pub(crate) classes: Vec<Class>,
    /// The transport between clients and servants.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Way::Tcp])]
    pub(crate) transports: Vec<Way>,
    /// Numbers of clients of a low priority. 0 is always among them.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 5, 10, 15, 20, 25, 30, 40, 50])]
    pub(crate) clients: Vec<usize>,
    /// Who takes part.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Side::ALL)]
    pub(crate) sides: Vec<Side>,
    /// Calls a second of the client with the highest priority.
    #[arg(long, default_value_t = 20.0)]
    pub(crate) high_hz: f64,
    /// Calls a second of each other client.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) low_hz: f64,
    /// Calls of each client of a low priority with each number of clients. Default: as many as fit into `--minutes`.
    #[arg(long)]
    pub(crate) calls: Option<usize>,
    /// Minutes for each configuration, if `--calls` does not say how long it takes.
    #[arg(long, default_value_t = 9.0)]
    pub(crate) minutes: f64,
    /// Run the product of all regimes, loads, phases, classes and transports, with the paper's 4,000 calls: two weeks.
    #[arg(long)]
    pub(crate) full: bool,
    /// Decides the order of blocks. Default: the time.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// What the processors do meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Regime {
    /// As in the paper: all processors, which sleep when there is nothing to do.
    Paper,
    /// All processors, which threads of the lowest class keep from ever sleeping.
    Busy,
    /// One processor for everything, of which servants of low priorities burn a part.
    Pinned,
}

/// When clients call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Phases {
    /// All begin their first periods together.
    Aligned,
    /// Their first periods begin one after another, spread over a period.
    Shifted,
}

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// This ORB with a lane for each priority.
    Lanes,
    /// This ORB with one thread for all: the control, in which inversions must show.
    Shared,
    /// Plain sockets with the same threads and priorities.
    Twin,
    /// omniORB, where it is installed.
    Omniorb,
    /// TAO with a lane for each priority, where `TAO_TREE` names its built tree.
    Tao,
}

impl Side {
    /// The programs that are the side.
    pub(crate) fn runs(self) -> Runs {
        match self {
            Side::Lanes => Runs::Ours(Kind::Lanes),
            Side::Shared => Runs::Ours(Kind::Shared),
            Side::Twin => Runs::Ours(Kind::Twin),
            Side::Omniorb => Runs::Foreign(PacedOrb::Omniorb),
            Side::Tao => Runs::Foreign(PacedOrb::Tao),
        }
    }

    /// Whether another ORB's programs are the side. They may fail, which must not end the run.
    pub(crate) fn is_foreign(self) -> bool {
        matches!(self.runs(), Runs::Foreign(_))
    }

    pub(crate) const ALL: [Side; 5] = [Side::Lanes, Side::Shared, Side::Twin, Side::Omniorb, Side::Tao];
}

/// The programs of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// This one, in two roles.
    Ours(Kind),
    /// Those of another ORB.
    Foreign(PacedOrb),
}

/// One configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Configuration {
    pub(crate) regime: Regime,
    /// Per cent of a processor.
    pub(crate) load: u32,
    pub(crate) phases: Phases,
    pub(crate) class: Class,
    pub(crate) way: Way,
}

impl Configuration {
    pub(crate) fn parameters(self, seed: u64) -> Parameters {
        parameters![
            layout = self.to_string(),
            regime = name(self.regime),
            load_percent = self.load,
            phases = name(self.phases),
            transport = name(self.way),
            class = name(self.class),
            seed = seed,
        ]
    }
}

impl std::fmt::Display for Configuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Configuration { regime, load, phases, class, way } = *self;
        let load =
            if regime == Regime::Pinned { format!(" {load} % {}", name(phases)) } else { String::new() };
        write!(f, "{}{load}, {}, {}", name(regime), name(way), name(class))
    }
}

impl RealtimeOptions {
    /// The configurations. Only a pinned processor has loads and phases of its own.
    pub(crate) fn configurations(&self) -> Vec<Configuration> {
        let RealtimeOptions { regimes, loads, phases, classes, transports, .. } = self.clone().filled();
        let mut all = Vec::new();
        for &class in &classes {
            for &way in &transports {
                for &regime in &regimes {
                    let is_pinned = regime == Regime::Pinned;
                    let loads = if is_pinned { &loads[..] } else { &[0] };
                    let phases = if is_pinned { &phases[..] } else { &[Phases::Aligned] };
                    for &load in loads {
                        let of = |&phases| Configuration { regime, load, phases, class, way };
                        all.extend(phases.iter().map(of));
                    }
                }
            }
        }
        all
    }

    /// The options that `--full` stands for.
    fn filled(self) -> RealtimeOptions {
        if !self.full {
            return self;
        }
        RealtimeOptions {
            regimes: Regime::value_variants().to_vec(),
            loads: vec![15, 60, 90],
            phases: Phases::value_variants().to_vec(),
            classes: Class::value_variants().to_vec(),
            transports: Way::value_variants().to_vec(),
            ..self
        }
    }

    /// The numbers of clients of a low priority, each once, in order; 0 is the first.
    pub(crate) fn numbers(&self) -> Result<Vec<usize>, BenchError> {
        let mut numbers = if self.run.quick { vec![0, 2] } else { self.clients.clone() };
        numbers.push(0);
        numbers.sort_unstable();
        numbers.dedup();
        // One lane of the ORB is the default lane, and one is for the highest priority.
        match numbers.last() {
            Some(&most) if most > CLIENTS_MAX => Err(BenchError::Unusable(format!(
                "--clients {most}: an ORB has lanes for at most {CLIENTS_MAX} clients of a low priority"
            ))),
            _ => Ok(numbers),
        }
    }

    /// Repetitions of each number of clients.
    pub(crate) fn rounds(&self) -> usize {
        self.run.repetitions(5)
    }

    /// The blocks of a configuration, given how many turns there are in a round.
    pub(crate) fn shape(&self, of: Configuration, turns: usize) -> Result<Shape, BenchError> {
        let [high_period, low_period] = match self.run.quick {
            true => [5, 10].map(|ms| Ok(Duration::from_millis(ms))),
            false => [self.high_hz, self.low_hz].map(period),
        };
        let (high_period, low_period) = (high_period?, low_period?);
        let low_calls = match (self.calls, self.full, self.run.quick) {
            (_, _, true) => 5,
            (Some(calls), ..) => calls.div_ceil(self.rounds()),
            (_, true, _) => 4_000_usize.div_ceil(self.rounds()),
            _ => {
                let of_block = self.minutes * 60.0 / (turns * self.rounds()).max(1) as f64 - 0.1;
                (of_block / low_period.as_secs_f64()) as usize
            }
        };
        let is_shifted = of.phases == Phases::Shifted;
        let load = f64::from(of.load) / 100.0;
        Ok(Shape { high_period, low_period, low_calls: low_calls.max(1), load, is_shifted })
    }
}

/// Lanes of an ORB, without the default lane and that of the highest priority.
const CLIENTS_MAX: usize = 62;

const _: () = assert!(PRIORITY_MAX as usize > CLIENTS_MAX);

fn period(hz: f64) -> Result<Duration, BenchError> {
    let is_usable = (0.001..=100_000.0).contains(&hz);
    let wrong = || BenchError::Unusable(format!("{hz} calls a second: choose from 0.001 to 100000"));
    is_usable.then(|| Duration::from_secs_f64(1.0 / hz)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: RealtimeOptions,
    }

    fn options(line: &[&str]) -> RealtimeOptions {
        Line::parse_from([&["realtime"], line].concat()).options
    }

    #[test]
    fn only_a_pinned_processor_has_loads_and_phases() {
        let all = options(&["--regimes=paper,busy,pinned", "--loads=15,60", "--phases=aligned,shifted"]);
        let names: Vec<String> = all.configurations().iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), 2 + 2 * 2, "{names:?}");
        assert_eq!(
            (names[0].as_str(), names[5].as_str()),
            ("paper, tcp, fifo", "pinned 60 % shifted, tcp, fifo")
        );
        let full = options(&["--full"]);
        assert_eq!(full.configurations().len(), (2 + 3 * 2) * 4 * 3);
        let shape = full.shape(full.configurations()[0], 27).unwrap();
        assert_eq!(shape.low_calls * full.rounds(), 4_000);
    }

    #[test]
    fn by_default_one_configuration_takes_less_than_ten_minutes() {
        let usual = options(&[]);
        let [one] = usual.configurations()[..] else { panic!("one configuration") };
        let numbers = usual.numbers().unwrap();
        assert_eq!(numbers, [0, 5, 10, 15, 20, 25, 30, 40, 50]);
        for sides in 1..=5 {
            let turns = numbers.len() * sides;
            let shape = usual.shape(one, turns).unwrap();
            let all = shape.block_time() * (turns * usual.rounds()) as u32;
            assert!(all < Duration::from_secs(600) && all > Duration::from_secs(420), "{sides}: {all:?}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_the_reason() {
        let error = options(&["--clients=5,63"]).numbers().unwrap_err().to_string();
        assert!(error.contains("63") && error.contains("62"), "{error}");
        let slow = options(&["--low-hz=0"]);
        let error = slow.shape(slow.configurations()[0], 9).unwrap_err().to_string();
        assert!(error.contains("calls a second"), "{error}");
    }
}
