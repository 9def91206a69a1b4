//! The servers of one placement and transport, and what is measured with them.

use ironorb::Orb;

use super::Data;
use super::latency::{CALLS, CallRow, LatencyCall};
use super::options::TtcpOptions;
use super::peer::OmniOrb;
use super::report::{Rates, Throughput, TtcpRow};
use super::role::{References, set_queues};
use super::side::{Servers, Side, Subject};
use super::stream::{Flow, StreamSender};
use crate::error::BenchError;
use crate::machine::{Layout, load, pin};
use crate::process::Process;
use crate::report::Outcome;
use crate::statistics::{Collector, Repeated, each, turns};
use crate::variant::{Bytes, DataType, Invocation, Mode, Peer, ServantKind, Transport, name};

/// What is compared: all kinds of call with the same data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) mode: Mode,
    pub(super) ty: DataType,
    pub(super) buffer: Bytes,
}

/// One placement and transport.
pub(super) struct Bench {
    transport: Transport,
    raw: String,
    servers: Servers,
    _processes: Vec<Process>,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// Starts the servers, and keeps the calling thread on the client's processor.
    pub(super) fn start(
        layout: Layout,
        transport: Transport,
        program: OmniOrb,
        options: &TtcpOptions,
    ) -> Result<Bench, BenchError> {
        let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
        let queue_bytes = options.queue_bytes();
        let args = server_args(layout, transport, &folder, options);
        let mut raw = Process::start(&[], "ttcp-raw-server", &args)?;
        let raw_address = raw.address()?;
        let mut server = Process::start(&[], "ttcp-server", &args)?;
        let ironorb = References::parse(&server.address()?)?;
        let mut processes = vec![raw, server];
        let omniorb = match program.start_server(layout, transport, folder.path(), queue_bytes)? {
            None => None,
            Some(mut server) => {
                let references = References::parse(&server.address()?)?;
                processes.push(server);
                Some(references)
            }
        };
        let mut builder = Orb::builder().no_endpoint();
        set_queues(builder.config(), queue_bytes);
        let orb = builder.build()?;
        pin(layout.client)?;
        Ok(Bench {
            transport,
            raw: raw_address,
            servers: Servers { orb, ironorb, omniorb, program, layout, queue_bytes },
            _processes: processes,
            _folder: folder,
        })
    }

    /// How many bytes a second each kind of call carries.
    pub(super) fn throughput(&self, group: Group, options: &TtcpOptions) -> Result<Vec<TtcpRow>, BenchError> {
        let sequences = (options.total_bytes() / group.buffer.0).max(1);
        let data = Data::filling(group.ty, group.buffer.0);
        let payload = data.len() * group.ty.element_bytes();
        let mut raw = self.connect_raw(Flow::new(group.mode, payload, sequences))?;
        let subjects = Subject::all(&options.peers, &options.invocations, &options.servants);
        let mut sides = Vec::new();
        for subject in &subjects {
            sides.push(Side::start(&self.servers, *subject, group.mode, Some(group.ty), &data)?);
        }
        let load = load();
        let mut of_raw = Collector::new(sequences);
        let mut of_sides: Vec<Collector> = sides.iter().map(|_| Collector::new(sequences)).collect();
        let mut elements = vec![0; sides.len()];
        let mut run_raw = || raw.run(sequences).map_err(BenchError::io("send to the plain server"));
        // To warm up: connections, buffers, caches.
        run_raw()?;
        let mut failed = vec![None; sides.len()];
        for (side, failed) in sides.iter_mut().zip(&mut failed) {
            let Some(warmed) = side else { continue };
            match warmed.run(sequences.min(WARM_UP_SEQUENCES)) {
                // What a peer cannot do is told in its row.
                Err(e) if warmed.is_peer() => (*side, *failed) = (None, Some(e.to_string())),
                warmed => drop(warmed?),
            }
        }
        for place in turns(sides.len(), options.repetitions()) {
            match place.checked_sub(1) {
                None => of_raw.add(&[run_raw()?]),
                Some(place) => {
                    if let Some(side) = &mut sides[place] {
                        let (nanos, counted) = side.run(sequences)?;
                        of_sides[place].add(&[nanos]);
                        elements[place] += counted;
                    }
                }
            }
        }
        let outcome = |place: usize| match &sides[place] {
            Some(_) => Outcome::Measured(Rates {
                elements_received: elements[place],
                raw: Throughput::of(&of_raw, payload),
                subject: Throughput::of(&of_sides[place], payload),
                of_raw: of_raw.over(&of_sides[place]),
            }),
            None => self.missing(subjects[place].peer, failed[place].as_deref()),
        };
        let row = |(place, subject): (usize, &Subject)| TtcpRow {
            layout: self.servers.layout.name,
            transport: self.transport,
            mode: group.mode,
            ty: group.ty,
            buffer: group.buffer,
            queue: options.queue,
            peer: subject.peer,
            invocation: subject.invocation,
            servant: subject.servant,
            sequences_a_run: sequences,
            bytes_a_run: sequences * payload,
            elements_a_run: sequences * data.len(),
            repetitions: options.repetitions(),
            outcome: outcome(place),
            load,
        };
        Ok(subjects.iter().enumerate().map(row).collect())
    }

    /// What single twoway calls take.
    pub(super) fn latency(
        &self,
        call: LatencyCall,
        options: &TtcpOptions,
    ) -> Result<Vec<CallRow>, BenchError> {
        let data = call.ty.map_or(Data::Nothing, |ty| Data::of(ty, call.elements));
        let payload = call.ty.map_or(VOID_REQUEST_BYTES, |ty| call.elements * ty.element_bytes());
        let mut raw = self.connect_raw(Flow::new(Mode::Twoway, payload, 1))?;
        let subjects = Subject::all(&options.peers, &EVERY_INVOCATION, &ServantKind::ALL);
        let mut sides = Vec::new();
        for subject in &subjects {
            sides.push(Side::start(&self.servers, *subject, Mode::Twoway, call.ty, &data)?);
        }
        let load = load();
        let mut nanos = vec![0; options.calls()];
        let mut of_raw = Repeated::new(1);
        let mut of_sides: Vec<Repeated> = sides.iter().map(|_| Repeated::new(1)).collect();
        let mut exchange =
            |nanos: &mut [u64]| each(nanos, || raw.exchange().map_err(BenchError::io("exchange bytes")));
        exchange(&mut nanos)?; // to warm up
        for side in &mut sides {
            let Some(warmed) = side else { continue };
            match warmed.each(&mut nanos) {
                Err(e) if warmed.is_peer() => {
                    eprintln!("left out: {} by {}: {e}", call.name, name(Peer::Omniorb));
                    *side = None;
                }
                warmed => warmed?,
            }
        }
        for place in turns(sides.len(), options.repetitions()) {
            match place.checked_sub(1) {
                None => {
                    exchange(&mut nanos)?;
                    of_raw.add(&mut nanos);
                }
                Some(place) => {
                    if let Some(side) = &mut sides[place] {
                        side.each(&mut nanos)?;
                        of_sides[place].add(&mut nanos);
                    }
                }
            }
        }
        let is_there = |place: &usize| sides[*place].is_some();
        let row = |place: usize| {
            let subject = subjects[place];
            // What this one is compared with besides the plain socket.
            let over = |other: Subject| {
                let other = subjects.iter().position(|subject| *subject == other)?;
                (is_there(&other) && other != place).then(|| of_sides[place].over(&of_sides[other]))
            };
            CallRow {
                layout: self.servers.layout.name,
                transport: self.transport,
                call: call.name,
                peer: subject.peer,
                invocation: subject.invocation,
                servant: subject.servant,
                raw: of_raw.calls.latency(),
                subject: of_sides[place].calls.latency(),
                over_raw: of_sides[place].over(&of_raw),
                over_sii: over(Subject { invocation: Invocation::Sii, ..subject }),
                over_static: over(Subject { servant: ServantKind::Static, ..subject }),
                load,
            }
        };
        Ok((0..subjects.len()).filter(is_there).map(row).collect())
    }

    fn connect_raw(&self, flow: Flow) -> Result<StreamSender, BenchError> {
        StreamSender::connect(self.transport, &self.raw, self.servers.queue_bytes, flow)
            .map_err(BenchError::io(format!("connect to {}", self.raw)))
    }

    fn missing(&self, peer: Peer, failed: Option<&str>) -> Outcome<Rates> {
        let why = match peer {
            Peer::Jacorb => "takes no part in this suite",
            _ => failed.or(self.servers.program.missing()).unwrap_or("not started"),
        };
        Outcome::Missing { missing: format!("{}: {why}", peer.title()) }
    }
}

/// What the processes of servers are told.
pub(super) fn server_args(
    layout: Layout,
    transport: Transport,
    folder: &tempfile::TempDir,
    options: &TtcpOptions,
) -> Vec<String> {
    let mut args = vec!["--core".to_owned(), layout.server.to_string()];
    args.extend(["--transport".to_owned(), name(transport)]);
    args.extend(["--folder".to_owned(), folder.path().display().to_string()]);
    args.extend(options.queue.map(|bytes| format!("--queue={bytes}")));
    args
}

/// All calls whose latency is measured.
pub(super) fn latency_calls() -> impl Iterator<Item = LatencyCall> {
    CALLS.into_iter()
}

/// The plain message for a call without arguments: about as long as the request's header.
const VOID_REQUEST_BYTES: usize = 72;

pub(super) const WARM_UP_SEQUENCES: usize = 64;

const EVERY_INVOCATION: [Invocation; 4] =
    [Invocation::Sii, Invocation::DiiNew, Invocation::DiiReused, Invocation::DiiUnchanged];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omniorb_takes_no_part_in_what_it_cannot_do() {
        let peers = [Peer::Ironorb, Peer::Omniorb];
        let subjects = Subject::all(&peers, &EVERY_INVOCATION, &ServantKind::ALL);
        assert_eq!(subjects.len(), 2 * 4 + 2 * 2);
        let reuse = |subject: &Subject| subject.invocation >= Invocation::DiiReused;
        assert!(subjects.iter().all(|subject| subject.peer == Peer::Ironorb || !reuse(subject)));
    }
}
