//! Level L2: `ironorb-programs` runs a scenario once. It is a program of its own because a simulation answers all that its
//! process asks of the system.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use ironorb_model::Observations;
use ironorb_model::report::RunOrder;
use ironorb_model::scenario::{self, Scenario};

use crate::failure::Failure;

/// The name of the level in outputs. The crate that has it cannot be linked.
pub(super) const LEVEL: &str = "L2";

const PROGRAM: &str = "ironorb-programs";

/// The exit status with which it says in its output why a run has no result.
const HAS_NO_RESULT: i32 = 3;

/// One run of a scenario.
pub(super) fn run(
    scenario: &Scenario,
    RunOrder { seed, warm_up }: RunOrder,
) -> Result<Observations, Failure> {
    let told = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", scenario.name));
    let folder = tempfile::tempdir().map_err(|e| told(&format!("there is no place for a file: {e}")))?;
    let file = folder.path().join("observations");
    let mut command = Command::new(program());
    command.args([seed.to_string(), warm_up.as_nanos().to_string()]).arg(&file);
    let done = output_of(command, &scenario::write(scenario))?;
    let text = || fs::read_to_string(&file).map_err(|e| told(&format!("{PROGRAM} has left no result: {e}")));
    match done.status.code() {
        Some(0) => Observations::from_text(&text()?).map_err(|e| {
            told(&format!("what {PROGRAM} has left cannot be read: {e}")).with_help(INSTALLATION)
        }),
        Some(HAS_NO_RESULT) => Err(told(&text()?)),
        _ => Err(told(&format!("{PROGRAM} has failed: {}", done.status))
            .with_body(String::from_utf8_lossy(&done.stderr))),
    }
}

/// The commit of the program's sources.
pub(super) fn commit() -> Result<String, Failure> {
    let mut command = Command::new(program());
    command.arg("commit");
    Ok(String::from_utf8_lossy(&output_of(command, "")?.stdout).trim().to_owned())
}

/// The program beside this one, or else that which the system finds.
fn program() -> PathBuf {
    let beside = env::current_exe().map(|this| this.with_file_name(PROGRAM));
    beside.ok().filter(|program| program.is_file()).unwrap_or_else(|| PROGRAM.into())
}

const INSTALLATION: &str =
    "this command builds and installs it: cargo install --path crates/ironorb-programs";

fn output_of(mut command: Command, input: &str) -> Result<Output, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| match e.kind() {
        ErrorKind::NotFound => Failure::new(format!(
            "level L2 needs the program {PROGRAM}, which is neither beside this one nor in PATH"
        ))
        .with_help(INSTALLATION),
        _ => Failure::new(format!("{PROGRAM} cannot be started: {e}")),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended says why by its status.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(|e| Failure::new(format!("{PROGRAM} cannot be waited for: {e}")))
}
