//! `ironorb job serve`, and the daemon of `ironorb agent serve --daemon`.

use clap::Args;
use ironorb::{Orb, ServerConcurrency};
use ironorb_agent::AgentClient;
use ironorb_jobs::{DAEMON_KEY, Daemon, HeldHandles, IpNet, Networks};

use crate::failure::Failure;
use crate::serving;

/// What a daemon is told.
#[derive(Debug, Args)]
pub(crate) struct DaemonSettings {
    /// How many jobs the daemon runs at a time; 1 makes it single-threaded. Default: 64.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    daemon_threads: Option<u16>,
    /// How many jobs may wait for a thread of the daemon; it refuses more with TRANSIENT. Default: 1024.
    #[arg(long, value_name = "N")]
    daemon_queue: Option<u32>,
    /// How many octets those jobs may have together; it refuses more with TRANSIENT. Default: 64 MiB.
    #[arg(long, value_name = "N")]
    daemon_queue_octets: Option<u32>,
    /// A network of clients that the daemon may call with results, such as 10.1.0.0/16, besides this machine; may be given
    /// several times. `any` allows all.
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    allow: Vec<Allowed>,
}

#[derive(Debug, Clone)]
enum Allowed {
    Any,
    Net(IpNet),
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to listen; may be given several times. Port 0 lets the system choose; `uiop:///PATH` is a Unix socket.
    #[arg(long, visible_alias = "listen", value_name = "ADDRESS", default_value = "iiop://:2812")]
    endpoint: Vec<String>,
    /// The address that references carry, where it differs from the address listened at. May be given several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// The agent that resolves names: HOST or HOST:PORT (port 2811 when left out), a corbaloc or an IOR; may be given several
    /// times. Without one, parts must have references.
    #[arg(long, value_name = "ADDRESS")]
    agent: Vec<String>,
    #[command(flatten)]
    settings: DaemonSettings,
    /// Which thread takes a request; it begins the job, which no thread waits with. See `ironorb agent serve`.
    #[arg(long, value_name = "MODE", default_value = "hybrid:8")]
    concurrency: ServerConcurrency,
    /// End when standard input ends, as it does when the parent process is gone.
    #[arg(long, hide = true)]
    with_parent: bool,
}

impl DaemonSettings {
    /// Whether any was given on the command line.
    pub(crate) fn is_given(&self) -> bool {
        let queue = self.daemon_queue.is_some() || self.daemon_queue_octets.is_some();
        self.daemon_threads.is_some() || queue || !self.allow.is_empty()
    }

    /// Serves a daemon that resolves names by an agent, if there is one.
    pub(crate) fn serve(&self, orb: &Orb, agent: Option<&AgentClient>) -> Result<Daemon, Failure> {
        let allow = |networks: Networks, allowed: &Allowed| match allowed {
            Allowed::Any => Networks::any(),
            Allowed::Net(net) => networks.and(*net),
        };
        let is_any = self.allow.iter().find(|allowed| matches!(allowed, Allowed::Any));
        let networks = match is_any {
            Some(any) => allow(Networks::local(), any),
            None => self.allow.iter().fold(Networks::local(), allow),
        };
        let mut builder = Daemon::builder().networks(networks);
        if let Some(threads) = self.daemon_threads {
            builder = builder.threads(threads.into());
        }
        if let Some(jobs) = self.daemon_queue {
            builder = builder.queue_max(jobs as usize);
        }
        if let Some(octets) = self.daemon_queue_octets {
            builder = builder.queue_octets_max(octets as usize);
        }
        if let Some(client) = agent {
            builder = builder.handles(HeldHandles::new(client));
        }
        builder.serve(orb).map_err(Failure::new)
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut signals = serving::signals()?;
    // Requests are held until the daemon is there.
    let builder =
        Orb::builder().concurrency(arguments.concurrency).hold_requests().deadline_propagation(true);
    let orb = serving::orb(builder, "--endpoint", &arguments.endpoint, &arguments.publish)?;
    let client = match arguments.agent.is_empty() {
        true => None,
        false => Some(
            AgentClient::connect(&orb, &arguments.agent)
                .map_err(|e| Failure::usage(format!("--agent: {e}")))?,
        ),
    };
    let daemon = arguments.settings.serve(&orb, client.as_ref())?;
    orb.root_poa().manager().activate().map_err(Failure::new)?;
    let names = match arguments.agent.is_empty() {
        true => "no agent".to_owned(),
        false => arguments.agent.join(", "),
    };
    serving::announce(&orb, "daemon", "names", &names, &orb.corbaloc(DAEMON_KEY));
    serving::wait_for_end(&mut signals, arguments.with_parent);
    daemon.drain();
    drop(client);
    orb.shutdown(true).map_err(Failure::new)
}

fn network(text: &str) -> Result<Allowed, String> {
    match text {
        "any" => Ok(Allowed::Any),
        net => {
            net.parse().map(Allowed::Net).map_err(|_| "write a network as 10.1.0.0/16, or `any`".to_owned())
        }
    }
}
