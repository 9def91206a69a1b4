//! `ironorb bench connections`: what thousands of connections cost a server, idle and active, and what they cost a client
//! that calls beside them.
//!
//! Connections are plain sockets that send a request which our client was once seen to send, so that every ORB's server is
//! measured by the same client.

mod replay;

use std::collections::BTreeMap;

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
use crate::variant::Mode;
use replay::{Recorded, Replayed};

/// `ironorb bench connections`
#[derive(Debug, Clone, clap::Args)]
pub struct ConnectionsOptions {
    /// Connections that have made a call and then rest.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 9_000])]
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
    /// Turns that each side has in a row. Default 7.
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
            on it; threads: of the server meanwhile. What the kernel keeps for sockets is not in it.",
};

const VOID: CubitRow = CubitRow { value: Value::Nothing, mode: Mode::Twoway };

/// Bytes that an idle connection may take in the server, from this many connections on.
const IDLE_BYTES_MAX: f64 = 16384.0;

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
        let contenders = start(&options.sides, Some(layout))?;
        let counts = |all: &[usize], quick| if options.quick { vec![quick] } else { all.to_vec() };
        for idle in counts(&options.idle, 20) {
            eprintln!("measuring beside {idle} idle connections ({})", layout.name);
            for contender in &contenders {
                let plain: Box<dyn Side> = Box::new(RawSide::connect(&raw_address, bytes)?);
                let row = beside_idle(layout, idle, plain, contender, options)?;
                if row.is_ours()
                    && let Some(bytes_each) = row.extra.get("bytes_each")
                    && Some(&idle) == options.idle.iter().max()
                {
                    let what = format!("bytes in the server of each of {idle} idle connections");
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

fn contest(options: &ConnectionsOptions, calls: usize) -> Contest {
    Contest {
        samples: if options.quick { 40 } else { calls },
        repetitions: options.repetitions.unwrap_or(if options.quick { 2 } else { 7 }).max(1),
        calls_per_sample: 1,
        warm_up: if options.quick { 40 } else { calls.min(500) },
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
    let mut resting = Vec::new();
    let refused = loop {
        if resting.len() == idle {
            break None;
        }
        match Replayed::connect(&recorded).and_then(|mut it| it.call().map(|()| it)) {
            Ok(connection) => resting.push(connection),
            Err(e) => break Some(e),
        }
    };
    if let Some(e) = refused {
        let missing = format!("took {} connections, then: {e}", resting.len());
        return Ok(row_of(Who { missing: Some(missing), ..who }, &[None, None]));
    }
    let grown = resident_bytes_of(&server) as f64 - before as f64;
    let threads = threads_of(&server) as f64;
    let mut sides: Vec<Option<Box<dyn Side + '_>>> = vec![Some(plain), Some(Box::new(Ours(sample)))];
    let results = contest(options, 3_000).run(&mut sides)?;
    drop(sides);
    let mut row = row_of(who, &results);
    row.extra = BTreeMap::from([("bytes_each", grown / idle.max(1) as f64), ("threads", threads)]);
    drop(resting);
    orb.shutdown(false)?;
    Ok(row)
}

/// All connections call, one after the other.
fn over_active(
    layout: Layout,
    active: usize,
    raw: &str,
    bytes: crate::raw::Exchange,
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
        let connections: Result<Vec<_>, _> = (0..active).map(|_| Replayed::connect(&recorded)).collect();
        match connections {
            Ok(connections) => {
                let call = |mut it: Replayed| -> crate::rows::SendSample {
                    Box::new(move || it.call().map_err(BenchError::io("call over one of many connections")))
                };
                let mut all: Vec<_> = connections.into_iter().map(call).collect();
                // Each has called once before anything is measured.
                match all.iter_mut().try_for_each(|call| call()) {
                    Ok(()) => sides.push(Some(Box::new(Ours(in_turn(all))))),
                    Err(e) => {
                        who.missing = Some(e.to_string());
                        sides.push(None);
                    }
                }
            }
            Err(e) => {
                who.missing = Some(format!("refused connections: {e}"));
                sides.push(None);
            }
        }
    }
    let results = contest(options, 4_000).run(&mut sides)?;
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
