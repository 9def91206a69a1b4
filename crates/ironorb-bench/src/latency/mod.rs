//! `ironorb bench latency`: the suite of TAO's first paper ("Evaluating CORBA Latency and Scalability Over High-Speed ATM
//! Networks", 1997), with more types, more objects and more peers.
//!
//! What is called in the same way - order of the objects, type, units, number of objects, waiting or not - is one group. In
//! each of its repetitions a plain socket, every way to call and every peer take a turn, so that every ratio is one of
//! turns side by side; all of it is in [`plan`]. Each group ends with the servers' count of what has come, and is an error
//! if that is not what was sent.

mod bench;
mod client;
mod contender;
mod goals;
mod lookups;
mod objects;
mod options;
mod order;
mod page;
mod paper;
mod plan;
mod report;
mod whitebox;

pub use lookups::LookupRow;
pub(crate) use objects::server;
pub use options::LatencyOptions;
pub use order::Algorithm;
pub(crate) use page::body;
pub use report::{ActivationRow, CellRow, LatencyReport, Measured};
pub use whitebox::{LatencyBreakdown, latency_breakdown};

use crate::error::BenchError;
use crate::machine::{Layout, Machine, Unpin};
use bench::Bench;

/// Carries out `ironorb bench latency`: measures what was asked for, and writes the files that were asked for. Tells its
/// progress on standard error. Keeps the calling thread on one processor meanwhile.
pub fn latency(options: &LatencyOptions) -> Result<LatencyReport, BenchError> {
    let groups = plan::groups(options);
    let mut report = LatencyReport::new(Machine::this());
    let _unpin = Unpin::later();
    let layouts = Layout::of(&options.placements);
    let of = layouts.len() * options.transports.len() * groups.len();
    let mut number = 0;
    for layout in layouts {
        for &transport in &options.transports {
            let mut bench = Bench::start(layout, transport, options)?;
            for group in &groups {
                number += 1;
                eprintln!("measuring {} on {} ({number} of {of})", group.title(), layout.name);
                bench.measure(*group, options, &mut report)?;
            }
        }
    }
    if options.strategies || !options.is_filtered() {
        report.lookups = lookups::lookups(options.quick)?;
    }
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    if let Some(file) = &options.html {
        page::write(&report, file)?;
    }
    Ok(report)
}
