//! The programs of a system of two tiers: clients call a front, whose servant calls objects of a back.
//!
//! They know neither how many threads they have nor whether they are recorded. Their operators decide that, by settings in the
//! environment of each process.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use ironorb::{Orb, OrbBuilder, SystemException, TypedRef as _};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::generated_deployment::deployment_cases::{Item, ItemRef, Shop, ShopRef};
use crate::machine;
use crate::role::{self, Role, RoleArgs};

/// The processes of a system.
pub(crate) const ROLES: &[Role] = &[
    Role { name: BACK, run: serve_back },
    Role { name: FRONT, run: serve_front },
    Role { name: CLIENTS, run: run_clients },
];

pub(super) const BACK: &str = "deployment-back";
pub(super) const FRONT: &str = "deployment-front";
pub(super) const CLIENTS: &str = "deployment-clients";

/// Objects of a process of the back.
const ITEMS: u32 = 8;

/// Means of exponential times: what the front computes for either operation, and what the back sleeps and computes.
const BROWSE: Duration = Duration::from_micros(1_000);
const ORDER: Duration = Duration::from_micros(1_500);
const FIND: Duration = Duration::from_micros(2_000);
const PRICE: Duration = Duration::from_micros(2_000);

/// Octets of an item, of which a shop's page has several, and of an order's form.
const ITEM_OCTETS: usize = 500;
const ITEMS_OF_PAGE: usize = 4;
const FORM_OCTETS: usize = 600;

/// Clients that do the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientClass {
    pub(super) name: &'static str,
    /// How many there are, before anything is changed.
    pub(super) clients: usize,
    /// The mean of how long each thinks.
    think: Duration,
    call: fn(&ShopRef, u32) -> Result<(), SystemException>,
}

pub(super) const CLASSES: [ClientClass; 2] = [
    ClientClass {
        name: "browsers",
        clients: 3,
        think: Duration::from_millis(15),
        call: |shop, item| shop.browse(item).map(drop),
    },
    ClientClass {
        name: "buyers",
        clients: 2,
        think: Duration::from_millis(30),
        call: |shop, item| shop.order(item, &[0; FORM_OCTETS]).map(drop),
    },
];

/// What clients have measured. As JSON it is what their program prints.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Calls that ended while they measured.
    pub(super) completed: u64,
    /// The mean of what they took.
    pub(super) response_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) calls_a_second: f64,
}

/// What a process is told by `--setup`, as text: `core=1 seed=7`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setup {
    /// The processor that it stays on.
    pub(super) core: Option<usize>,
    /// Decides all that is random in it.
    pub(super) seed: u64,
    /// Clients of its class.
    pub(super) clients: usize,
    /// How long clients measure, after a tenth of it.
    pub(super) seconds: f64,
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { core, seed, clients, seconds } = self;
        write!(f, "seed={seed} clients={clients} seconds={seconds}")?;
        core.iter().try_for_each(|core| write!(f, " core={core}"))
    }
}

impl FromStr for Setup {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Setup, BenchError> {
        let wrong = |what: &str| {
            BenchError::Unusable(format!("{what:?} is none of core=N, seed=N, clients=N and seconds=N"))
        };
        let mut values: HashMap<&str, &str> = HashMap::new();
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').ok_or_else(|| wrong(word))?;
            if !["core", "seed", "clients", "seconds"].contains(&key) {
                return Err(wrong(word));
            }
            values.insert(key, value);
        }
        let number = |key: &str, or: f64| match values.get(key) {
            None => Ok(or),
            Some(value) => value.parse::<f64>().map_err(|_| wrong(value)),
        };
        let core = values.get("core").map(|value| value.parse().map_err(|_| wrong(value))).transpose()?;
        let (seed, clients) = (number("seed", 1.0)? as u64, number("clients", 1.0)? as usize);
        Ok(Setup { core, seed, clients, seconds: number("seconds", 10.0)? })
    }
}

impl Setup {
    /// The setup of this process, which stays on its processor from now on.
    fn begin(args: &RoleArgs) -> Result<Setup, BenchError> {
        let setup: Setup = args.setup.parse()?;
        if let Some(core) = setup.core {
            machine::pin(core)?;
        }
        Ok(setup)
    }
}

/// What an ORB of these programs begins with. The settings of the environment count, that of a recording too.
fn builder() -> OrbBuilder {
    ironorb_record::install(Orb::builder())
}

/// Exponential times, for all threads of a process.
struct Times(Mutex<Rng>);

impl Times {
    fn of(seed: u64) -> Times {
        Times(Mutex::new(Rng::with_seed(seed)))
    }

    fn next(&self, mean: Duration) -> Duration {
        let part = self.0.lock().unwrap_or_else(PoisonError::into_inner).f64();
        // From 0, excluded, to 1: the logarithm is finite.
        mean.mul_f64(-(1.0 - part).ln())
    }
}

/// Takes a processor for so long, and not only until so much time has passed: others may have it meanwhile.
fn compute(time: Duration) {
    let until = on_processor() + time;
    while on_processor() < until {
        std::hint::spin_loop();
    }
}

/// How long the calling thread has had a processor.
fn on_processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

struct Stored(Arc<Times>);

impl Item for Stored {
    fn find(&self) -> Result<Vec<u8>, SystemException> {
        thread::sleep(self.0.next(FIND));
        Ok(vec![0; ITEM_OCTETS])
    }

    fn price(&self, pieces: u32) -> Result<u32, SystemException> {
        compute(self.0.next(PRICE));
        Ok(pieces)
    }
}

struct Front {
    times: Times,
    items: Vec<ItemRef>,
}

impl Front {
    fn item(&self, number: u32) -> &ItemRef {
        &self.items[number as usize % self.items.len()]
    }
}

impl Shop for Front {
    fn browse(&self, item: u32) -> Result<Vec<u8>, SystemException> {
        compute(self.times.next(BROWSE));
        Ok(self.item(item).find()?.repeat(ITEMS_OF_PAGE))
    }

    fn order(&self, item: u32, _form: &[u8]) -> Result<u32, SystemException> {
        compute(self.times.next(ORDER));
        self.item(item).find()?;
        self.item(item).price(1)
    }
}

/// Prints the references of its items in a line, and serves them until standard input ends.
fn serve_back(args: &RoleArgs) -> Result<(), BenchError> {
    let setup = Setup::begin(args)?;
    let times = Arc::new(Times::of(setup.seed));
    serve(builder().endpoint(&args.endpoint)?, |orb| {
        let items = (0..ITEMS).map(|_| -> Result<String, BenchError> {
            let item: ItemRef = orb.root_poa().activate(Stored(times.clone()))?;
            Ok(item.object().to_ior_string())
        });
        Ok(items.collect::<Result<Vec<_>, _>>()?.join(" "))
    })
}

/// Prints its reference. `at` has those of items.
fn serve_front(args: &RoleArgs) -> Result<(), BenchError> {
    let setup = Setup::begin(args)?;
    serve(builder().endpoint(&args.endpoint)?, |orb| {
        let items = args.at.split_whitespace().map(|item| -> Result<ItemRef, BenchError> {
            Ok(orb.string_to_object(item)?.narrow_unchecked())
        });
        let items = items.collect::<Result<Vec<_>, _>>()?;
        if items.is_empty() {
            return Err(BenchError::Unusable("a front needs items: --at REFERENCES".to_owned()));
        }
        let shop: ShopRef = orb.root_poa().activate(Front { times: Times::of(setup.seed), items })?;
        Ok(shop.object().to_ior_string())
    })
}

/// As [`role::serve`], but the ORB ends before the process does, so that a recording has its last calls.
fn serve(
    builder: OrbBuilder,
    activate: impl FnOnce(&Orb) -> Result<String, BenchError>,
) -> Result<(), BenchError> {
    let orb = builder.build()?;
    role::tell(&activate(&orb)?)?;
    role::wait_for_end()?;
    orb.shutdown(true)?;
    Ok(())
}

/// Calls the front, `at`, as the clients of a class do, `row`, and prints what they have measured.
fn run_clients(args: &RoleArgs) -> Result<(), BenchError> {
    let setup = Setup::begin(args)?;
    let Some(class) = CLASSES.iter().find(|class| class.name == args.row) else {
        let known = CLASSES.map(|class| class.name).join(", ");
        return Err(BenchError::UnknownRow { name: args.row.clone(), known });
    };
    let orb = builder().no_endpoint().build()?;
    let shop: ShopRef = orb.string_to_object(args.at.trim())?.narrow_unchecked();
    let span = Duration::try_from_secs_f64(setup.seconds)
        .map_err(|e| BenchError::Unusable(format!("{} seconds: {e}", setup.seconds)))?;
    let from = Instant::now() + span / 10;
    let until = from + span;
    let run = |client: usize| -> Result<Vec<f64>, SystemException> {
        let mut random = Rng::with_seed(setup.seed.wrapping_mul(1_000).wrapping_add(client as u64));
        let times = Times::of(random.u64(..));
        let mut responses = Vec::new();
        loop {
            thread::sleep(times.next(class.think));
            let begun = Instant::now();
            if begun >= until {
                return Ok(responses);
            }
            (class.call)(&shop, random.u32(..))?;
            let ended = Instant::now();
            if ended >= from && ended < until {
                responses.push((ended - begun).as_secs_f64() * 1e3);
            }
        }
    };
    let responses = thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..setup.clients).map(|client| scope.spawn(move || run(client))).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(responses) => Ok(responses?),
            Err(_) => Err(BenchError::Unusable("a client has panicked".to_owned())),
        });
        joined.collect::<Result<Vec<_>, BenchError>>()
    })?;
    drop(shop);
    orb.shutdown(true)?;
    let measured = Measured::of(responses.concat(), span);
    role::tell(&serde_json::to_string(&measured).unwrap_or_default())
}

impl Measured {
    fn of(mut responses_ms: Vec<f64>, span: Duration) -> Measured {
        responses_ms.sort_by(f64::total_cmp);
        let count = responses_ms.len();
        Measured {
            completed: count as u64,
            response_ms: responses_ms.iter().sum::<f64>() / count.max(1) as f64,
            p99_ms: responses_ms.get((count * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0),
            calls_a_second: count as f64 / span.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_is_read_as_it_was_written() {
        let setup = Setup { core: Some(3), seed: 7, clients: 5, seconds: 0.5 };
        for setup in [setup, Setup { core: None, ..setup }] {
            assert_eq!(setup.to_string().parse::<Setup>().unwrap(), setup);
        }
        for text in ["core", "colour=1", "seed=x"] {
            assert!(text.parse::<Setup>().is_err(), "{text}");
        }
    }

    #[test]
    fn computing_takes_a_processor_and_times_keep_their_mean() {
        let before = on_processor();
        compute(Duration::from_millis(5));
        assert!(on_processor() - before >= Duration::from_millis(5));
        let times = Times::of(1);
        let sum: Duration = (0..10_000).map(|_| times.next(FIND)).sum();
        // Five standard errors.
        assert!((sum.as_secs_f64() / 1e4 / FIND.as_secs_f64() - 1.0).abs() < 0.05, "{sum:?}");
    }

    #[test]
    fn clients_tell_means_percentiles_and_rates() {
        let measured = Measured::of((1..=200).rev().map(f64::from).collect(), Duration::from_secs(4));
        let wanted = Measured { completed: 200, response_ms: 100.5, p99_ms: 198.0, calls_a_second: 50.0 };
        assert_eq!(measured, wanted);
        assert_eq!(Measured::of(Vec::new(), Duration::from_secs(1)).completed, 0);
    }
}
