//! What types add to a program: the sections of programs with them, beside those of a program without them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::BenchError;
use crate::render::Table;
use crate::row::{Row, parameters};

/// The programs differ only in the 36 types of these files, including sequences of them.
const NOTES: &str = "Three programs that differ only in whether and how they marshal the 36 types of marshal.idl and ir.idl.\n\
    without: the program without the types, which has an ORB and the parts of the types; compiled, interpreted: what the types\n\
    add to it. Both include the drop glue of their values; interpreted includes the interpreter, once.";

/// Builds the programs and compares them. Needs the sources of this program, and Cargo.
pub(super) fn measure() -> Result<Table, BenchError> {
    let built = build()?;
    let read = |name: &str| {
        let file = built.join(format!("marshal_{name}"));
        let bytes = std::fs::read(&file).map_err(BenchError::io(format!("read {}", file.display())))?;
        sections(&bytes).ok_or(BenchError::NoCount { program: "cargo", what: "an ELF executable of 64 bits" })
    };
    let [without, compiled, interpreted] = [read("none")?, read("compiled")?, read("interpreted")?];
    let row = |&(part, names): &(&str, &[&str])| {
        let sum = |sections: &[(String, u64)]| -> f64 {
            let chosen = sections.iter().filter(|(name, _)| names.contains(&name.as_str()));
            chosen.map(|(_, size)| *size as f64).sum()
        };
        let [without, compiled, interpreted] = [&without, &compiled, &interpreted].map(|all| sum(all));
        let (compiled, interpreted) = (compiled - without, interpreted - without);
        let ratio = interpreted / compiled;
        let numbers =
            [("without", without), ("compiled", compiled), ("interpreted", interpreted), ("ratio", ratio)];
        Row::of_numbers(parameters![part = part], numbers)
    };
    let rows = PARTS.iter().map(row).collect();
    Ok(Table { kind: "size", title: "bytes of a program", rows, notes: NOTES, ..Table::default() })
}

/// Parts of a program, and the sections that contain them.
const PARTS: &[(&str, &[&str])] = &[
    ("machine code", &[".text"]),
    ("constants", &[".rodata", ".data.rel.ro"]),
    ("where constants are relocated", &[".rela.dyn", ".relr.dyn"]),
    ("what unwinding needs", &[".eh_frame", ".eh_frame_hdr", ".gcc_except_table"]),
    (
        "all of it",
        &[
            ".text",
            ".rodata",
            ".data.rel.ro",
            ".rela.dyn",
            ".relr.dyn",
            ".eh_frame",
            ".eh_frame_hdr",
            ".gcc_except_table",
        ],
    ),
];

/// Builds the programs in release mode. Returns their folder.
fn build() -> Result<PathBuf, BenchError> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let failed = |what: String| BenchError::Process { role: "cargo".to_owned(), what };
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

/// Names and sizes of an executable's sections, if it is a 64-bit ELF file in this processor's byte order.
fn sections(file: &[u8]) -> Option<Vec<(String, u64)>> {
    const LITTLE: u8 = 1;
    if !file.starts_with(b"\x7FELF")
        || *file.get(4)? != 2
        || (*file.get(5)? == LITTLE) != cfg!(target_endian = "little")
    {
        return None;
    }
    // The header has the offset of the section table, the length and number of its entries, and the entry for
    // names.
    let table = number(file, 0x28, 8)?;
    let (size, count, names) = (number(file, 0x3A, 2)?, number(file, 0x3C, 2)?, number(file, 0x3E, 2)?);
    let entry = |index: u64| table.checked_add(index * size);
    let names_at = number(file, entry(names)? + 0x18, 8)?;
    (0..count)
        .map(|index| {
            let at = entry(index)?;
            let name = usize::try_from(names_at + number(file, at, 4)?).ok()?;
            let name = file.get(name..)?.split(|&byte| byte == 0).next()?;
            Some((String::from_utf8_lossy(name).into_owned(), number(file, at + 0x20, 8)?))
        })
        .collect()
}

fn number(file: &[u8], at: u64, octets: usize) -> Option<u64> {
    let bytes = file.get(usize::try_from(at).ok()?..)?.get(..octets)?;
    let place = if cfg!(target_endian = "little") { 0 } else { 8 - octets };
    let mut whole = [0; 8];
    whole[place..place + octets].copy_from_slice(bytes);
    Some(u64::from_ne_bytes(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn sections_of_this_very_program_are_found() {
        let own = std::fs::read(std::env::current_exe().expect("it has a file")).expect("which can be read");
        let found = sections(&own).expect("it is an ELF file");
        let text = found.iter().find(|(name, _)| name == ".text").expect("it has code");
        assert!((100_000..own.len() as u64).contains(&text.1), "{} of {}", text.1, own.len());
        for cut in (0..4096.min(own.len())).step_by(7) {
            let _ = sections(&own[..cut]); // no more than nothing
        }
    }
}
