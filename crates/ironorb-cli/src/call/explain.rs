//! System exceptions, in words.

use ironorb::giop::minor::{IRONORB_VMCID, OMG_VMCID};
use ironorb::{CompletionStatus, MinorCode, ObjectRef, SystemException, SystemExceptionKind};

use super::operation;
use crate::failure::Failure;
use crate::naming::address_of;
use crate::reference::is_misspelt;

/// Why the text on the command line is not a usable reference.
pub(crate) fn reference(typed: &str, e: &SystemException) -> Failure {
    let failure = with_parts(Failure::new("the reference leads to no object"), e, false);
    let failure = if is_misspelt(typed, e) { failure.of_usage() } else { failure };
    match e.minor {
        MinorCode::BAD_PARAM_URL_SCHEME | MinorCode::BAD_PARAM_URL_ADDRESS => {
            failure.with_help("a reference is `IOR:…`, `corbaloc:…`, `corbaname:…` or `file:…`")
        }
        _ => failure,
    }
}

/// What failed, why, whether calling again is safe, and what to try.
pub(crate) fn system(what: &str, object: &ObjectRef, e: &SystemException) -> Failure {
    Explanation { what, object, operation: None, verbose: false }.of(e)
}

/// What is known about a failed call.
pub(super) struct Explanation<'a> {
    pub(super) what: &'a str,
    pub(super) object: &'a ObjectRef,
    pub(super) operation: Option<&'a str>,
    /// Whether every line of the server's detail is shown.
    pub(super) verbose: bool,
}

impl Explanation<'_> {
    /// What failed, why, whether calling again is safe, and what to try.
    pub(super) fn of(&self, e: &SystemException) -> Failure {
        let failure = with_parts(Failure::new(self.what), e, self.verbose);
        match advice(e, &address_of(self.object), self.operation) {
            Some(advice) => failure.with_help(advice),
            None => failure,
        }
    }
}

/// What to try, where the exception suggests something.
fn advice(e: &SystemException, at: &str, operation: Option<&str>) -> Option<String> {
    use SystemExceptionKind as Kind;
    let is_of_every_object = operation.is_some_and(|name| operation::of_every_object(name).is_some());
    let advice = match e.kind {
        Kind::Transient | Kind::CommFailure | Kind::Timeout if e.was_received() => {
            return Some(format!(
                "the server at {at} answers, but a server that it needs for this call does not: is it a bridge, and its target down?"
            ));
        }
        Kind::Transient | Kind::CommFailure => {
            return Some(format!(
                "is the server running at {at}? `ironorb ior decode REF` shows its addresses"
            ));
        }
        Kind::ObjectNotExist => {
            return Some(format!(
                "there is a server at {at}, but not this object: the reference may come from an earlier run"
            ));
        }
        Kind::Timeout => "--timeout SECONDS gives a call more time",
        Kind::BadOperation if is_of_every_object => return None,
        Kind::BadOperation => {
            "the object does not have the interface of the IDL: `ironorb call REF _repository_id` asks for its own"
        }
        Kind::InvObjref
            if matches!(
                e.minor,
                MinorCode::INV_OBJREF_NO_CODE_SETS_COMPONENT | MinorCode::INV_OBJREF_NO_WIDE_CODE_SET
            ) =>
        {
            "wide characters need the server's IOR, which has its code sets; `ironorb serve-mock --ior` prints a mock's IORs"
        }
        Kind::Marshal
            if matches!(
                e.minor,
                MinorCode::MARSHAL_WIDE_IN_REQUEST_1_0 | MinorCode::MARSHAL_WIDE_IN_REPLY_1_0
            ) =>
        {
            "GIOP 1.0 has no wide characters: call the object by GIOP 1.1 or 1.2"
        }
        Kind::Marshal => "is the IDL the one that the server was built from?",
        Kind::Unknown if e.minor == MinorCode::UNKNOWN_UNLISTED_USER_EXCEPTION => {
            "the server raises what the IDL does not declare: is it the one it was built from?"
        }
        Kind::BadParam => "the server or the ORB does not take one of the arguments",
        Kind::NoPermission => "the server does not permit this call",
        _ => return None,
    };
    Some(advice.to_owned())
}

fn with_parts(failure: Failure, e: &SystemException, verbose: bool) -> Failure {
    let mut lines = format!("  {}: {}\n", e.kind.name(), e.kind.text());
    if let Some(detail) = e.detail() {
        push_detail(&mut lines, detail, verbose);
    }
    lines.push_str(&format!("  minor code: {}\n", minor(e)));
    lines.push_str(match e.completed {
        CompletionStatus::Yes => "  completed: yes, the operation was carried out",
        CompletionStatus::No => "  completed: no; calling again is safe",
        CompletionStatus::Maybe => "  completed: maybe; calling again could repeat the operation",
    });
    failure.with_body(lines)
}

/// Appends the exception's detail. A server in Java may send its stack trace: its first line says most. The
/// other lines are shown with `verbose`.
fn push_detail(lines: &mut String, detail: &str, verbose: bool) {
    let (prefix, server_text) = match detail.split_once(SAYS) {
        Some((before, after)) => (format!("{before}{SAYS}"), after),
        None => (String::new(), detail),
    };
    // The ruler lines around a stack trace carry no information.
    let is_informative = |line: &&str| !line.is_empty() && !line.starts_with("-----");
    let mut shown = server_text.lines().map(str::trim_end).filter(is_informative);
    lines.push_str(&format!("  detail: {prefix}{}\n", shown.next().unwrap_or_default()));
    let rest: Vec<&str> = shown.collect();
    if verbose {
        rest.iter().for_each(|line| lines.push_str(&format!("    {line}\n")));
    } else if !rest.is_empty() {
        let plural = if rest.len() == 1 { "" } else { "s" };
        lines.push_str(&format!("    ({} more line{plural}: --verbose shows all)\n", rest.len()));
    }
}

/// What the ORB puts before the text that a server sent.
const SAYS: &str = "the server says: ";

fn minor(e: &SystemException) -> String {
    let MinorCode(code) = e.minor;
    let number = code & 0xFFF;
    match (e.minor.text_for(e.kind), code & !0xFFF) {
        (Some(text), _) => format!("{code:#010x}, {text}"),
        (None, 0) if number == 0 => "0, which says nothing more".to_owned(),
        (None, OMG_VMCID) => format!("{code:#010x}, {number} of the standard's for {}", e.kind.name()),
        (None, IRONORB_VMCID) => format!("{code:#010x}, {number} of a later IronORB"),
        (None, vendor) => match vendor_name(vendor) {
            Some(name) => format!("{code:#010x}, {number} of {name}"),
            None => format!("{code:#010x}, of the server's program"),
        },
    }
}

/// Names of vendors by the ids that the OMG has assigned.
fn vendor_name(vmcid: u32) -> Option<&'static str> {
    Some(match vmcid {
        0x4154_0000 => "omniORB",
        0x5441_0000 => "TAO",
        0x4A43_0000 => "JacORB",
        0x5355_0000 => "Sun's ORB",
        0x4F4F_0000 => "ORBacus",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::push_detail;

    #[test]
    fn one_line_of_a_server_s_stack_trace_is_printed_and_all_with_verbose() {
        let stack = "the server says: ----------BEGIN server-side stack trace----------\n\
                     java.lang.IllegalStateException: closed\n\tat bank.Main.run(Main.java:7)\n\
                     ----------END server-side stack trace----------\n";
        let shown = |detail: &str, verbose| {
            let mut lines = String::new();
            push_detail(&mut lines, detail, verbose);
            lines
        };
        let first = "  detail: the server says: java.lang.IllegalStateException: closed\n";
        assert_eq!(shown(stack, false), format!("{first}    (1 more line: --verbose shows all)\n"));
        assert_eq!(shown(stack, true), format!("{first}    \tat bank.Main.run(Main.java:7)\n"));
        assert_eq!(shown("our own words", false), "  detail: our own words\n");
        assert_eq!(shown("", true), "  detail: \n");
    }
}
