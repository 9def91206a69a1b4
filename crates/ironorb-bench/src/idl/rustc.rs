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

use super::refused;
use crate::error::BenchError;
use crate::row::{Row, parameters};

/// The cost of one `cargo check`.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// Processor time of all processes.
    processor_seconds: f64,
    /// Peak memory of a compiler process.
    memory_kib: u64,
}

/// Measures these IDL files, each as a unit; without files, the standard's IDL in this project and a
/// generated system of devices and ports.
pub(super) fn measure(files: &[PathBuf], include_dirs: &[PathBuf]) -> Result<Vec<Row>, BenchError> {
    let crate_dir = scratch()?;
    let mut rows = Vec::new();
    if files.is_empty() {
        for name in ["CosNaming.idl", "ir.idl"] {
            rows.push(on_disk(&crate_dir, &project().join("idl").join(name), &[])?);
        }
        let text = ports_and_devices(40);
        let files = MapLoader::new().with("devices.idl", text);
        let outcome = compile_with(Path::new("devices.idl"), &Options::default(), &files);
        rows.push(row(&crate_dir, "devices.idl (made up)", &outcome)?);
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
    check(crate_dir, "")?;
    let cold = check(crate_dir, &rust)?;
    let changed = with_operation(outcome).map(|rust| check(crate_dir, &rust)).transpose()?;
    let rust_lines = lines(&rust);
    let mut row = Row::of_numbers(
        parameters![input = name, idl_lines = idl_lines, rust_lines = rust_lines],
        [
            ("rust_per_idl", rust_lines as f64 / idl_lines.max(1) as f64),
            ("cold_s", cold.processor_seconds),
            ("peak_mib", cold.memory_kib as f64 / 1024.0),
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

/// The Rust for the text with one more operation, at the end of the last interface that has an operation, in
/// the main file or in a file that it includes.
fn with_operation(outcome: &Outcome) -> Option<String> {
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
    generate_outcome(&outcome, &Config::new()).ok()
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
    made.map_err(|source| io_error("make the crate to be checked", source))?;
    Ok(dir)
}

/// Checks the crate with this source.
fn check(crate_dir: &Path, source: &str) -> Result<Cost, BenchError> {
    let failed = |source| io_error("check generated code", source);
    std::fs::write(crate_dir.join("src/lib.rs"), source).map_err(failed)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let before = processor_ticks();
    let mut child = Command::new(cargo)
        .args(["check", "--quiet", "--offline", "--target-dir", "target"])
        .current_dir(crate_dir)
        .env("CARGO_INCREMENTAL", "1")
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let memory_kib = watch(&mut child).map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let ticks = processor_ticks() - before;
    Ok(Cost { processor_seconds: ticks as f64 / TICKS_PER_SECOND, memory_kib })
}

/// Waits for the child's end. Returns the most memory that a compiler process below it had.
fn watch(child: &mut Child) -> io::Result<u64> {
    let mut most = 0;
    while child.try_wait()?.is_none() {
        let compilers = processes().filter(|process| process.name == "rustc" && process.parent == child.id());
        most = compilers.filter_map(|process| peak_kib(process.id)).fold(most, u64::max);
        sleep(Duration::from_millis(50));
    }
    Ok(most)
}

struct Process {
    id: u32,
    name: String,
    parent: u32,
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
        Some(Process { id, name: name.to_owned(), parent })
    })
}

fn peak_kib(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse().ok()
}

/// Processor time of all ended processes below this one.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn io_error(doing: &str, source: io::Error) -> BenchError {
    BenchError::Io { doing: doing.to_owned(), source }
}

/// IDL in the style of a software radio: ports of many types with common bases, devices that derive from each
/// other, and exceptions that most operations raise.
fn ports_and_devices(ports: usize) -> String {
    let mut text = "module SYS {\n  typedef sequence<string> Names;\n  struct Pair { string id; any value; };\n  \
                    typedef sequence<Pair> Pairs;\n  exception Unknown { Names which; };\n  exception Failed { string why; \
                    long code; };\n  interface Named { readonly attribute string id; void rename(in string id) raises \
                    (Failed); };\n  interface Life { void start() raises (Failed); void stop() raises (Failed); };\n  \
                    interface Configured { void configure(in Pairs values) raises (Unknown, Failed); void query(inout \
                    Pairs values) raises (Unknown); };\n  interface Device : Named, Life, Configured { boolean take(in \
                    Pairs what) raises (Failed); void give(in Pairs what) raises (Failed); readonly attribute long state; \
                    };\n  interface Loadable : Device { void load(in string file) raises (Failed, Unknown); void \
                    unload(in string file) raises (Failed); };\n  interface Executable : Loadable { long run(in string \
                    file, in Names arguments) raises (Failed, Unknown); void end(in long process) raises (Failed); };\n"
        .to_owned();
    for port in 0..ports {
        let ty = ["octet", "short", "long", "long long", "float", "double"][port % 6];
        text += &format!(
            "  struct Head{port} {{ long version; double start; double step; string stream; Pairs keywords; }};\n  \
             typedef sequence<{ty}> Data{port};\n  \
             interface Statistics{port} {{ readonly attribute long long elements; void reset(); }};\n  \
             interface Port{port} : Statistics{port}, Named {{\n    \
             void head(in Head{port} it);\n    \
             oneway void push(in Data{port} data, in double time, in boolean end, in string stream);\n    \
             Head{port} last() raises (Failed);\n    \
             void connect(in Named to, in string id) raises (Failed, Unknown);\n    \
             void disconnect(in string id) raises (Failed);\n  }};\n"
        );
    }
    text += "};\n";
    text
}

/// The unit in which Linux counts processor time, on all processors.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_idl_and_an_operation_can_be_added() {
        let files = MapLoader::new().with("devices.idl", ports_and_devices(3));
        let outcome = compile_with(Path::new("devices.idl"), &Options::default(), &files);
        assert!(outcome.model.is_some(), "{}", outcome.render(false));
        assert!(with_operation(&outcome).unwrap().contains("fn ironorb_bench_added(&self, x: i32)"));
    }
}
