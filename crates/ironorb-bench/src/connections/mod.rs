//! `ironorb bench connections`: the cost of thousands of connections, idle and active, for a server and for a
//! client that calls beside them.
//!
//! The connections are plain sockets that repeat a recorded request of this ORB's client. Every ORB's server
//! is thus measured by equal clients.

mod replay;

use std::time::{Duration, Instant};

use ironorb::Orb;
use ironorb_baseline::raw::Exchange;

use crate::contender::{self, Contender, Venue};
use crate::cubit::exchange;
use crate::cubit::rows::CubitRow;
use crate::error::BenchError;
use crate::machine::{Layout, Placement, Unpin, pin, resident_bytes_of, threads_of};
use crate::measure::{Contest, Group, Sample, SendSample, Side};
use crate::options::{Run, Sides};
use crate::plain::{self, Plain};
use crate::render::{Report, Table};
use crate::row::{Measure, Parameters, Row, parameters};
use replay::{Recorded, Replayed};

/// `ironorb bench connections`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ConnectionsOptions {
    /// Numbers of connections that have made a call and are idle.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 10_000])]
    pub(crate) idle: Vec<usize>,
    /// Numbers of connections that call one after another, again and again.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 4_000])]
    pub(crate) active: Vec<usize>,
    #[command(flatten)]
    pub(crate) sides: Sides,
    /// The processors that client and server are pinned to.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Placement::OneCore])]
    pub(crate) placements: Vec<Placement>,
    #[command(flatten)]
    pub(crate) run: Run,
}

const NOTES: &str = "baseline: a plain blocking socket with as many bytes, in turns with the others; for active connections as many plain\n\
    sockets, with a thread each in the server. bytes each: growth of the server's resident memory for each idle connection,\n\
    after a call on it and a pause; threads: of the server meanwhile. Memory of the kernel is not included.";

/// The concurrency models to compare unless other settings are given: all except the default.
const MODELS: [&str; 3] = ["concurrency=threadPerConnection", "concurrency=pool:4", "concurrency=reactor"];

/// Longest time for a server to accept all connections and to answer a call on each.
const OPENING_MAX: Duration = Duration::from_secs(15);

/// Longest time for all turns of a row together.
const TURNS_MAX: Duration = Duration::from_secs(3);

/// Longest time to watch a server that releases memory after a call on each connection, and the interval of
/// measurements.
const RESTING_MAX: Duration = Duration::from_secs(12);
const RESTING_LOOK: Duration = Duration::from_millis(250);

/// Runs `ironorb bench connections`.
pub(crate) fn measure(options: &ConnectionsOptions) -> Result<Report, BenchError> {
    plain::raise_descriptors();
    let mut report = Report::new("connections", "thousands of connections", &options.run);
    let mut rows = Vec::new();
    let _unpin = Unpin::later();
    for layout in Layout::of(&options.placements) {
        pin(layout.server)?;
        let plain = Plain::start(plain::THREADS)?;
        let bytes = exchange(CubitRow::VOID)?;
        let contenders = contender::start("cubit", &sides_of(options), Venue::tcp(Some(layout)))?;
        for &idle in options.run.choose(&[20][..], &options.idle) {
            crate::note(format_args!("measuring beside {idle} idle connections ({})", layout.name));
            for contender in &contenders {
                let plain = Box::new(plain.sample(bytes)?);
                rows.push(beside_idle(layout, idle, plain, contender, &options.run)?);
            }
        }
        for &active in options.run.choose(&[20][..], &options.active) {
            crate::note(format_args!("measuring {active} active connections ({})", layout.name));
            rows.extend(over_active(layout, active, &plain, bytes, &contenders, &options.run)?);
        }
    }
    let title = "void calls beside idle connections, and over many active ones, microseconds a call";
    report.tables.push(Table::new("row", title, rows).blocks(&["layout"]).notes(NOTES));
    Ok(report)
}

/// The given sides, or one for each concurrency model.
fn sides_of(options: &ConnectionsOptions) -> Sides {
    let mut sides = options.sides.clone();
    if sides.with.is_empty() && !options.run.quick {
        // A test checks that each is a setting of this ORB.
        sides.with.extend(MODELS.iter().filter_map(|settings| settings.parse().ok()));
    }
    sides
}

/// Begins a group of void calls, with turns for so many sides.
fn group<'a>(
    parameters: Parameters,
    baseline: Box<dyn Side + 'a>,
    calls: usize,
    sides: usize,
    run: &Run,
) -> Group<'a> {
    let contest = Contest {
        samples: run.choose(40, calls),
        repetitions: run.repetitions(5),
        calls_per_sample: 1,
        warm_up: run.choose(40, calls.min(200)),
        time_max: Some(TURNS_MAX * u32::try_from(sides.div_ceil(2)).unwrap_or(1)),
    };
    Group { parameters, measure: Measure::MICROSECONDS, contest, baseline, entrants: Vec::new() }
}

/// Measures one client's calls beside idle connections.
fn beside_idle(
    layout: Layout,
    idle: usize,
    plain: Box<dyn Side>,
    contender: &Contender,
    run: &Run,
) -> Result<Row, BenchError> {
    let parameters = parameters![layout = layout.name, row = format!("beside {idle} idle"), idle = idle];
    let mut group = group(parameters, plain, 3_000, 2, run);
    let label = contender.label.clone();
    let running = match &contender.running {
        Ok(running) => running,
        Err(why) => {
            group.enter(label, Err(why.clone()));
            return Ok(group.run()?.remove(0));
        }
    };
    let orb = Orb::builder().no_endpoint().build()?;
    let object = orb.string_to_object(&running.reference)?;
    let recorded = Recorded::of(&object)?;
    let server = running.server.id();
    // The client's own connection, and memory that servers keep from earlier, must not count.
    let mut sample = CubitRow::VOID.sample(object.narrow_unchecked());
    sample()?;
    let before = resident_bytes_of(&server);
    let opened = open(idle, &recorded);
    let bytes_each = (resident_at_rest(&server, opened.is_ok()) as f64 - before as f64) / idle.max(1) as f64;
    let threads = threads_of(&server) as f64;
    group.enter(label, opened.as_ref().map_err(String::clone).map(|_| Box::new(sample) as Box<_>));
    let mut row = group.run()?.remove(0);
    row.add_number("bytes_each", bytes_each);
    row.add_number("threads", threads);
    drop(opened);
    orb.shutdown(false)?;
    Ok(row)
}

/// Connections on each of which a call has been answered, or why there are fewer.
fn open(connections: usize, recorded: &Recorded) -> Result<Vec<Replayed>, String> {
    let begun = Instant::now();
    let mut open = Vec::new();
    while open.len() < connections {
        if begun.elapsed() > OPENING_MAX {
            let (count, seconds) = (open.len(), OPENING_MAX.as_secs());
            return Err(format!("answered over {count} connections in {seconds} s"));
        }
        match Replayed::connect(recorded).and_then(|mut it| it.call().map(|()| it)) {
            Ok(connection) => open.push(connection),
            Err(e) => return Err(format!("took {} connections, then: {e}", open.len())),
        }
    }
    Ok(open)
}

/// Resident memory of a server after it has released what it releases when idle.
fn resident_at_rest(server: &str, waits: bool) -> u64 {
    let begun = Instant::now();
    let mut least = resident_bytes_of(server);
    let mut unchanged = 0;
    while waits && unchanged < UNCHANGED_LOOKS && begun.elapsed() < RESTING_MAX {
        std::thread::sleep(RESTING_LOOK);
        let now = resident_bytes_of(server);
        unchanged = if now < least { 0 } else { unchanged + 1 };
        least = least.min(now);
    }
    least
}

/// Number of equal measurements in a row after which the memory counts as stable.
const UNCHANGED_LOOKS: usize = 3;

/// Measures calls over all connections, one after another.
fn over_active(
    layout: Layout,
    active: usize,
    plain: &Plain,
    bytes: Exchange,
    contenders: &[Contender],
    run: &Run,
) -> Result<Vec<Row>, BenchError> {
    let sockets: Vec<_> = (0..active).map(|_| plain.sample(bytes)).collect::<Result<_, _>>()?;
    let parameters = parameters![layout = layout.name, row = format!("over {active} active")];
    let mut group = group(parameters, Box::new(in_turn(sockets)), 4_000, contenders.len() + 1, run);
    for contender in contenders {
        let side = match &contender.running {
            Err(why) => Err(why.clone()),
            Ok(running) => {
                let orb = Orb::builder().no_endpoint().build()?;
                let recorded = Recorded::of(&orb.string_to_object(&running.reference)?)?;
                orb.shutdown(false)?;
                let call = |mut it: Replayed| -> SendSample {
                    Box::new(move || it.call().map_err(BenchError::io("call over one of many connections")))
                };
                open(active, &recorded)
                    .map(|all| Box::new(in_turn(all.into_iter().map(call).collect())) as Box<_>)
            }
        };
        group.enter(contender.label.clone(), side);
    }
    group.run()
}

fn in_turn(mut calls: Vec<SendSample>) -> Sample<'static> {
    let mut next = 0;
    Box::new(move || {
        let place = next;
        next = (next + 1) % calls.len();
        calls[place]()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn every_model_is_a_setting() {
        for settings in MODELS {
            assert!(settings.parse::<Settings>().is_ok(), "{settings}");
        }
    }
}
