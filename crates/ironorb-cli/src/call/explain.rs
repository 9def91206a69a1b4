//! System exceptions, in words.

use ironorb::giop::minor::{IRONORB_VMCID, OMG_VMCID};
use ironorb::{CompletionStatus, MinorCode, ObjectRef, SystemException, SystemExceptionKind};

use crate::failure::Failure;
use crate::naming::address_of;
use crate::reference::is_misspelt;

/// Why a reference is none.
pub(crate) fn reference(typed: &str, e: &SystemException) -> Failure {
    let failure = with_parts(Failure::new("the reference leads to no object"), e);
    let failure = if is_misspelt(typed, e) { failure.of_usage() } else { failure };
    match e.minor {
        MinorCode::BAD_PARAM_URL_SCHEME | MinorCode::BAD_PARAM_URL_ADDRESS => {
            failure.with_help("a reference is `IOR:…`, `corbaloc:…`, `corbaname:…` or `file:…`")
        }
        _ => failure,
    }
}

/// What failed, why, whether it may be done again, and what to try.
pub(crate) fn system(what: &str, object: &ObjectRef, e: &SystemException) -> Failure {
    use SystemExceptionKind as Kind;
    let failure = with_parts(Failure::new(what), e);
    let at = address_of(object);
    match e.kind {
        Kind::Transient | Kind::CommFailure | Kind::Timeout if e.was_received() => failure.with_help(format!(
            "the server at {at} answers, but not what it needs itself for this: is it a bridge whose target is down?"
        )),
        Kind::Transient | Kind::CommFailure => {
            failure.with_help(format!("is the server running at {at}? `ironorb ior decode REF` shows where it is sought"))
        }
        Kind::Timeout => failure.with_help("--timeout SECONDS gives a call longer"),
        Kind::ObjectNotExist => failure.with_help(format!(
            "there is a server at {at}, but not this object: the reference may be of an earlier run"
        )),
        Kind::BadOperation => failure.with_help(
            "the object does not have the interface of the IDL: `ironorb call REF _repository_id` asks for its own",
        ),
        Kind::InvObjref
            if matches!(
                e.minor,
                MinorCode::INV_OBJREF_NO_CODE_SETS_COMPONENT | MinorCode::INV_OBJREF_NO_WIDE_CODE_SET
            ) =>
        {
            failure.with_help(
                "wide characters need the server's IOR, which tells its code sets; `ironorb serve-mock --ior` prints those of a mock",
            )
        }
        Kind::Marshal
            if matches!(
                e.minor,
                MinorCode::MARSHAL_WIDE_IN_REQUEST_1_0 | MinorCode::MARSHAL_WIDE_IN_REPLY_1_0
            ) =>
        {
            failure.with_help("GIOP 1.0 has no wide characters: call the object by GIOP 1.1 or 1.2")
        }
        Kind::Marshal => failure.with_help("is the IDL the one that the server was built from?"),
        Kind::Unknown if e.minor == MinorCode::UNKNOWN_UNLISTED_USER_EXCEPTION => {
            failure.with_help("the server raises what the IDL does not declare: is it the one it was built from?")
        }
        Kind::BadParam => failure.with_help("the server or the ORB does not take one of the arguments"),
        Kind::NoPermission => failure.with_help("the server does not let this client do it"),
        _ => failure,
    }
}

fn with_parts(failure: Failure, e: &SystemException) -> Failure {
    let mut lines = format!("  {}: {}\n", e.kind.name(), e.kind.text());
    if let Some(detail) = e.detail() {
        lines.push_str(&format!("  detail: {detail}\n"));
    }
    lines.push_str(&format!("  minor code: {}\n", minor(e)));
    lines.push_str(match e.completed {
        CompletionStatus::Yes => "  completed: yes, the operation was carried out",
        CompletionStatus::No => "  completed: no, so calling again does nothing twice",
        CompletionStatus::Maybe => "  completed: maybe; calling again could do it twice",
    });
    failure.with_body(lines)
}

fn minor(e: &SystemException) -> String {
    let MinorCode(code) = e.minor;
    let number = code & 0xFFF;
    match (e.minor.text_for(e.kind), code & !0xFFF) {
        (Some(text), _) => format!("{code:#010x}, {text}"),
        (None, 0) if number == 0 => "0, which tells nothing".to_owned(),
        (None, OMG_VMCID) => format!("{code:#010x}, {number} of the standard's for {}", e.kind.name()),
        (None, IRONORB_VMCID) => format!("{code:#010x}, {number} of a later IronORB"),
        (None, vendor) => match vendor_name(vendor) {
            Some(name) => format!("{code:#010x}, {number} of {name}"),
            None => format!("{code:#010x}, of the server's program"),
        },
    }
}

/// Vendor ids that the OMG has given out.
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
