//! References on the command line: a URL, a file with one, or standard input.

use std::io::{self, Read as _};

use ironorb::giop::Ior;
use ironorb::giop::url::ObjectUrl;
use ironorb::{MinorCode, ObjectRef, Orb, SystemException, SystemExceptionKind};

use crate::failure::Failure;
use crate::output;

/// The object that a reference on the command line names. A name in the reference is resolved by its naming
/// service, which blocks.
pub(crate) fn object(orb: &Orb, reference: &str) -> Result<ObjectRef, SystemException> {
    let object = orb.string_to_object(reference)?;
    if let Ok(text) = Orb::reference_text(reference)
        && let Ok((_, octets @ 1..)) = Ior::parse_text(&text)
    {
        output::note(format_args!("note: {}", left_over(octets)));
    }
    Ok(object)
}

/// The URL from the command line, a file (`file:PATH`) or standard input (`-`), and the number of octets that
/// follow an IOR in its text.
pub(crate) fn url(reference: &str) -> Result<(ObjectUrl, usize), Failure> {
    let text = match reference {
        "-" => from_stdin()?,
        other => Orb::reference_text(other).map_err(|e| cannot_read(other, &e))?.into_owned(),
    };
    if let Ok((ior, left_over)) = Ior::parse_text(&text) {
        return Ok((ObjectUrl::Ior(ior), left_over));
    }
    let url = text.parse().map_err(|e| {
        Failure::usage(format!("not an object reference: {e}")).with_help(
            "a reference is `IOR:…`, `corbaloc:…`, `corbaname:…`, or `file:PATH` of a file with one of these",
        )
    })?;
    Ok((url, 0))
}

/// The remark about octets that follow a reference in its text.
pub(crate) fn left_over(octets: usize) -> String {
    let (follow, are) = if octets == 1 { (" follows", "is") } else { ("s follow", "are") };
    format!("{octets} octet{follow} the reference in its text and {are} ignored; Orbix leaves such octets")
}

/// True when the text of the reference itself is wrong, independently of any server.
pub(crate) fn is_misspelt(reference: &str, e: &SystemException) -> bool {
    let is_of_text = matches!(
        e.minor,
        MinorCode::BAD_PARAM_URL_SCHEME
            | MinorCode::BAD_PARAM_URL_ADDRESS
            | MinorCode::BAD_PARAM_URL_SPECIFIC
    );
    let is_file = reference.trim_start().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    e.kind == SystemExceptionKind::BadParam && is_of_text && !is_file && !e.was_received()
}

/// Why an option's text is not a usable reference of a service, with an example.
pub(crate) fn not_named(option: &str, text: &str, e: &SystemException, example: &str) -> Failure {
    let failure = Failure::new(format!("{option} {text}: {e}"));
    let failure = if is_misspelt(text, e) { failure.of_usage() } else { failure };
    failure.with_help(format!("for example `{option} {example}`"))
}

fn cannot_read(reference: &str, e: &SystemException) -> Failure {
    Failure::new(format!("cannot read {reference}: {}", e.detail().unwrap_or(e.kind.text())))
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let limited = &mut io::stdin().take(TEXT_BYTES_MAX);
    limited
        .read_to_string(&mut text)
        .map_err(|e| Failure::new(format!("cannot read standard input: {e}")))?;
    Ok(text)
}

/// Bytes read from a file or standard input. No reference is longer; the rest is not read.
const TEXT_BYTES_MAX: u64 = 16 << 20;
