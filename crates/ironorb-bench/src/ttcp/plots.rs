//! The page with plots: throughput against the size of a buffer, a plot for each type, mode and transport. It is one file
//! that refers to nothing outside.

use std::fmt::Write as _;
use std::path::Path;

use plotters::style::{BLACK, RGBColor};

use super::paper::paper;
use super::report::{Rates, TtcpReport, TtcpRow};
use crate::chart::{Axis, Chart, FOOT, Scale, Series, escape, head};
use crate::error::BenchError;
use crate::report::{Outcome, write_text};
use crate::variant::{Bytes, Invocation, Peer, ServantKind, name};

/// Writes the page.
pub(super) fn write(report: &TtcpReport, file: &Path) -> Result<(), BenchError> {
    write_text(file, page(report)?.as_bytes())
}

fn page(report: &TtcpReport) -> Result<String, BenchError> {
    let mut page = head("CORBA-TTCP");
    // A String takes everything.
    let _ = writeln!(page, "<pre>{}</pre>", escape(&report.machine.to_string()));
    page.push_str(&body(report)?);
    page.push_str(FOOT);
    Ok(page)
}

/// What stands between the head and the foot: the plots, and all figures.
pub(crate) fn body(report: &TtcpReport) -> Result<String, BenchError> {
    let mut page = String::from(
        "<p>Megabits a second at the sender, of what is in the sequences: the median run, and beside it the plain \
         stream socket of the same run. Both axes are logarithmic. The paper's figures, on other machines and \
         another network, are at 128K.</p>\n",
    );
    let group = |row: &TtcpRow| (row.layout, row.transport, row.mode, row.ty);
    // Rows of one plot need not stand side by side: types are the inner loop of the command.
    let mut plots: Vec<Vec<&TtcpRow>> = Vec::new();
    for row in &report.rows {
        match plots.iter_mut().find(|rows| group(rows[0]) == group(row)) {
            Some(rows) => rows.push(row),
            None => plots.push(vec![row]),
        }
    }
    for rows in &plots {
        page.push_str(&chart(rows).html()?);
    }
    let _ = writeln!(page, "<h2>Figures</h2>\n<pre>{}</pre>", escape(&report.to_string()));
    Ok(page)
}

fn chart(rows: &[&TtcpRow]) -> Chart {
    let first = rows[0];
    let told = paper().into_iter().filter(|figure| figure.ty == first.ty && figure.mode == first.mode);
    let crosses = told.map(|figure| Series {
        label: format!(
            "paper: {}, {} to {}, {:.1} Mbit/s ({})",
            figure.orb,
            name(figure.invocation),
            name(figure.servant),
            figure.mbit_s,
            figure.from
        ),
        color: BLACK,
        points: vec![(figure.buffer.0 as f64, figure.mbit_s)],
    });
    Chart {
        title: format!(
            "sequences of {}, {} over {}, client and server on {}",
            name(first.ty),
            name(first.mode),
            name(first.transport),
            first.layout
        ),
        x: Axis { name: "buffer", scale: Scale::Log2, text: |size| Bytes(size.round() as usize).to_string() },
        y: Axis { name: "Mbit/s", scale: Scale::Log10, text: |rate| format!("{rate}") },
        lines: series(rows),
        crosses: crosses.collect(),
        notes: missing(rows).into_iter().map(str::to_owned).collect(),
    }
}

/// The plain stream's line and each kind of call's.
fn series(rows: &[&TtcpRow]) -> Vec<Series> {
    let mut all = vec![Series { label: "plain stream".to_owned(), color: BLACK, points: Vec::new() }];
    for row in rows {
        let Outcome::Measured(Rates { raw, subject, .. }) = &row.outcome else { continue };
        let size = row.buffer.0 as f64;
        if !all[0].points.iter().any(|(known, _)| *known == size) {
            all[0].points.push((size, raw.median_mbit_s));
        }
        let label = format!("{} {} to {}", name(row.peer), name(row.invocation), name(row.servant));
        let point = (size, subject.median_mbit_s);
        match all.iter_mut().find(|series| series.label == label) {
            Some(series) => series.points.push(point),
            None => all.push(Series { label, color: color(row), points: vec![point] }),
        }
    }
    for Series { points, .. } in &mut all {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all
}

/// Blue for ours and orange for omniORB, from dark for static calls to light for those that cost most; dynamic servants
/// in green and red.
fn color(row: &TtcpRow) -> RGBColor {
    let shade = match row.invocation {
        Invocation::Sii => 0,
        Invocation::DiiNew => 60,
        Invocation::DiiReused => 110,
        Invocation::DiiUnchanged => 150,
    };
    match (row.peer, row.servant) {
        (Peer::Ironorb, ServantKind::Static) => RGBColor(shade, shade, 200),
        (Peer::Ironorb, ServantKind::Dsi) => RGBColor(shade, 130, shade),
        (Peer::Omniorb | Peer::Jacorb, ServantKind::Static) => RGBColor(230, 90 + shade, shade),
        (Peer::Omniorb | Peer::Jacorb, ServantKind::Dsi) => RGBColor(190, shade, shade),
    }
}

fn missing<'a>(rows: &[&'a TtcpRow]) -> Vec<&'a str> {
    let mut all: Vec<&str> = rows
        .iter()
        .filter_map(|row| match &row.outcome {
            Outcome::Missing { missing } => Some(missing.as_str()),
            Outcome::Measured(Rates { .. }) => None,
        })
        .collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::row;
    use super::*;
    use crate::machine::Machine;
    use crate::variant::Mode;

    #[test]
    fn each_mode_has_a_plot_with_a_line_for_each_side() {
        let mut report = TtcpReport::new(Machine::this());
        for buffer in [1 << 10, 64 << 10, 1000] {
            report.rows.push(row(Mode::Oneway, buffer, &[100], &[90]));
        }
        report.rows.push(row(Mode::Twoway, 1 << 10, &[200], &[190]));
        let omniorb = TtcpRow {
            peer: Peer::Omniorb,
            outcome: Outcome::Missing { missing: "omniORB: not <installed>".to_owned() },
            ..report.rows[3].clone()
        };
        report.rows.push(omniorb);
        let page = page(&report).unwrap();
        let plots: Vec<&str> = page.split("<figure>").skip(1).collect();
        assert_eq!(plots.len(), 2);
        // A line of three points and one for the plain stream; the paper's three are crosses of two lines each.
        assert_eq!(plots[0].matches("<circle").count(), 6, "{}", plots[0]);
        assert_eq!(plots[1].matches("<circle").count(), 2, "{}", plots[1]);
        assert!(plots[0].contains("Orbix 2.0, dii-new to static, 14.8 Mbit/s"));
        assert!(plots[1].contains("omniORB: not &lt;installed&gt;"));
        let sizes: Vec<f64> = series(&report.rows[..3].iter().collect::<Vec<_>>())[1]
            .points
            .iter()
            .map(|point| point.0)
            .collect();
        assert_eq!(sizes, [1000.0, 1024.0, 65536.0], "from left to right");
    }
}
