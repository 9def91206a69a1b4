//! `ironorb bench ttcp --breakdown`: where the time of both sides goes, in the form of the paper's Tables 1
//! to 3 and beside their figures.

use ironorb::probe;

use super::options::TtcpOptions;
use super::{Venue, contender, flow, venue};
use crate::error::BenchError;
use crate::machine::{Layout, load};
use crate::render::Table;
use crate::row::{Parameters, Row, parameters};
use crate::sequences::{Calls, Server};
use crate::settings::Settings;
use crate::variant::DataType::{self, Octet, Struct};
use crate::variant::{Invocation, Mode, ServantKind, name};
use crate::watch::{ALLOCATE, DEMARSHAL, MEMCPY, POPULATE, READ, TYPE_CODE, WRITE, Watch, Watched, shares};

const NOTES: &str = "ms for each 64 MB in the sequences, the mean of all runs, and per cent of the thread's whole time; below each category\n\
    its stages. read includes the time in which the thread waits for bytes, write the time in which it waits for room.\n\
    probes: the cost of measuring, subtracted elsewhere. unaccounted: the application, and code without probes. Orbix and\n\
    ORBeline: the paper's figures, of 1996, on two machines with processors of 70 MHz over ATM.";

/// The bytes to which times refer: 64 MiB, as in the paper.
const OF_BYTES: f64 = (64 << 20) as f64;

/// Measures the requested calls. An error in a build without probes.
pub(super) fn measure(options: &TtcpOptions) -> Result<Table, BenchError> {
    if !probe::ENABLED {
        return Err(BenchError::NoProbes);
    }
    let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
    let mut rows = Vec::new();
    for layout in Layout::of(&options.placements) {
        for &transport in options.watched_transports() {
            let venue = Venue { transport, folder: folder.path(), ..venue(layout, options) };
            let mut server = Server::new(contender::ours("latency", Settings::default(), venue)?);
            server.populate(1)?.ok();
            let watch = server.watch()?;
            for buffer in options.watched_buffers() {
                for (mode, servant) in analyses(options) {
                    for &ty in options.watched_types() {
                        let calls = Calls { servant, ..flow(options, mode, ty, buffer)? };
                        let place = parameters![
                            buffer_bytes = buffer,
                            queue_bytes = options.queue,
                            transport = transport,
                            layout = layout.name,
                        ];
                        rows.extend(watched(&server, &watch, options, calls, place)?);
                    }
                }
            }
        }
    }
    let table = Table::new("breakdown", "where the time goes", rows).notes(NOTES).blocks(&[
        "table",
        "side",
        "type",
        "mode",
        "servant",
        "buffer_bytes",
        "transport",
        "layout",
        "load",
        "bytes",
        "queue_bytes",
    ]);
    Ok(Table { across: Some("column"), ..table })
}

/// The paper's analyses, unless other calls are requested.
fn analyses(options: &TtcpOptions) -> Vec<(Mode, ServantKind)> {
    let each = |&mode| options.servants.iter().map(move |&servant| (mode, servant));
    let all: Vec<_> = options.modes.iter().flat_map(each).collect();
    let everything = all.len() == Mode::ALL.len() * ServantKind::ALL.len();
    let is_chosen = |&(mode, servant): &_| !everything || Analysis::of(mode, servant) != Analysis::Other;
    all.into_iter().filter(is_chosen).collect()
}

fn watched(
    server: &Server,
    watch: &Watch,
    options: &TtcpOptions,
    calls: Calls,
    place: Parameters,
) -> Result<Vec<Row>, BenchError> {
    let Calls { mode, servant, ty, .. } = calls;
    crate::note(format_args!("watching {}s of {}, {}", name(ty), calls.units, name(mode)));
    let data = calls.data();
    let mut senders = Vec::new();
    for &invocation in &options.invocations {
        let sample = server.sample(Calls { invocation, ..calls }, &data)?;
        senders.push((name(invocation), sample, Watched::default()));
    }
    let load = load();
    for (_, sample, _) in &mut senders {
        sample()?; // to warm up
    }
    let repetitions = options.run.repetitions(10);
    for _ in 0..repetitions {
        for (_, sample, all) in &mut senders {
            *all += watch.during(sample)?;
        }
    }
    let all_bytes = repetitions * calls.batch * calls.units * ty.element_bytes();
    let mut rows = Vec::new();
    for side in ["client", "server"] {
        let analysis = Analysis::of(mode, servant);
        let of = parameters![
            table = analysis.number(side), side = side, type = ty, mode = mode, servant = servant, load = load,
            bytes = all_bytes,
        ];
        let within = |column: &str, category: &str, stage: &str| {
            let share = parameters![category = category, stage = stage, column = column];
            [&of[..], &place, &share].concat()
        };
        for (column, _, all) in &senders {
            let counted = if side == "client" { &all.client } else { &all.server };
            let within = |category: &str, stage: &str| within(column, category, stage);
            rows.extend(shares(within, counted, ("ms", 1e-3), all_bytes as f64 / OF_BYTES));
        }
        let is_here = |column: &&Column| (column.analysis, column.side, column.ty) == (analysis, side, ty);
        for column in COLUMNS.iter().filter(is_here) {
            for (category, ms, percent) in column.shares {
                let numbers = [("ms", f64::from(*ms)), ("percent", *percent)];
                rows.push(Row::of_numbers(within(&column.name(), category, ""), numbers));
            }
        }
    }
    Ok(rows)
}

/// An analysis of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Analysis {
    /// Table 1 for the client, Table 2 for the server.
    Oneway,
    /// Table 3 for both sides.
    TwowayToDsi,
    /// An analysis that the paper does not have.
    Other,
}

impl Analysis {
    fn of(mode: Mode, servant: ServantKind) -> Analysis {
        match (mode, servant) {
            (Mode::Oneway, ServantKind::Static) => Analysis::Oneway,
            (Mode::Twoway, ServantKind::Dsi) => Analysis::TwowayToDsi,
            _ => Analysis::Other,
        }
    }

    /// The number of the paper's table.
    fn number(self, side: &str) -> Option<u8> {
        match (self, side) {
            (Analysis::Oneway, "client") => Some(1),
            (Analysis::Oneway, _) => Some(2),
            (Analysis::TwowayToDsi, _) => Some(3),
            (Analysis::Other, _) => None,
        }
    }
}

/// The paper's figures for one side and one type, of one ORB and way to call: milliseconds and per cent of the
/// largest categories.
pub(super) struct Column {
    analysis: Analysis,
    side: &'static str,
    pub(super) ty: DataType,
    pub(super) orb: &'static str,
    /// `new`, `reused`, or empty where the paper has only one way.
    way: &'static str,
    shares: &'static [(&'static str, u32, f64)],
}

impl Column {
    fn name(&self) -> String {
        format!("{} {}", self.orb, self.way).trim().to_owned()
    }

    /// The calls of the column. Orbix cannot send a request again. A column of ORBeline without a way is one of reused
    /// requests.
    pub(super) fn calls(&self) -> (Mode, Invocation, ServantKind) {
        let is_new = self.way == "new" || self.orb == "Orbix";
        let invocation = if is_new { Invocation::DiiNew } else { Invocation::DiiReused };
        match self.analysis {
            Analysis::TwowayToDsi => (Mode::Twoway, invocation, ServantKind::Dsi),
            _ => (Mode::Oneway, invocation, ServantKind::Static),
        }
    }

    /// The throughput that follows from a client's column: its largest category tells the whole time.
    pub(super) fn mbit_s(&self) -> Option<f64> {
        let (_, ms, percent) = self.shares.first().filter(|_| self.side == "client")?;
        Some(OF_BYTES * 8.0 / 1e6 / (f64::from(*ms) / percent * 100.0 / 1000.0))
    }

    /// The number of the paper's table.
    pub(super) fn table(&self) -> Option<u8> {
        self.analysis.number(self.side)
    }
}

const fn column(
    analysis: Analysis,
    side: &'static str,
    ty: DataType,
    (orb, way): (&'static str, &'static str),
    shares: &'static [(&'static str, u32, f64)],
) -> Column {
    Column { analysis, side, ty, orb, way, shares }
}

const ORBIX: (&str, &str) = ("Orbix", "");
const NEW: (&str, &str) = ("ORBeline", "new");
const REUSED: (&str, &str) = ("ORBeline", "reused");
const ORBELINE: (&str, &str) = ("ORBeline", "");

#[rustfmt::skip] // a table
pub(super) const COLUMNS: [Column; 16] = [
    column(Analysis::Oneway, "client", Octet, ORBIX,
        &[(WRITE, 26_728, 73.52), (POPULATE, 7_160, 19.70), (ALLOCATE, 1_164, 3.15), (MEMCPY, 895, 2.46)]),
    column(Analysis::Oneway, "client", Octet, NEW, &[(WRITE, 4_623, 61.14), (MEMCPY, 1_791, 23.69), (ALLOCATE, 940, 12.43)]),
    column(Analysis::Oneway, "client", Octet, REUSED, &[(WRITE, 5_794, 85.83), (MEMCPY, 898, 13.31)]),
    column(Analysis::Oneway, "client", Struct, ORBIX, &[(POPULATE, 397_724, 96.6), (WRITE, 5_016, 1.23)]),
    column(Analysis::Oneway, "client", Struct, NEW,
        &[(WRITE, 77_605, 55.72), (POPULATE, 22_215, 15.95), (MEMCPY, 13_428, 9.64)]),
    column(Analysis::Oneway, "client", Struct, REUSED, &[(WRITE, 76_575, 64.89), (POPULATE, 14_168, 12.01)]),
    column(Analysis::Oneway, "server", Octet, ORBIX, &[(TYPE_CODE, 3_361, 50.00), (READ, 2_140, 32.00), (MEMCPY, 896, 13.39)]),
    column(Analysis::Oneway, "server", Octet, NEW, &[(READ, 3_177, 90.48)]),
    column(Analysis::Oneway, "server", Octet, REUSED, &[(READ, 3_238, 90.60)]),
    column(Analysis::Oneway, "server", Struct, ORBIX,
        &[(DEMARSHAL, 11_849, 49.00), (TYPE_CODE, 6_665, 27.57), (READ, 4_985, 20.62)]),
    column(Analysis::Oneway, "server", Struct, NEW,
        &[(DEMARSHAL, 10_552, 58.52), (MEMCPY, 3_878, 21.5), (READ, 3_318, 18.4)]),
    column(Analysis::Oneway, "server", Struct, REUSED,
        &[(DEMARSHAL, 10_552, 58.52), (MEMCPY, 3_878, 21.41), (READ, 3_395, 18.74)]),
    column(Analysis::TwowayToDsi, "client", Octet, ORBELINE,
        &[(READ, 3_911, 47.95), (WRITE, 2_923, 35.84), (MEMCPY, 912, 11.19)]),
    column(Analysis::TwowayToDsi, "client", Struct, ORBELINE,
        &[(WRITE, 505_914, 91.34), (POPULATE, 13_341, 2.41), (MEMCPY, 7_198, 1.30), (READ, 5_062, 0.91)]),
    column(Analysis::TwowayToDsi, "server", Octet, ORBELINE,
        &[(WRITE, 23_572, 82.00), (MEMCPY, 2_701, 9.40), (READ, 1_806, 6.29)]),
    column(Analysis::TwowayToDsi, "server", Struct, ORBELINE,
        &[(WRITE, 1_250_130, 92.41), (DEMARSHAL, 39_373, 2.89), (MEMCPY, 19_693, 1.46)]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_the_paper_is_part_of_a_whole() {
        for Column { shares, side, .. } in COLUMNS {
            let percent: f64 = shares.iter().map(|(.., percent)| percent).sum();
            assert!(percent <= 100.0, "{side} {shares:?}");
            // All lines of a column imply one whole, within the precision of their digits.
            let wholes = shares.iter().map(|(_, ms, percent)| f64::from(*ms) * 100.0 / percent);
            let (least, most) = wholes
                .fold((f64::INFINITY, 0f64), |(least, most), whole| (least.min(whole), most.max(whole)));
            assert!(most / least < 1.05, "{side} {shares:?}: {least} to {most}");
        }
    }

    #[test]
    fn structs_go_at_the_rate_that_the_text_tells() {
        // The text says "between 1 and 4 Mbit/s".
        let rates: Vec<f64> =
            COLUMNS.iter().filter(|column| column.ty == Struct).filter_map(Column::mbit_s).collect();
        assert_eq!(rates.len(), 4);
        assert!(rates.iter().all(|rate| (0.9..4.6).contains(rate)), "{rates:?}");
    }
}
