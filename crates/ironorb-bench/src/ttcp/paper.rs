//! Figures of the paper ("The Performance of the CORBA Dynamic Invocation Interface and Dynamic Skeleton
//! Interface over High-Speed ATM Networks", Gokhale and Schmidt, GLOBECOM 1996): two SPARCstation 20 with two
//! processors of 70 MHz each, 155 Mbit/s ATM between them, 64 MB in buffers of 128K, socket queues of 64K.
//! Facts only.

use super::breakdown::COLUMNS;
use crate::chart::{Chart, Series};
use crate::render::Table;
use crate::row::{Figure, Row, parameters};
use crate::variant::{Bytes, DataType, Invocation, Mode, Peer, ServantKind, name};

const MACHINE: &str = "two SPARCstation 20, ATM 155 Mbit/s";

/// A throughput that the paper gives, or that follows from its profiles.
struct PaperFigure {
    orb: String,
    ty: DataType,
    calls: (Mode, Invocation, ServantKind),
    mbit_s: f64,
    from: String,
}

/// The buffer of all figures.
const BUFFER: Bytes = Bytes(128 << 10);

fn figures() -> impl Iterator<Item = PaperFigure> {
    let told = [("Orbix", 34.0), ("ORBeline", 7.0)].into_iter().map(|(orb, mbit_s)| {
        let calls = (Mode::Oneway, Invocation::DiiNew, ServantKind::Static);
        (orb, DataType::Short, calls, mbit_s, "section 1".to_owned())
    });
    let profiled = COLUMNS.iter().filter_map(|column| {
        let from = format!("Table {}", column.table()?);
        Some((column.orb, column.ty, column.calls(), column.mbit_s()?, from))
    });
    told.chain(profiled).map(|(orb, ty, calls, mbit_s, from)| {
        let orb = format!("{orb} 2.0");
        PaperFigure { orb, ty, calls, mbit_s, from }
    })
}

/// The paper's figures, beside those of the same calls here.
pub(super) fn table(rows: &[Row]) -> Table {
    let row = |figure: PaperFigure| {
        let PaperFigure { orb, ty, calls: (mode, invocation, servant), mbit_s, from } = figure;
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
    let title = "Mbit/s in the paper, and here over the first transport";
    Table::new("paper", title, figures().map(row).collect()).elsewhere(MACHINE)
}

/// Adds the paper's figures for a chart's type and mode.
pub(super) fn add_crosses(chart: &mut Chart, row: &Row) {
    let is_quoted =
        |figure: &PaperFigure| row.is(&[("type", &name(figure.ty)), ("mode", &name(figure.calls.0))]);
    chart.crosses.extend(figures().filter(is_quoted).map(|figure| {
        let PaperFigure { orb, calls: (_, invocation, servant), mbit_s, from, .. } = figure;
        let (invocation, servant) = (name(invocation), name(servant));
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
    (least <= most).then(|| Table::new("twoway", "twoway over oneway", rows))
}
