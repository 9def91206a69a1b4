//! Those who take part: an ORB's server of a cubit, and its client.

use std::cell::RefCell;

use ironorb::{Orb, TypedRef};

use super::servant::CubitServant;
use crate::contest::Side;
use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::CubitRef;
use crate::machine::{Layout, pin};
use crate::peers::{PeerClient, Program};
use crate::process::Process;
use crate::role::{Place, tell, wait_for_end};
use crate::rows::Sample;
use crate::settings::Settings;
use crate::statistics::each;
use crate::suite::Who;
use crate::variant::{Peer, Transport};

/// Who serves and calls; what every suite of a cubit may choose.
#[derive(Debug, Clone, clap::Args)]
pub struct Sides {
    /// Whose client and server.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Peer::ALL)]
    pub peers: Vec<Peer>,
    /// Settings of another client and server of this ORB that take part, as NAME=VALUE of docs/configuration.md, several
    /// joined by '+'. May be given several times.
    #[arg(long = "with", value_name = "SETTINGS")]
    pub with: Vec<Settings>,
}

/// Serves a cubit until standard input ends. Its first line is the reference.
pub(crate) fn server(place: &Place, settings: &Settings) -> Result<(), BenchError> {
    crate::connections::raise_descriptors();
    let mut builder = settings.builder().endpoint(&place.endpoint()?).map_err(ironorb::BuildError::from)?;
    // What connections cost is measured, not where the limit on their number is.
    builder.config().server_connections_max = 100_000;
    let orb = builder.build()?;
    let cubit: CubitRef = orb.root_poa().activate(CubitServant)?;
    tell(&cubit.object().to_ior_string())?;
    wait_for_end()?;
    orb.shutdown(false)?;
    Ok(())
}

/// An ORB with its settings.
pub(crate) struct Contender {
    pub(crate) who: Who,
    pub(crate) running: Option<Running>,
}

pub(crate) struct Running {
    pub(crate) server: Process,
    pub(crate) reference: String,
    pub(crate) client: Client,
}

/// Who calls.
pub(crate) enum Client {
    /// This process.
    Ours { _orb: Orb, cubit: CubitRef },
    /// A process of its own, which all of its sides ask in turn.
    Theirs(RefCell<PeerClient>),
}

/// Starts everybody's server and client, each on its processor if there is a layout.
pub(crate) fn start(sides: &Sides, layout: Option<Layout>) -> Result<Vec<Contender>, BenchError> {
    let mut all = Vec::new();
    let on = |core: fn(&Layout) -> usize| layout.as_ref().map_or(Ok(()), |layout| pin(core(layout)));
    for &peer in &sides.peers {
        if peer == Peer::Ironorb {
            for settings in Settings::and_those(&sides.with) {
                on(|layout| layout.server)?;
                let mut server = Process::start(&[], "cubit-server", &[format!("--settings={settings}")])?;
                let reference = server.address()?;
                on(|layout| layout.client)?;
                let orb = settings.builder().no_endpoint().build()?;
                let cubit = orb.string_to_object(&reference)?.narrow_unchecked();
                let running = Running { server, reference, client: Client::Ours { _orb: orb, cubit } };
                all.push(Contender { who: Who { peer, settings, missing: None }, running: Some(running) });
            }
            continue;
        }
        let (running, missing) = match Program::find(peer) {
            Err(why) => (None, Some(why)),
            Ok(program) => {
                on(|layout| layout.server)?;
                let mut server = program.start_server("cubit", Transport::Tcp, std::path::Path::new(""))?;
                let reference = server.address()?;
                on(|layout| layout.client)?;
                let client = program.start_client("cubit", std::slice::from_ref(&reference))?;
                let client = Client::Theirs(RefCell::new(client));
                (Some(Running { server, reference, client }), None)
            }
        };
        all.push(Contender { who: Who { peer, settings: Settings::default(), missing }, running });
    }
    on(|layout| layout.client)?;
    Ok(all)
}

/// A side that makes its calls in this process.
pub(crate) struct Ours<'a>(pub(crate) Sample<'a>);

impl Side for Ours<'_> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        each(nanos, &mut self.0)
    }
}

/// One kind of calls that a peer's client makes.
pub(crate) struct Asked<'a> {
    client: &'a RefCell<PeerClient>,
}

impl<'a> Asked<'a> {
    /// Prepares it for what `command` says.
    pub(crate) fn prepared(client: &'a RefCell<PeerClient>, command: &str) -> Result<Asked<'a>, BenchError> {
        client.borrow_mut().tell(command)?;
        Ok(Asked { client })
    }
}

impl Side for Asked<'_> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        self.client.borrow_mut().each(0, nanos)
    }
}
