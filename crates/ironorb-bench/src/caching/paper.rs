//! Figures of the paper (MinORB, 1999: two Dell 6100 with four Pentium Pro of 200 MHz, and a Sun E6000 with 16 processors of
//! 250 MHz as the server of an E4000; 100 Mbit/s Ethernet). Facts only.
//!
//! The paper shows its curves as plots without numbers. The numbers here are those in its text.

use plotters::style::RGBColor;

use crate::chart::{Chart, Series};
use crate::render::Table;
use crate::row::Row;

const MACHINES: &str =
    "Dell 6100 (Pentium Pro, 200 MHz) and Sun E6000 (UltraSPARC, 250 MHz), 100 Mbit/s Ethernet";

const THROUGHPUT: &str = "machine,what,clients,calls_s
E6000,linear up to 6 clients; about 6000 calls/s each,6,36000
E6000,the greatest rate,9,42000";

pub(super) fn throughput() -> Table {
    Table::new("paper-throughput", "case 2 in the paper", Row::quoted(THROUGHPUT, 1)).elsewhere(MACHINES)
}

const SHARES: &str = "machine,what,read_percent,cached_percent,us
Dell,a call (case 1: 10^6 objects),,0,600
E6000,a call (case 1: 10^5 objects),,0,516
Dell,all reads and all cached (case 3),100,100,6
E6000,all reads and all cached (case 3),100,100,4";

pub(super) fn shares() -> Table {
    Table::new("paper-shares", "case 3 in the paper", Row::quoted(SHARES, 1)).elsewhere(MACHINES)
}

const LAGS: &str = "machine,what,lag_us,us,writes_per_message
Dell,a message for each update,80,680,1
Dell,a message for two updates,700,663,2
Dell,a message when the buffer of 1500 bytes is full,6000,652,20";

pub(super) fn lags() -> Table {
    Table::new("paper-lags", "case 4 in the paper", Row::quoted(LAGS, 2)).elsewhere(MACHINES)
}

/// Shades of the paper's machines in charts.
const SHADES: [RGBColor; 2] = [RGBColor(0, 0, 0), RGBColor(130, 130, 130)];

/// A machine, and points of its curve.
type Curve = (&'static str, &'static [(f64, f64)]);

fn add(chart: &mut Chart, curves: &[Curve]) {
    let series = |((machine, points), color): (&Curve, RGBColor)| Series {
        label: format!("paper: {machine}"),
        color,
        points: points.to_vec(),
    };
    chart.crosses.extend(curves.iter().zip(SHADES).map(series));
}

pub(super) fn add_shares(chart: &mut Chart) {
    add(chart, &[("Dell", &[(0.0, 600.0), (100.0, 6.0)]), ("E6000", &[(0.0, 516.0), (100.0, 4.0)])]);
}

/// Each step of the curve at its end.
pub(super) fn add_lags(chart: &mut Chart) {
    add(chart, &[("Dell", &[(80.0, 680.0), (700.0, 663.0), (6_000.0, 652.0)])]);
}

pub(super) fn add_throughput(chart: &mut Chart) {
    add(chart, &[("E6000", &[(1.0, 6_000.0), (6.0, 36_000.0), (9.0, 42_000.0)])]);
}
