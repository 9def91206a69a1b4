//! Guards the cost of calls: instructions and heap calls of fixed scenarios. Callgrind counts them in the
//! steady state, and this program compares them with the committed table `counts.txt`.
//!
//! `guard check FILE` compares, `guard update FILE` rewrites the table; `cargo xtask counts` runs either in a
//! release build. `guard show NAME...` counts some scenarios and prints them. `guard footprint` tells how much code calls, cached
//! reads and writes touch, and fails where it is too much; `check` does this, too. No clock is involved: counts do not depend on
//! the load of the machine.

mod callgrind;
mod footprint;
mod scenario;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use callgrind::Counts;
use footprint::{Footprint, Footprints};
use scenario::{Scenario, Touch};
use table::{Row, Table};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result =
        match arguments[..] {
            ["check", file] => check(Path::new(file)),
            ["update", file] => update(Path::new(file)),
            ["show", ref names @ ..] => show(names),
            ["footprint"] => footprint(),
            ["scenario", name] => run(name),
            ["touch", name] => touch(name),
            _ => Err("usage: guard check FILE | guard update FILE | guard show NAME... | guard footprint"
                .to_owned()),
        };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn check(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let expected = Table::parse(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let counted = count(Scenario::ALL)?;
    print!("{counted}");
    counted.compare(&expected)?;
    footprint()
}

/// Whether the code that is touched is within its bound.
fn footprint() -> Result<(), String> {
    must_be_optimized()?;
    let of = |touch: Touch| {
        let name = touch.name();
        let dumps = dumps_of(&footprint::OPTIONS, &["touch", name])?;
        Footprint::of(name, &dumps, touch != Touch::CachedRead).map_err(|e| format!("{name}: {e}"))
    };
    let footprints = Footprints(Touch::EACH.into_iter().map(of).collect::<Result<_, _>>()?);
    print!("\n{footprints}");
    footprints.check()
}

/// Touches what `footprint` looks at. This program starts itself under callgrind for it.
fn touch(name: &str) -> Result<(), String> {
    let touch = Touch::EACH.into_iter().find(|touch| touch.name() == name);
    touch.ok_or_else(|| format!("nothing is called {name:?}"))?.run()
}

fn update(file: &Path) -> Result<(), String> {
    let counted = count(Scenario::ALL)?;
    print!("{counted}");
    std::fs::write(file, counted.to_string()).map_err(|e| format!("{}: {e}", file.display()))
}

/// Counts some scenarios.
fn show(names: &[&str]) -> Result<(), String> {
    let scenarios = names.iter().map(|name| scenario(name)).collect::<Result<Vec<_>, _>>()?;
    print!("{}", count(&scenarios)?);
    Ok(())
}

fn scenario(name: &str) -> Result<Scenario, String> {
    let scenario = Scenario::ALL.iter().find(|scenario| scenario.name == name);
    scenario.copied().ok_or_else(|| format!("there is no scenario {name:?}"))
}

/// Runs a scenario. This program starts itself under callgrind for it.
fn run(name: &str) -> Result<(), String> {
    scenario(name)?.run()
}

fn count(scenarios: &[Scenario]) -> Result<Table, String> {
    must_be_optimized()?;
    let rows = scenarios.iter().map(|&scenario| {
        let counts = counts_of(scenario)?;
        Ok(Row {
            name: scenario.name.to_owned(),
            client: counts.client,
            server: counts.server,
            tolerance: scenario.tolerance(),
        })
    });
    Ok(Table { compiler: COMPILER.to_owned(), rows: rows.collect::<Result<_, String>>()? })
}

fn counts_of(scenario: Scenario) -> Result<Counts, String> {
    let dumps = dumps_of(&[], &["scenario", scenario.name])?;
    Counts::of(&dumps, scenario.calls(), scenario.has_server())
        .map_err(|e| format!("the scenario {}: {e}", scenario.name))
}

/// The files that callgrind writes of this program with these arguments.
fn dumps_of(options: &[&str], arguments: &[&str; 2]) -> Result<Vec<String>, String> {
    let name = arguments[1];
    let folder = Scratch::new(name)?;
    let this = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    let output = Command::new("valgrind")
        .args(callgrind::OPTIONS)
        .args(options)
        .arg(format!("--callgrind-out-file={}", folder.0.join("counts").display()))
        .arg(this)
        .args(arguments)
        // Measures the ORB with default settings.
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("valgrind cannot be started ({e}); on Debian: apt-get install valgrind"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the scenario {name} failed ({}):\n{said}", output.status));
    }
    let files = std::fs::read_dir(&folder.0).map_err(|e| format!("{}: {e}", folder.0.display()))?;
    let read = |file: std::fs::DirEntry| {
        std::fs::read_to_string(file.path()).map_err(|e| format!("{}: {e}", file.path().display()))
    };
    files.flatten().map(read).collect()
}

fn must_be_optimized() -> Result<(), String> {
    match PROFILE {
        "release" => Ok(()),
        _ => Err("counts are of release builds: run it as `cargo xtask counts` does".to_owned()),
    }
}

const COMPILER: &str = env!("IRONORB_BENCH_RUSTC");
const PROFILE: &str = env!("IRONORB_BENCH_PROFILE");

/// A folder for callgrind's files, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Scratch, String> {
        let folder = std::env::temp_dir().join(format!("ironorb-guard-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
