//! `ironorb agent serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ironorb::{Orb, ServerConcurrency};
use ironorb_agent::{Agent, AgentClient, Limits};
use ironorb_agent_etcd::{EtcdError, EtcdOptions, EtcdStore};

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
    /// Share names with other agents through etcd: its members, or some of them. May be given several times.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    etcd: Vec<String>,
    /// What all keys in etcd begin with. Agents with one prefix share names. Default: `/ironorb`.
    #[arg(long, value_name = "PREFIX", requires = "etcd")]
    etcd_prefix: Option<String>,
    /// So long after this agent's death its entries are still in etcd, in seconds: 2 to 60. Default: 5.
    #[arg(long, value_name = "SECONDS", requires = "etcd", value_parser = seconds)]
    etcd_lease: Option<Duration>,
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
        return Err(Failure::usage(
            "--daemon-threads, --daemon-queue, --daemon-queue-octets and --allow are those of a daemon",
        )
        .with_help("--daemon serves one"));
    }
    let mut limits = Limits::default();
    if !(limits.lease_min..=limits.lease_max).contains(&arguments.lease) {
        return Err(Failure::usage("--lease: a lease lasts 1 to 30 seconds"));
    }
    limits.lease_default = arguments.lease;
    let etcd = etcd(&arguments)?;
    let mut signals = serving::signals()?;
    // Requests are held until the agent is there.
    let builder = Orb::builder().concurrency(arguments.concurrency).hold_requests();
    // The daemon's calls say how much time is left.
    let builder = builder.deadline_propagation(arguments.daemon);
    let orb = serving::orb(builder, "--endpoint", &arguments.endpoint, &arguments.publish)?;
    let mut builder =
        Agent::builder().limits(limits).on_store_fault(|fault| output::note(format_args!("error: {fault}")));
    if let Some(path) = &arguments.store {
        builder = builder.store(path);
    }
    if let Some(folder) = arguments.backups {
        builder = builder.backups(folder);
    }
    if let Some(etcd) = etcd {
        if let Err(fault) = etcd.check() {
            output::note(format_args!(
                "warning: etcd cannot be asked: {fault}\n  help: is `etcd` running there? names are shared once it is"
            ));
        }
        builder = builder.share(etcd);
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

/// The store that agents share, if one is asked for.
fn etcd(arguments: &Arguments) -> Result<Option<EtcdStore>, Failure> {
    if arguments.etcd.is_empty() {
        return Ok(None);
    }
    let mut options = EtcdOptions::default();
    if let Some(prefix) = &arguments.etcd_prefix {
        options.prefix.clone_from(prefix);
    }
    if let Some(lease) = arguments.etcd_lease {
        if !(Duration::from_secs(2)..=Duration::from_secs(60)).contains(&lease) {
            return Err(Failure::usage("--etcd-lease: an agent's lease at etcd lasts 2 to 60 seconds"));
        }
        options.lease = lease;
    }
    let store = EtcdStore::new(&arguments.etcd, options).map_err(|e| match e {
        EtcdError::Prefix(_) => Failure::usage(format!("--etcd-prefix: {e}")),
        _ => Failure::usage(format!("--etcd: {e}"))
            .with_help("--etcd HOST:2379,HOST:2379 names members of etcd"),
    })?;
    Ok(Some(store))
}
