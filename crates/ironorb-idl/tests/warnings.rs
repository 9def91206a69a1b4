//! What becomes of warnings: silenced, errors, told once a build.

use ironorb_idl::{Code, Diagnostic, MapLoader, Options, Outcome, ReportedWarnings, Severity, compile_with};

/// One warning in each file: an empty module in the included one, an unknown annotation in the main one.
fn compile(main: &str, options: &Options) -> Outcome {
    let files = MapLoader::new()
        .with("shared.idl", "#pragma once\nmodule Empty { };")
        .with("one.idl", "#include \"shared.idl\"\n@unheard struct One { long a; };")
        .with("two.idl", "#include \"shared.idl\"\nstruct Two { long a; };")
        .with("wrong.idl", "#include \"shared.idl\"\ntypedef Absent Gone;");
    compile_with(main.as_ref(), options, &files)
}

fn told(outcome: &Outcome) -> Vec<(Severity, String)> {
    let told = |diagnostic: &Diagnostic| (diagnostic.severity, diagnostic.code.to_string());
    outcome.diagnostics.iter().map(told).collect()
}

fn code(text: &str) -> Code {
    text.parse().expect("a code")
}

fn warning(text: &str) -> (Severity, String) {
    (Severity::Warning, text.to_owned())
}

fn error(text: &str) -> (Severity, String) {
    (Severity::Error, text.to_owned())
}

#[test]
fn each_warning_is_told_unless_it_is_silenced() {
    let outcome = compile("one.idl", &Options::new());
    assert_eq!(told(&outcome), [warning("IDL0528"), warning("IDL0526")]);
    let outcome = compile("one.idl", &Options::new().allow_warning(code("IDL0526")));
    assert_eq!(told(&outcome), [warning("IDL0528")]);
    let outcome = compile("one.idl", &Options::new().allow_included_warnings());
    assert_eq!(told(&outcome), [warning("IDL0526")]);
    assert_eq!(outcome.diagnostics.warning_count(), 1);
}

#[test]
fn warnings_become_errors_one_by_one_or_all() {
    let outcome = compile("one.idl", &Options::new().deny_warning(code("IDL0526")));
    assert_eq!(told(&outcome), [warning("IDL0528"), error("IDL0526")]);
    assert!(outcome.model.is_none());
    let outcome = compile("one.idl", &Options::new().deny_warnings().allow_warning(code("IDL0528")));
    assert_eq!(told(&outcome), [error("IDL0526")]);
    assert_eq!(outcome.diagnostics.error_count(), 1);
    // One that is named is told wherever it stands.
    let options = Options::new().allow_included_warnings().deny_warning(code("IDL0528"));
    assert_eq!(told(&compile("two.idl", &options)), [error("IDL0528")]);
}

#[test]
fn errors_are_never_silenced() {
    let options = Options::new().allow_warning(code("IDL0401")).allow_included_warnings();
    assert_eq!(told(&compile("wrong.idl", &options)), [error("IDL0401")]);
}

#[test]
fn a_build_tells_the_warnings_of_an_included_file_once() {
    let mut reported = ReportedWarnings::default();
    let mut outcomes =
        ["one.idl", "two.idl", "wrong.idl", "wrong.idl"].map(|main| compile(main, &Options::new()));
    outcomes.iter_mut().for_each(|outcome| outcome.drop_reported(&mut reported));
    let told = outcomes.map(|outcome| told(&outcome));
    assert_eq!(told[0], [warning("IDL0528"), warning("IDL0526")]);
    assert_eq!(told[1], []);
    assert_eq!(told[2], [error("IDL0401")]);
    assert_eq!(told[3], [error("IDL0401")], "errors are told each time");
}

#[test]
fn a_file_in_place_of_the_built_in_one_is_a_note_that_no_build_fails_for() {
    let files = MapLoader::new()
        .with("main.idl", "#include <orb.idl>\ntypedef CORBA::Identifier Name;")
        .with("own/orb.idl", "module CORBA { typedef string Identifier; };");
    let options = Options::new().include_dir("own").deny_warnings();
    let outcome = compile_with("main.idl".as_ref(), &options, &files);
    assert_eq!(told(&outcome), [(Severity::Note, "IDL0124".to_owned())]);
    assert!(outcome.model.is_some() && outcome.render(false).contains("own/orb.idl"));
    let outcome = compile_with("main.idl".as_ref(), &options.allow_warning(code("IDL0124")), &files);
    assert_eq!(outcome.render(false), "");
}

#[test]
fn the_list_of_codes_says_how_bad_each_is() {
    let text = "module Empty { }; typedef Absent Gone; @unheard struct S { long a; };";
    let files = MapLoader::new().with("main.idl", text);
    let outcome = compile_with("main.idl".as_ref(), &Options::new(), &files);
    assert_eq!(outcome.diagnostics.iter().count(), 3);
    for diagnostic in &outcome.diagnostics {
        assert_eq!(diagnostic.severity, diagnostic.code.explanation().severity, "{}", diagnostic.code);
    }
}
