//! ORBs that take part: a server in a process of its own, and a client in this process or, for other ORBs, in
//! a process of its own.

use std::cell::RefCell;
use std::path::Path;

use ironorb::{ObjectRef, Orb};

use crate::error::BenchError;
use crate::host::ServerHost;
use crate::machine::{Layout, pin};
use crate::measure::{Entry, Label, Side};
use crate::options::Sides;
use crate::peers::{PeerClient, Program};
use crate::process::Process;
use crate::settings::Settings;
use crate::variant::{Bytes, Peer, Transport};

/// An ORB with its settings.
pub(crate) struct Contender {
    pub(crate) label: Label,
    /// The running processes, or why the ORB takes no part.
    pub(crate) running: Result<Running, String>,
}

pub(crate) struct Running {
    pub(crate) server: Process,
    pub(crate) reference: String,
    pub(crate) client: Client,
    /// The object of the reference, in this process's ORB.
    pub(crate) object: ObjectRef,
    /// The rest of the server's first line.
    extra: Vec<String>,
    orb: Orb,
}

/// The process that calls.
pub(crate) enum Client {
    /// This process.
    Ours,
    /// A process of its own, shared by all sides of a group in turn.
    Theirs(RefCell<PeerClient>),
}

/// The place where servers and clients run.
#[derive(Clone, Copy)]
pub(crate) struct Venue<'a> {
    /// The processors; without a layout any.
    pub(crate) layout: Option<Layout>,
    pub(crate) transport: Transport,
    /// The folder for sockets of other ORBs.
    pub(crate) folder: &'a Path,
    /// Settings of this ORB on both sides, which rows do not name.
    pub(crate) settings: &'static str,
    /// Bytes of the system's queues of each connection. Default: the system's choice.
    pub(crate) queue: Option<Bytes>,
    /// The host of this ORB's servers. Default: this one.
    pub(crate) host: Option<&'a ServerHost>,
}

impl Venue<'static> {
    /// Servers over TCP.
    pub(crate) fn tcp(layout: Option<Layout>) -> Venue<'static> {
        Venue {
            layout,
            transport: Transport::Tcp,
            folder: Path::new(""),
            settings: "",
            queue: None,
            host: None,
        }
    }
}

impl Venue<'_> {
    fn on(&self, core: fn(&Layout) -> usize) -> Result<(), BenchError> {
        self.layout.as_ref().map_or(Ok(()), |layout| pin(core(layout)))
    }
}

/// Starts server and client of each ORB and of each choice of settings, each on its processor. Leaves the
/// calling thread on the client's processor.
pub(crate) fn start(suite: &str, sides: &Sides, venue: Venue<'_>) -> Result<Vec<Contender>, BenchError> {
    let mut all = Vec::new();
    for &peer in &sides.peers {
        if peer == Peer::Ironorb {
            for settings in Settings::and_those(&sides.with) {
                all.push(ours(suite, settings, venue)?);
            }
        } else {
            let label = Label::of(peer, Settings::default());
            all.push(Contender { label, running: start_peer(suite, peer, venue)? });
        }
    }
    venue.on(|layout| layout.client)?;
    Ok(all)
}

/// Starts this ORB's server in the suite's role.
pub(crate) fn ours(suite: &str, settings: Settings, venue: Venue<'_>) -> Result<Contender, BenchError> {
    venue.on(|layout| layout.server)?;
    let all = settings.and(venue.settings).and(&match venue.queue {
        Some(Bytes(bytes)) => format!("sendQueueBytes={bytes}+receiveQueueBytes={bytes}"),
        None => String::new(),
    });
    let endpoint = match venue.host.filter(|_| venue.transport == Transport::Tcp) {
        Some(host) => format!("iiop://{}:0", host.address),
        None => venue.transport.endpoint().to_owned(),
    };
    let args = [format!("--endpoint={endpoint}"), format!("--settings={all}")];
    let server = Process::start(ServerHost::command(venue.host), &format!("{suite}-server"), &args)?;
    venue.on(|layout| layout.client)?;
    let running = Running::new(server, Client::Ours, &all)?;
    Ok(Contender { label: Label::of(Peer::Ironorb, settings), running: Ok(running) })
}

fn start_peer(suite: &str, peer: Peer, venue: Venue<'_>) -> Result<Result<Running, String>, BenchError> {
    if venue.host.is_some() {
        return Ok(Err("its server listens on this host alone".to_owned()));
    }
    if venue.transport != Transport::Tcp && matches!(peer, Peer::Jacorb | Peer::Tao) {
        return Ok(Err("it has only TCP".to_owned()));
    }
    let program = match Program::find(peer, suite) {
        Ok(program) => program,
        Err(why) => return Ok(Err(why)),
    };
    venue.on(|layout| layout.server)?;
    let server = program.start_server(suite, venue)?;
    venue.on(|layout| layout.client)?;
    // An ORB of this process asks the server for figures that clients do not measure.
    let mut running = Running::new(server, Client::Ours, &Settings::default())?;
    let client = program.start_client(suite, &running.reference, venue.queue)?;
    running.client = Client::Theirs(RefCell::new(client));
    Ok(Ok(running))
}

impl Running {
    fn new(mut server: Process, client: Client, settings: &Settings) -> Result<Running, BenchError> {
        let line = server.address()?;
        let mut extra: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let reference = extra.remove(0);
        let orb = settings.builder().no_endpoint().build()?;
        let object = orb.string_to_object(&reference)?;
        Ok(Running { server, reference, client, object, extra, orb })
    }

    /// The object of this ORB's server that reports the counts of its probes.
    pub(crate) fn teller(&self) -> Result<ObjectRef, BenchError> {
        let missing = || BenchError::process("server", "does not report its counts");
        Ok(self.orb.string_to_object(self.extra.last().ok_or_else(missing)?)?)
    }
}

impl Contender {
    /// The running processes; an error where there are none.
    pub(crate) fn started(self) -> Result<Running, BenchError> {
        self.running.map_err(|why| BenchError::process(self.label.peer.title(), why))
    }

    /// How many connections this process's client has, if it is the one that calls.
    pub(crate) fn connections(&self) -> Option<f64> {
        match &self.running {
            Ok(Running { client: Client::Ours, orb, .. }) => Some(orb.status().connections.len() as f64),
            _ => None,
        }
    }

    /// The contender's side of a group: this process's sample, or the command with which a peer's client
    /// prepares its own.
    pub(crate) fn side<'a>(
        &'a self,
        slot: usize,
        ours: impl FnOnce(&'a Running) -> Result<Box<dyn Side + 'a>, BenchError>,
        peer_command: impl FnOnce() -> String,
    ) -> Result<Entry<'a>, BenchError> {
        match &self.running {
            Ok(running) if matches!(running.client, Client::Ours) => Ok(Ok(ours(running)?)),
            _ => self.asked(slot, &peer_command()),
        }
    }

    /// A peer's side of a group, which its client prepares by this command.
    pub(crate) fn asked(&self, slot: usize, command: &str) -> Result<Entry<'_>, BenchError> {
        self.tell(command)?;
        Ok(match &self.running {
            Err(why) => Err(why.clone()),
            Ok(Running { client: Client::Theirs(client), .. }) => Ok(Box::new(Asked { client, slot })),
            Ok(_) => Err("is this program".to_owned()),
        })
    }

    /// Sends a peer's client a command, if there is one.
    pub(crate) fn tell(&self, command: &str) -> Result<(), BenchError> {
        match &self.running {
            Ok(Running { client: Client::Theirs(client), .. }) => client.borrow_mut().tell(command),
            _ => Ok(()),
        }
    }
}

/// Calls of one kind that a peer's client makes.
struct Asked<'a> {
    client: &'a RefCell<PeerClient>,
    slot: usize,
}

impl Side for Asked<'_> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        self.client.borrow_mut().each(self.slot, nanos)
    }

    fn is_peer(&self) -> bool {
        true
    }
}
