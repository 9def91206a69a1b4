//! `ironorb bench ttcp --breakdown`: where the time of both sides goes, in the shape of the paper's Tables 1 to 3 and
//! beside their figures.

mod category;
mod page;
mod paper;
mod table;

use std::fmt;
use std::path::Path;

use ironorb::{Orb, probe};
use serde::Serialize;

pub use category::{Category, Part};
pub use paper::PaperColumn;
pub use table::WatchedSide;

use super::BUFFER_BYTES_MAX;
use super::bench::{WARM_UP_SEQUENCES, server_args};
use super::options::TtcpOptions;
use super::role::{References, set_queues};
use super::sender::{Sender, Way};
use crate::breakdown::{Shares, Sides, Watch};
use crate::error::BenchError;
use crate::machine::{Layout, Machine, Unpin, load, pin};
use crate::process::Process;
use crate::report::write_lines;
use crate::ttcp::Data;
use crate::variant::{self, Bytes, DataType, Invocation, Mode, ServantKind, Transport};
use table::{Table, fmt_table};

/// The result of `ironorb bench ttcp --breakdown`. Its `Display` is the tables.
#[derive(Debug)]
pub struct TtcpBreakdown {
    machine: Machine,
    /// One for each side of each kind of call.
    pub rows: Vec<BreakdownRow>,
}

/// Where the time of one side went, for each 64 MiB of what was in the sequences.
#[derive(Debug, Clone, Serialize)]
pub struct BreakdownRow {
    /// Of the paper, if it has it.
    pub table: Option<u8>,
    /// Whose time.
    pub side: WatchedSide,
    /// Which processor each side was on.
    pub layout: &'static str,
    /// What carried the bytes.
    pub transport: Transport,
    /// Whether the client waited.
    pub mode: Mode,
    /// Of the elements.
    #[serde(rename = "type")]
    pub ty: DataType,
    /// Bytes of the system's queues; `None` where it chooses.
    #[serde(rename = "queue_bytes")]
    pub queue: Option<Bytes>,
    /// Bytes that a sequence has room for.
    #[serde(rename = "buffer_bytes")]
    pub buffer: Bytes,
    /// How the client called.
    pub invocation: Invocation,
    /// What it called.
    pub servant: ServantKind,
    /// Runs that were watched.
    pub repetitions: usize,
    /// Bytes of all elements of these.
    pub bytes: usize,
    /// By the paper's categories.
    pub categories: Vec<(Category, Part)>,
    /// By the ORB's stages.
    pub shares: Shares,
    /// What the paper has of this table, side and type.
    pub paper: Vec<PaperColumn>,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

/// Watches the calls that were asked for, and writes the files that were asked for. An error in a build without probes.
pub fn ttcp_breakdown(options: &TtcpOptions) -> Result<TtcpBreakdown, BenchError> {
    if !probe::ENABLED {
        return Err(BenchError::NoProbes);
    }
    let mut report = TtcpBreakdown { machine: Machine::this(), rows: Vec::new() };
    let _unpin = Unpin::later();
    for layout in Layout::of(&options.placements) {
        for &transport in options.watched_transports() {
            let watched = Watched::start(layout, transport, options)?;
            for buffer in options.watched_buffers() {
                for (mode, servant) in analyses(options) {
                    for &ty in options.watched_types() {
                        report.rows.extend(watched.measure(options, ty, buffer, mode, servant)?);
                    }
                }
            }
        }
    }
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    if let Some(file) = &options.html {
        page::write(&report, file)?;
    }
    Ok(report)
}

/// Those of the paper, unless others were asked for.
fn analyses(options: &TtcpOptions) -> Vec<(Mode, ServantKind)> {
    let each = |&mode| options.servants.iter().map(move |&servant| (mode, servant));
    let all: Vec<_> = options.modes.iter().flat_map(each).collect();
    let everything = all.len() == Mode::ALL.len() * ServantKind::ALL.len();
    let is_chosen = |&(mode, servant): &_| !everything || Table::of(mode, servant) != Table::Other;
    all.into_iter().filter(is_chosen).collect()
}

/// A server whose thread is watched.
struct Watched {
    layout: Layout,
    transport: Transport,
    references: References,
    orb: Orb,
    watch: Watch,
    _server: Process,
    _folder: tempfile::TempDir,
}

impl Watched {
    fn start(layout: Layout, transport: Transport, options: &TtcpOptions) -> Result<Watched, BenchError> {
        let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
        let args = server_args(layout, transport, &folder, options);
        let mut server = Process::start(&[], "ttcp-server", &args)?;
        let references = References::parse(&server.address()?)?;
        let mut builder = Orb::builder().no_endpoint();
        set_queues(builder.config(), options.queue_bytes());
        let orb = builder.build()?;
        let teller = references.teller().ok_or_else(|| BenchError::Process {
            role: "ttcp-server".to_owned(),
            what: "does not tell what it counts".to_owned(),
        })?;
        let watch = Watch::new(orb.string_to_object(teller)?)?;
        pin(layout.client)?;
        Ok(Watched { layout, transport, references, orb, watch, _server: server, _folder: folder })
    }

    fn measure(
        &self,
        options: &TtcpOptions,
        ty: DataType,
        buffer: Bytes,
        mode: Mode,
        servant: ServantKind,
    ) -> Result<Vec<BreakdownRow>, BenchError> {
        let bytes = buffer.0;
        if bytes < ty.element_bytes() || bytes > BUFFER_BYTES_MAX {
            return Err(BenchError::Buffer { bytes, ty: variant::name(ty), most: BUFFER_BYTES_MAX });
        }
        eprintln!("watching {}s of {buffer}, {}", variant::name(ty), variant::name(mode));
        let sequences = (options.total_bytes() / bytes).max(1);
        let data = Data::filling(ty, bytes);
        let payload = data.len() * ty.element_bytes();
        let object = self.orb.string_to_object(self.references.of(mode, servant))?;
        let mut senders = Vec::new();
        for &invocation in &options.invocations {
            let way = Way { mode, invocation, data: &data };
            senders.push((invocation, Sender::new(&object, way)?, Sides::default()));
        }
        let load = load();
        for (_, sender, _) in &mut senders {
            sender.run(sequences.min(WARM_UP_SEQUENCES))?;
        }
        for _ in 0..options.repetitions() {
            for (_, sender, all) in &mut senders {
                let (_, sides) = self.watch.during(|| sender.run(sequences))?;
                *all += &sides;
            }
        }
        let bytes = options.repetitions() * sequences * payload;
        let rows = senders.iter().flat_map(|(invocation, _, all)| {
            [(WatchedSide::Client, &all.client), (WatchedSide::Server, &all.server)].map(|(side, counted)| {
                let table = Table::of(mode, servant);
                let shares = Shares::of(counted, bytes as f64 / OF_BYTES as f64);
                BreakdownRow {
                    table: table.number(side),
                    side,
                    layout: self.layout.name,
                    transport: self.transport,
                    mode,
                    ty,
                    buffer,
                    queue: options.queue,
                    invocation: *invocation,
                    servant,
                    repetitions: options.repetitions(),
                    bytes,
                    categories: Category::ALL.map(|it| (it, it.part_of(&shares))).to_vec(),
                    shares,
                    paper: paper::columns(table, side, ty).collect(),
                    load,
                }
            })
        });
        Ok(rows.collect())
    }
}

/// What times are told for: 64 MiB, as in the paper.
const OF_BYTES: usize = 64 << 20;

impl TtcpBreakdown {
    /// Writes each row as a line of JSON, with where it was measured.
    pub fn write_json(&self, file: &Path) -> Result<(), BenchError> {
        write_lines(file, "ttcp", "breakdown", &self.rows, &self.machine)
    }
}

impl TtcpBreakdown {
    /// The rows of each table: of one side, and different only in their types and invocations.
    fn tables(&self) -> Vec<Vec<&BreakdownRow>> {
        let block = |row: &BreakdownRow| (row.layout, row.transport, row.buffer, row.mode, row.servant);
        let blocks = self.rows.chunk_by(|a, b| block(a) == block(b));
        blocks
            .flat_map(|rows| [WatchedSide::Client, WatchedSide::Server].map(|side| (rows, side)))
            .map(|(rows, side)| rows.iter().filter(|row| row.side == side).collect())
            .collect()
    }
}

impl fmt::Display for TtcpBreakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)?;
        self.tables().iter().try_for_each(|rows| fmt_table(rows, f))?;
        writeln!(
            f,
            "\nms for each 64 MB of what is in the sequences, the mean of all runs, and per cent of all time of the thread.\n\
             read has the time in which the thread waited for bytes, write that in which it waited for room for them.\n\
             probes: what measuring costs, taken off everything else. unaccounted: the application, and what has no probe.\n\
             Right of the bar: the paper's figures, of 1996, on two machines with processors of 70 MHz over ATM."
        )
    }
}
