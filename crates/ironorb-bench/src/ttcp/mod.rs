//! `ironorb bench ttcp`: CORBA-TTCP. How many bytes a second calls of each kind carry, beside a plain stream socket that
//! carries the same bytes.
//!
//! What belongs together - one placement, transport, mode, type and buffer - is one group. In each of its repetitions the
//! plain stream and every kind of call send the same total in turn, in another order each time, so that whatever disturbs
//! the machine disturbs all of them; ratios are between runs of one repetition. Each sends one message a buffer: there is
//! no batching on any side but what the system and the receivers' spaces do.
//!
//! Every run ends with the receiver's count of what it took, and is an error if that is not what was sent.

mod data;
mod options;
mod receiver;
mod report;
pub(crate) mod role;
mod sender;
mod stream;
mod variant;

use ironorb::Orb;

pub use options::TtcpOptions;
pub use report::{Throughput, TtcpReport, TtcpRow};
pub use variant::{Bytes, DataType, Invocation, Mode, ServantKind, Transport};

use crate::error::BenchError;
use crate::machine::{Layout, Machine, Unpin, load, pin};
use crate::process::Process;
use crate::statistics::Collector;
use data::Data;
use role::References;
use sender::{Sender, Way};
use stream::{Flow, StreamSender};

/// Carries out `ironorb bench ttcp`: measures the rows that were asked for, and writes the files that were asked for. Tells
/// its progress on standard error. Keeps the calling thread on one processor meanwhile.
pub fn ttcp(options: &TtcpOptions) -> Result<TtcpReport, BenchError> {
    let groups = groups(options)?;
    let mut report = TtcpReport::new(Machine::this());
    let _unpin = Unpin::later();
    let layouts = Layout::of(&options.placements);
    let of = layouts.len() * options.transports.len() * groups.len();
    let mut number = 0;
    for layout in layouts {
        for &transport in &options.transports {
            let bench = Bench::start(layout, transport)?;
            for &group in &groups {
                number += 1;
                eprintln!("measuring {group}, {} ({number} of {of})", variant::name(transport));
                report.rows.extend(bench.measure(group, options)?);
            }
        }
    }
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    Ok(report)
}

/// What is compared.
#[derive(Debug, Clone, Copy)]
struct Group {
    mode: Mode,
    ty: DataType,
    buffer: Bytes,
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}s of {}, {}", variant::name(self.ty), self.buffer, variant::name(self.mode))
    }
}

/// The largest buffer: with what is around it, well within the largest message of either ORB.
const BUFFER_BYTES_MAX: usize = 32 << 20;

fn groups(options: &TtcpOptions) -> Result<Vec<Group>, BenchError> {
    let mut groups = Vec::new();
    for &mode in &options.modes {
        for &ty in &options.types {
            for bytes in options.buffers() {
                if bytes < ty.element_bytes() || bytes > BUFFER_BYTES_MAX {
                    let ty = variant::name(ty);
                    return Err(BenchError::Buffer { bytes, ty, most: BUFFER_BYTES_MAX });
                }
                groups.push(Group { mode, ty, buffer: Bytes(bytes) });
            }
        }
    }
    Ok(groups)
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Subject {
    invocation: Invocation,
    servant: ServantKind,
}

/// The servers of one layout and transport.
struct Bench {
    layout: Layout,
    transport: Transport,
    raw: String,
    references: References,
    orb: Orb,
    _servers: [Process; 2],
    _folder: tempfile::TempDir,
}

impl Bench {
    fn start(layout: Layout, transport: Transport) -> Result<Bench, BenchError> {
        let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
        let args = [
            "--core".to_owned(),
            layout.server.to_string(),
            "--transport".to_owned(),
            variant::name(transport),
            "--folder".to_owned(),
            folder.path().display().to_string(),
        ];
        let mut raw = Process::start(&[], "ttcp-raw-server", &args)?;
        let mut server = Process::start(&[], "ttcp-server", &args)?;
        let bench = Bench {
            layout,
            transport,
            raw: raw.address()?,
            references: References::parse(&server.address()?)?,
            orb: Orb::builder().no_endpoint().build()?,
            _servers: [raw, server],
            _folder: folder,
        };
        pin(layout.client)?;
        Ok(bench)
    }

    fn measure(&self, group: Group, options: &TtcpOptions) -> Result<Vec<TtcpRow>, BenchError> {
        let sequences = (options.total_bytes() / group.buffer.0).max(1);
        let data = Data::filling(group.ty, group.buffer.0);
        let payload = data.len() * group.ty.element_bytes();
        let flow = Flow::new(group.mode, payload, sequences);
        let raw = StreamSender::connect(self.transport, &self.raw, None, flow);
        let mut raw = raw.map_err(BenchError::io(format!("connect to {}", self.raw)))?;
        let subjects = subjects(options);
        let mut senders = Vec::new();
        for subject in &subjects {
            let object = self.orb.string_to_object(self.references.of(group.mode, subject.servant))?;
            let way = Way { mode: group.mode, invocation: subject.invocation, data: &data };
            senders.push(Sender::new(&object, way)?);
        }
        let load = load();
        let mut of_raw = Collector::new(sequences);
        let mut of_subjects: Vec<Collector> = subjects.iter().map(|_| Collector::new(sequences)).collect();
        let run_raw = |raw: &mut StreamSender, count| {
            raw.run(count).map_err(BenchError::io("send to the plain server"))
        };
        // To warm up: connections, buffers, caches.
        run_raw(&mut raw, flow.buffers_an_answer)?;
        for sender in &mut senders {
            sender.run(sequences.min(WARM_UP_SEQUENCES))?;
        }
        let mut elements = vec![0; subjects.len()];
        for repetition in 0..options.repetitions() {
            // Place 0 is the plain stream's.
            for turn in 0..=senders.len() {
                match (turn + repetition) % (senders.len() + 1) {
                    0 => of_raw.add(&[run_raw(&mut raw, sequences)?]),
                    place => {
                        let run = senders[place - 1].run(sequences)?;
                        of_subjects[place - 1].add(&[run.sender_nanos]);
                        elements[place - 1] += run.tally.elements;
                    }
                }
            }
        }
        let rows =
            subjects.iter().zip(&of_subjects).zip(&elements).map(|((subject, collector), elements)| {
                TtcpRow {
                    layout: self.layout.name,
                    transport: self.transport,
                    mode: group.mode,
                    ty: group.ty,
                    buffer: group.buffer,
                    peer: "ironorb",
                    invocation: subject.invocation,
                    servant: subject.servant,
                    sequences_a_run: sequences,
                    bytes_a_run: sequences * payload,
                    repetitions: options.repetitions(),
                    elements_received: *elements,
                    raw: Throughput::of(&of_raw, payload),
                    subject: Throughput::of(collector, payload),
                    of_raw: of_raw.over(collector),
                    load,
                }
            });
        Ok(rows.collect())
    }
}

const WARM_UP_SEQUENCES: usize = 64;

fn subjects(options: &TtcpOptions) -> Vec<Subject> {
    let each = |&servant| options.invocations.iter().map(move |&invocation| Subject { invocation, servant });
    options.servants.iter().flat_map(each).collect()
}
