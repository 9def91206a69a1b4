//! `ironorb naming serve`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use ironorb::{Orb, ServerConcurrency, TypedRef as _};
use ironorb_services::naming::{Limits, NamingServer, NamingService, Store};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to listen; may be given several times. Port 0 lets the system choose.
    #[arg(long, value_name = "ADDRESS", default_value = "iiop://:2809")]
    endpoint: Vec<String>,
    /// The address that references carry, where it is not the one listened at: behind a NAT or in a container. May be
    /// given several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// The file that holds the names; made when there is none. Default: `ironorb/names.redb` in $XDG_STATE_HOME or
    /// ~/.local/state.
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Keep names in memory: they end with the process.
    #[arg(long, conflicts_with = "store")]
    memory: bool,
    /// Write the IOR of the root context to this file when clients can be served.
    #[arg(long, value_name = "PATH")]
    ior_file: Option<PathBuf>,
    /// Which thread serves a request: `thread-per-connection`, or `pool:N` for N threads for all connections.
    #[arg(long, value_name = "MODE", default_value = "thread-per-connection", value_parser = concurrency)]
    concurrency: ServerConcurrency,
    /// End when standard input does, as when the process that started this one is gone.
    #[arg(long, hide = true)]
    with_parent: bool,
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    // From here on a signal is not lost, however early it comes.
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|e| Failure::new(format!("cannot wait for signals: {e}")))?;
    let (store, kept) = open_store(&arguments)?;
    // Held until everything is there, so that clients of an earlier run are not told that their contexts are gone.
    let mut builder = Orb::builder().concurrency(arguments.concurrency).hold_requests();
    for endpoint in &arguments.endpoint {
        builder = builder.endpoint(endpoint).map_err(Failure::new)?;
    }
    for publish in &arguments.publish {
        builder = builder.publish(publish);
    }
    let orb = builder.build().map_err(|e| {
        Failure::new(e).with_help("--endpoint iiop://HOST:PORT chooses another address; port 0 any free one")
    })?;
    let report = Box::new(|fault: &_| eprintln!("error: {fault}"));
    let service = NamingService::new(store, Limits::default());
    let server = NamingServer::start_reporting(&orb, service, report).map_err(Failure::new)?;
    orb.root_poa().manager().activate().map_err(Failure::new)?;
    if let Some(path) = &arguments.ior_file {
        write_whole(path, &server.root().object().to_ior_string())
            .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))?;
    }
    announce(&orb, &server, &kept);
    if arguments.with_parent {
        std::thread::spawn(|| {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            let _ = signal_hook::low_level::raise(SIGTERM);
        });
    }
    let signal = signals.forever().next();
    // A second signal ends the process at once, however long a request takes.
    let _ = signal_hook::flag::register_conditional_default(SIGINT, std::sync::Arc::new(true.into()));
    let _ = signal_hook::flag::register_conditional_default(SIGTERM, std::sync::Arc::new(true.into()));
    if !arguments.with_parent {
        eprintln!("stopping: {}", signal.map_or("no more signals", name_of));
    }
    orb.shutdown(true).map_err(Failure::new)
}

fn announce(orb: &Orb, server: &NamingServer, kept: &str) {
    let mut out = io::stdout().lock();
    // Without a reader of standard output the service is as good.
    let _ = writeln!(out, "naming service at {}", orb.published_addresses().join(", "));
    let _ = writeln!(out, "names are kept in {kept}");
    let _ = writeln!(out, "ready {}", server.corbaloc());
    let _ = out.flush();
}

fn open_store(arguments: &Arguments) -> Result<(Store, String), Failure> {
    if arguments.memory {
        return Ok((Store::in_memory().map_err(Failure::new)?, "memory".to_owned()));
    }
    let path = match &arguments.store {
        Some(path) => path.clone(),
        None => default_store()?,
    };
    let store = Store::open(&path).map_err(Failure::new)?;
    let shown = fs::canonicalize(&path).unwrap_or(path);
    Ok((store, shown.display().to_string()))
}

/// Where state of a user's programs belongs (XDG Base Directory Specification); its folder is made.
fn default_store() -> Result<PathBuf, Failure> {
    let state =
        std::env::var_os("XDG_STATE_HOME").filter(|dir| Path::new(dir).is_absolute()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").filter(|dir| !dir.is_empty());
    let state = state.or_else(|| home().map(|home| PathBuf::from(home).join(".local/state")));
    let Some(state) = state else {
        return Err(Failure::new("no place for the names: neither XDG_STATE_HOME nor HOME is set")
            .with_help("--store PATH names a file, --memory keeps names in memory"));
    };
    let folder = state.join("ironorb");
    fs::create_dir_all(&folder).map_err(|e| {
        Failure::new(format!("cannot make the folder {}: {e}", folder.display()))
            .with_help("--store PATH names a file elsewhere")
    })?;
    Ok(folder.join("names.redb"))
}

/// Whoever waits for the file sees nothing or all of it.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    fs::write(&beside, format!("{text}\n"))?;
    fs::rename(&beside, path)
}

fn concurrency(text: &str) -> Result<ServerConcurrency, String> {
    if text == "thread-per-connection" {
        return Ok(ServerConcurrency::ThreadPerConnection);
    }
    let threads = text.strip_prefix("pool:").and_then(|number| number.parse::<usize>().ok());
    match threads {
        Some(threads @ 1..=4096) => Ok(ServerConcurrency::LeaderFollowers { threads }),
        _ => Err("write `thread-per-connection`, or `pool:N` with N from 1 to 4096".to_owned()),
    }
}

fn name_of(signal: i32) -> &'static str {
    match signal {
        SIGINT => "SIGINT",
        _ => "SIGTERM",
    }
}
