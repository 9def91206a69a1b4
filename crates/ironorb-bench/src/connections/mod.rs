//! `ironorb bench connections`: what thousands of connections cost a server, idle and active, and what they cost a client
//! that calls beside them.
//!
//! Connections are plain sockets that send a request which our client was once seen to send, so that every ORB's server is
//! measured by the same client.

mod replay;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::contest::{Contest, RawSide, Side};
use crate::cubit::contender::{Contender, Ours, start};
use crate::cubit::rows::{CubitRow, Value};
use crate::cubit::{Sides, exchange};
use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::CubitRef;
use crate::machine::{Layout, Placement, Unpin, load, pin, resident_bytes_of, threads_of};
use crate::process::Process;
use crate::suite::{Files, Measure, Suite, SuiteReport, SuiteRow, Who, rows};
use crate::targets::Target;
use crate::variant::{Mode, Peer};
use replay::{Recorded, Replayed};

/// `ironorb bench connections`
#[derive(Debug, Clone, clap::Args)]
pub struct ConnectionsOptions {
    /// Connections that have made a call and then rest.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 10_000])]
    pub idle: Vec<usize>,
    /// Connections that call one after the other, again and again.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 4_000])]
    pub active: Vec<usize>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub sides: Sides,
    /// Which processors client and server are kept on.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Placement::OneCore])]
    pub placements: Vec<Placement>,
    /// Turns that each side has in a row. Default 5.
    #[arg(long)]
    pub repetitions: Option<usize>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub files: Files,
    /// Few connections: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
}

const SUITE: Suite = Suite {
    name: "connections",
    title: "void calls beside idle connections, and over many active ones, microseconds a call",
    measure: Measure::Micros,
    notes: "baseline: a plain blocking socket with the same bytes, in turn; for active connections as many plain sockets with a thread\n\
            each in the server. bytes_each: by how much the server's resident memory grew for each idle connection, after a call\n\
            on it and a rest; threads: of the server meanwhile. What the kernel keeps for sockets and threads is not in it.",
};

const VOID: CubitRow = CubitRow { value: Value::Nothing, mode: Mode::Twoway };

/// Bytes that an idle connection may take in the server, from this many connections on.
const IDLE_BYTES_MAX: f64 = 16384.0;

/// The ways to serve connections that are compared where nobody asks for other settings: all but the default.
const MODELS: [&str; 3] = ["concurrency=threadPerConnection", "concurrency=pool:4", "concurrency=reactor"];

/// How long one server may take to accept all connections and to answer a call on each.
const OPENING_MAX: Duration = Duration::from_secs(15);

/// How long all turns of a row may take together.
const TURNS_MAX: Duration = Duration::from_secs(3);

/// How long a server is watched that gives memory back after a call on each connection, and between looks.
const RESTING_MAX: Duration = Duration::from_secs(12);
const RESTING_LOOK: Duration = Duration::from_millis(250);

/// Lets this process have as many descriptors as the system allows.
pub(crate) fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What is refused shows when descriptors run out.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Carries out `ironorb bench connections`.
pub fn connections(options: &ConnectionsOptions) -> Result<SuiteReport, BenchError> {
    raise_descriptors();
    let mut report = SuiteReport::new(SUITE);
    let _unpin = Unpin::later();
    for layout in Layout::of(&options.placements) {
        pin(layout.server)?;
        let mut raw = Process::start(&[], "raw-threads-server", &[])?;
        let raw_address = raw.address()?;
        let mut counted = Process::start(&[], "cubit-server", &[])?;
        let bytes = exchange(VOID, &counted.address()?)?;
        counted.end()?;
        let contenders = start(&sides_of(options), Some(layout))?;
        let counts = |all: &[usize], quick| if options.quick { vec![quick] } else { all.to_vec() };
        for idle in counts(&options.idle, 20) {
            eprintln!("measuring beside {idle} idle connections ({})", layout.name);
            for contender in &contenders {
                let plain: Box<dyn Side> = Box::new(RawSide::connect(&raw_address, bytes)?);
                let row = beside_idle(layout, idle, plain, contender, options)?;
                if row.peer == Peer::Ironorb
                    && let Some(bytes_each) = row.extra.get("bytes_each")
                    && Some(&idle) == options.idle.iter().max()
                {
                    let side = row.side();
                    let what = format!("bytes in the server of each of {idle} idle connections, {side}");
                    report.targets.push(Target::at_most(layout.name, what, *bytes_each, IDLE_BYTES_MAX));
                }
                report.rows.push(row);
            }
        }
        for active in counts(&options.active, 20) {
            eprintln!("measuring {active} active connections ({})", layout.name);
            report.rows.extend(over_active(layout, active, &raw_address, bytes, &contenders, options)?);
        }
    }
    report.write(&options.files)?;
    Ok(report)
}

/// Those that were asked for, or the ways to serve connections.
fn sides_of(options: &ConnectionsOptions) -> Sides {
    let mut sides = options.sides.clone();
    if sides.with.is_empty() && !options.quick {
        // Each is a setting of this ORB: a test sees to it.
        sides.with.extend(MODELS.iter().filter_map(|settings| settings.parse().ok()));
    }
    sides
}

/// Turns of so many sides.
fn contest(options: &ConnectionsOptions, calls: usize, sides: usize) -> Contest {
    Contest {
        samples: if options.quick { 40 } else { calls },
        repetitions: options.repetitions.unwrap_or(if options.quick { 2 } else { 5 }).max(1),
        calls_per_sample: 1,
        warm_up: if options.quick { 40 } else { calls.min(200) },
        time_max: Some(TURNS_MAX * u32::try_from(sides.div_ceil(2)).unwrap_or(1)),
    }
}

/// One client calls while the others rest.
fn beside_idle(
    layout: Layout,
    idle: usize,
    plain: Box<dyn Side>,
    contender: &Contender,
    options: &ConnectionsOptions,
) -> Result<SuiteRow, BenchError> {
    let load = load();
    let title = format!("beside {idle} idle");
    let who = contender.who.clone();
    let row_of = |who: Who, results: &[_]| rows(layout.name, &title, &[who], results, load).remove(0);
    let Some(running) = &contender.running else { return Ok(row_of(who, &[None, None])) };
    let orb = ironorb::Orb::builder().no_endpoint().build()?;
    let object = orb.string_to_object(&running.reference)?;
    let recorded = Recorded::of(&object)?;
    let server = running.server.id();
    // The client's own connection, and what servers keep from earlier, come before.
    let cubit: CubitRef = ironorb::TypedRef::from_object(object);
    let mut sample = VOID.sample(&cubit);
    sample()?;
    let before = resident_bytes_of(&server);
    let resting = match open(idle, &recorded) {
        Ok(resting) => resting,
        Err(missing) => return Ok(row_of(Who { missing: Some(missing), ..who }, &[None, None])),
    };
    let grown = resident_at_rest(&server) as f64 - before as f64;
    let threads = threads_of(&server) as f64;
    let mut sides: Vec<Option<Box<dyn Side + '_>>> = vec![Some(plain), Some(Box::new(Ours(sample)))];
    let results = contest(options, 3_000, 2).run(&mut sides)?;
    drop(sides);
    let mut row = row_of(who, &results);
    row.extra = BTreeMap::from([("bytes_each", grown / idle.max(1) as f64), ("threads", threads)]);
    drop(resting);
    orb.shutdown(false)?;
    Ok(row)
}

/// Connections on each of which a call has been answered, or why there are not as many.
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

/// Resident memory of a server once it has given back what it gives back at rest.
fn resident_at_rest(server: &str) -> u64 {
    let begun = Instant::now();
    let mut least = resident_bytes_of(server);
    let mut unchanged = 0;
    while unchanged < UNCHANGED_LOOKS && begun.elapsed() < RESTING_MAX {
        std::thread::sleep(RESTING_LOOK);
        let now = resident_bytes_of(server);
        unchanged = if now < least { 0 } else { unchanged + 1 };
        least = least.min(now);
    }
    least
}

/// Looks in a row at which no more has been given back.
const UNCHANGED_LOOKS: usize = 3;

/// All connections call, one after the other.
fn over_active(
    layout: Layout,
    active: usize,
    raw: &str,
    bytes: ironorb_baseline::raw::Exchange,
    contenders: &[Contender],
    options: &ConnectionsOptions,
) -> Result<Vec<SuiteRow>, BenchError> {
    let load = load();
    let title = format!("over {active} active");
    let mut who: Vec<Who> = contenders.iter().map(|contender| contender.who.clone()).collect();
    let plain: Vec<_> = (0..active).map(|_| crate::role::raw_sample(raw, bytes)).collect::<Result<_, _>>()?;
    let mut sides: Vec<Option<Box<dyn Side + '_>>> = vec![Some(Box::new(Ours(in_turn(plain))))];
    for (contender, who) in contenders.iter().zip(&mut who) {
        let Some(running) = &contender.running else {
            sides.push(None);
            continue;
        };
        let orb = ironorb::Orb::builder().no_endpoint().build()?;
        let recorded = Recorded::of(&orb.string_to_object(&running.reference)?)?;
        orb.shutdown(false)?;
        match open(active, &recorded) {
            Ok(connections) => {
                let call = |mut it: Replayed| -> crate::rows::SendSample {
                    Box::new(move || it.call().map_err(BenchError::io("call over one of many connections")))
                };
                sides.push(Some(Box::new(Ours(in_turn(connections.into_iter().map(call).collect())))));
            }
            Err(missing) => {
                who.missing = Some(missing);
                sides.push(None);
            }
        }
    }
    let results = contest(options, 4_000, sides.len()).run(&mut sides)?;
    drop(sides);
    Ok(rows(layout.name, &title, &who, &results, load))
}

fn in_turn(mut calls: Vec<crate::rows::SendSample>) -> crate::rows::Sample<'static> {
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
