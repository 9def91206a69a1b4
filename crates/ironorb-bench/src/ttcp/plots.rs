//! The page with plots: throughput against the size of a buffer, a plot for each type, mode and transport. It is one file
//! that refers to nothing outside.

use std::fmt::Write as _;
use std::path::Path;

use plotters::prelude::*;

use super::paper::{PaperFigure, paper};
use super::report::{Outcome, TtcpReport, TtcpRow};
use super::variant::{Bytes, Invocation, Peer, ServantKind, name};
use crate::error::BenchError;
use crate::report::write_text;

/// Writes the page.
pub(super) fn write(report: &TtcpReport, file: &Path) -> Result<(), BenchError> {
    write_text(file, page(report).map_err(BenchError::Plot)?.as_bytes())
}

fn page(report: &TtcpReport) -> Result<String, String> {
    let mut page = String::from(HEAD);
    // A String takes everything.
    let _ = writeln!(page, "<pre>{}</pre>", escape(&report.machine.to_string()));
    page.push_str(
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
        page.push_str(&figure(rows)?);
    }
    let _ = writeln!(page, "<h2>Figures</h2>\n<pre>{}</pre>\n</body>\n</html>", escape(&report.to_string()));
    Ok(page)
}

/// One line of a plot.
struct Series {
    label: String,
    color: RGBColor,
    /// The size of a buffer, as its logarithm to the base 2, and megabits a second.
    points: Vec<(f64, f64)>,
}

fn figure(rows: &[&TtcpRow]) -> Result<String, String> {
    let first = rows[0];
    let title = format!(
        "sequences of {}, {} over {}, client and server on {}",
        name(first.ty),
        name(first.mode),
        name(first.transport),
        first.layout
    );
    let series = series(rows);
    let told: Vec<PaperFigure> =
        paper().into_iter().filter(|figure| figure.ty == first.ty && figure.mode == first.mode).collect();
    let mut figure = format!("<figure>\n<figcaption>{title}</figcaption>\n");
    figure.push_str(&plot(&series, &told).map_err(|e| format!("{title}: {e}"))?);
    figure.push_str("<ul>\n");
    for Series { label, color, .. } in &series {
        let RGBColor(red, green, blue) = color;
        let _ = writeln!(figure, "<li><b style=\"color:rgb({red},{green},{blue})\">&#9632;</b> {label}</li>");
    }
    for PaperFigure { orb, invocation, servant, mbit_s, from, .. } in &told {
        let _ = writeln!(
            figure,
            "<li><b>&#215;</b> paper: {orb}, {} to {}, {mbit_s:.1} Mbit/s ({from})</li>",
            name(*invocation),
            name(*servant)
        );
    }
    for missing in missing(rows) {
        let _ = writeln!(figure, "<li>{}</li>", escape(missing));
    }
    figure.push_str("</ul>\n</figure>\n");
    Ok(figure)
}

/// The plain stream's line and each kind of call's.
fn series(rows: &[&TtcpRow]) -> Vec<Series> {
    let mut all = vec![Series { label: "plain stream".to_owned(), color: BLACK, points: Vec::new() }];
    for row in rows {
        let Outcome::Measured { raw, subject, .. } = &row.outcome else { continue };
        let size = (row.buffer.0 as f64).log2();
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
        (Peer::Omniorb, ServantKind::Static) => RGBColor(230, 90 + shade, shade),
        (Peer::Omniorb, ServantKind::Dsi) => RGBColor(190, shade, shade),
    }
}

fn missing<'a>(rows: &[&'a TtcpRow]) -> Vec<&'a str> {
    let mut all: Vec<&str> = rows
        .iter()
        .filter_map(|row| match &row.outcome {
            Outcome::Missing { missing } => Some(missing.as_str()),
            Outcome::Measured { .. } => None,
        })
        .collect();
    all.dedup();
    all
}

fn plot(series: &[Series], told: &[PaperFigure]) -> Result<String, String> {
    let told: Vec<(f64, f64)> =
        told.iter().map(|figure| ((figure.buffer.0 as f64).log2(), figure.mbit_s)).collect();
    let points = || series.iter().flat_map(|series| &series.points).chain(&told);
    let range = |of: fn(&(f64, f64)) -> f64| {
        points()
            .map(of)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)))
    };
    let ((left, right), (low, high)) = (range(|point| point.0), range(|point| point.1));
    if !(left.is_finite() && low.is_finite() && low > 0.0) {
        return Ok("<p>nothing was measured</p>\n".to_owned());
    }
    let mut svg = String::new();
    draw(&mut svg, series, &told, (left - 0.3, right + 0.3), (low * 0.7, high * 1.4))
        .map_err(|e| e.to_string())?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    series: &[Series],
    told: &[(f64, f64)],
    (left, right): (f64, f64),
    (low, high): (f64, f64),
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, (760, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(72)
        .build_cartesian_2d(left..right, (low..high).log_scale())?;
    chart
        .configure_mesh()
        .x_labels((right - left).ceil() as usize + 1)
        .x_label_formatter(&|size| Bytes(size.exp2().round() as usize).to_string())
        .y_label_formatter(&|rate| format!("{rate}"))
        .x_desc("buffer")
        .y_desc("Mbit/s")
        .max_light_lines(0)
        .draw()?;
    for Series { color, points, .. } in series {
        chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?;
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, color.filled())))?;
    }
    chart.draw_series(told.iter().map(|point| Cross::new(*point, 5, BLACK.stroke_width(2))))?;
    area.present()?;
    Ok(())
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <title>ironorb bench ttcp</title>\n\
    <style>body{font-family:sans-serif;margin:2em}figure{display:inline-block;margin:1em;max-width:760px}\
    figcaption{font-weight:bold}ul{columns:2;list-style:none;padding:0;font-size:small}pre{font-size:small}</style>\n\
    </head>\n<body>\n<h1>CORBA-TTCP</h1>\n";

#[cfg(test)]
mod tests {
    use super::super::report::tests::row;
    use super::super::variant::Mode;
    use super::*;
    use crate::machine::Machine;

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
            .map(|point| point.0.exp2().round())
            .collect();
        assert_eq!(sizes, [1000.0, 1024.0, 65536.0], "from left to right");
    }

    #[test]
    fn a_plot_of_nothing_is_no_plot() {
        assert!(plot(&[], &[]).unwrap().contains("nothing was measured"));
    }
}
