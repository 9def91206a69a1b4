//! `ironorb bench idl --rustc`: the compiler's time for generated code.
//!
//! The Rust for some IDL becomes a crate, and `cargo check` checks it as in a user's build: once from
//! nothing, and once after an operation has been added. Its dependencies are checked before and do not count.
//! Needs this project's sources, cargo and Linux's `/proc`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use ironorb_build::{Config, generate_outcome};
use ironorb_idl::{MapLoader, Options, Outcome, compile_file, compile_with};

use super::{FILE, input, refused};
use crate::error::BenchError;
use crate::machine::{bytes_of, status_of};
use crate::row::{Row, parameters};

/// The cost of one `cargo check`.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// Processor time of all processes.
    processor_seconds: f64,
    /// Peak memory of a compiler process.
    memory_bytes: u64,
}

/// Measures these IDL files, each as a unit; without files, the standard's IDL in this project and a made-up
/// system of services.
pub(super) fn measure(files: &[PathBuf], include_dirs: &[PathBuf]) -> Result<Vec<Row>, BenchError> {
    let crate_dir = scratch()?;
    let mut rows = Vec::new();
    if files.is_empty() {
        for name in ["CosNaming.idl", "ir.idl"] {
            rows.push(on_disk(&crate_dir, &project().join("idl").join(name), &[])?);
        }
        let files = MapLoader::new().with(FILE, input::text(400));
        let outcome = compile_with(Path::new(FILE), &Options::default(), &files);
        rows.push(row(&crate_dir, "services (made up)", &outcome)?);
    }
    for file in files {
        rows.push(on_disk(&crate_dir, file, include_dirs)?);
    }
    Ok(rows)
}

fn on_disk(crate_dir: &Path, file: &Path, include_dirs: &[PathBuf]) -> Result<Row, BenchError> {
    let options = include_dirs.iter().fold(Options::new(), Options::include_dir);
    row(crate_dir, &file.display().to_string(), &compile_file(file, &options))
}

fn row(crate_dir: &Path, name: &str, outcome: &Outcome) -> Result<Row, BenchError> {
    let rust = generate_outcome(outcome, &Config::new()).map_err(refused)?;
    let idl = outcome.sources.files().iter().filter(|file| !file.is_builtin());
    let idl_lines: usize = idl.map(|file| lines(file.text())).sum();
    // The results of another input must not be reused.
    std::fs::write(crate_dir.join("src/lib.rs"), "")
        .map_err(BenchError::io("make the crate to be checked"))?;
    check(crate_dir)?;
    let cold = check_outcome(crate_dir, outcome)?;
    let changed = with_operation(outcome).map(|changed| check_outcome(crate_dir, &changed)).transpose()?;
    let rust_lines = lines(&rust);
    let mut row = Row::of_numbers(
        parameters![input = name, idl_lines = idl_lines, rust_lines = rust_lines],
        [
            ("rust_per_idl", rust_lines as f64 / idl_lines.max(1) as f64),
            ("cold_s", cold.processor_seconds),
            ("peak_mib", cold.memory_bytes as f64 / f64::from(1 << 20)),
        ],
    );
    if let Some(changed) = changed {
        row.add_number("changed_s", changed.processor_seconds);
    }
    Ok(row)
}

fn lines(text: &str) -> usize {
    text.lines().filter(|line| !line.trim().is_empty()).count()
}

/// The outcome for the text with one more operation, in an interface in the middle of
/// the main file or in a file that it includes.
fn with_operation(outcome: &Outcome) -> Option<Outcome> {
    let files: Vec<_> = outcome.sources.files().iter().filter(|file| !file.is_builtin()).collect();
    let (changed, at) = files.iter().find_map(|file| Some((file.path(), place(file.text())?)))?;
    let mut loader = MapLoader::new();
    for file in &files {
        let mut text = file.text().to_owned();
        if file.path() == changed {
            text.insert_str(at, "  void ironorb_bench_added(in long x);\n");
        }
        loader = loader.with(file.path(), text);
    }
    // Wherever the folder is in which an include was found, it is above the included file.
    let folders: BTreeSet<&Path> = files.iter().flat_map(|file| file.path().ancestors().skip(1)).collect();
    let options = folders.into_iter().rev().fold(Options::new(), Options::include_dir);
    let outcome = compile_with(files.first()?.path(), &options, &loader);
    outcome.model.is_some().then_some(outcome)
}

/// The offset at which the body of an interface in the middle of the text begins.
fn place(text: &str) -> Option<usize> {
    let bodies = text.match_indices("interface ").filter_map(|(at, _)| {
        let end = at + text[at..].find(['{', ';'])?;
        text[end..].starts_with('{').then_some(end + 1)
    });
    let bodies: Vec<usize> = bodies.collect();
    bodies.get(bodies.len() / 2).copied()
}

fn project() -> &'static Path {
    // The project is two folders up from this crate.
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."))
}

/// Creates a crate that depends on `ironorb`, with a target folder of its own.
fn scratch() -> Result<PathBuf, BenchError> {
    let dir = project().join("target/bench-rustc");
    let ironorb = project().join("crates/ironorb");
    let manifest = format!(
        "[package]\nname = \"generated\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         ironorb = {{ path = {ironorb:?} }}\n"
    );
    let made = std::fs::create_dir_all(dir.join("src"))
        .and_then(|()| std::fs::write(dir.join("Cargo.toml"), manifest))
        .and_then(|()| std::fs::copy(project().join("Cargo.lock"), dir.join("Cargo.lock")));
    made.map_err(BenchError::io("make the crate to be checked"))?;
    Ok(dir)
}

/// Checks the crate with the Rust for this outcome, in the files that a build script would write.
fn check_outcome(crate_dir: &Path, outcome: &Outcome) -> Result<Cost, BenchError> {
    Config::new().out_dir(crate_dir.join("src")).write(outcome, "lib").map_err(refused)?;
    check(crate_dir)
}

/// Checks the crate.
fn check(crate_dir: &Path) -> Result<Cost, BenchError> {
    let failed = |source| BenchError::io("check generated code")(source);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let before = processor_ticks();
    let mut child = Command::new(cargo)
        .args(["check", "--quiet", "--offline", "--target-dir", "target"])
        .current_dir(crate_dir)
        .env("CARGO_INCREMENTAL", "1")
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let memory_bytes = watch(&mut child).map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let ticks = processor_ticks() - before;
    Ok(Cost { processor_seconds: ticks as f64 / TICKS_PER_SECOND, memory_bytes })
}

/// Waits for the child's end. Returns the most memory that a compiler process below it had.
fn watch(child: &mut Child) -> io::Result<u64> {
    let mut most = 0;
    while child.try_wait()?.is_none() {
        let compilers = children(child.id()).filter(|(name, _)| name == "rustc");
        most = compilers.map(|(_, id)| bytes_of(&id, "VmHWM:")).fold(most, u64::max);
        sleep(Duration::from_millis(50));
    }
    Ok(most)
}

/// The processes below one, by their names and ids.
fn children(parent: u32) -> impl Iterator<Item = (String, String)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let id = entry.file_name().to_str()?.to_owned();
        let is_child = status_of(&id, "PPid:")?.parse() == Ok(parent);
        is_child.then_some((status_of(&id, "Name:")?, id))
    })
}

/// Processor time of all ended processes below this one.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// The unit in which Linux counts processor time, on all processors.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_idl_and_an_operation_can_be_added() {
        let files = MapLoader::new().with(FILE, input::text(100));
        let outcome = compile_with(Path::new(FILE), &Options::default(), &files);
        assert!(outcome.model.is_some(), "{}", outcome.render(false));
        let changed = generate_outcome(&with_operation(&outcome).unwrap(), &Config::new()).unwrap();
        assert!(changed.contains("fn ironorb_bench_added(&self, x: i32)"));
    }
}
