//! `portfolio`: eight price servers of which two are slow, and a front end that values portfolios in time.

use std::time::Duration;

use clap::Parser;
use portfolio::exchange::Exchange;
use portfolio::front_end::{FrontEnd, Seen};

/// Eight price servers of which two are slow, and a front end that values portfolios in time
#[derive(Debug, Parser)]
struct Arguments {
    /// Portfolios to value in each way.
    #[arg(long, default_value_t = 20)]
    rounds: i32,
    /// How long a slow server takes for a price, in milliseconds.
    #[arg(long, default_value_t = 200)]
    slow_ms: u64,
    /// How long a portfolio may take, in milliseconds.
    #[arg(long, default_value_t = 50)]
    within_ms: u64,
    /// After how long another server is asked, in milliseconds.
    #[arg(long, default_value_t = 10)]
    hedge_after_ms: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let exchange = Exchange::open(Duration::from_millis(1), Duration::from_millis(arguments.slow_ms))?;
    let front_end = FrontEnd::open(&exchange.agent())?;
    let within = Duration::from_millis(arguments.within_ms);
    let all = front_end.ask_all(&exchange.references(), within, arguments.rounds)?;
    print("all eight, best effort", &all, arguments.rounds);
    let hedged = front_end.ask_hedged(Duration::from_millis(arguments.hedge_after_ms), arguments.rounds);
    print("a server of each market, hedged", &hedged, arguments.rounds);
    let counts = front_end.counts();
    println!(
        "hedges: {} beside {} first requests, {} cancelled; {} not sent for want of budget",
        counts.attempts.further, counts.attempts.first, counts.cancelled, counts.attempts.refused
    );
    println!("calls of each server: {:?}", exchange.calls());
    match all.wrong + hedged.wrong + all.failed + hedged.failed {
        0 => Ok(()),
        bad => Err(format!("{bad} prices were wrong or failed").into()),
    }
}

fn print(how: &str, seen: &Seen, rounds: i32) {
    let mean = seen.took.as_secs_f64() * 1e3 / f64::from(rounds.max(1));
    println!(
        "{how}: {} prices, {} late, {} failed, {} wrong; {mean:.1} ms a portfolio, {:.1} ms at most",
        seen.prices,
        seen.late,
        seen.failed,
        seen.wrong,
        seen.slowest.as_secs_f64() * 1e3,
    );
}
