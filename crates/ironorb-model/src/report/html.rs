//! Reports as one page, which refers to no other file.

use std::fmt::Write as _;

use super::text::difference_cells;
use super::*;

/// Experiments as a page: for several a plot over all, and of each its tables and the distribution of response times.
pub fn experiments_html(experiments: &[Experiment], origin: &Origin) -> String {
    let title = match experiments {
        [one] => one.scenario.clone(),
        [first, ..] => first.scenario.split(" [").next().unwrap_or_default().to_owned(),
        [] => String::new(),
    };
    let mut page = head(&title, origin);
    if experiments.len() > 1 {
        page.push_str("<nav><ol>\n");
        for (number, experiment) in experiments.iter().enumerate() {
            let name = escape(&experiment.scenario);
            let _ = writeln!(page, "<li><a href=\"#s{number}\">{name}</a></li>");
        }
        page.push_str("</ol></nav>\n");
        page.push_str(&over_all(experiments));
    }
    for (number, experiment) in experiments.iter().enumerate() {
        let _ = writeln!(page, "<h2 id=\"s{number}\">{}</h2>", escape(&experiment.scenario));
        experiment_section(&mut page, experiment, origin);
    }
    page.push_str(FOOT);
    page
}

/// A comparison as a page.
pub fn comparison_html(comparison: &Comparison, origin: &Origin) -> String {
    let Comparison { before, after, differences, left_out } = comparison;
    let mut page = head(&format!("{} and {}", before.scenario, after.scenario), origin);
    page.push_str("<h2>Differences</h2>\n");
    let mut table =
        Table::new(&["of", "figure", &before.scenario, &after.scenario, "difference", "", "share"]);
    for difference in differences {
        table.line(&difference_cells(difference));
    }
    page.push_str(&table.html());
    let _ = writeln!(
        page,
        "<p>The difference is that of runs with the same seed, with its interval of {} confidence. Where it says ?, the interval has \
         zero in it.</p>",
        shown_share(before.confidence)
    );
    for line in left_out {
        let _ = writeln!(page, "<p class=\"note\">Not compared: {}.</p>", escape(line));
    }
    for experiment in [before, after] {
        let _ = writeln!(page, "<h2>{}</h2>", escape(&experiment.scenario));
        experiment_section(&mut page, experiment, origin);
    }
    page.push_str(FOOT);
    page
}

fn head(title: &str, origin: &Origin) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>ironorb sim: {title}</title>\n{STYLE}</head>\n<body>\n\
         <h1>{title}</h1>\n<p>Simulated at level {}, commit {}.</p>\n",
        escape(&origin.level),
        escape(&origin.commit)
    )
}

fn experiment_section(page: &mut String, experiment: &Experiment, origin: &Origin) {
    let Experiment { seed, warm_up, runs, digest, .. } = experiment;
    let span = runs.first().map_or(Duration::ZERO, |run| run.span);
    let _ = writeln!(
        page,
        "<p>{} runs at level {}, seeds {seed} to {}, digest <code>{:016x}</code>; each observed for {span:?} after a warm-up of \
         {warm_up:?}.</p>",
        runs.len(),
        escape(&origin.level),
        seed + runs.len() as u64 - 1,
        digest.value()
    );
    for note in experiment.notes() {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(&note));
    }
    let names = runs.first().map_or(&[][..], |run| &run.classes);
    let mut heads = vec!["class", "throughput", "response", "+-"];
    heads.extend(PERCENTILES.iter().map(|(_, name)| *name));
    heads.extend(["cached", "stale p99", "failed"]);
    let mut table = Table::new(&heads);
    let mut lines = Vec::new();
    for (number, class) in names.iter().enumerate() {
        let response = experiment.response(number);
        let all = experiment.all_responses(number);
        let finite = |seconds: f64| if seconds.is_finite() { shown_time(seconds) } else { "?".to_owned() };
        let mut cells = vec![
            class.name.clone(),
            format!("{}/s", shown(experiment.throughput(number).mean)),
            finite(response.mean),
            finite(response.half_width),
        ];
        let at = |at: f64| match all.is_empty() {
            true => "-".to_owned(),
            false => shown_time(all.value_at_quantile(at) as f64 / 1e9),
        };
        cells.extend(PERCENTILES.iter().map(|(place, _)| at(*place)));
        let hits = experiment.hits(number);
        let stale = experiment.all_staleness(number);
        let cached = hits.count > 0;
        cells.push(if cached { shown_share(hits.mean) } else { "-".to_owned() });
        let oldest = shown_time(stale.value_at_quantile(0.99) as f64 / 1e9);
        cells.push(if cached { oldest } else { "-".to_owned() });
        cells.push(runs.iter().map(|run| run.classes[number].failed).sum::<u64>().to_string());
        table.line(&cells);
        let steps = (0..=200).map(|step| f64::from(step) / 200.0);
        if !all.is_empty() {
            let points = steps
                .map(|share| (all.value_at_quantile(share).max(1) as f64 / 1e9, share * 100.0))
                .collect();
            lines.push((class.name.clone(), points));
        }
    }
    page.push_str(&table.html());
    let plot = Plot {
        title: "Response times: the share of cycles that took no longer",
        x: Scale::Time,
        labels: Vec::new(),
        y_label: "%",
        y_top: Some(100.0),
        lines,
    };
    page.push_str(&plot.html());
    let mut table = Table::new(&["resource", "used", "", "queue", "at most", "octets/s"]);
    for resource in resources(experiment) {
        let of_runs =
            |figure: fn(&ResourceObservations) -> f64| experiment.of_resource(&resource.name, figure).mean;
        let used = of_runs(|it| it.utilisation);
        let most = runs.iter().flat_map(|run| &run.resources).filter(|it| it.name == resource.name);
        let is_link = resource.name.starts_with("link ");
        table.line_with_bar(
            &[
                resource.name.clone(),
                shown_share(used),
                String::new(),
                shown(of_runs(|it| it.queue_mean)),
                most.map(|it| it.queue_max).max().unwrap_or(0).to_string(),
                if is_link {
                    shown(of_runs(|it| it.octets as f64) / span.as_secs_f64())
                } else {
                    String::new()
                },
            ],
            (2, used),
        );
    }
    page.push_str(&table.html());
}

/// Response times and throughputs of all experiments.
fn over_all(experiments: &[Experiment]) -> String {
    let names = experiments[0].runs.first().map_or(&[][..], |run| &run.classes);
    let of = |figure: fn(&Experiment, usize) -> f64| {
        let line = |(number, class): (usize, &crate::ClassObservations)| {
            let points = experiments.iter().enumerate().map(|(at, it)| (at as f64, figure(it, number)));
            (class.name.clone(), points.filter(|(_, value)| value.is_finite()).collect())
        };
        names.iter().enumerate().map(line).collect()
    };
    // The numbers of the list above.
    let labels: Vec<String> = (1..=experiments.len()).map(|number| number.to_string()).collect();
    let plot = |title, y_label, lines| {
        Plot { title, x: Scale::Places, labels: labels.clone(), y_label, y_top: None, lines }.html()
    };
    let mut page = plot(
        "Mean response time, by the number of the scenario",
        "ms",
        of(|it, class| it.response(class).mean * 1e3),
    );
    page.push_str(&plot(
        "Cycles a second, by the number of the scenario",
        "/s",
        of(|it, class| it.throughput(class).mean),
    ));
    page
}

/// A table that a narrow window scrolls.
struct Table {
    text: String,
}

impl Table {
    fn new(heads: &[&str]) -> Table {
        let mut text = String::from("<div class=\"wide\"><table>\n<tr>");
        for head in heads {
            let _ = write!(text, "<th>{}</th>", escape(head));
        }
        text.push_str("</tr>\n");
        Table { text }
    }

    fn line(&mut self, cells: &[String]) {
        self.line_with_bar(cells, (usize::MAX, 0.0));
    }

    /// One cell has a bar of this share.
    fn line_with_bar(&mut self, cells: &[String], (place, share): (usize, f64)) {
        self.text.push_str("<tr>");
        for (number, cell) in cells.iter().enumerate() {
            let _ = match number == place {
                true => {
                    let width = (share.clamp(0.0, 1.0) * 100.0).round();
                    write!(self.text, "<td class=\"bar\"><i style=\"width:{width}%\"></i></td>")
                }
                false => write!(self.text, "<td>{}</td>", escape(cell)),
            };
        }
        self.text.push_str("</tr>\n");
    }

    fn html(mut self) -> String {
        self.text.push_str("</table></div>\n");
        self.text
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Seconds, by their logarithms.
    Time,
    /// Places with labels.
    Places,
}

/// A plot with lines.
struct Plot {
    title: &'static str,
    x: Scale,
    labels: Vec<String>,
    y_label: &'static str,
    y_top: Option<f64>,
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 40.0;

impl Plot {
    fn html(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        if points().next().is_none() {
            return String::new();
        }
        let place = |x: f64| if self.x == Scale::Time { libm::log10(x) } else { x };
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        points().for_each(|(x, _)| (low, high) = (low.min(place(*x)), high.max(place(*x))));
        if high - low < 0.2 {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let top = self.y_top.unwrap_or_else(|| round_up(points().fold(0.0, |top: f64, (_, y)| top.max(*y))));
        let x_of = |x: f64| LEFT + (place(x) - low) / (high - low) * (WIDTH - LEFT - 16.0);
        let y_of = |y: f64| HEIGHT - BOTTOM - y / top * (HEIGHT - BOTTOM - 12.0);
        let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n");
        for step in 0..=4 {
            let value = top * f64::from(step) / 4.0;
            let y = y_of(value);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{WIDTH}\" class=\"grid\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} \
                 {}</text>",
                LEFT - 6.0,
                y + 4.0,
                shortest(value),
                self.y_label
            );
        }
        for (x, label) in self.x_marks(low, high) {
            let x = x_of(x);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} 12V{0:.1}\" class=\"grid\"/><text x=\"{x:.1}\" y=\"{1:.1}\" text-anchor=\"middle\">{2}</text>",
                HEIGHT - BOTTOM,
                HEIGHT - BOTTOM + 18.0,
                escape(&label)
            );
        }
        for (number, (_, points)) in self.lines.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            let path: Vec<String> =
                points.iter().map(|(x, y)| format!("{:.1} {:.1}", x_of(*x), y_of(*y))).collect();
            let _ = writeln!(
                svg,
                "<path d=\"M{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
                path.join("L")
            );
            if self.x == Scale::Places {
                for (x, y) in points {
                    let _ = writeln!(
                        svg,
                        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{color}\"/>",
                        x_of(*x),
                        y_of(*y)
                    );
                }
            }
        }
        svg.push_str("</svg>\n");
        let mut figure = format!("<figure>\n<figcaption>{}</figcaption>\n{svg}<ul>\n", escape(self.title));
        for (number, (name, _)) in self.lines.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            let _ = writeln!(figure, "<li><b style=\"color:{color}\">&#9632;</b> {}</li>", escape(name));
        }
        figure.push_str("</ul>\n</figure>\n");
        figure
    }

    fn x_marks(&self, low: f64, high: f64) -> Vec<(f64, String)> {
        match self.x {
            Scale::Time => {
                let powers = (low.floor() as i32)..=(high.ceil() as i32);
                let all = powers
                    .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * libm::exp10(f64::from(power))));
                let within = |at: &f64| (low..=high).contains(&libm::log10(*at));
                let marks: Vec<f64> = all.filter(within).collect();
                let every = marks.len().div_ceil(8).max(1);
                let label = |at: f64| {
                    let text = shown_time(at);
                    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
                    format!("{} {unit}", without_zeros(number))
                };
                marks.into_iter().step_by(every).map(|at| (at, label(at))).collect()
            }
            Scale::Places => {
                let every = self.labels.len().div_ceil(8).max(1);
                let marks = self.labels.iter().enumerate().step_by(every);
                marks.map(|(at, label)| (at as f64, label.clone())).collect()
            }
        }
    }
}

/// A number without zeros at its end.
fn shortest(number: f64) -> String {
    without_zeros(&shown(number)).to_owned()
}

fn without_zeros(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

/// The next number with one digit.
fn round_up(number: f64) -> f64 {
    if number <= 0.0 {
        return 1.0;
    }
    let power = libm::exp10(libm::floor(libm::log10(number)));
    (number / power).ceil() * power
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Colors that are easy to tell apart.
const COLORS: [&str; 8] =
    ["#0028c8", "#e65a00", "#009682", "#aa0000", "#7850dc", "#967800", "#5aa0e6", "#6e6e6e"];

const STYLE: &str = "<style>body{font-family:sans-serif;margin:min(2em,4vw);line-height:1.4}\
    .wide{overflow-x:auto;margin:1em 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
    th,td{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}\
    th:first-child,td:first-child{text-align:left}.bar{width:8em;min-width:5em}\
    .bar i{display:block;height:.8em;background:#0028c8}\
    figure{margin:1em 0;max-width:min(760px,100%);overflow-x:auto}svg{width:100%;min-width:500px;height:auto;font-size:12px}\
    .grid{stroke:#ddd}figcaption{font-weight:bold}ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:0 1.5em}\
    .note{border-left:4px solid #e65a00;padding-left:.7em}code{overflow-wrap:anywhere}</style>\n";

const FOOT: &str = "</body>\n</html>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_page() {
        let plot = Plot {
            title: "a < b",
            x: Scale::Places,
            labels: vec!["\"x\" & <y>".to_owned()],
            y_label: "ms",
            y_top: None,
            lines: vec![("<script>".to_owned(), vec![(0.0, 3.0)])],
        };
        let html = plot.html();
        assert!(html.contains("&quot;x&quot; &amp; &lt;y&gt;") && html.contains("&lt;script&gt;"), "{html}");
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
        assert_eq!(html.matches("<circle").count(), 1);
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([shortest(6_000.0), shortest(0.25), shortest(10.0)], ["6000", "0.25", "10"]);
        assert_eq!([round_up(0.0), round_up(37.0), round_up(0.11)], [1.0, 40.0, 0.2]);
    }
}
