//! `ironorb ior resolve`: the IOR of a reachable object.

use std::time::Duration;

use clap::Args;
use ironorb::giop::Ior;
use ironorb::giop::url::ObjectUrl;
use ironorb::{ObjectRef, Orb};

use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{call, calling, output, reference};

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb ior resolve corbaname::localhost#bank/main\n  \
        ironorb ior resolve corbaloc::localhost:2809/NameService"
)]
pub(super) struct Arguments {
    /// The object: `IOR:…`, `corbaloc:…`, `corbaname:…`, or `file:PATH` of a file with one of these.
    reference: String,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let orb = calling::orb(Orb::builder(), arguments.timeout)?;
    let typed = &arguments.reference;
    let object = reference::object(&orb, typed).map_err(|e| call::explain_reference(typed, &e))?;
    let is_there =
        object.locate().map_err(|e| call::explain_system("cannot ask for the object", &object, &e))?;
    if !is_there {
        return Err(Failure::new("the server answers, but does not have this object"));
    }
    let (ior, from) = full_ior(typed, &object)?;
    output::note(format_args!("note: {from}"));
    output::line(ior)
}

/// The most complete reference to the object, and where it comes from.
fn full_ior(typed: &str, object: &ObjectRef) -> Result<(Ior, String), Failure> {
    if let Some(ior) = object.forwarded_to() {
        return Ok(with_type(object, ior, "the server forwards clients to this reference"));
    }
    let from = match reference::url(typed)?.0 {
        ObjectUrl::Ior(_) => "the object is where the given IOR says",
        ObjectUrl::Corbaname(name) if !name.name.is_empty() => "the naming service has this reference",
        _ => {
            "the server does not forward, so this is the given address with the object's type: components, such as \
              code sets, are not known"
        }
    };
    Ok(with_type(object, object.ior().clone(), from))
}

/// Adds the type that the object reports to a reference without one.
fn with_type(object: &ObjectRef, mut ior: Ior, from: &str) -> (Ior, String) {
    if !ior.type_id.is_empty() {
        return (ior, from.to_owned());
    }
    match object.repository_id() {
        Ok(id) => {
            ior.type_id = id;
            (ior, format!("{from}; the object reports its type (_repository_id)"))
        }
        Err(e) => (ior, format!("{from}; the object does not report its type: {}", e.kind.name())),
    }
}
