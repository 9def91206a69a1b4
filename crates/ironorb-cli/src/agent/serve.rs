//! `ironorb agent serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ironorb::{Orb, ServerConcurrency};
use ironorb_agent::{Agent, AgentClient, Limits};

use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{job, output, serving};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to listen; may be given several times. Port 0 lets the system choose; `uiop:///PATH` is a Unix socket.
    #[arg(long, visible_alias = "listen", value_name = "ADDRESS", default_value = "iiop://:2811")]
    endpoint: Vec<String>,
    /// The address that references carry, where it differs from the address listened at, as behind a NAT or
    /// in a container. May be given several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// The file that holds the names; it is created if it does not exist. Without it names are in memory, and an agent that
    /// is started anew hears them from the servers within a lease.
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// The folder for backups that clients ask for. Without it none are written.
    #[arg(long, value_name = "PATH")]
    backups: Option<PathBuf>,
    /// The lease of servers that ask for none in particular, in seconds: 1 to 30.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    lease: Duration,
    /// Which thread serves a request: `thread-per-connection`; `pool:N`, N threads for all connections;
    /// `reactor`, one thread for all; `hybrid[:N]`, a thread for each busy connection, N at most.
    #[arg(long, value_name = "MODE", default_value = "hybrid:8")]
    concurrency: ServerConcurrency,
    /// Serve a daemon too: it carries out jobs of several calls for clients, at the same addresses.
    #[arg(long)]
    daemon: bool,
    #[command(flatten)]
    settings: job::DaemonSettings,
    /// End when standard input ends, as it does when the parent process is gone.
    #[arg(long, hide = true)]
    with_parent: bool,
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    if !arguments.daemon && arguments.settings.is_given() {
        return Err(Failure::usage("--daemon-threads, --daemon-queue and --allow are those of a daemon")
            .with_help("--daemon serves one"));
    }
    let mut limits = Limits::default();
    if !(limits.lease_min..=limits.lease_max).contains(&arguments.lease) {
        return Err(Failure::usage("--lease: a lease lasts 1 to 30 seconds"));
    }
    limits.lease_default = arguments.lease;
    let mut signals = serving::signals()?;
    // Requests are held until the agent is there.
    let builder = Orb::builder().concurrency(arguments.concurrency).hold_requests();
    let orb = serving::orb(builder, "--endpoint", &arguments.endpoint, &arguments.publish)?;
    let mut builder =
        Agent::builder().limits(limits).on_store_fault(|fault| output::note(format_args!("error: {fault}")));
    if let Some(path) = &arguments.store {
        builder = builder.store(path);
    }
    if let Some(folder) = arguments.backups {
        builder = builder.backups(folder);
    }
    let agent = builder.serve(&orb).map_err(Failure::new)?;
    orb.root_poa().manager().activate().map_err(Failure::new)?;
    let daemon = match arguments.daemon {
        true => {
            // The agent's own clients call it within the process.
            let client = AgentClient::connect(&orb, [agent.corbaloc()]).map_err(Failure::new)?;
            Some(arguments.settings.serve(&orb, Some(&client))?)
        }
        false => None,
    };
    let location = arguments.store.map_or("memory".to_owned(), serving::shown);
    serving::announce(&orb, "agent", "names", &location, &agent.corbaloc());
    serving::wait_for_end(&mut signals, arguments.with_parent);
    // Jobs that are under way still resolve names.
    if let Some(daemon) = daemon {
        daemon.drain();
    }
    drop(agent);
    orb.shutdown(true).map_err(Failure::new)
}
