//! The README's guide has the example's files, and the example does what the README shows.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ironorb_tests::command::{NamingProcess, done, programs_of};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    let fence = format!("```{language}\n");
    while let Some((_, after)) = rest.split_once(&fence) {
        let (block, after) = after.split_once("```\n").expect("the fence is closed");
        found.push(block.to_owned());
        rest = after;
    }
    found
}

#[test]
fn the_guide_is_the_example() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let hello = |path: &str| fs::read_to_string(root().join("examples/hello").join(path)).unwrap();
    assert_eq!(blocks(&readme, "idl"), [hello("idl/bank.idl")]);
    let files = ["build.rs", "src/lib.rs", "src/bin/server.rs", "src/bin/client.rs"];
    let rust = blocks(&readme, "rust");
    assert_eq!(rust.len(), files.len());
    for (block, file) in rust.iter().zip(files) {
        assert_eq!(*block, hello(file), "{file} and the README differ");
    }
}

#[test]
fn the_readme_opens_with_the_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let demo = readme.find("cargo run --release -- demo").unwrap();
    let test = readme.find("cargo xtask test").unwrap();
    assert!(demo < test && test < readme.find("## ").unwrap());
}

#[test]
fn the_example_does_what_the_readme_shows() {
    let naming = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    let init_ref = format!("NameService=corbaloc::1.2@{}/NameService", naming.address);
    let programs = programs_of("hello");
    let hello = |name: &str| {
        let mut command = Command::new(programs.join(name));
        command.env(ironorb::INIT_REF_VARIABLE, &init_ref).stdin(Stdio::null());
        command
    };
    let mut server = hello("server").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut next = || lines.next().map(|line| line.unwrap());
    assert_eq!(next().as_deref(), Some("serving bank/main"));
    let said = done(&hello("client").output().unwrap()).expect();
    assert_eq!(next().as_deref(), Some("note: hello from the client"));
    server.kill().unwrap();
    server.wait().unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert_eq!(blocks(&readme, "text"), [said]);
}
