//! Runs one scenario once at level L2, for `ironorb sim run`: a simulation is a process of its own.
//!
//! `ironorb-programs SEED WARM_UP_NS OUTPUT` reads a scenario on standard input, and writes what the run has shown to a file.
//! With the exit status 3 the file says why there was none. `ironorb-programs commit` prints the commit of the sources.

use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, io};

use ironorb_model::scenario;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["commit"] => {
            println!("{}", env!("IRONORB_SIM_COMMIT"));
            ExitCode::SUCCESS
        }
        [seed, warm_up_ns, output] => match (seed.parse(), warm_up_ns.parse()) {
            (Ok(seed), Ok(warm_up_ns)) => run(seed, Duration::from_nanos(warm_up_ns), output.to_owned()),
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("error: `ironorb sim run --level L2 SCENARIO` starts this program");
    ExitCode::from(2)
}

fn run(seed: u64, warm_up: Duration, output: String) -> ExitCode {
    let mut text = String::new();
    if let Err(e) = io::stdin().read_to_string(&mut text) {
        eprintln!("error: cannot read the scenario: {e}");
        return ExitCode::FAILURE;
    }
    let scenario = match scenario::read(&text, "scenario").map(|scenarios| scenarios.into_iter().next()) {
        Ok(Some(scenario)) => scenario,
        Ok(None) => return usage(),
        Err(problems) => {
            problems.iter().for_each(|problem| eprintln!("error: {problem}"));
            return ExitCode::FAILURE;
        }
    };
    let name = scenario.name.clone();
    ironorb_sim::simulate(&name, env!("IRONORB_SIM_COMMIT"), seed, move |sim| {
        let (status, text) = match ironorb_programs::run(sim, &scenario, warm_up) {
            Ok(seen) => (0, seen.to_text()),
            Err(why) => (HAS_NO_RESULT, why.to_string()),
        };
        match fs::write(&output, text) {
            Ok(()) => status,
            Err(e) => {
                eprintln!("error: cannot write {output}: {e}");
                1
            }
        }
    })
}

/// The exit status of a run that has no result.
const HAS_NO_RESULT: i32 = 3;
