//! Those who are compared: an ORB's server with its objects, and its client.

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

use ironorb::Orb;

use super::client::{Client, Data, Objects};
use super::objects::populated;
use super::plan::{Cell, Group, ONEWAYS};
use crate::contest::Side;
use crate::error::BenchError;
use crate::generated_latency::latency::{Directory, DirectoryRef, Populated};
use crate::machine::{Layout, pin};
use crate::peers::{PeerClient, Program};
use crate::process::Process;
use crate::settings::Settings;
use crate::variant::{CallType, Mode, Peer, Transport, name};

/// An ORB with its settings.
pub(super) struct Contender {
    pub(super) peer: Peer,
    pub(super) settings: Settings,
    /// It, or why it cannot take part.
    pub(super) running: Result<Running, String>,
}

pub(super) struct Running {
    directory: DirectoryRef,
    client: ClientOf,
    objects: usize,
    _server: Process,
}

enum ClientOf {
    /// In this process.
    Ours { orb: Orb, objects: Objects },
    /// A process of its own, which all of its sides ask in turn.
    Theirs(RefCell<PeerClient>),
}

impl Contender {
    /// Starts our server with some settings, on the server's processor.
    pub(super) fn ours(
        layout: Layout,
        transport: Transport,
        folder: &Path,
        settings: Settings,
    ) -> Result<Contender, BenchError> {
        pin(layout.server)?;
        let args = ["--transport", &name(transport), "--folder", &folder.display().to_string()];
        let mut args: Vec<String> = args.map(str::to_owned).to_vec();
        args.push(format!("--settings={settings}"));
        let mut server = Process::start(&[], "latency-server", &args)?;
        let line = server.address()?;
        let reference = line.split(' ').next().unwrap_or_default();
        pin(layout.client)?;
        let orb = settings.builder().no_endpoint().build()?;
        let directory = orb.string_to_object(reference)?.narrow_unchecked();
        let client = ClientOf::Ours { orb, objects: Objects::default() };
        let running = Running { directory, client, objects: 0, _server: server };
        Ok(Contender { peer: Peer::Ironorb, settings, running: Ok(running) })
    }

    /// Starts a peer's server and client, each on its processor. `orb` asks the server for what clients do not measure.
    pub(super) fn theirs(
        peer: Peer,
        program: Result<Program, String>,
        layout: Layout,
        transport: Transport,
        folder: &Path,
        orb: &Orb,
    ) -> Result<Contender, BenchError> {
        let program = match program {
            Ok(_) if transport == Transport::Unix && peer == Peer::Jacorb => {
                Err("it has no Unix sockets".to_owned())
            }
            other => other,
        };
        let running = match program {
            Err(why) => Err(why),
            Ok(program) => {
                pin(layout.server)?;
                let mut server = program.start_server("latency", transport, folder)?;
                let reference = server.address()?;
                pin(layout.client)?;
                let client = program.start_client("latency", std::slice::from_ref(&reference))?;
                let directory = orb.string_to_object(&reference)?.narrow_unchecked();
                let client = ClientOf::Theirs(RefCell::new(client));
                Ok(Running { directory, client, objects: 0, _server: server })
            }
        };
        Ok(Contender { peer, settings: Settings::default(), running })
    }

    /// Sees to it that there are so many objects and that the client knows them. What the server tells of those that it
    /// made, or why there are not so many.
    pub(super) fn populate(&mut self, count: usize) -> Result<Result<Option<Populated>, String>, BenchError> {
        let peer = self.peer;
        let running = match &mut self.running {
            Ok(running) => running,
            Err(why) => return Ok(Err(why.clone())),
        };
        if peer == Peer::Jacorb && count > JACORB_OBJECTS_MAX {
            return Ok(Err(format!(
                "left out: at 90 us and 10 kB an object no more than {JACORB_OBJECTS_MAX} are made"
            )));
        }
        if self.settings.as_str().contains("objectLookup=linear") && count > LINEAR_OBJECTS_MAX {
            return Ok(Err(format!(
                "left out: linear search is measured among at most {LINEAR_OBJECTS_MAX} objects"
            )));
        }
        let populated = match count > running.objects {
            true => Some(populated(&running.directory, count)?),
            false => None,
        };
        running.objects = running.objects.max(count);
        match &mut running.client {
            ClientOf::Ours { objects, .. } => objects.fetch(&running.directory, count)?,
            ClientOf::Theirs(client) => client.get_mut().tell(&format!("objects {count}"))?,
        }
        Ok(Ok(populated))
    }
}

/// How long a server may take for the oneways that it has.
const SETTLING_MAX: Duration = Duration::from_secs(10);

const LINEAR_OBJECTS_MAX: usize = 10_000;

const JACORB_OBJECTS_MAX: usize = 10_000;

impl Running {
    /// Who makes one kind of calls, each kind of a group in a place of its own.
    pub(super) fn side<'a>(
        &'a self,
        cell: &Cell,
        data: &'a Data,
        slot: usize,
    ) -> Result<Box<dyn Side + 'a>, BenchError> {
        match &self.client {
            ClientOf::Ours { objects, .. } => Ok(Box::new(Client::new(objects, cell, data)?)),
            ClientOf::Theirs(client) => {
                let Cell { algorithm, mode, invocation, ty, units, objects, iterations } = *cell;
                let (algorithm, mode, invocation) = (name(algorithm), name(mode), name(invocation));
                let ty = CallType(ty);
                client.borrow_mut().tell(&format!(
                    "calls {slot} {mode} {ty} {units} {invocation} {algorithm} {objects} {iterations} {ONEWAYS}"
                ))?;
                Ok(Box::new(Asked { client, slot }))
            }
        }
    }

    /// Forgets what has come so far.
    pub(super) fn forget(&self) -> Result<(), BenchError> {
        self.directory.taken()?;
        Ok(())
    }

    /// An error unless as much has come as was sent.
    pub(super) fn check(&self, group: &Group, calls: usize) -> Result<(), BenchError> {
        let with_data = match group.mode {
            Mode::Twoway => calls,
            Mode::Oneway => calls / (ONEWAYS + 1) * ONEWAYS,
        };
        let elements = (with_data * group.units) as u64;
        // Where several threads serve a connection, a call may be answered before oneways that came before it are done.
        let begun = Instant::now();
        let mut tally = self.directory.taken()?;
        while tally.calls < calls as u64 && begun.elapsed() < SETTLING_MAX {
            let more = self.directory.taken()?;
            tally.calls += more.calls;
            tally.elements += more.elements;
            tally.wrong += more.wrong;
        }
        if (tally.calls, tally.elements, tally.wrong) == (calls as u64, elements, 0) {
            return Ok(());
        }
        Err(BenchError::Lost { sent: calls as u64, elements, tally: format!("{tally:?}") })
    }

    /// Our own client's ORB and objects.
    pub(super) fn ours(&self) -> Option<(&Orb, &Objects)> {
        match &self.client {
            ClientOf::Ours { orb, objects } => Some((orb, objects)),
            ClientOf::Theirs(_) => None,
        }
    }
}

/// One kind of calls that a peer's client makes.
struct Asked<'a> {
    client: &'a RefCell<PeerClient>,
    slot: usize,
}

impl Side for Asked<'_> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        self.client.borrow_mut().each(self.slot, nanos)
    }
}
