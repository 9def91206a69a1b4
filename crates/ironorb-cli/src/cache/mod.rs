//! `ironorb cache`: what the caches of an ORB's clients do, whether they keep their promise, and whether they pay.

mod advise;
mod audit;
mod flush;
mod stat;

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Stat(stat::Arguments),
    Flush(flush::Arguments),
    Audit(audit::Arguments),
    Advise(advise::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Stat(arguments) => stat::run(arguments),
        Command::Flush(arguments) => flush::run(arguments),
        Command::Audit(arguments) => audit::run(arguments),
        Command::Advise(arguments) => advise::run(arguments),
    }
}

/// Parses a time with a unit, as the IDL has it: `10ms`, `500us`, `2s`.
fn time_with_unit(text: &str) -> Result<Duration, String> {
    let nanos = ironorb_units::nanos(text).ok().and_then(|nanos| u64::try_from(nanos).ok());
    nanos
        .filter(|nanos| *nanos > 0)
        .map(Duration::from_nanos)
        .ok_or_else(|| "write a time above 0 with its unit, as 10ms, 500us or 2s".to_owned())
}

/// A time in the unit that suits it.
fn shown(time: Duration) -> String {
    let ns = time.as_nanos();
    let (scale, unit) = match ns {
        0..10_000 => (1.0, "ns"),
        10_000..10_000_000 => (1e3, "us"),
        10_000_000..10_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let number = format!("{:.1}", ns as f64 / scale);
    format!("{} {unit}", number.trim_end_matches(".0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time_with_unit("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(time_with_unit("1.5us"), Ok(Duration::from_nanos(1_500)));
        assert_eq!(time_with_unit("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(time_with_unit("7ns"), Ok(Duration::from_nanos(7)));
        for wrong in ["0ms", "10", "ms", "-1s", "1h", "", "1e300s"] {
            assert!(time_with_unit(wrong).is_err(), "{wrong}");
        }
        let shown = [900, 26_500, 10_000_000, 12_000_000_000].map(|ns| shown(Duration::from_nanos(ns)));
        assert_eq!(shown, ["900 ns", "26.5 us", "10 ms", "12 s"]);
    }
}
