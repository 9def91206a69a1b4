//! `ironorb cache flush`: ends the sessions of all caches of a server's clients.

use std::time::Duration;

use clap::Args;
use ironorb::status::{CACHES_KEY, Caches as _, CachesRef};
use ironorb::{ObjectRef, Orb, SystemException, SystemExceptionKind};

use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{call, calling, output, reference};

/// End the sessions of all caches that clients have of a server: from its next question on, a client holds nothing of it.
///
/// What a client holds it may read until its lag is over. A server does it with the setting `status`, and only for clients
/// on its own machine, because it changes something: also where all may ask for its status.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = "Example:\n  ironorb cache flush localhost:2810")]
pub(crate) struct Arguments {
    /// The server: HOST or HOST:PORT (port 2809 when left out), or a reference to its object IronORBCaches: `corbaloc:…`,
    /// `IOR:…`, `corbaname:…`, or `file:PATH` of a file with one of these.
    #[arg(value_name = "HOST[:PORT]|REF")]
    server: String,
    /// How long the call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let orb = calling::orb(Orb::builder(), arguments.timeout)?;
    let url = calling::with_key(&arguments.server, CACHES_KEY);
    let object = reference::object(&orb, &url).map_err(|e| call::explain_reference(&url, &e))?;
    let caches: CachesRef = object.narrow_unchecked();
    let ended = caches.revoke().map_err(|e| explain(&arguments.server, &object, &e))?;
    let plural = if ended == 1 { "" } else { "s" };
    output::line(format_args!("ended {ended} session{plural}"))
}

/// Why the server has not done it, and what to do about it.
fn explain(server: &str, object: &ObjectRef, e: &SystemException) -> Failure {
    match e.kind {
        SystemExceptionKind::ObjectNotExist => {
            Failure::new(format!("{server} answers, but does not let clients end the sessions of caches")).with_help(
                "it does with the setting `status`: start it with `-ORBstatus local` or IRONORB_STATUS=local, if it is an IronORB \
                 server",
            )
        }
        SystemExceptionKind::NoPermission => {
            Failure::new(format!("{server} does not let this machine end the sessions of caches"))
                .with_help("do it on the server's own machine")
        }
        SystemExceptionKind::BadOperation => Failure::new(format!("{server} is an object that ends no sessions"))
            .with_help("name the server as HOST:PORT, or the object by its key: corbaloc::HOST:PORT/IronORBCaches"),
        _ => call::explain_system("cannot end the sessions of caches", object, e),
    }
}
