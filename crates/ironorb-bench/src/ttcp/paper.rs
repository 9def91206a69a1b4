//! What the paper measured ("The Performance of the CORBA Dynamic Invocation Interface and Dynamic Skeleton Interface over
//! High-Speed ATM Networks", Gokhale and Schmidt, GLOBECOM 1996): two SPARCstation 20 with
//! two 70 MHz processors each, 155 Mbit/s ATM between them, 64 MB in buffers of 128K, socket queues of 64K. Facts only.

use serde::Serialize;

use crate::variant::{Bytes, DataType, Invocation, Mode, ServantKind};

/// A throughput that the paper tells, or that follows from its profiles.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PaperFigure {
    /// Which ORB.
    pub orb: &'static str,
    /// Of the elements.
    #[serde(rename = "type")]
    pub ty: DataType,
    /// Bytes of a sequence.
    #[serde(rename = "buffer_bytes")]
    pub buffer: Bytes,
    /// Whether the client waited.
    pub mode: Mode,
    /// How the client called.
    pub invocation: Invocation,
    /// What it called.
    pub servant: ServantKind,
    /// Megabits a second.
    pub mbit_s: f64,
    /// Where in the paper.
    pub from: &'static str,
}

/// Every figure.
pub fn paper() -> Vec<PaperFigure> {
    let buffer = Bytes(128 << 10);
    let oneway = |orb, ty, invocation, mbit_s, from| PaperFigure {
        orb,
        ty,
        buffer,
        mode: Mode::Oneway,
        invocation,
        servant: ServantKind::Static,
        mbit_s,
        from,
    };
    let dsi = |ty, mbit_s| PaperFigure {
        orb: "ORBeline 2.0",
        ty,
        buffer,
        mode: Mode::Twoway,
        invocation: Invocation::DiiReused,
        servant: ServantKind::Dsi,
        mbit_s,
        from: "Table 3",
    };
    use DataType::{Octet, Short, Struct};
    use Invocation::{DiiNew, DiiReused};
    vec![
        oneway("Orbix 2.0", Short, DiiNew, 34.0, "section 1"),
        oneway("ORBeline 2.0", Short, DiiNew, 7.0, "section 1"),
        oneway("Orbix 2.0", Octet, DiiNew, profiled(26_728.0, 73.52), "Table 1"),
        oneway("Orbix 2.0", Struct, DiiNew, profiled(397_724.0, 96.6), "Table 1"),
        oneway("ORBeline 2.0", Octet, DiiNew, profiled(4_623.0, 61.14), "Table 1"),
        oneway("ORBeline 2.0", Struct, DiiNew, profiled(77_605.0, 55.72), "Table 1"),
        oneway("ORBeline 2.0", Octet, DiiReused, profiled(5_794.0, 85.83), "Table 1"),
        oneway("ORBeline 2.0", Struct, DiiReused, profiled(76_575.0, 64.89), "Table 1"),
        dsi(Octet, profiled(3_911.0, 47.95)),
        dsi(Struct, profiled(505_914.0, 91.34)),
    ]
}

/// The client's whole time follows from the time and the share of what took longest, and the throughput from that.
fn profiled(longest_ms: f64, percent: f64) -> f64 {
    let total_s = longest_ms / percent * 100.0 / 1000.0;
    f64::from(64 << 20) * 8.0 / 1e6 / total_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_go_at_the_rate_that_the_text_tells() {
        // "between 1 and 4 Mbit/s"; both categories of one profile give the same total.
        for figure in paper().iter().filter(|figure| figure.ty == DataType::Struct) {
            assert!((0.9..4.6).contains(&figure.mbit_s), "{figure:?}");
        }
        assert!((profiled(26_728.0, 73.52) - profiled(7_160.0, 19.70)).abs() < 0.1);
    }
}
