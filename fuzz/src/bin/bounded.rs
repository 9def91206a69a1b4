//! Runs every fuzz target for a bounded number of inputs on stable Rust. The inputs are the same each time.
//!
//! Prints a line `target iterations seed` for each target. On a finding it prints how to run that input
//! again, keeps the input in a file, and fails.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io, panic, thread};

use ironorb_fuzz::{TARGETS, Target, mutate, seeds};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

const USAGE: &str = "\
usage: bounded [N] [--seed N] [--target NAME] [--from N] [--verbose] [--write-corpus DIR]
  N                   inputs of the cheapest target; others get fewer by their cost (default 100000)
  --seed N            another sequence of inputs (default 1)
  --target NAME       this target only
  --from N            begin with this input, to run one again
  --verbose           print the number of each input before it runs, to find one that ends the process
  --write-corpus DIR  write the seeds to DIR/TARGET for cargo-fuzz, and run nothing";

struct Options {
    iterations: u64,
    seed: u64,
    target: Option<String>,
    from: u64,
    verbose: bool,
    corpus: Option<String>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options =
            Options { iterations: 100_000, seed: 1, target: None, from: 0, verbose: false, corpus: None };
        while let Some(name) = args.next() {
            let mut value = || args.next().ok_or(format!("{name} needs a value"));
            let number = |text: String| text.parse().map_err(|_| format!("{text} is not a number"));
            match name.as_str() {
                "--seed" => options.seed = number(value()?)?,
                "--from" => options.from = number(value()?)?,
                "--target" => options.target = Some(value()?),
                "--verbose" => options.verbose = true,
                "--write-corpus" => options.corpus = Some(value()?),
                _ if name.starts_with('-') => return Err(format!("unknown option {name}")),
                _ => options.iterations = number(name)?,
            }
        }
        match &options.target {
            Some(name) if !TARGETS.iter().any(|target| target.name == name) => {
                Err(format!("no target {name}"))
            }
            _ => Ok(options),
        }
    }
}

/// Returns the number of targets with a finding.
fn run(options: &Options) -> io::Result<usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut findings = 0;
    let seed = options.seed;
    thread::spawn(move || watch(seed));
    for target in
        TARGETS.iter().filter(|target| options.target.as_ref().is_none_or(|name| name == target.name))
    {
        let seeds = seeds::of(target.name, &root)?;
        if seeds.is_empty() {
            return Err(io::Error::other(format!("there are no seeds for {}", target.name)));
        }
        match &options.corpus {
            Some(folder) => write_corpus(&Path::new(folder).join(target.name), &seeds)?,
            None => findings += usize::from(!run_target(target, options, &seeds)?),
        }
    }
    Ok(findings)
}

fn write_corpus(folder: &Path, seeds: &[Vec<u8>]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    seeds.iter().enumerate().try_for_each(|(i, seed)| fs::write(folder.join(format!("seed-{i:04}")), seed))
}

/// The target and input in progress, for the thread that watches for hangs.
static RUNNING: Mutex<Option<(&'static str, u64)>> = Mutex::new(None);

fn set_running(now: Option<(&'static str, u64)>) {
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = now;
}

/// Returns false after a finding. The seeds themselves are the first inputs.
fn run_target(target: &'static Target, options: &Options, seeds: &[Vec<u8>]) -> io::Result<bool> {
    let iterations = (options.iterations / target.cost).max(seeds.len() as u64);
    for i in options.from..iterations {
        set_running(Some((target.name, i)));
        if options.verbose {
            eprintln!("{} {i}", target.name);
        }
        let input = match seeds.get(i as usize) {
            Some(seed) => seed.clone(),
            None => {
                let mut random = mutate::Random::new(options.seed, target.name, i);
                mutate::damaged(&mut random, seeds, seeds::words(target.name))
            }
        };
        if panic::catch_unwind(|| (target.run)(&input)).is_err() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(target.name);
            fs::create_dir_all(&folder)?;
            let file = folder.join(format!("bounded-{}-{i}.hex", options.seed));
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            fs::write(&file, hex + "\n")?;
            let again = again(target.name, options.seed, i);
            eprintln!("finding: {again}; commit {}, and every run begins with it", file.display());
            return Ok(false);
        }
    }
    set_running(None);
    println!("{} {} {}", target.name, iterations, options.seed);
    Ok(true)
}

fn again(target: &str, seed: u64, iteration: u64) -> String {
    let iterations =
        TARGETS.iter().filter(|t| t.name == target).map(|t| t.cost).sum::<u64>() * (iteration + 1);
    format!("--target {target} --seed {seed} --from {iteration} {iterations}")
}

/// Ends the process when one input takes longer than 120 s. Otherwise an endless loop would hang without a
/// report.
fn watch(seed: u64) {
    const STALL_LIMIT: Duration = Duration::from_secs(120);
    let mut last = None;
    loop {
        let now = *RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((target, i)), true) = (now, now == last) {
            eprintln!("finding: an input does not end: {}", again(target, seed, i));
            std::process::exit(1);
        }
        last = now;
        thread::sleep(STALL_LIMIT);
    }
}
