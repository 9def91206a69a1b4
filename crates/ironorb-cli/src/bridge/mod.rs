//! `ironorb bridge`: stands for objects elsewhere, whatever their interfaces.

mod trace;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args};
use ironorb::{ObjectRef, Orb, ServerConcurrency, Version};
use ironorb_dynamic::Interfaces;
use ironorb_dynamic::bridge::{Bridge, BridgeOptions};

use crate::call;
use crate::definitions;
use crate::failure::Failure;
use crate::idl;
use crate::output;
use crate::reference;
use crate::seconds::seconds;
use crate::serving;
use trace::Trace;

/// Stand for objects elsewhere: pass on what clients ask, between addresses and versions of GIOP.
///
/// Calls of any interface are passed on without knowing it: arguments and results go through as the bytes that they are.
/// For each TARGET the reference that leads to it through the bridge is printed. Ends with SIGTERM or SIGINT, after the
/// calls in progress.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    group = ArgGroup::new("types").args(["idl", "ifr"]).multiple(true),
    after_help = "Examples:\n  \
        ironorb bridge bank=corbaname::inside#bank/main\n  \
        ironorb bridge --endpoint iiop://:2810 --giop 1.0 file:old.ior\n  \
        ironorb bridge --to inside:2809 --trace --idl CosNaming.idl\n  \
        ironorb bridge --to inside:2809 --trace --ifr inside:2900\n  \
        ironorb bridge --to inside:2809 --through --idl bank.idl --publish gateway.example.org"
)]
pub(crate) struct Arguments {
    /// An object, as `IOR:…`, `corbaloc:…`, `corbaname:…`, or `file:PATH` of a file with one of these. NAME is the
    /// object key that clients use, as in corbaloc::HOST:PORT/NAME; by default it is the object's own key.
    #[arg(value_name = "[NAME=]TARGET", required_unless_present = "to")]
    targets: Vec<String>,
    /// Where to listen; may be given several times. Port 0 lets the system choose.
    #[arg(long, visible_alias = "listen", value_name = "ADDRESS", default_value = "iiop://:2810")]
    endpoint: Vec<String>,
    /// The address that references carry, where it is not the one listened at: behind a NAT or in a container. May be
    /// given several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// Pass requests for all other object keys on to this server, which finds the same keys in them.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    to: Option<(String, u16)>,
    /// The version of GIOP to the targets, or that of a target's reference if it is lower. By default the client's own.
    #[arg(long, value_name = "1.0|1.1|1.2", value_parser = version)]
    giop: Option<Version>,
    /// A file that has interfaces of targets, where types matter: for --through, for --trace with values, and between
    /// versions of GIOP that write something differently. May be given several times.
    #[arg(long, value_name = "FILE")]
    idl: Vec<PathBuf>,
    #[command(flatten)]
    settings: idl::Settings,
    /// An interface repository that has them: a corbaloc, corbaname or IOR, or just HOST[:PORT] of `ironorb ifr serve`. It
    /// is asked at the first call of an object whose types matter.
    #[arg(long, value_name = "URL")]
    ifr: Option<String>,
    /// Let references in arguments and results lead through the bridge as well, as far as types are known.
    #[arg(long, requires = "types")]
    through: bool,
    /// Tell every call on standard error: how long it took, object, operation, bytes, outcome; with arguments and results
    /// as JSON where types are known.
    #[arg(long)]
    trace: bool,
    /// Tell at the end how many calls there were.
    #[arg(long)]
    stats: bool,
    /// How long a target may take to answer, in seconds; fractions are taken.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    timeout: Duration,
    /// How much of requests in progress is held, in MiB, before clients must wait.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    held: u32,
    /// Write the references of the targets to this file, one on each line, when clients can be served.
    #[arg(long, value_name = "PATH")]
    ior_file: Option<PathBuf>,
    /// Which thread takes a request: `thread-per-connection`; `pool:N`, N threads for all connections;
    /// `reactor`, one for all; `hybrid[:N]`, a thread for each busy connection, N at most. None is kept
    /// while the target works.
    #[arg(long, value_name = "MODE", default_value = "thread-per-connection")]
    concurrency: ServerConcurrency,
    /// End when standard input does, as when the process that started this one is gone.
    #[arg(long, hide = true)]
    with_parent: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut signals = serving::signals()?;
    let orb = arguments.orb()?;
    let types = arguments.types(&orb)?;
    let trace = Trace::start(arguments.trace, arguments.stats);
    let options = BridgeOptions {
        giop: arguments.giop,
        call_timeout: Some(arguments.timeout),
        show_values: arguments.trace,
        types,
        through: arguments.through,
        held_bytes_max: (arguments.held as usize) << 20,
        observer: trace.as_ref().map(Trace::observer),
        ..BridgeOptions::default()
    };
    let bridge = Bridge::new(&orb, options).map_err(Failure::new)?;
    let mut told = String::new();
    let mut references = Vec::new();
    for target in &arguments.targets {
        let (key, reference) = publish(&orb, &bridge, target)?;
        let _ = writeln!(told, "{key} {}", reference.to_ior_string());
        references.push(reference.to_ior_string());
    }
    if let Some((host, port)) = &arguments.to {
        bridge.pass_others_to(host, *port);
    }
    // Held until everything is there, so that no client is told that a target is unknown.
    orb.root_poa().manager().activate().map_err(Failure::new)?;
    if let Some(path) = &arguments.ior_file {
        serving::write_whole(path, &references.join("\n"))?;
    }
    announce(&orb, &told);
    serving::wait_for_end(&mut signals, arguments.with_parent);
    orb.shutdown(true).map_err(Failure::new)?;
    if let Some(trace) = trace {
        trace.end();
    }
    Ok(())
}

fn announce(orb: &Orb, told: &str) {
    output::announce(format_args!("{told}ready {}", orb.published_addresses().join(", ")));
}

/// Publishes one target; its key as people write it, and the reference.
fn publish(orb: &Orb, bridge: &Bridge, target: &str) -> Result<(String, ObjectRef), Failure> {
    let (name, url) = match target.split_once('=') {
        // References have colons, and names that contain one cannot be told from them.
        Some((name, url)) if !name.is_empty() && !name.contains(':') => (Some(name), url),
        _ => (None, target),
    };
    let object = reference::object(orb, url).map_err(|e| call::explain_reference(url, &e))?;
    let key = match name {
        Some(name) => name.as_bytes().to_vec(),
        None => match object.ior().iiop_profiles().next() {
            Some(profile) => profile.object_key().to_vec(),
            None => return Err(Failure::new(format!("{url} has no IIOP address"))),
        },
    };
    let reference = bridge.publish(&key, &object).map_err(|e| Failure::new(format!("{url}: {e}")))?;
    Ok((key.escape_ascii().to_string(), reference))
}

impl Arguments {
    fn types(&self, orb: &Orb) -> Result<Option<Arc<Interfaces>>, Failure> {
        if self.idl.is_empty() && self.ifr.is_none() {
            return Ok(None);
        }
        let mut known = definitions::read(&self.idl, &self.settings)?;
        if let Some(text) = &self.ifr {
            definitions::add_repository(&mut known, orb, text)?;
        }
        Ok(Some(Arc::new(known)))
    }

    fn orb(&self) -> Result<Orb, Failure> {
        let builder = Orb::builder().concurrency(self.concurrency).hold_requests();
        serving::orb(builder, "--endpoint", &self.endpoint, &self.publish)
    }
}

pub(crate) fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.0" => Ok(Version::V1_0),
        "1.1" => Ok(Version::V1_1),
        "1.2" => Ok(Version::V1_2),
        _ => Err("write 1.0, 1.1 or 1.2".to_owned()),
    }
}

pub(crate) fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let bad = || "write HOST:PORT, with brackets around an IPv6 address".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(bad)?;
    if host.is_empty() { Err(bad()) } else { Ok((host.to_owned(), port)) }
}
