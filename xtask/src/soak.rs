//! What the gate leaves out, for as long as it is given: the whole gate again and again, other and longer seeds, and each
//! fuzz target for longer.

use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::gate::{self, Extent};
use crate::steps::Steps;
use crate::{cargo, root};

/// The fuzz targets, as `fuzz/Cargo.toml` has them.
const TARGETS: [&str; 10] =
    ["cdr", "ior", "url", "giop", "typecode", "any", "fixed", "value", "idl", "record"];

/// The variable that multiplies the seeds of tests that have some, and the one that leaves out those of rounds before.
const SEEDS: &str = "IRONORB_TEST_SEEDS";
const SEEDS_DONE: &str = "IRONORB_TEST_SEEDS_DONE";
/// The variable with the seeds of simulated programs.
const SIMULATED_SEEDS: &str = "IRONORB_SIM_SEEDS";

/// Runs rounds until the time is over, or without end. What has begun is ended, so that it takes longer by a round at most; the
/// first failure ends it.
pub(crate) fn run(minutes: Option<u64>) -> Result<(), String> {
    let end = minutes
        .and_then(|minutes| Instant::now().checked_add(Duration::from_secs(minutes.saturating_mul(60))));
    let mut round = 0;
    while round == 0 || end.is_none_or(|end| Instant::now() < end) {
        round += 1;
        println!("== round {round}");
        gate::run(Extent::All)?;
        let steps = Steps::new();
        let soaked = seeds(&steps, round).and_then(|()| fuzz(&steps, round, end));
        println!("\n{}", steps.table());
        soaked?;
    }
    println!("{round} rounds");
    Ok(())
}

/// Tests of a seed with many more of them, others in each round. Those that take a new seed each time do so by themselves.
fn seeds(steps: &Steps, round: u64) -> Result<(), String> {
    let of_round = |test: &mut Command, times: u64| {
        test.env(SEEDS, (times * round).to_string()).env(SEEDS_DONE, (times * (round - 1)).to_string());
    };
    let mut test =
        cargo(&["test", "--locked", "-p", "ironorb", "-p", "ironorb-cli", "--test", "all", "virtual_time::"]);
    of_round(&mut test, 50);
    steps.run("seeds of virtual time", test)?;
    let mut histories = cargo(&["test", "--release", "--locked", "-p", "ironorb-cache"]);
    of_round(&mut histories, 100);
    steps.run("histories of caches", histories)?;
    let mut jobs = cargo(&["test", "--release", "--locked", "-p", "ironorb-fan-out"]);
    of_round(&mut jobs, 50);
    steps.run("seeds of jobs", jobs)?;
    let packages = ["-p", "ironorb-tests", "-p", "hello", "-p", "number-portability"];
    let mut programs = cargo(&[&["test", "--locked"], &packages[..], &["--test", "simulated"]].concat());
    programs.env(SIMULATED_SEEDS, format!("{}..{}", 1_000 * (round - 1), 1_000 * round));
    steps.run("seeds of programs", programs)?;
    let deeper = ["test", "--release", "--locked", "-p", "ironorb-cache", "--", "--ignored"];
    steps.run("what clients and servers of caches can do, deeper", cargo(&deeper))?;
    // Optimized, it takes a minute, and shows how long the analysis of 1,000 tasks takes.
    let sets =
        ["test", "--release", "--locked", "-p", "ironorb-sched", "--test", "all", "--", "--include-ignored"];
    steps.run("10,000 random sets of tasks", cargo(&sets))?;
    let crashes =
        ["test", "--locked", "-p", "ironorb-services", "--test", "store_crash", "--test", "ifr_crash"];
    (0..5).try_for_each(|_| steps.run("seeds of crashes", cargo(&crashes)))
}

/// By coverage where that can be, else by a new seed and many more inputs than in the gate.
fn fuzz(steps: &Steps, round: u64, end: Option<Instant>) -> Result<(), String> {
    if !has_cargo_fuzz() {
        println!(
            "there is no cargo-fuzz: `rustup toolchain install nightly` and `cargo install cargo-fuzz` let it look \
            for new ways through the code"
        );
        let inputs = 20 * gate::FUZZ_INPUTS;
        return steps.run("bounded fuzzing with another seed", gate::bounded(inputs, 1 + round));
    }
    let mut corpus = gate::program("bounded");
    corpus.arg("--write-corpus").arg(root().join("fuzz/corpus"));
    steps.run("seeds for the fuzz targets", corpus)?;
    let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
    let seconds = time_for_each(left);
    // All of them: a finding in one must not hide another's.
    let run = |target: &&str| {
        let failed = steps.run(target, guided(target, seconds)).err()?;
        Some(match keep(target) {
            Ok(()) => failed,
            Err(e) => format!("{failed}; its input cannot be kept: {e}"),
        })
    };
    let failed: Vec<String> = TARGETS.iter().filter_map(run).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Puts what cargo-fuzz found where each bounded run begins with it, as text.
fn keep(target: &str) -> io::Result<()> {
    let kept = root().join("fuzz/found").join(target);
    for entry in fs::read_dir(root().join("fuzz/artifacts").join(target))? {
        let path = entry?.path();
        let hex: String = fs::read(&path)?.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::create_dir_all(&kept)?;
        let file = kept.join(path.file_name().unwrap_or_default()).with_extension("hex");
        fs::write(&file, hex + "\n")?;
        println!("commit {}, and every run begins with it", file.display());
    }
    Ok(())
}

/// Seconds for each target: a minute at least, a quarter of an hour at most.
fn time_for_each(left: Duration) -> u64 {
    (left.as_secs() / TARGETS.len() as u64).clamp(60, 900)
}

fn has_cargo_fuzz() -> bool {
    let mut version = Command::new("rustup");
    version.args(["run", "nightly", "cargo", "fuzz", "--version"]).env_remove("RUSTUP_TOOLCHAIN");
    version.output().is_ok_and(|output| output.status.success())
}

/// One target under cargo-fuzz. Its build is cargo-fuzz's own, and goes to a folder of its own.
fn guided(target: &str, seconds: u64) -> Command {
    let mut fuzz = Command::new("rustup");
    fuzz.args(["run", "nightly", "cargo", "fuzz", "run", "--features", "libfuzzer"]).arg(target);
    fuzz.args(["--", &format!("-max_total_time={seconds}"), "-rss_limit_mb=4096"]).current_dir(root());
    // Link-time optimisation, which releases have, and the instruments of coverage do not go together.
    fuzz.env("CARGO_PROFILE_RELEASE_LTO", "false");
    // Those of the toolchain that runs this.
    fuzz.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    fuzz
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fuzz_target_is_run() {
        let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("it is there");
        let named = manifest.split("[[bin]]").skip(1).filter(|part| part.contains("libfuzzer"));
        let mut in_file: Vec<&str> = named.filter_map(|part| part.split('"').nth(1)).collect();
        let mut sorted = TARGETS;
        sorted.sort_unstable();
        in_file.sort_unstable();
        assert_eq!(in_file, sorted);
    }

    #[test]
    fn each_target_has_a_minute_to_a_quarter_of_an_hour() {
        assert_eq!(time_for_each(Duration::ZERO), 60);
        assert_eq!(time_for_each(Duration::from_secs(1200)), 120);
        assert_eq!(time_for_each(Duration::from_secs(100_000)), 900);
    }
}
