//! `number-portability`: a registry, front ends, or all in one process.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use ironorb::{ExtentRange, Orb, TypedRef};
use number_portability::front_end::{self, Ledger, Tally};
use number_portability::portability::SubscriberRef;
use number_portability::registry;

/// A million subscribers, and three front ends that hold what they read
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// Numbers in the registry.
    #[arg(long, default_value_t = 1_000_000)]
    numbers: u64,
    /// Seconds for which front ends ask.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Serve the registry, and print the reference to its first number.
    Registry {
        /// Keep the numbers in this file.
        #[arg(long)]
        file: Option<PathBuf>,
        /// Where to listen.
        #[arg(long, default_value = "iiop://127.0.0.1:2810")]
        endpoint: String,
        /// Numbers in the registry.
        #[arg(long, default_value_t = 1_000_000)]
        numbers: u64,
    },
    /// Ask a registry.
    FrontEnd {
        /// The reference that the registry has printed.
        reference: String,
        /// Seconds for which to ask.
        #[arg(long, default_value_t = 3)]
        seconds: u64,
    },
}

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let Arguments { part, numbers, seconds } = Arguments::parse();
    match part {
        None => all(numbers, Duration::from_secs(seconds)),
        Some(Part::Registry { file, endpoint, numbers }) => serve(&endpoint, numbers, file),
        Some(Part::FrontEnd { reference, seconds }) => {
            let orb = Orb::builder().no_endpoint().build()?;
            let tally = ask(&orb, &reference, Duration::from_secs(seconds), 1, &Ledger::default())?;
            print("front end", &tally);
            Ok(())
        }
    }
}

fn serve(endpoint: &str, numbers: u64, file: Option<PathBuf>) -> Result<(), Failure> {
    let orb = Orb::builder().endpoint(endpoint)?.build()?;
    let registry = registry::open(&orb.root_poa(), numbers, file)?;
    let first: SubscriberRef = registry.reference(0)?;
    println!("{}", first.object().to_ior_string());
    Ok(orb.run()?)
}

/// The numbers that are called often.
const OFTEN: u64 = 1_000;

fn ask(orb: &Orb, reference: &str, length: Duration, seed: u64, ledger: &Ledger) -> Result<Tally, Failure> {
    let first: SubscriberRef = orb.resolve(reference)?;
    let subscribers = ExtentRange::of(&first).ok_or("the reference is to no subscriber")?;
    Ok(front_end::run(&subscribers, OFTEN, length, seed, ledger)?)
}

fn print(who: &str, tally: &Tally) {
    let mean = tally.took.as_secs_f64() * 1e6 / tally.asked.max(1) as f64;
    println!(
        "{who}: {} questions, {:.1} % answered here, {mean:.1} us each, {:.0} us at most, {} too old",
        tally.asked,
        tally.hit_ratio() * 100.0,
        tally.slowest.as_secs_f64() * 1e6,
        tally.stale,
    );
}

/// A registry, three front ends and a clerk, each with an ORB of its own.
fn all(numbers: u64, length: Duration) -> Result<(), Failure> {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
    let opened = Instant::now();
    let registry = registry::open(&server.root_poa(), numbers, None)?;
    println!("registry: {numbers} numbers in {:.2} s", opened.elapsed().as_secs_f64());
    let reference = registry.reference::<SubscriberRef>(0)?.object().to_ior_string();
    let (reference, ledger) = (reference.as_str(), &Ledger::default());
    thread::scope(|scope| -> Result<(), Failure> {
        let front_ends: Vec<_> = (1..=3)
            .map(|seed| {
                let ask = move || {
                    let orb = Orb::builder().no_endpoint().build().map_err(|e| e.to_string())?;
                    ask(&orb, reference, length, seed, ledger).map_err(|e| e.to_string())
                };
                (seed, scope.spawn(ask))
            })
            .collect();
        let ported = clerk(reference, length, opened, ledger)?;
        for (seed, front_end) in front_ends {
            let tally = front_end.join().map_err(|_| "a front end has panicked")??;
            print(&format!("front end {seed}"), &tally);
        }
        println!("clerk: {ported} numbers ported");
        Ok(())
    })?;
    Ok(server.shutdown(true)?)
}

/// Ports a number that is called often, every 10 ms.
fn clerk(reference: &str, length: Duration, opened: Instant, ledger: &Ledger) -> Result<u64, Failure> {
    let orb = Orb::builder().no_endpoint().build()?;
    let first: SubscriberRef = orb.resolve(reference)?;
    let subscribers = ExtentRange::of(&first).ok_or("the reference is to no subscriber")?;
    let (begun, mut ported) = (Instant::now(), 0);
    let mut random = fastrand::Rng::with_seed(9);
    while begun.elapsed() < length {
        front_end::port(&subscribers, random.u64(..OFTEN.min(subscribers.indices().end)), opened, ledger)?;
        ported += 1;
        thread::sleep(Duration::from_millis(10));
    }
    Ok(ported)
}
