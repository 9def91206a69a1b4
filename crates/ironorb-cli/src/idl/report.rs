//! The JSON of `ironorb idl check`, and the explanations of codes.

use ironorb_idl::source::{Sources, Span};
use ironorb_idl::{Code, Diagnostic, Outcome, Severity};
use serde_json::{Value, json};

/// The diagnostics of one file as a list of JSON objects.
pub(super) fn diagnostics(outcome: &Outcome) -> impl Iterator<Item = Value> {
    outcome.diagnostics.iter().map(|diagnostic| one(diagnostic, &outcome.sources))
}

/// An error without a code, as the generator reports it.
pub(super) fn generator_error(file: &str, text: &str) -> Value {
    json!({ "severity": "error", "code": null, "message": text, "file": file })
}

/// The explanation of a code, with an example and how to mend it.
pub(super) fn explanation(code: Code) -> String {
    let explanation = code.explanation();
    let mut text = format!("{code} ({})\n\n{}\n", word(explanation.severity), explanation.text);
    if !explanation.wrong.is_empty() {
        text.push_str(&format!("\nFor example:\n\n{}\n", indented(explanation.wrong)));
        text.push_str(&format!("\nMended:\n\n{}\n", indented(explanation.mended)));
    }
    if explanation.severity != Severity::Error {
        text.push_str(&format!("\n`-W allow={code}` silences it, `-W error={code}` makes it an error.\n"));
    }
    text
}

fn one(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let mut value = place(diagnostic.primary.span, sources);
    let secondary: Vec<Value> = diagnostic
        .secondary
        .iter()
        .map(|label| {
            let mut value = place(label.span, sources);
            value["label"] = json!(label.text);
            value
        })
        .collect();
    value["severity"] = json!(word(diagnostic.severity));
    value["code"] = json!(diagnostic.code.to_string());
    value["message"] = json!(diagnostic.message);
    value["label"] = json!(diagnostic.primary.text);
    value["help"] = json!(diagnostic.help);
    value["related"] = json!(secondary);
    value
}

/// The start and end of a span: lines and columns, counted from 1.
fn place(span: Span, sources: &Sources) -> Value {
    let start = sources.position(span);
    let end = sources.position(Span { start: span.end, ..span });
    json!({
        "file": start.path,
        "line": start.line,
        "column": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    })
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
