//! What the commands that serve have in common: their addresses, their stores, and their end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ironorb::{Orb, OrbBuilder};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::{calling, output};

/// The signals that end a command. From here on no signal is lost.
pub(crate) fn signals() -> Result<Signals, Failure> {
    Signals::new([SIGINT, SIGTERM]).map_err(|e| Failure::new(format!("cannot wait for signals: {e}")))
}

/// The ORB that listens at the addresses of an option, and publishes these or the given ones.
pub(crate) fn orb(
    mut builder: OrbBuilder,
    option: &str,
    endpoints: &[String],
    publish: &[String],
) -> Result<Orb, Failure> {
    for endpoint in endpoints {
        builder =
            builder.endpoint(endpoint).map_err(|e| Failure::usage(format!("{option} {endpoint}: {e}")))?;
    }
    for publish in publish {
        builder = builder.publish(publish);
    }
    ironorb_record::install(builder).build().map_err(|e| {
        calling::not_built(&e)
            .with_help(format!("{option} iiop://HOST:PORT chooses another address; port 0 any free one"))
    })
}

/// Prints the service's addresses, the place of its state, and its corbaloc.
pub(crate) fn announce(orb: &Orb, service: &str, what: &str, location: &str, corbaloc: &str) {
    let addresses = orb.published_addresses().join(", ");
    output::announce(format_args!(
        "{service} at {addresses}\n{what} are kept in {location}\nready {corbaloc}"
    ));
}

/// Waits for the first signal, or for the parent's end with `with_parent`.
pub(crate) fn wait_for_end(signals: &mut Signals, with_parent: bool) {
    if with_parent {
        std::thread::spawn(|| {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            let _ = signal_hook::low_level::raise(SIGTERM);
        });
    }
    let signal = signals.forever().next();
    // A second signal ends the process at once, even while a request runs.
    let _ = signal_hook::flag::register_conditional_default(SIGINT, std::sync::Arc::new(true.into()));
    let _ = signal_hook::flag::register_conditional_default(SIGTERM, std::sync::Arc::new(true.into()));
    if !with_parent {
        output::note(format_args!("stopping: {}", signal.map_or("no more signals", name_of)));
    }
}

/// The file for a user's state (XDG Base Directory Specification). Creates its folder.
pub(crate) fn default_store(file: &str) -> Result<PathBuf, Failure> {
    let state =
        std::env::var_os("XDG_STATE_HOME").filter(|dir| Path::new(dir).is_absolute()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").filter(|dir| !dir.is_empty());
    let state = state.or_else(|| home().map(|home| PathBuf::from(home).join(".local/state")));
    let Some(state) = state else {
        return Err(Failure::new("no place for the store: neither XDG_STATE_HOME nor HOME is set")
            .with_help("--store PATH names a file"));
    };
    let folder = state.join("ironorb");
    fs::create_dir_all(&folder).map_err(|e| {
        Failure::new(format!("cannot make the folder {}: {e}", folder.display()))
            .with_help("--store PATH names a file elsewhere")
    })?;
    Ok(folder.join(file))
}

/// The store's file, for messages.
pub(crate) fn shown(store: PathBuf) -> String {
    fs::canonicalize(&store).unwrap_or(store).display().to_string()
}

/// Writes a file that a waiting program sees wholly or not at all.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    fs::write(&beside, format!("{text}\n"))
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))
}

fn name_of(signal: i32) -> &'static str {
    match signal {
        SIGINT => "SIGINT",
        _ => "SIGTERM",
    }
}
