//! `ironorb ifr serve`.

use std::path::PathBuf;

use clap::Args;
use ironorb::{Orb, ServerConcurrency, TypedRef as _};
use ironorb_services::ifr::{InterfaceRepository, InterfaceRepositoryServer, Limits, Store};

use super::load::{load, open_store};
use super::loader;
use crate::failure::Failure;
use crate::idl::Settings;
use crate::{output, serving};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to listen; may be given several times. Port 0 lets the system choose; `uiop:///PATH` is a Unix socket.
    #[arg(long, visible_alias = "listen", value_name = "ADDRESS", default_value = "iiop://:2900")]
    endpoint: Vec<String>,
    /// The address that references carry, where it differs from the address listened at, as behind a NAT or
    /// in a container. May be given several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// The file that holds the definitions; it is created if it does not exist. Default:
    /// `ironorb/definitions.redb` in $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Keep definitions in memory. They are lost when the process ends.
    #[arg(long, conflicts_with = "store")]
    memory: bool,
    /// Load an IDL file before serving; may be given several times.
    #[arg(long, value_name = "FILE")]
    load: Vec<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Write the IOR of the repository to this file when clients can be served.
    #[arg(long, value_name = "PATH")]
    ior_file: Option<PathBuf>,
    /// Which thread serves a request: `thread-per-connection`; `pool:N`, N threads for all connections;
    /// `reactor`, one thread for all; `hybrid[:N]`, a thread for each busy connection, N at most.
    #[arg(long, value_name = "MODE", default_value = "thread-per-connection")]
    concurrency: ServerConcurrency,
    /// End when standard input ends, as it does when the parent process is gone.
    #[arg(long, hide = true)]
    with_parent: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut signals = serving::signals()?;
    let (store, location) = match arguments.memory {
        true => (Store::in_memory().map_err(Failure::new)?, "memory".to_owned()),
        false => open_store(arguments.store.as_deref())?,
    };
    let repository = InterfaceRepository::new(store, Limits::default());
    load(&repository, &arguments.settings, &arguments.load)?;
    // Requests are held until everything is served. Clients of an earlier run must not hear that their
    // definitions are gone.
    let builder = Orb::builder().concurrency(arguments.concurrency).hold_requests();
    let orb = serving::orb(builder, "--endpoint", &arguments.endpoint, &arguments.publish)?;
    let report = Box::new(|fault: &_| output::note(format_args!("error: {fault}")));
    let server =
        InterfaceRepositoryServer::start_reporting(&orb, repository, report).map_err(Failure::new)?;
    loader::start(&orb, &server).map_err(Failure::new)?;
    orb.root_poa().manager().activate().map_err(Failure::new)?;
    if let Some(path) = &arguments.ior_file {
        serving::write_whole(path, &server.root().object().to_ior_string())?;
    }
    serving::announce(&orb, "interface repository", "definitions", &location, &server.corbaloc());
    serving::wait_for_end(&mut signals, arguments.with_parent);
    orb.shutdown(true).map_err(Failure::new)
}
