//! The page: verdicts first, then every figure and table with the paper's numbers beside ours. One file, which refers to no other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plotters::style::{BLACK, RGBColor};

use super::catalogue::{Chosen, Conclusion, Curves, Figure, Grid, Paper, Shows, Verdict};
use super::rows::{Measured, StoredRow, curve};
use crate::chart::{COLORS, Chart, FOOT, Series, escape};
use crate::error::BenchError;

/// What a page shows.
pub(super) struct Page<'a> {
    pub(super) chosen: &'a [Chosen],
    pub(super) measured: &'a Measured,
    pub(super) is_quick: bool,
    /// The machine, its kernel and the commit, a line each.
    pub(super) machine: String,
    /// What a reader must know of this run.
    pub(super) notes: Vec<String>,
    /// Why configurations have no rows, or not all.
    pub(super) missing: BTreeMap<&'static str, String>,
    /// The command lines of each configuration.
    pub(super) commands: BTreeMap<&'static str, Vec<String>>,
}

const TITLE: &str = "Five papers, measured again";

/// What stands in each heading of a quick run.
const QUICK: &str = " (quick run)";

const QUICK_NOTE: &str = "This is a quick run: it shows that all is measured and judged. Its figures are of few calls and say nothing \
    about speed, and its verdicts may be wrong.";

const INTRODUCTION: &str = "<p>Each figure shows this ORB under the configuration of the paper's figure, whose title it has. Crosses are \
    the paper's own points, as far as its text gives numbers.</p>\n";

/// Pixels of a plot in half of a wide window, and in a narrow one: letters keep their size.
const HALF: (u32, u32) = (560, 380);
const NARROW: (u32, u32) = (360, 320);

const STYLE: &str = include_str!("page.css");

impl Page<'_> {
    /// The page.
    ///
    /// # Errors
    /// A plot cannot be drawn.
    pub(super) fn html(&self) -> Result<String, BenchError> {
        let title = escape(TITLE);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
        );
        self.add_head(&mut page);
        page.push_str("<main>\n");
        self.add_heading(&mut page, 2, "verdicts", "What the papers conclude, and whether it holds here");
        page.push_str(&self.overview());
        for chosen in self.chosen.iter().filter(|chosen| chosen.is_whole) {
            self.add_verdicts(&mut page, chosen.paper);
        }
        self.add_heading(&mut page, 2, "figures", "Figures and tables");
        page.push_str(INTRODUCTION);
        for chosen in self.chosen {
            self.add_paper(&mut page, chosen)?;
        }
        self.add_heading(&mut page, 2, "commands", "How each figure was measured");
        self.add_commands(&mut page);
        page.push_str("</main>\n");
        page.push_str(FOOT);
        Ok(page)
    }

    fn add_heading(&self, page: &mut String, level: u8, id: &str, text: &str) {
        let quick = if self.is_quick { QUICK } else { "" };
        let _ = writeln!(page, "<h{level} id=\"{id}\">{}{quick}</h{level}>", escape(text));
    }

    fn add_head(&self, page: &mut String) {
        page.push_str("<header>\n");
        self.add_heading(page, 1, "top", TITLE);
        if self.is_quick {
            let _ = writeln!(page, "<p class=\"quick\">{QUICK_NOTE}</p>");
        }
        let _ = writeln!(page, "<pre>{}</pre>", escape(&self.machine));
        for note in &self.notes {
            let _ = writeln!(page, "<p>{}</p>", escape(note));
        }
        page.push_str("</header>\n<nav>\n<ul>\n<li><a href=\"#verdicts\">Verdicts</a><ul>");
        for chosen in self.chosen.iter().filter(|chosen| chosen.is_whole) {
            let tag = chosen.paper.tag;
            let _ = write!(page, "<li><a href=\"#{tag}-verdicts\">{tag}</a></li>");
        }
        page.push_str("</ul></li>\n");
        for chosen in self.chosen {
            let tag = chosen.paper.tag;
            let _ = write!(page, "<li><a href=\"#{tag}\">{tag}</a><ul>");
            for figure in &chosen.figures {
                let _ =
                    write!(page, "<li><a href=\"#{tag}-{}\">{}</a></li>", figure.name, short(figure.name));
            }
            page.push_str("</ul></li>\n");
        }
        page.push_str("<li><a href=\"#commands\">Commands</a></li>\n</ul>\n</nav>\n");
    }

    /// How many conclusions of each paper hold here.
    fn overview(&self) -> String {
        let mut grid = Grid::new(&["paper", "the same", "not the same", "not measured"]);
        for chosen in self.chosen.iter().filter(|chosen| chosen.is_whole) {
            let counts = counts(chosen.paper, self.measured).map(|count| count.to_string());
            let title = format!("{} ({})", chosen.paper.title, chosen.paper.by);
            grid.line([title].into_iter().chain(counts));
        }
        if grid.lines.is_empty() {
            return "<p>Only figures were chosen. Conclusions are judged where a whole paper is.</p>\n"
                .to_owned();
        }
        table(&grid)
    }

    fn add_verdicts(&self, page: &mut String, paper: &Paper) {
        self.add_heading(page, 3, &format!("{}-verdicts", paper.tag), paper.title);
        page.push_str(
            "<table class=\"verdicts\">\n<thead><tr><th>Theirs</th><th>Ours</th><th>Same?</th><th>Why</th></tr></thead>\n<tbody>\n",
        );
        for conclusion in paper.conclusions {
            let Conclusion { section, theirs, .. } = conclusion;
            let _ = write!(
                page,
                "<tr><td data-label=\"Theirs\">{} <small>({section})</small></td>",
                escape(theirs)
            );
            let verdict = conclusion.judge(self.measured);
            let (class, word) = word(&verdict);
            let _ = writeln!(
                page,
                "<td data-label=\"Ours\">{}{}</td><td data-label=\"Same?\" class=\"{class}\">{word}</td><td data-label=\"Why\">{}</td></tr>",
                escape(&verdict.ours),
                links(paper, &verdict),
                escape(verdict.why)
            );
        }
        page.push_str("</tbody>\n</table>\n");
    }

    fn add_paper(&self, page: &mut String, chosen: &Chosen) -> Result<(), BenchError> {
        let paper = chosen.paper;
        self.add_heading(page, 3, paper.tag, paper.title);
        let verdicts =
            if chosen.is_whole { format!("{}-verdicts", paper.tag) } else { "verdicts".to_owned() };
        let _ = writeln!(page, "<p><a href=\"#{verdicts}\">to the verdicts</a></p>");
        let _ = writeln!(page, "<p>{}. There: {}.</p>", escape(paper.by), escape(paper.there));
        let _ = writeln!(page, "<p>What differs here:</p>\n<ul class=\"differs\">");
        for differs in paper.differs {
            let _ = writeln!(page, "<li>{}</li>", escape(differs));
        }
        page.push_str("</ul>\n<div class=\"figures\">\n");
        for figure in &chosen.figures {
            self.add_figure(page, paper, figure)?;
        }
        page.push_str("</div>\n");
        Ok(())
    }

    fn add_figure(&self, page: &mut String, paper: &Paper, figure: &Figure) -> Result<(), BenchError> {
        let Figure { name, title, configuration, shows, note } = figure;
        let is_wide = if matches!(shows, Shows::Table(_)) { " class=\"wide\"" } else { "" };
        let _ = writeln!(page, "<figure{is_wide}>");
        let heading = format!("{}: {title}", short(name));
        self.add_heading(page, 4, &format!("{}-{name}", paper.tag), &heading);
        match shows {
            Shows::Curves(curves) => {
                let chart = chart(title, curves, self.measured.of(configuration));
                let [large, small] = [chart.svg(HALF)?, chart.svg(NARROW)?];
                let _ =
                    writeln!(page, "<div class=\"large\">{large}</div>\n<div class=\"small\">{small}</div>");
                page.push_str(&chart.legend());
            }
            Shows::Table(grid) => page.push_str(&table(&grid(self.measured))),
        }
        if let Some(why) = self.missing.get(configuration) {
            let _ = writeln!(page, "<p class=\"missing\">Not all was measured: {}</p>", escape(why));
        }
        if !note.is_empty() {
            let _ = writeln!(page, "<p>{}</p>", escape(note));
        }
        let _ = writeln!(page, "<p><a href=\"#run-{configuration}\">how it was measured</a></p>\n</figure>");
        Ok(())
    }

    fn add_commands(&self, page: &mut String) {
        for configuration in self.chosen.iter().flat_map(Chosen::configurations) {
            self.add_heading(page, 4, &format!("run-{}", configuration.name), configuration.name);
            page.push_str("<ul>\n");
            for command in self.commands.get(configuration.name).into_iter().flatten() {
                let _ = writeln!(page, "<li><code>{}</code></li>", escape(command));
            }
            page.push_str("</ul>\n");
        }
    }
}

/// The verdicts as text, a line each, and how many of each kind.
pub(super) fn text(chosen: &[Chosen], measured: &Measured) -> String {
    let mut text = String::new();
    for Chosen { paper, is_whole, .. } in chosen {
        if !is_whole {
            continue;
        }
        let [same, other, missing] = counts(paper, measured);
        let _ = writeln!(text, "\n{}: {same} the same, {other} not, {missing} not measured", paper.tag);
        for conclusion in paper.conclusions {
            let Conclusion { section, theirs, .. } = conclusion;
            let verdict = conclusion.judge(measured);
            let (_, word) = word(&verdict);
            let _ = writeln!(text, "  {word:<12}  {section}: {theirs}\n                {}", verdict.ours);
        }
    }
    text
}

/// How many conclusions are the same here, are not, and are not measured.
fn counts(paper: &Paper, measured: &Measured) -> [usize; 3] {
    let verdicts: Vec<Option<bool>> = paper.conclusions.iter().map(|it| it.judge(measured).same).collect();
    [Some(true), Some(false), None].map(|wanted| verdicts.iter().filter(|same| **same == wanted).count())
}

/// The class of a cell, and its word.
fn word(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict.same {
        Some(true) => ("same", "same"),
        Some(false) => ("other", "not the same"),
        None => ("unknown", "not measured"),
    }
}

/// Links to the figures that show the rows of a verdict, if these are of one configuration.
fn links(paper: &Paper, verdict: &Verdict) -> String {
    let mut configurations = verdict.of.iter();
    let (Some(of), None) = (configurations.next(), configurations.next()) else { return String::new() };
    let link = |figure: &Figure| {
        let Figure { name, .. } = figure;
        format!(" <a href=\"#{}-{name}\">{}</a>", paper.tag, short(name))
    };
    let links: String = paper.figures.iter().filter(|figure| figure.configuration == of).map(link).collect();
    if links.is_empty() { links } else { format!("<br><small>Its rows:{links}</small>") }
}

/// A figure's name as people write it.
fn short(name: &str) -> String {
    let (kind, number) = name.split_once('-').unwrap_or((name, ""));
    let kind = if kind == "table" { "Table" } else { "Figure" };
    format!("{kind} {number}")
}

fn table(grid: &Grid) -> String {
    let has_groups = grid.lines.iter().any(|line| line.len() == 1);
    let class = if has_groups { " class=\"grouped\"" } else { "" };
    let mut text = format!("<div class=\"scroll\"><table{class}>\n<thead><tr>");
    for column in &grid.columns {
        let _ = write!(text, "<th>{}</th>", escape(column));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for line in &grid.lines {
        text.push_str("<tr>");
        match &line[..] {
            [heading] => {
                let _ = write!(text, "<th colspan=\"{}\">{}</th>", grid.columns.len(), escape(heading));
            }
            cells => text.extend(cells.iter().map(|text| cell(text))),
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table></div>\n");
    if grid.lines.is_empty() {
        text.push_str("<p class=\"missing\">Nothing was measured.</p>\n");
    }
    text
}

fn cell(text: &str) -> String {
    let number = text.strip_prefix("about ").unwrap_or(text);
    let is_number = number.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    let class = if is_number { " class=\"number\"" } else { "" };
    format!("<td{class}>{}</td>", escape(text))
}

/// Shades of a paper's curves.
const SHADES: [RGBColor; 4] =
    [RGBColor(0, 0, 0), RGBColor(120, 70, 0), RGBColor(110, 110, 110), RGBColor(160, 120, 160)];

/// The curves of a figure, and the paper's points.
pub(super) fn chart(title: &str, curves: &Curves, rows: &super::rows::Rows) -> Chart {
    let Curves { x, y, rows: wanted, lines, baseline, paper } = curves;
    let wanted = wanted.iter().flat_map(|wanted| rows.of(wanted));
    let mut parts: Vec<(String, Vec<&StoredRow>)> = Vec::new();
    for row in wanted.clone() {
        let label = label(row, lines);
        match parts.iter_mut().find(|(known, _)| *known == label) {
            Some((_, part)) => part.push(row),
            None => parts.push((label, vec![row])),
        }
    }
    let points = |rows: &[&StoredRow], figure: &str| {
        let points = rows.iter().filter_map(|row| Some((row.count(x.0)?, row.median(figure)?)));
        curve(points.filter(|(_, y)| y.is_finite()))
    };
    let mut series: Vec<Series> = Vec::new();
    if let Some(label) = baseline {
        let all: Vec<&StoredRow> = wanted.collect();
        series.push(Series { label: (*label).to_owned(), color: BLACK, points: points(&all, "raw") });
    }
    for ((label, rows), color) in parts.into_iter().zip(COLORS.into_iter().cycle()) {
        series.push(Series { label, color, points: points(&rows, y.0) });
    }
    series.retain(|line| !line.points.is_empty());
    let cross = |(curve, color): (&super::catalogue::Curve, RGBColor)| Series {
        label: format!("paper: {}", curve.0),
        color,
        points: curve.1.to_vec(),
    };
    let crosses = paper.iter().zip(SHADES.into_iter().cycle()).map(cross).collect();
    Chart { title: title.to_owned(), x: x.1, y: y.1, lines: series, crosses, notes: Vec::new() }
}

/// Parameters in words.
const WORDS: [(&str, &str); 5] = [
    ("ironorb", "IronORB"),
    ("lanes", "IronORB, a lane for each priority"),
    ("twin", "plain sockets with the same threads"),
    ("operationLookup=linear+objectLookup=hash", "Orbix's look-ups"),
    ("operationLookup=hash+objectLookup=hash", "VisiBroker's look-ups"),
];

fn label(row: &StoredRow, lines: &[(&str, &str)]) -> String {
    let part = |(name, before): &(&str, &str)| {
        let text = row.text(name);
        (!text.is_empty()).then(|| format!("{before}{text}"))
    };
    let label = lines.iter().filter_map(part).collect::<Vec<_>>().join(" ");
    WORDS.iter().fold(label, |label, (setting, words)| label.replace(setting, words))
}
