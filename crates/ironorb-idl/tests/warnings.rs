//! Warnings can be silenced, turned into errors, and reported once for each build.

use ironorb_idl::{Code, Diagnostic, MapLoader, Options, Outcome, ReportedWarnings, Severity, compile_with};

/// Compiles files with one warning each: an empty module in the included file, an unknown annotation in
/// `one.idl`.
fn compile(main: &str, options: &Options) -> Outcome {
    let files = MapLoader::new()
        .with("shared.idl", "#pragma once\nmodule Empty { };")
        .with("one.idl", "#include \"shared.idl\"\n@unheard struct One { long a; };")
        .with("two.idl", "#include \"shared.idl\"\nstruct Two { long a; };")
        .with("wrong.idl", "#include \"shared.idl\"\ntypedef Absent Gone;");
    compile_with(main.as_ref(), options, &files)
}

fn reported_by(outcome: &Outcome) -> Vec<(Severity, String)> {
    let reported = |diagnostic: &Diagnostic| (diagnostic.severity, diagnostic.code.to_string());
    outcome.diagnostics.iter().map(reported).collect()
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
fn each_warning_is_reported_unless_it_is_silenced() {
    let outcome = compile("one.idl", &Options::new());
    assert_eq!(reported_by(&outcome), [warning("IDL0528"), warning("IDL0526")]);
    let outcome = compile("one.idl", &Options::new().allow_warning(code("IDL0526")));
    assert_eq!(reported_by(&outcome), [warning("IDL0528")]);
    let outcome = compile("one.idl", &Options::new().allow_included_warnings());
    assert_eq!(reported_by(&outcome), [warning("IDL0526")]);
    assert_eq!(outcome.diagnostics.warning_count(), 1);
}

#[test]
fn warnings_become_errors_one_by_one_or_all() {
    let outcome = compile("one.idl", &Options::new().deny_warning(code("IDL0526")));
    assert_eq!(reported_by(&outcome), [warning("IDL0528"), error("IDL0526")]);
    assert!(outcome.model.is_none());
    let outcome = compile("one.idl", &Options::new().deny_warnings().allow_warning(code("IDL0528")));
    assert_eq!(reported_by(&outcome), [error("IDL0526")]);
    assert_eq!(outcome.diagnostics.error_count(), 1);
    // A warning denied by its code is reported in included files too.
    let options = Options::new().allow_included_warnings().deny_warning(code("IDL0528"));
    assert_eq!(reported_by(&compile("two.idl", &options)), [error("IDL0528")]);
}

#[test]
fn errors_are_never_silenced() {
    let options = Options::new().allow_warning(code("IDL0401")).allow_included_warnings();
    assert_eq!(reported_by(&compile("wrong.idl", &options)), [error("IDL0401")]);
}

#[test]
fn a_build_reports_the_warnings_of_an_included_file_once() {
    let mut reported = ReportedWarnings::default();
    let mut outcomes =
        ["one.idl", "two.idl", "wrong.idl", "wrong.idl"].map(|main| compile(main, &Options::new()));
    outcomes.iter_mut().for_each(|outcome| outcome.drop_reported(&mut reported));
    let reported = outcomes.map(|outcome| reported_by(&outcome));
    assert_eq!(reported[0], [warning("IDL0528"), warning("IDL0526")]);
    assert_eq!(reported[1], []);
    assert_eq!(reported[2], [error("IDL0401")]);
    assert_eq!(reported[3], [error("IDL0401")], "errors are reported each time");
}

#[test]
fn a_file_that_replaces_a_built_in_one_is_only_a_note() {
    let files = MapLoader::new()
        .with("main.idl", "#include <orb.idl>\ntypedef CORBA::Identifier Name;")
        .with("own/orb.idl", "module CORBA { typedef string Identifier; };");
    let options = Options::new().include_dir("own").deny_warnings();
    let outcome = compile_with("main.idl".as_ref(), &options, &files);
    assert_eq!(reported_by(&outcome), [(Severity::Note, "IDL0124".to_owned())]);
    assert!(outcome.model.is_some() && outcome.render(false).contains("own/orb.idl"));
    let outcome = compile_with("main.idl".as_ref(), &options.allow_warning(code("IDL0124")), &files);
    assert_eq!(outcome.render(false), "");
}

#[test]
fn the_list_of_codes_has_the_severity_of_each() {
    let text = "module Empty { }; typedef Absent Gone; @unheard struct S { long a; };";
    let files = MapLoader::new().with("main.idl", text);
    let outcome = compile_with("main.idl".as_ref(), &Options::new(), &files);
    assert_eq!(outcome.diagnostics.iter().count(), 3);
    for diagnostic in &outcome.diagnostics {
        assert_eq!(diagnostic.severity, diagnostic.code.explanation().severity, "{}", diagnostic.code);
    }
}
