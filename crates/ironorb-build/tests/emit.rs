//! Compares generated text with reviewed files: `testdata/emit/<case>/{in.idl,out.rs}`.
//!
//! `UPDATE_EXPECT=1 cargo test -p ironorb-build` writes the files anew. Review the changes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ironorb_build::{Config, generate_outcome};
use ironorb_idl::{Options, compile_file};

#[test]
fn text_equals_the_reviewed_files() {
    let mut wrong = Vec::new();
    for case in cases() {
        let text = generated(&case);
        let reviewed = case.join("out.rs");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&reviewed, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&reviewed).unwrap_or_default();
        if text != expected {
            let first = text.lines().zip(expected.lines()).position(|(a, b)| a != b);
            wrong.push(format!("{}: differs from line {:?} on", case.display(), first.map(|line| line + 1)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\nUPDATE_EXPECT=1 writes the files anew");
}

#[test]
fn text_is_formatted_as_by_rustfmt() {
    for case in cases() {
        let text = generated(&case);
        assert_eq!(rustfmt(&text), text, "{}", case.display());
    }
    for idl in ["../../idl/CosNaming.idl", "../../interop/idl/interop.idl"] {
        let outcome = compile_file(&manifest_dir().join(idl), &Options::new());
        let text = generate_outcome(&outcome, &Config::new()).unwrap();
        assert_eq!(rustfmt(&text), text, "{idl}");
    }
}

/// rustfmt does not format the bodies of macros, so this checks their width. Only unbreakable text, such as a
/// long repository id, may be wider.
#[test]
fn breakable_lines_are_short() {
    for case in cases() {
        for line in generated(&case).lines().filter(|line| !line.trim_start().starts_with("//")) {
            assert!(line.chars().count() <= 100 || line.contains('"'), "{}: {line}", case.display());
        }
    }
}

#[test]
fn a_service_file_stays_readable_in_length() {
    let path = manifest_dir().join("../../idl/CosNaming.idl");
    let outcome = compile_file(&path, &Options::new());
    let rust = generate_outcome(&outcome, &Config::new()).unwrap().lines().count();
    let idl = std::fs::read_to_string(path).unwrap().lines().count();
    assert!(rust < 8 * idl, "{rust} lines of Rust for {idl} of IDL");
}

#[test]
fn the_same_input_gives_the_same_text() {
    for case in cases() {
        assert_eq!(generated(&case), generated(&case));
    }
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(manifest_dir().join("testdata/emit"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// The Rust code generated for a case. A line `// test: external WHAT PATH` in the IDL configures the generator.
fn generated(case: &Path) -> String {
    let path = case.join("in.idl");
    let mut config = Config::new();
    for line in std::fs::read_to_string(&path).unwrap().lines() {
        if let Some(external) = line.strip_prefix("// test: external ") {
            let (what, rust_path) = external.split_once(' ').unwrap();
            config = config.external(what, rust_path);
        }
    }
    let outcome = compile_file(&path, &Options::new());
    generate_outcome(&outcome, &config).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The text as rustfmt formats it with its default settings, independent of this workspace's settings.
fn rustfmt(text: &str) -> String {
    let settings = "max_width=100,use_small_heuristics=Default";
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", settings])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rustfmt is part of the toolchain that these tests need");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
