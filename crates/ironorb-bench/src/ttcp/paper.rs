//! Figures of the paper ("The Performance of the CORBA Dynamic Invocation Interface and Dynamic Skeleton
//! Interface over High-Speed ATM Networks", Gokhale and Schmidt, GLOBECOM 1996): two SPARCstation 20 with two
//! processors of 70 MHz each, 155 Mbit/s ATM between them, 64 MB in buffers of 128K, socket queues of 64K.
//! Facts only.

use crate::chart::{Chart, Series};
use crate::render::{Table, quoted};
use crate::row::{Figure, Row, parameters};
use crate::variant::{Bytes, DataType, Invocation, Mode, Peer, ServantKind, name};

const MACHINE: &str = "two SPARCstation 20, ATM 155 Mbit/s";

/// A throughput that the paper gives, or that follows from its profiles.
#[derive(Debug, Clone, Copy)]
struct PaperFigure {
    orb: &'static str,
    ty: DataType,
    mode: Mode,
    invocation: Invocation,
    servant: ServantKind,
    mbit_s: f64,
    from: &'static str,
}

/// The buffer of all figures.
const BUFFER: Bytes = Bytes(128 << 10);

fn figures() -> [PaperFigure; 10] {
    use DataType::{Octet, Short, Struct};
    use Invocation::{DiiNew, DiiReused};
    const ORBIX: &str = "Orbix 2.0";
    const ORBELINE: &str = "ORBeline 2.0";
    let oneway = |orb, ty, invocation, mbit_s, from| {
        let (mode, servant) = (Mode::Oneway, ServantKind::Static);
        PaperFigure { orb, ty, mode, invocation, servant, mbit_s, from }
    };
    let dsi = |ty, mbit_s| {
        let (mode, servant) = (Mode::Twoway, ServantKind::Dsi);
        PaperFigure { orb: ORBELINE, ty, mode, invocation: DiiReused, servant, mbit_s, from: "Table 3" }
    };
    [
        oneway(ORBIX, Short, DiiNew, 34.0, "section 1"),
        oneway(ORBELINE, Short, DiiNew, 7.0, "section 1"),
        oneway(ORBIX, Octet, DiiNew, profiled(26_728.0, 73.52), "Table 1"),
        oneway(ORBIX, Struct, DiiNew, profiled(397_724.0, 96.6), "Table 1"),
        oneway(ORBELINE, Octet, DiiNew, profiled(4_623.0, 61.14), "Table 1"),
        oneway(ORBELINE, Struct, DiiNew, profiled(77_605.0, 55.72), "Table 1"),
        oneway(ORBELINE, Octet, DiiReused, profiled(5_794.0, 85.83), "Table 1"),
        oneway(ORBELINE, Struct, DiiReused, profiled(76_575.0, 64.89), "Table 1"),
        dsi(Octet, profiled(3_911.0, 47.95)),
        dsi(Struct, profiled(505_914.0, 91.34)),
    ]
}

/// The throughput from a profile: the client's whole time follows from the milliseconds and per cent of the
/// largest category.
fn profiled(longest_ms: f64, percent: f64) -> f64 {
    let total_s = longest_ms / percent * 100.0 / 1000.0;
    f64::from(64 << 20) * 8.0 / 1e6 / total_s
}

/// The paper's figures, beside those of the same calls here.
pub(super) fn table(rows: &[Row]) -> Table {
    let row = |figure: PaperFigure| {
        let PaperFigure { orb, ty, mode, invocation, servant, mbit_s, from } = figure;
        let same = parameters![
            type = ty, buffer_bytes = BUFFER, mode = mode, invocation = invocation, servant = servant,
        ];
        let wanted: Vec<(&str, String)> =
            same.iter().map(|(name, value)| (*name, crate::row::shown(value))).collect();
        let is_same = |row: &&Row| wanted.iter().all(|(name, text)| row.text(name) == *text);
        let mut quoted = Row::of_numbers(
            [parameters![orb = orb, from = from], same.clone()].concat(),
            [("mbit_s", mbit_s)],
        );
        for peer in [Peer::Ironorb, Peer::Omniorb] {
            let here = rows.iter().filter(is_same).find(|row| row.text("peer") == name(peer));
            if let (Some(rate), Ok(figures)) =
                (here.and_then(|row| row.median("subject")), &mut quoted.outcome)
            {
                figures.push((name(peer), Figure::Number(rate)));
            }
        }
        quoted
    };
    quoted(
        MACHINE,
        "paper",
        "Mbit/s in the paper, and here over the first transport",
        figures().map(row).into(),
    )
}

/// Adds the paper's figures for a chart's type and mode.
pub(super) fn add_crosses(chart: &mut Chart, row: &Row) {
    let is_quoted =
        |figure: &PaperFigure| row.is(&[("type", &name(figure.ty)), ("mode", &name(figure.mode))]);
    chart.crosses.extend(figures().into_iter().filter(is_quoted).map(|figure| {
        let (invocation, servant) = (name(figure.invocation), name(figure.servant));
        let PaperFigure { orb, mbit_s, from, .. } = figure;
        Series {
            label: format!("paper: {orb}, {invocation} to {servant}, {mbit_s:.1} Mbit/s ({from})"),
            color: plotters::style::BLACK,
            points: vec![(BUFFER.0 as f64, mbit_s)],
        }
    }));
}

/// The ratio of twoway to oneway: the least and the greatest of this ORB's static calls to static skeletons
/// with the paper's buffer.
pub(super) fn twoway_over_oneway(rows: &[Row]) -> Option<Table> {
    let buffer = BUFFER.0.to_string();
    let wanted = [("invocation", "sii"), ("servant", "static"), ("buffer_bytes", buffer.as_str())];
    let of_mode = |mode: &'static str| {
        rows.iter()
            .filter(move |row| row.is_ours() && row.is(&[("mode", mode)]))
            .filter(|row| row.is(&wanted))
    };
    let place = |row: &Row| ["layout", "transport", "type"].map(|name| row.text(name));
    let ratios = of_mode("twoway").filter_map(|twoway| {
        let oneway = of_mode("oneway").find(|oneway| place(oneway) == place(twoway))?;
        Some(twoway.median("subject")? / oneway.median("subject")?)
    });
    let (least, most) =
        ratios.fold((f64::INFINITY, 0f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
    let numbers = [("paper", 0.8), ("least", least), ("most", most)];
    let rows = vec![Row::of_numbers(
        parameters![what = "static calls of static skeletons, all types at 128K"],
        numbers,
    )];
    (least <= most).then(|| Table { kind: "twoway", title: "twoway over oneway", rows, ..Table::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_go_at_the_rate_that_the_text_tells() {
        // The text says "between 1 and 4 Mbit/s". Both categories of one profile imply one total.
        for figure in figures().iter().filter(|figure| figure.ty == DataType::Struct) {
            assert!((0.9..4.6).contains(&figure.mbit_s), "{figure:?}");
        }
        assert!((profiled(26_728.0, 73.52) - profiled(7_160.0, 19.70)).abs() < 0.1);
    }
}
