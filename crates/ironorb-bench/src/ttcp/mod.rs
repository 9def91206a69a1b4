//! `ironorb bench ttcp`: CORBA-TTCP. How many bytes a second calls of each kind carry, beside a plain stream socket that
//! carries the same bytes, and what single calls of each kind take.
//!
//! What belongs together - one placement, transport, mode, type and buffer - is one group. In each of its repetitions the
//! plain stream and every kind of call send the same total in turn, in another order each time, so that whatever disturbs
//! the machine disturbs all of them; ratios are between runs of one repetition. Each is two processes, and sends one message
//! a buffer: there is no batching on any side but what the system and the receivers' spaces do.
//!
//! Every run ends with the receiver's count of what it took, and is an error if that is not what was sent.

mod bench;
mod breakdown;
mod latency;
mod options;
mod paper;
mod peer;
mod plots;
mod receiver;
mod report;
pub(crate) mod role;
mod sender;
mod side;
mod stream;
mod targets;

pub use breakdown::{BreakdownRow, Category, PaperColumn, Part, TtcpBreakdown, WatchedSide, ttcp_breakdown};
pub use latency::CallRow;
pub use options::TtcpOptions;
pub use paper::{PaperFigure, paper};
pub(crate) use plots::body;
pub use report::{Rates, Throughput, TtcpReport, TtcpRow};

use crate::error::BenchError;
use crate::generated_ttcp::ttcp::PerfStruct;
use crate::machine::{Layout, Machine, Unpin};
use crate::variant::{Bytes, Peer, name};
use bench::{Bench, Group, latency_calls};
use peer::OmniOrb;

/// Carries out `ironorb bench ttcp`: measures what was asked for, and writes the files that were asked for. Tells its
/// progress on standard error. Keeps the calling thread on one processor meanwhile.
pub fn ttcp(options: &TtcpOptions) -> Result<TtcpReport, BenchError> {
    let groups = if options.latency_only { Vec::new() } else { groups(options)? };
    let mut report = TtcpReport::new(Machine::this());
    let omniorb = match options.peers.contains(&Peer::Omniorb) {
        true => OmniOrb::prepare(),
        false => OmniOrb::not_wanted(),
    };
    let _unpin = Unpin::later();
    let layouts = Layout::of(&options.placements);
    let of = layouts.len() * options.transports.len() * groups.len();
    let mut number = 0;
    for layout in layouts {
        for &transport in &options.transports {
            let bench = Bench::start(layout, transport, omniorb.clone(), options)?;
            for &group in &groups {
                number += 1;
                let Group { mode, ty, buffer } = group;
                let over = name(transport);
                eprintln!("measuring {}s, {buffer}, {} over {over} ({number} of {of})", name(ty), name(mode));
                report.rows.extend(bench.throughput(group, options)?);
            }
            for call in latency_calls() {
                eprintln!("measuring single calls, {} over {}", call.name, name(transport));
                report.calls.extend(bench.latency(call, options)?);
            }
        }
    }
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    if let Some(file) = &options.html {
        plots::write(&report, file)?;
    }
    Ok(report)
}

/// What is sent.
type Data = crate::data::Data<PerfStruct>;

/// The largest buffer: with what is around it, well within the largest message of either ORB.
const BUFFER_BYTES_MAX: usize = 32 << 20;

fn groups(options: &TtcpOptions) -> Result<Vec<Group>, BenchError> {
    let mut groups = Vec::new();
    for &mode in &options.modes {
        for &ty in &options.types {
            for bytes in options.buffers() {
                if bytes < ty.element_bytes() || bytes > BUFFER_BYTES_MAX {
                    return Err(BenchError::Buffer { bytes, ty: name(ty), most: BUFFER_BYTES_MAX });
                }
                groups.push(Group { mode, ty, buffer: Bytes(bytes) });
            }
        }
    }
    Ok(groups)
}
