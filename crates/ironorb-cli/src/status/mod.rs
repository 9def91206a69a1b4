//! `ironorb status`: what an ORB does, as a table, as JSON or for Prometheus.

pub(crate) mod table;

use std::thread;
use std::time::Duration;

use clap::Args;
use ironorb::status::{STATUS_KEY, Snapshot, Status as _, StatusRef, prometheus};
use ironorb::{Any, ObjectRef, Orb, SystemException, SystemExceptionKind};
use ironorb_dynamic::json;

use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{call, calling, output, reference};

/// Show what an ORB does: lanes, threads, connections, queues, counters and latencies.
///
/// A server tells it only with the setting `status` (-ORBstatus local, IRONORB_STATUS=local): to clients on its own machine,
/// or with `anyone` to all.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb status localhost:2810\n  \
        ironorb status localhost:2810 --watch 5\n  \
        ironorb status 'corbaloc:uiop:/run/bank/orb.sock|IronORBStatus' --json\n  \
        ironorb status localhost:2810 --prometheus > /var/lib/node_exporter/bank.prom"
)]
pub(crate) struct Arguments {
    /// The server: HOST or HOST:PORT (port 2809 when left out), or a reference to its status: `corbaloc:…`, `IOR:…`,
    /// `corbaname:…`, or `file:PATH` of a file with one of these.
    #[arg(value_name = "HOST[:PORT]|REF")]
    server: String,
    /// Print all of it as JSON, with --watch a line each time.
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print it in the text format of Prometheus. Connections are left out.
    #[arg(long)]
    prometheus: bool,
    /// Ask again every so many seconds, until the command is ended or the server is gone. The table then shows what has
    /// happened meanwhile.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "prometheus")]
    watch: Option<Duration>,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let orb = calling::orb(Orb::builder(), arguments.timeout)?;
    let url = calling::with_key(&arguments.server, STATUS_KEY);
    let object = reference::object(&orb, &url).map_err(|e| call::explain_reference(&url, &e))?;
    let status: StatusRef = object.narrow_unchecked();
    let mut before = None;
    loop {
        let now = status.take_snapshot().map_err(|e| explain(&arguments.server, &object, &e))?;
        print(arguments, &now, before.as_ref())?;
        let Some(pause) = arguments.watch else { return Ok(()) };
        before = Some(now);
        thread::sleep(pause);
    }
}

fn print(arguments: &Arguments, now: &Snapshot, before: Option<&Snapshot>) -> Result<(), Failure> {
    if arguments.prometheus {
        return output::text(prometheus(now));
    }
    if arguments.json {
        let json = as_json(now)?;
        return match arguments.watch {
            None => output::line(format_args!("{json:#}")),
            Some(_) => output::line(json),
        };
    }
    if before.is_some() {
        output::line("")?;
    }
    output::text(table::table(now, before))
}

fn as_json(snapshot: &Snapshot) -> Result<serde_json::Value, Failure> {
    let any = Any::new(snapshot).map_err(|e| Failure::new(format!("cannot show the status: {e}")))?;
    json::to_json(&any).map_err(|e| Failure::new(format!("cannot show the status: {e}")))
}

/// Why the server has not told its status, and what to do about it.
pub(crate) fn explain(server: &str, object: &ObjectRef, e: &SystemException) -> Failure {
    match e.kind {
        SystemExceptionKind::ObjectNotExist => Failure::new(format!("{server} answers, but does not tell its status"))
            .with_help(
                "it does with the setting `status`: start it with `-ORBstatus local` or IRONORB_STATUS=local, if it is an \
                 IronORB server (`anyone` instead of `local` lets other machines ask)",
            ),
        SystemExceptionKind::NoPermission => {
            Failure::new(format!("{server} does not tell this machine its status")).with_help(
                "ask on the server's own machine, or start the server with `-ORBstatus anyone` or IRONORB_STATUS=anyone",
            )
        }
        SystemExceptionKind::BadOperation => {
            Failure::new(format!("{server} is an object that has no status"))
                .with_help("name the server as HOST:PORT, or the object by its key: corbaloc::HOST:PORT/IronORBStatus")
        }
        _ => call::explain_system("cannot ask for the status", object, e),
    }
}
