//! `ironorb bridge`: publishes objects of other servers under addresses of its own, for any interface.

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

/// Publish objects of other servers, and pass calls on between addresses and versions of GIOP.
///
/// The bridge passes on calls of any interface without knowing the interface: arguments and results go
/// through as bytes. It prints, for each TARGET, the reference that leads to the target through the bridge.
/// SIGTERM or SIGINT ends the bridge after the calls in progress.
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
    /// The address that references carry, where it differs from the address listened at, as behind a NAT or
    /// in a container. May be given several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// Pass requests for all other object keys on to this server, with the keys unchanged.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    to: Option<(String, u16)>,
    /// The version of GIOP to the targets. A target's reference may lower it. Default: the version that the
    /// client uses.
    #[arg(long, value_name = "1.0|1.1|1.2", value_parser = version)]
    giop: Option<Version>,
    /// An IDL file with interfaces of targets. The bridge needs types for --through, for --trace with values,
    /// and between versions of GIOP that write something differently. May be given several times.
    #[arg(long, value_name = "FILE")]
    idl: Vec<PathBuf>,
    #[command(flatten)]
    settings: idl::Settings,
    /// An interface repository with the interfaces of targets: a corbaloc, corbaname or IOR, or just
    /// HOST[:PORT] of `ironorb ifr serve`. The bridge asks it at the first call of an object whose types
    /// matter.
    #[arg(long, value_name = "URL")]
    ifr: Option<String>,
    /// Let references in arguments and results lead through the bridge too, as far as types are known.
    #[arg(long, requires = "types")]
    through: bool,
    /// Print every call on standard error: its duration, object, operation, bytes and outcome, and the
    /// arguments and results as JSON where types are known.
    #[arg(long)]
    trace: bool,
    /// Print at the end how many calls there were.
    #[arg(long)]
    stats: bool,
    /// How long a target may take to answer, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    timeout: Duration,
    /// How many MiB of requests in progress the bridge holds before clients must wait.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    held: u32,
    /// Write the references of the targets to this file, one on each line, when clients can be served.
    #[arg(long, value_name = "PATH")]
    ior_file: Option<PathBuf>,
    /// Which thread takes a request: `thread-per-connection`; `pool:N`, N threads for all connections;
    /// `reactor`, one thread for all; `hybrid[:N]`, a thread for each busy connection, N at most. No thread
    /// is occupied while the target works.
    #[arg(long, value_name = "MODE", default_value = "thread-per-connection")]
    concurrency: ServerConcurrency,
    /// End when standard input ends, as it does when the parent process is gone.
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
    let mut published = String::new();
    let mut references = Vec::new();
    for target in &arguments.targets {
        let (key, reference) = publish(&orb, &bridge, target)?;
        let _ = writeln!(published, "{key} {}", reference.to_ior_string());
        references.push(reference.to_ior_string());
    }
    if let Some((host, port)) = &arguments.to {
        bridge.pass_others_to(host, *port);
    }
    // Requests are held until every target is published. No client may hear that a target is unknown.
    orb.root_poa().manager().activate().map_err(Failure::new)?;
    if let Some(path) = &arguments.ior_file {
        serving::write_whole(path, &references.join("\n"))?;
    }
    announce(&orb, &published);
    serving::wait_for_end(&mut signals, arguments.with_parent);
    orb.shutdown(true).map_err(Failure::new)?;
    if let Some(trace) = trace {
        trace.end();
    }
    Ok(())
}

fn announce(orb: &Orb, published: &str) {
    output::announce(format_args!("{published}ready {}", orb.published_addresses().join(", ")));
}

/// Publishes one target. Returns its key in readable form, and the reference.
pub(crate) fn publish(orb: &Orb, bridge: &Bridge, target: &str) -> Result<(String, ObjectRef), Failure> {
    let (name, url) = match target.split_once('=') {
        // A reference contains colons, so a name must not: the two could not be told apart.
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
