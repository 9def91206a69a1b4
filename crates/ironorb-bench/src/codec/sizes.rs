//! What types add to a program: the sections of programs with them, beside those of a program without them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::BenchError;
use crate::process::find_program;
use crate::render::Table;
use crate::row::{Row, parameters};

/// The programs differ only in the 36 types of these files, including sequences of them.
const NOTES: &str = "Three programs that differ only in whether and how they marshal the 36 types of marshal.idl and ir.idl.\n\
    without: the program without the types, which has an ORB and the parts of the types; compiled, interpreted: what the types\n\
    add to it. Both include the drop glue of their values; interpreted includes the interpreter, once.";

/// Builds the programs and compares them. Needs the sources of this program, and Cargo.
pub(super) fn measure() -> Result<Table, BenchError> {
    let built = build()?;
    let read = |name: &str| sections(&built.join(format!("marshal_{name}")));
    let [without, compiled, interpreted] = [read("none")?, read("compiled")?, read("interpreted")?];
    let row = |&(part, names): &(&str, &[&str])| {
        let is_part = |name: &str| match names {
            [] => PARTS.iter().any(|(_, names)| names.contains(&name)),
            names => names.contains(&name),
        };
        let sum = |sections: &[(String, f64)]| -> f64 {
            sections.iter().filter(|(name, _)| is_part(name)).map(|(_, size)| size).sum()
        };
        let [without, compiled, interpreted] = [&without, &compiled, &interpreted].map(|all| sum(all));
        let (compiled, interpreted) = (compiled - without, interpreted - without);
        let ratio = interpreted / compiled;
        let numbers =
            [("without", without), ("compiled", compiled), ("interpreted", interpreted), ("ratio", ratio)];
        Row::of_numbers(parameters![part = part], numbers)
    };
    let rows = PARTS.iter().map(row).collect();
    Ok(Table::new("size", "bytes of a program", rows).notes(NOTES))
}

/// Parts of a program, and the sections that contain them; none for those of all parts.
const PARTS: &[(&str, &[&str])] = &[
    ("machine code", &[".text"]),
    ("constants", &[".rodata", ".data.rel.ro"]),
    ("where constants are relocated", &[".rela.dyn", ".relr.dyn"]),
    ("what unwinding needs", &[".eh_frame", ".eh_frame_hdr", ".gcc_except_table"]),
    ("all of it", &[]),
];

/// Builds the programs in release mode. Returns their folder.
fn build() -> Result<PathBuf, BenchError> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let failed = |what: String| BenchError::process("cargo", what);
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--release", "--message-format=json", "--features", "sizes"])
        .args(["--example", "marshal_none", "--example", "marshal_compiled"])
        .args(["--example", "marshal_interpreted"])
        .current_dir(sources)
        .stderr(std::process::Stdio::inherit());
    let output = cargo.output().map_err(BenchError::io(format!("run cargo in {}", sources.display())))?;
    if !output.status.success() {
        return Err(failed(format!("could not build the programs in {}", sources.display())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let executable = text.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    let folder = executable.and_then(|file| file.parent().map(Path::to_owned));
    folder.ok_or_else(|| failed("did not tell where it put the programs".to_owned()))
}

/// Names and sizes of an executable's sections.
fn sections(file: &Path) -> Result<Vec<(String, f64)>, BenchError> {
    let output = Command::new(find_program("size", "binutils")?).args(["-A", "-d"]).arg(file).output();
    let output = output.map_err(BenchError::io(format!("run size on {}", file.display())))?;
    // A line has the section's name, its size and its address.
    let section = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(section).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_this_very_program_are_found() {
        let found = sections(&std::env::current_exe().unwrap()).unwrap();
        let (_, size) = found.iter().find(|(name, _)| name == ".text").expect("it has code");
        assert!(*size > 100_000.0, "{size}");
    }
}
