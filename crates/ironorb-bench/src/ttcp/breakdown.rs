//! `ironorb bench ttcp --breakdown`: where the time of both sides goes, in the form of the paper's Tables 1
//! to 3 and beside their figures.

use ironorb::probe;

use super::options::TtcpOptions;
use super::{Venue, contender, flow, paper, venue};
use crate::error::BenchError;
use crate::machine::{Layout, load};
use crate::render::Table;
use crate::row::{Parameters, Row, parameters};
use crate::sequences::{Calls, Server};
use crate::settings::Settings;
use crate::variant::{Mode, ServantKind, name};
use crate::watch::{Watch, Watched, shares};

const NOTES: &str = "ms for each 64 MB in the sequences, the mean of all runs, and per cent of the thread's whole time; below each category\n\
    its stages. read includes the time in which the thread waits for bytes, write the time in which it waits for room.\n\
    probes: the cost of measuring, subtracted elsewhere. unaccounted: the application, and code without probes. Orbix and\n\
    ORBeline: the paper's figures, of 1996, on two machines with processors of 70 MHz over ATM.";

/// The bytes to which times refer: 64 MiB, as in the paper.
pub(super) const OF_BYTES: f64 = (64 << 20) as f64;

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
    let is_chosen = |&(mode, servant): &_| !everything || table_of(mode, servant, "client").is_some();
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
        let table = table_of(mode, servant, side);
        let of = parameters![
            table = table, side = side, type = ty, mode = mode, servant = servant, load = load,
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
        let Some(table) = table else { continue };
        let wanted = [("table", table.to_string()), ("side", side.to_owned()), ("type", name(ty))];
        let is_here = |share: &Row| wanted.iter().all(|(name, text)| share.text(name) == *text);
        for share in paper::shares().into_iter().filter(is_here) {
            let parameters = within(&share.text("column"), &share.text("category"), "");
            rows.push(Row { parameters, ..share });
        }
    }
    Ok(rows)
}

/// The number of the paper's table of these calls. The paper has no other analyses.
fn table_of(mode: Mode, servant: ServantKind, side: &str) -> Option<u8> {
    match (mode, servant, side) {
        (Mode::Oneway, ServantKind::Static, "client") => Some(1),
        (Mode::Oneway, ServantKind::Static, _) => Some(2),
        (Mode::Twoway, ServantKind::Dsi, _) => Some(3),
        _ => None,
    }
}
