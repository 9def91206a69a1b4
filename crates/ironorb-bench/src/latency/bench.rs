//! The servers of one placement and transport, and what is measured with them.

use std::collections::HashMap;

use ironorb::Orb;

use super::client::{Client, Data, Objects};
use super::contender::Contender;
use super::options::LatencyOptions;
use super::order::Algorithm;
use super::plan::{Cell, Group, MANY_OBJECTS};
use super::report::{ActivationRow, CellRow, LatencyReport, Measured};
use crate::contest::{Contest, RawSide, Side};
use crate::error::BenchError;
use crate::machine::{Layout, load, pin};
use crate::peers::Program;
use crate::process::Process;
use crate::report::Outcome;
use crate::settings::Settings;
use crate::statistics::Repeated;
use crate::variant::{CallType, Invocation, Mode, Peer, Transport};
use ironorb_baseline::raw::Exchange;
use ironorb_baseline::relay::Relay;

/// One placement and transport.
pub(super) struct Bench {
    layout: Layout,
    transport: Transport,
    raw: String,
    contenders: Vec<Contender>,
    /// Over TCP, where bytes can be counted.
    counted: Contender,
    exchanges: HashMap<(Mode, CallType, usize), Exchange>,
    _raw: Process,
    _folder: tempfile::TempDir,
}

/// What takes a turn.
struct Entry {
    contender: usize,
    invocation: Invocation,
    /// It calls one object, whatever the group.
    calls_one: bool,
}

impl Bench {
    /// Starts all servers, and keeps the calling thread on the client's processor.
    pub(super) fn start(
        layout: Layout,
        transport: Transport,
        options: &LatencyOptions,
    ) -> Result<Bench, BenchError> {
        let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
        pin(layout.server)?;
        let role = match transport {
            Transport::Tcp => "raw-server",
            Transport::Unix => "raw-unix-server",
        };
        let mut raw = Process::start(&[], role, &[])?;
        let raw_address = raw.address()?;
        let counted = Contender::ours(layout, Transport::Tcp, folder.path(), Settings::default())?;
        let orb = Orb::builder().no_endpoint().build()?;
        let mut contenders = Vec::new();
        for &peer in &options.peers {
            if peer == Peer::Ironorb {
                for settings in options.compared() {
                    contenders.push(Contender::ours(layout, transport, folder.path(), settings)?);
                }
            } else {
                let program = Program::find(peer);
                contenders.push(Contender::theirs(peer, program, layout, transport, folder.path(), &orb)?);
            }
        }
        pin(layout.client)?;
        Ok(Bench {
            layout,
            transport,
            raw: raw_address,
            contenders,
            counted,
            exchanges: HashMap::new(),
            _raw: raw,
            _folder: folder,
        })
    }

    pub(super) fn measure(
        &mut self,
        group: Group,
        options: &LatencyOptions,
        report: &mut LatencyReport,
    ) -> Result<(), BenchError> {
        let exchange = self.exchange(group)?;
        let mut missing = Vec::new();
        for contender in &mut self.contenders {
            let populated = contender.populate(group.objects)?;
            if let Ok(Some(populated)) = &populated
                && populated.activated as usize >= MANY_OBJECTS / 2
            {
                report.activations.push(ActivationRow {
                    layout: self.layout.name,
                    peer: contender.peer,
                    settings: contender.settings.clone(),
                    objects: group.objects,
                    activated: populated.activated,
                    us_each: populated.nanoseconds as f64 / 1e3 / f64::from(populated.activated),
                    resident_bytes_each: populated.resident_bytes as f64 / f64::from(populated.activated),
                    servant_bytes: populated.servant_bytes,
                });
            }
            missing.push(populated.err());
        }
        let entries = self.entries(&group, options);
        let data = group.cell(Invocation::Sii, 1).data();
        let calls = options.calls(group.objects, group.units > 0);
        let contest = Contest {
            samples: calls.div_ceil(group.calls_per_sample()),
            repetitions: options.repetitions(),
            calls_per_sample: group.calls_per_sample(),
            warm_up: calls.div_ceil(group.calls_per_sample()).min(WARM_UP_CALLS),
            time_max: None,
        };
        for contender in &self.contenders {
            contender.running.as_ref().map_or(Ok(()), |running| running.forget())?;
        }
        let load = load();
        let mut calls_of = vec![0; self.contenders.len()];
        let mut sides: Vec<Option<Box<dyn Side + '_>>> =
            vec![Some(Box::new(RawSide::connect(&self.raw, exchange)?))];
        for (slot, entry) in entries.iter().enumerate() {
            let contender = &self.contenders[entry.contender];
            sides.push(match (&contender.running, &missing[entry.contender]) {
                (Ok(running), None) => {
                    let mut cell = group.cell(entry.invocation, options.iterations);
                    if entry.calls_one {
                        cell.objects = 1;
                    } else if group.objects >= MANY_OBJECTS {
                        // Turns are too short to come round, and first calls are not what is compared.
                        let cell = Cell { algorithm: Algorithm::Robin, ..cell };
                        let samples = group.objects.div_ceil(group.calls_per_sample());
                        running.side(&cell, &data, slot)?.each(&mut vec![0; samples])?;
                        calls_of[entry.contender] += samples * group.calls_per_sample();
                    }
                    calls_of[entry.contender] += contest.calls();
                    Some(running.side(&cell, &data, slot)?)
                }
                _ => None,
            });
        }
        let results = contest.run(&mut sides)?;
        drop(sides);
        for (contender, calls) in self.contenders.iter().zip(calls_of) {
            if let (Ok(running), true) = (&contender.running, calls > 0) {
                running.check(&group, calls)?;
            }
        }
        let compared = Compared { bench: self, entries: &entries, results: &results };
        for (place, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.calls_one) {
            let contender = &self.contenders[entry.contender];
            let why = missing[entry.contender].clone().unwrap_or_else(|| "not started".to_owned());
            let row = CellRow {
                layout: self.layout.name,
                transport: self.transport,
                algorithm: group.algorithm,
                mode: group.mode,
                ty: group.ty,
                units: group.units,
                objects: group.objects,
                peer: contender.peer,
                settings: contender.settings.clone(),
                invocation: entry.invocation,
                request_bytes: exchange.request_bytes,
                reply_bytes: exchange.reply_bytes,
                calls: contest.samples * contest.repetitions * contest.calls_per_sample,
                outcome: compared.outcome(place).map_or_else(
                    || Outcome::Missing { missing: format!("{}: {why}", contender.peer.title()) },
                    Outcome::Measured,
                ),
                load,
            };
            report.rows.push(row);
        }
        Ok(())
    }

    fn entries(&self, group: &Group, options: &LatencyOptions) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (contender, it) in self.contenders.iter().enumerate() {
            for &invocation in options.invocations.iter().filter(|&&way| group.allows(it.peer, way)) {
                // With many objects the question is what they cost, not how requests are made.
                if group.objects < MANY_OBJECTS || invocation == Invocation::Sii || options.is_filtered() {
                    entries.push(Entry { contender, invocation, calls_one: false });
                }
            }
            if group.objects >= MANY_OBJECTS && group.mode == Mode::Twoway {
                entries.push(Entry { contender, invocation: Invocation::Sii, calls_one: true });
            }
        }
        entries
    }

    /// Bytes on the wire of one sample, counted once for each kind of call.
    fn exchange(&mut self, group: Group) -> Result<Exchange, BenchError> {
        let key = (group.mode, group.ty, group.units);
        if let Some(exchange) = self.exchanges.get(&key) {
            return Ok(*exchange);
        }
        // The server has one object, and is there: it is ours.
        self.counted.populate(1)?.ok();
        let exchange = match self.counted.running.as_ref().ok().and_then(|running| running.ours()) {
            Some((_, objects)) => count(objects, group)?,
            None => return Err(fault("has no objects to count with")),
        };
        self.exchanges.insert(key, exchange);
        Ok(exchange)
    }
}

/// Counts the bytes of one sample in the steady state.
fn count(objects: &Objects, group: Group) -> Result<Exchange, BenchError> {
    use ironorb::TypedRef;

    let orb = Orb::builder().no_endpoint().build()?;
    let object = objects.first().ok_or_else(|| fault("has no object"))?;
    let relay = Relay::to(object.object()).map_err(BenchError::io("relay calls"))?;
    let objects = Objects::relayed(&orb, relay.reference())?;
    let mut cell = group.cell(Invocation::Sii, 1);
    cell.objects = 1;
    let data: Data = cell.data();
    let mut client = Client::new(&objects, &cell, &data)?;
    // The first call tells the code sets.
    client.sample()?;
    let (requests_before, replies_before) = relay.counted();
    client.sample()?;
    let (requests_after, replies_after) = relay.counted();
    drop(client);
    orb.shutdown(false)?;
    let requests = group.calls_per_sample();
    Ok(Exchange {
        requests,
        request_bytes: (requests_after - requests_before) / requests,
        reply_bytes: replies_after - replies_before,
    })
}

/// The results of a group, to be compared with one another.
struct Compared<'a> {
    bench: &'a Bench,
    entries: &'a [Entry],
    results: &'a [Option<Repeated>],
}

impl Compared<'_> {
    fn outcome(&self, place: usize) -> Option<Measured> {
        let entry = &self.entries[place];
        let (raw, subject) = (self.results[0].as_ref()?, self.results[place + 1].as_ref()?);
        let contender = &self.bench.contenders[entry.contender];
        let over = |is_it: &dyn Fn(&Entry, &Contender) -> bool| {
            let other = self.entries.iter().position(|other| {
                let other_contender = &self.bench.contenders[other.contender];
                is_it(other, other_contender)
            })?;
            (other != place).then_some(())?;
            self.results[other + 1].as_ref().map(|other| subject.over(other))
        };
        let over_peer = |peer: Peer| {
            (contender.peer == Peer::Ironorb)
                .then(|| over(&|e, c| c.peer == peer && e.invocation == entry.invocation && !e.calls_one))
                .flatten()
        };
        Some(Measured {
            raw: raw.calls.latency(),
            subject: subject.calls.latency(),
            over_raw: subject.over(raw),
            over_sii: over(&|e, _| {
                (e.contender, e.invocation, e.calls_one) == (entry.contender, Invocation::Sii, false)
            }),
            over_one: over(&|e, _| e.calls_one && e.contender == entry.contender),
            over_default: over(&|e, c| {
                c.peer == contender.peer
                    && c.settings == Settings::default()
                    && (e.invocation, e.calls_one) == (entry.invocation, false)
            }),
            over_omniorb: over_peer(Peer::Omniorb),
            over_jacorb: over_peer(Peer::Jacorb),
        })
    }
}

/// Samples of each side before its group is measured.
const WARM_UP_CALLS: usize = 200;

fn fault(what: &str) -> BenchError {
    BenchError::Process { role: "latency-server".to_owned(), what: what.to_owned() }
}
