//! Tests with data: texts in `testdata`, and files with the expected results beside them.
//!
//! `testdata/ok/NAME.idl` compiles, without or with warnings, to the dump in `NAME.dump`;
//! `testdata/errors/NAME.idl` fails with the diagnostics in `NAME.txt`. With `UPDATE_EXPECT=1` in the
//! environment the expectations are written anew. A first line `// options: nesting_max=4` sets limits,
//! `// define: NAME=value` defines a macro,
//! `// include: DIR` adds a directory of included files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ironorb_idl::{Code, Explanation, Loader, MapLoader, Options, Outcome, compile_with, dump};

#[test]
fn correct_texts_give_the_expected_model() {
    let mut failures = Vec::new();
    for name in idl_files("ok") {
        let outcome = compile("ok", &name);
        let Some(model) = &outcome.model else {
            failures.push(format!("{name} was refused:\n{}", outcome.render(false)));
            continue;
        };
        let actual = format!("{}{}", dump(model), outcome.render(false));
        check(&root().join("ok").join(&name).with_extension("dump"), &actual, &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn wrong_texts_give_the_expected_diagnostics() {
    let mut failures = Vec::new();
    for name in idl_files("errors") {
        let outcome = compile("errors", &name);
        if outcome.model.is_some() {
            failures.push(format!("{name} was accepted"));
        }
        check(
            &root().join("errors").join(&name).with_extension("txt"),
            &outcome.render(false),
            &mut failures,
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every diagnostic needs an example, so that its text has been reviewed.
#[test]
fn every_kind_of_diagnostic_has_an_example() {
    let defined: BTreeSet<String> = Code::all().map(|code| code.to_string()).collect();
    assert!(defined.len() > 100, "only {} kinds were found", defined.len());
    let mut shown = String::new();
    for folder in ["ok", "errors"] {
        for name in idl_files(folder) {
            shown.push_str(&compile(folder, &name).render(false));
        }
    }
    let missing = Path::new("missing.idl");
    shown.push_str(&compile_with(missing, &Options::default(), &Rooted("ok")).render(false));
    let without: Vec<&String> = defined.iter().filter(|code| !shown.contains(code.as_str())).collect();
    assert!(without.is_empty(), "no example in testdata/errors or testdata/ok for {without:?}");
}

/// Checks what `--explain` shows: the example has the mistake, and the mended example compiles without it.
#[test]
fn the_examples_of_all_explanations_are_right() {
    let mut failures = Vec::new();
    for explanation in Code::all().map(Code::explanation).filter(|explanation| !explanation.wrong.is_empty())
    {
        let Explanation { code, severity, wrong, mended, .. } = explanation;
        let wrong = compile_text(wrong);
        let found = wrong.diagnostics.iter().find(|diagnostic| diagnostic.code == *code);
        if !found
            .is_some_and(|found| found.severity == *severity || *code == "IDL0412".parse().expect("a code"))
        {
            failures.push(format!("{code} is not in its example:\n{}", wrong.render(false)));
        }
        let mended = compile_text(mended);
        if mended.model.is_none() || mended.diagnostics.iter().any(|diagnostic| diagnostic.code == *code) {
            failures.push(format!("{code} is not mended:\n{}", mended.render(false)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_code_is_read_from_its_text() {
    for text in ["IDL0404", "idl404", "404"] {
        assert_eq!(text.parse::<Code>().expect("a code").to_string(), "IDL0404");
    }
    for text in ["", "IDL", "IDL9999", "0x194", "redefinition", "IDLé"] {
        assert!(text.parse::<Code>().is_err(), "{text}");
    }
}

fn compile_text(text: &str) -> Outcome {
    let files = MapLoader::new().with("main.idl", text).with("color.idl", "enum Color { red };");
    compile_with(Path::new("main.idl"), &Options::default(), &files)
}

#[test]
fn a_missing_main_file_is_reported_without_a_place() {
    let outcome = compile_with(Path::new("missing.idl"), &Options::default(), &MapLoader::new());
    assert_eq!(
        outcome.render(false),
        "error[IDL0101]: cannot read `missing.idl`: no such file\n  \
         = help: check the path and the permission to read it\n\n1 error\n"
    );
}

#[test]
fn colors_change_nothing_but_colors() {
    let outcome = compile("errors", "names.idl");
    let colored = outcome.render(true);
    assert!(colored.contains("\x1b[1;31merror[IDL0403]\x1b[0m"));
    let mut plain = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        rest = after.split_once('m').expect("the end of a color").1;
    }
    plain.push_str(rest);
    assert_eq!(plain, outcome.render(false));
}

/// Reads files below `testdata`, so that the expected texts hold no path of a machine.
struct Rooted(&'static str);

impl Loader for Rooted {
    fn load(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(root().join(self.0).join(path))
    }
}

fn compile(folder: &'static str, name: &str) -> Outcome {
    let text = fs::read_to_string(root().join(folder).join(name)).expect("a test file");
    let mut options = Options::default().include_dir("include");
    for line in text.lines().take_while(|line| line.starts_with("//")) {
        if let Some(settings) = line.strip_prefix("// options: ") {
            for setting in settings.split_whitespace() {
                let (key, value) = setting.split_once('=').expect("key=value");
                let value: usize = value.parse().expect("a number");
                match key {
                    "nesting_max" => options.nesting_max = value,
                    "include_depth_max" => options.include_depth_max = value,
                    "includes_max" => options.includes_max = value,
                    "tokens_max" => options.tokens_max = value,
                    "macro_tokens_max" => options.macro_tokens_max = value,
                    "read_bytes_max" => options.read_bytes_max = value as u64,
                    "bases_max" => options.bases_max = value,
                    "copied_bytes_max" => options.copied_bytes_max = value,
                    "inheritance_max" => options.inheritance_max = value,
                    "inherited_max" => options.inherited_max = value,
                    _ => panic!("{name}: no option {key}"),
                }
            }
        } else if let Some(define) = line.strip_prefix("// define: ") {
            let (key, value) = define.split_once('=').expect("NAME=value");
            options = options.define(key, Some(value));
        } else if let Some(dir) = line.strip_prefix("// include: ") {
            options = options.include_dir(dir);
        }
    }
    compile_with(Path::new(name), &options, &Rooted(folder))
}

fn check(path: &Path, actual: &str, failures: &mut Vec<String>) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, actual).expect("the expectation can be written");
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected != actual {
        failures.push(format!("--- {} expected\n{expected}\n--- got\n{actual}", path.display()));
    }
}

fn idl_files(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder of test data");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".idl")).collect();
    names.sort();
    assert!(!names.is_empty(), "no test files in {folder}");
    names
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}
