//! Figures of the paper ("An Empirical Evaluation of OS Support for Real-time CORBA Object Request Brokers", Levine,
//! Flores-Gaitan and Schmidt, 1999: TAO 1.0, Pentium II of 450 MHz). Facts only.
//!
//! The paper shows its curves as plots without numbers. The numbers here are those in its text.

use plotters::style::RGBColor;

use crate::chart::{Chart, Series};
use crate::render::Table;
use crate::row::{Row, parameters};

pub(crate) const MACHINE: &str = "Pentium II, 450 MHz; TAO 1.0";

/// A system, and both ends of its curve.
type Curve = (&'static str, [(f64, f64); 2]);

/// Mean latency of the high client in microseconds: system, clients of a low priority and latency of both ends of its curve.
const CURVES: [Curve; 3] = [
    ("LynxOS 3.0", [(0.0, 307.0), (50.0, 467.0)]),
    ("Linux 2.0.34", [(0.0, 236.0), (40.0, 722.0)]),
    ("Solaris 2.6 (about)", [(0.0, 750.0), (50.0, 900.0)]),
];

/// The ends of the paper's curves, and how the latency here grows.
pub(super) fn table(rows: &[Row]) -> Table {
    let growth = rows.iter().filter(|row| row.is(&[("since", "call"), ("side", "lanes")]));
    let here = growth
        .filter_map(|row| Some((row.count("clients")? as u64, row.median("over_0")?)))
        .collect::<Vec<_>>();
    let row = |&(system, [(few, alone), (many, with)]): &Curve| {
        let of = parameters![system = system, clients = many];
        let numbers = [("alone_us", alone), ("with_clients_us", with), ("over_0", with / alone)];
        let mut row = Row::of_numbers(of, numbers);
        debug_assert!(few == 0.0);
        if let Some((_, ratio)) = here.iter().find(|(clients, _)| *clients as f64 == many) {
            row.add_number("here_over_0", *ratio);
        }
        row
    };
    Table::new("paper", "high client in the paper (figure 3), from its call", CURVES.iter().map(row).collect())
        .elsewhere(MACHINE)
        .notes(
            "Linux ran out of descriptors beyond 40 clients. Jitter of the high client on Solaris: about 250 us. The paper has its other\n\
             values as curves without numbers.",
        )
}

/// Shades of the paper's systems in charts.
const SHADES: [RGBColor; 3] = [RGBColor(0, 0, 0), RGBColor(120, 70, 0), RGBColor(130, 130, 130)];

/// Adds the ends of the paper's curves to a chart of the high client's latency.
pub(super) fn add_curves(chart: &mut Chart) {
    let series = |((system, points), color): (&Curve, RGBColor)| Series {
        label: format!("paper: {system}"),
        color,
        points: points.to_vec(),
    };
    chart.crosses.extend(CURVES.iter().zip(SHADES).map(series));
}

/// Adds the jitter that the paper tells of one system, for any number of clients, to a chart of the high client's.
pub(super) fn add_jitter(chart: &mut Chart) {
    let label = "paper: Solaris 2.6 (about)".to_owned();
    chart.crosses.push(Series { label, color: SHADES[2], points: vec![(0.0, 250.0), (50.0, 250.0)] });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_growth_here_stands_beside_the_papers_for_as_many_clients() {
        let row = |clients: u64, ratio| {
            let of = parameters![since = "call", side = "lanes", clients = clients];
            Row::of_numbers(of, [("over_0", ratio)])
        };
        let table = table(&[row(40, 1.1), row(50, 1.2)]);
        let here: Vec<Option<f64>> = table.rows.iter().map(|row| row.median("here_over_0")).collect();
        assert_eq!(here, [Some(1.2), Some(1.1), Some(1.2)]);
        let paper = table.rows[1].median("over_0").unwrap();
        assert!((paper - 3.06).abs() < 0.01);
    }
}
