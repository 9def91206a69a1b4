//! Pages with plots. Each page is one file and refers to no other.

use std::fmt::Write as _;

use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::error::BenchError;
use crate::row::{Row, partition};

/// A line of a plot, or marks without a line.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) color: RGBColor,
    /// Pairs of x and y, ordered by x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// One plot with its legend.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Series>,
    /// Published figures of other measurements, drawn as crosses; their labels are in the legend.
    pub(crate) crosses: Vec<Series>,
    /// Remarks below the chart.
    pub(crate) notes: Vec<String>,
}

/// The quantity on an axis, and its scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) name: &'static str,
    pub(crate) scale: Scale,
    /// Formats a value.
    pub(crate) text: fn(f64) -> String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Linear, from 0 on.
    Linear,
    /// Logarithmic to base 2.
    Log2,
    /// Logarithmic to base 10.
    Log10,
}

/// Draws charts from the rows of a table.
pub(crate) struct Plot {
    pub(crate) title: &'static str,
    /// The parameters whose combinations get a chart each.
    pub(crate) apart: &'static [&'static str],
    /// The parameter on the x axis.
    pub(crate) x: (&'static str, Axis),
    /// The figure on the y axis.
    pub(crate) y: (&'static str, Axis),
    /// The label of the baseline's line, if it is drawn.
    pub(crate) baseline: Option<&'static str>,
    /// The parameters whose combinations get a line each.
    pub(crate) lines: &'static [&'static str],
}

/// Colors that are easy to tell apart. The baseline is black.
pub(crate) const COLORS: [RGBColor; 9] = [
    RGBColor(0, 40, 200),
    RGBColor(0, 150, 130),
    RGBColor(230, 90, 0),
    RGBColor(170, 0, 0),
    RGBColor(120, 80, 220),
    RGBColor(90, 160, 230),
    RGBColor(150, 120, 0),
    RGBColor(220, 120, 160),
    RGBColor(110, 110, 110),
];

impl Plot {
    /// The charts of these rows. A line has one color in all charts.
    pub(crate) fn charts<'a>(&self, rows: impl IntoIterator<Item = &'a Row> + Clone) -> Vec<Chart> {
        let label = |row: &Row| texts(row, self.lines).join(" ");
        let labels: Vec<String> = partition(rows.clone(), label).iter().map(|rows| label(rows[0])).collect();
        // The plotting library never ends an axis that leads to infinity.
        let point = |row: &Row, figure: &str| {
            Some((row.count(self.x.0)?, row.median(figure).filter(|figure| figure.is_finite())?))
        };
        let sorted = |mut points: Vec<(f64, f64)>| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points.dedup_by_key(|point| point.0);
            points
        };
        let chart = |rows: Vec<&Row>| {
            let mut lines = Vec::new();
            if let Some(label) = self.baseline {
                let points = sorted(rows.iter().filter_map(|row| point(row, "raw")).collect());
                lines.push(Series { label: label.to_owned(), color: BLACK, points });
            }
            for rows in partition(rows.iter().copied(), label) {
                let points = sorted(rows.iter().filter_map(|row| point(row, self.y.0)).collect());
                let label = label(rows[0]);
                let place = labels.iter().position(|known| *known == label).unwrap_or(0);
                if !points.is_empty() {
                    lines.push(Series { label, color: COLORS[place % COLORS.len()], points });
                }
            }
            let mut notes: Vec<String> = rows.iter().filter_map(|row| row.outcome.clone().err()).collect();
            notes.dedup();
            let titles = std::iter::once(self.title.to_owned()).chain(texts(rows[0], self.apart));
            let title = titles.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
            Chart { title, x: self.x.1, y: self.y.1, lines, crosses: Vec::new(), notes }
        };
        partition(rows, |row| texts(row, self.apart)).into_iter().map(chart).collect()
    }
}

fn texts(row: &Row, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| row.text(name)).filter(|text| !text.is_empty()).collect()
}

/// The pixels of a plot in width and height.
const SIZE: (u32, u32) = (760, 420);

/// The beginning of every page.
pub(crate) fn head(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>ironorb bench: {title}</title>\n{STYLE}\
         </head>\n<body>\n<h1>{title}</h1>\n"
    )
}

/// The end of every page.
pub(crate) const FOOT: &str = "</body>\n</html>\n";

/// Charts are as wide as the window where that is narrow.
const STYLE: &str = "<style>body{font-family:sans-serif;margin:min(2em,4vw)}\
    figure{display:inline-block;margin:1em 1em 1em 0;max-width:min(760px,100%);vertical-align:top}\
    svg{max-width:100%;height:auto}figcaption{font-weight:bold}ul{columns:2;list-style:none;padding:0;font-size:small}\
    pre{font-size:small;overflow-x:auto}</style>\n";

/// Escapes text for a page.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Chart {
    /// The chart as a figure of a page.
    pub(crate) fn html(&self) -> Result<String, BenchError> {
        let mut figure = format!("<figure>\n<figcaption>{}</figcaption>\n", escape(&self.title));
        figure.push_str(&self.svg(SIZE)?);
        figure.push_str(&self.legend());
        figure.push_str("</figure>\n");
        Ok(figure)
    }

    /// The names of all series, and the notes, as a list.
    pub(crate) fn legend(&self) -> String {
        let mut figure = "<ul>\n".to_owned();
        // Writing to a String cannot fail.
        for (sign, series) in [("&#9632;", &self.lines), ("&#215;", &self.crosses)] {
            for Series { label, color: RGBColor(red, green, blue), .. } in series {
                let label = escape(label);
                let _ = writeln!(
                    figure,
                    "<li><b style=\"color:rgb({red},{green},{blue})\">{sign}</b> {label}</li>"
                );
            }
        }
        for note in &self.notes {
            let _ = writeln!(figure, "<li>{}</li>", escape(note));
        }
        figure.push_str("</ul>\n");
        figure
    }

    /// The plot alone, of so many pixels in width and height; a page may show it in any width.
    pub(crate) fn svg(&self, size: (u32, u32)) -> Result<String, BenchError> {
        let range = |of: fn(&(f64, f64)) -> f64| {
            let points = self.lines.iter().chain(&self.crosses).flat_map(|series| &series.points);
            points
                .map(of)
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)))
        };
        let ((left, right), (low, high)) = (range(|point| point.0), range(|point| point.1));
        let can_be_drawn =
            |axis: Axis, low: f64| low.is_finite() && (axis.scale == Scale::Linear || low > 0.0);
        if !(can_be_drawn(self.x, left) && can_be_drawn(self.y, low)) {
            return Ok("<p>nothing was measured</p>\n".to_owned());
        }
        let mut svg = String::new();
        self.draw(&mut svg, size, self.x.around(left, right), (low, high))
            .map_err(|e| BenchError::Unusable(format!("the plot {:?} cannot be drawn: {e}", self.title)))?;
        Ok(svg)
    }

    /// Draws the chart. x values are placed by their logarithms, because the plotting library's own scale
    /// marks only powers of ten.
    fn draw(
        &self,
        svg: &mut String,
        size: (u32, u32),
        (left, right): (f64, f64),
        (low, high): (f64, f64),
    ) -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let mut builder = ChartBuilder::on(&area);
        builder.margin(12).x_label_area_size(36).y_label_area_size(72);
        match self.y.scale {
            Scale::Linear => {
                let mut plane = builder.build_cartesian_2d(left..right, 0.0..(high * 1.1).max(1e-9))?;
                self.fill(&mut plane, size)?;
            }
            Scale::Log2 | Scale::Log10 => {
                let range = (low * 0.7..high * 1.4).log_scale();
                self.fill(&mut builder.build_cartesian_2d(left..right, range)?, size)?;
            }
        }
        area.present()?;
        Ok(())
    }

    fn fill<Y>(
        &self,
        chart: &mut Plane<'_, '_, Y>,
        size: (u32, u32),
    ) -> Result<(), Box<dyn std::error::Error>>
    where
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let x = chart.x_range();
        let labels = match self.x.scale {
            Scale::Linear if size.0 < SIZE.0 / 2 => 5,
            Scale::Linear => 8,
            Scale::Log2 | Scale::Log10 => (x.end - x.start).ceil() as usize + 1,
        };
        chart
            .configure_mesh()
            .x_labels(labels)
            .x_label_formatter(&|place| (self.x.text)(self.x.value(*place)))
            .y_label_formatter(&|value| (self.y.text)(*value))
            .x_desc(self.x.name)
            .y_desc(self.y.name)
            .max_light_lines(0)
            .draw()?;
        let placed = |series: &Series| {
            series.points.iter().map(|(x, y)| (self.x.place(*x), *y)).collect::<Vec<(f64, f64)>>()
        };
        for series in &self.lines {
            let points = placed(series);
            chart.draw_series(LineSeries::new(points.iter().copied(), series.color.stroke_width(2)))?;
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, series.color.filled())))?;
        }
        for series in &self.crosses {
            chart.draw_series(
                placed(series).into_iter().map(|point| Cross::new(point, 5, series.color.stroke_width(2))),
            )?;
        }
        Ok(())
    }
}

type Plane<'a, 'b, Y> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<plotters::coord::types::RangedCoordf64, Y>>;

impl Axis {
    /// The place of a value on the axis.
    fn place(self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log2 => value.log2(),
            Scale::Log10 => value.log10(),
        }
    }

    fn value(self, place: f64) -> f64 {
        match self.scale {
            Scale::Linear => place,
            Scale::Log2 => place.exp2(),
            Scale::Log10 => 10f64.powf(place),
        }
    }

    /// The range of the axis for values between these, with a margin.
    fn around(self, low: f64, high: f64) -> (f64, f64) {
        let (left, right) = (self.place(low), self.place(high));
        let margin = match self.scale {
            Scale::Linear => ((right - left) * 0.05).max(1e-9),
            Scale::Log2 | Scale::Log10 => 0.3,
        };
        (left - margin, right + margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale) -> Chart {
        let series = |label: &str, points: &[(f64, f64)]| Series {
            label: label.to_owned(),
            color: BLACK,
            points: points.to_vec(),
        };
        let text = |value: f64| format!("{value:.0}");
        Chart {
            title: "a < b".to_owned(),
            x: Axis { name: "x", scale, text },
            y: Axis { name: "y", scale, text },
            lines: vec![series("ours", &[(1.0, 10.0), (2.0, 20.0), (4.0, 30.0)])],
            crosses: vec![series("theirs", &[(2.0, 15.0)])],
            notes: vec!["not <installed>".to_owned()],
        }
    }

    #[test]
    fn every_point_is_drawn_on_every_scale() {
        for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
            let html = chart(scale).html().unwrap();
            assert_eq!(html.matches("<circle").count(), 3, "{html}");
            assert!(html.contains("a &lt; b") && html.contains("not &lt;installed&gt;"));
            assert!(html.contains("ours") && html.contains("theirs"));
            // A narrow window scales what has a box of its own, and only if the page asks for the window's width.
            assert!(html.contains("viewBox=") && head("x").contains("width=device-width"));
        }
    }

    #[test]
    fn a_plot_of_nothing_is_no_plot() {
        let empty = Chart { lines: Vec::new(), crosses: Vec::new(), ..chart(Scale::Log2) };
        assert!(empty.html().unwrap().contains("nothing was measured"));
        let mut zero = chart(Scale::Log10);
        zero.lines[0].points[0] = (0.0, 1.0);
        assert!(zero.html().unwrap().contains("nothing was measured"), "zero has no logarithm");
        assert!(chart(Scale::Linear).html().unwrap().contains("<svg"));
    }
}
