//! What was to be reached, and what has been.

use super::latency::CallRow;
use super::report::{Rates, TtcpRow};
use crate::report::Outcome;
use crate::statistics::Ratio;
use crate::targets::Target;
use crate::variant::{DataType, Invocation, Peer, ServantKind, name};

/// Buffers from which on calls should be about as fast as the plain stream.
const LARGE_BUFFER_BYTES: usize = 64 << 10;

/// The goals that these rows tell about.
pub(super) fn targets(rows: &[TtcpRow], calls: &[CallRow]) -> Vec<Target> {
    let mut targets = throughput(rows);
    targets.extend(latency(calls));
    targets
}

/// Large sequences over static skeletons, beside the plain stream: octets however they are sent, the others by stubs.
fn throughput(rows: &[TtcpRow]) -> Vec<Target> {
    let mut worst: Vec<(&TtcpRow, f64, f64)> = Vec::new();
    for row in rows {
        let Outcome::Measured(Rates { of_raw, .. }) = &row.outcome else { continue };
        let bound = match (row.ty, row.invocation) {
            (DataType::Octet, invocation) if invocation != Invocation::DiiUnchanged => 0.95,
            (DataType::Long | DataType::Double, Invocation::Sii) => 0.95,
            (DataType::Struct, Invocation::Sii) => 0.90,
            _ => continue,
        };
        let counts = row.peer == Peer::Ironorb
            && row.servant == ServantKind::Static
            && row.buffer.0 >= LARGE_BUFFER_BYTES;
        if !counts {
            continue;
        }
        let key = |row: &TtcpRow| (row.layout, row.transport, row.mode, row.ty, row.invocation);
        match worst.iter_mut().find(|(known, ..)| key(known) == key(row)) {
            Some(known) if of_raw.median < known.1 => *known = (row, of_raw.median, bound),
            Some(_) => {}
            None => worst.push((row, of_raw.median, bound)),
        }
    }
    let target = |(row, figure, bound): (&TtcpRow, f64, f64)| {
        let what = format!(
            "{}s from 64K on, {} over {}, {} / plain stream (worst: {})",
            name(row.ty),
            name(row.mode),
            name(row.transport),
            name(row.invocation),
            row.buffer
        );
        Target::at_least(row.layout, what, figure, bound)
    };
    worst.into_iter().map(target).collect()
}

/// Ways to call, one over the other.
fn latency(calls: &[CallRow]) -> Vec<Target> {
    let mut targets = Vec::new();
    for row in calls.iter().filter(|row| row.peer == Peer::Ironorb) {
        let is_struct = row.call == "struct-1024";
        let mut add = |what: String, ratio: &Option<Ratio>, bound: f64| {
            if let Some(Ratio { median, .. }) = *ratio {
                let target = format!("{} over {}, {what}", row.call, name(row.transport));
                targets.push(Target::at_most(row.layout, target, median, bound));
            }
        };
        match (row.invocation, row.servant) {
            (Invocation::DiiReused, ServantKind::Static) => {
                add("dii-reused / sii".to_owned(), &row.over_sii, if is_struct { 1.5 } else { 1.1 });
            }
            (Invocation::DiiNew, ServantKind::Static) => {
                add("dii-new / sii".to_owned(), &row.over_sii, if is_struct { 2.0 } else { 1.25 });
            }
            (Invocation::Sii, ServantKind::Dsi) if row.call.starts_with("octet") => {
                add("dsi / static".to_owned(), &row.over_static, 1.2);
            }
            _ => {}
        }
    }
    targets
}
