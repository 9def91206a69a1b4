//! Reports as text, as lines of JSON and as a page, in one style for every suite.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::chart::{Chart, FOOT, escape, head};
use crate::error::BenchError;
use crate::goal::{Goal, Verdict, goals};
use crate::machine::Machine;
use crate::options::Run;
use crate::row::{Figure, Row, partition, shown};

/// The result of a suite. Its `Display` is the text.
#[derive(Debug)]
pub struct Report {
    /// The suite's name on the command line.
    suite: &'static str,
    title: &'static str,
    pub(crate) machine: Machine,
    /// Whether the run was quick: its figures show only that the suite works.
    pub(crate) is_quick: bool,
    /// The tables of measurements.
    pub(crate) tables: Vec<Table>,
    /// The goals.
    pub(crate) goals: Vec<Goal>,
}

/// Rows that have the same figures.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The name of the table's rows in lines of JSON.
    pub(crate) kind: &'static str,
    pub(crate) title: &'static str,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// Parameters in the title of a block of rows.
    pub(crate) blocks: &'static [&'static str],
    /// Parameters that lines of JSON have, and the text need not repeat.
    pub(crate) hidden: &'static [&'static str],
    /// A parameter whose values form columns side by side.
    pub(crate) across: Option<&'static str>,
    /// What the reader must know about the figures.
    pub(crate) notes: Cow<'static, str>,
    pub(crate) charts: Vec<Chart>,
    /// The origin of the figures, if they were not measured on this machine.
    pub(crate) elsewhere: Option<&'static str>,
}

const QUICK: &str =
    "quick run: it shows that the suite works; its figures say nothing about speed, and no goal is judged";

impl Table {
    /// A table without blocks, notes and charts.
    pub(crate) fn new(kind: &'static str, title: &'static str, rows: Vec<Row>) -> Table {
        Table { kind, title, rows, ..Table::default() }
    }

    pub(crate) fn blocks(self, blocks: &'static [&'static str]) -> Table {
        Table { blocks, ..self }
    }

    pub(crate) fn notes(self, notes: impl Into<Cow<'static, str>>) -> Table {
        Table { notes: notes.into(), ..self }
    }

    pub(crate) fn charts(self, charts: Vec<Chart>) -> Table {
        Table { charts, ..self }
    }

    /// The figures were not measured on this machine.
    pub(crate) fn elsewhere(self, elsewhere: &'static str) -> Table {
        Table { elsewhere: Some(elsewhere), ..self }
    }
}

impl Report {
    pub(crate) fn new(suite: &'static str, title: &'static str, run: &Run) -> Report {
        Report {
            suite,
            title,
            machine: Machine::this(),
            is_quick: run.quick,
            tables: Vec::new(),
            goals: Vec::new(),
        }
    }

    /// The rows of one kind.
    pub fn rows(&self, kind: &str) -> &[Row] {
        self.tables.iter().find(|table| table.kind == kind).map_or(&[], |table| &table.rows)
    }

    /// Adds the goals of all tables.
    pub(crate) fn with_goals(mut self) -> Report {
        self.machine.end();
        self.goals =
            self.tables.iter().flat_map(|table| goals(self.suite, table.kind, &table.rows)).collect();
        self
    }

    fn add_lines(&self, lines: &mut String, is_part: bool) {
        let here = json!(self.machine);
        let mut line = |suite: &str, kind: &str, members: Map<String, Value>, machine: &Value| {
            let mut all =
                Map::from_iter([("bench".to_owned(), suite.into()), ("kind".to_owned(), kind.into())]);
            if self.is_quick {
                all.insert("quick".to_owned(), true.into());
            }
            all.extend(members);
            all.insert("machine".to_owned(), machine.clone());
            let _ = writeln!(lines, "{}", Value::Object(all));
        };
        for table in &self.tables {
            let machine = table.elsewhere.map_or_else(|| here.clone(), Value::from);
            table.rows.iter().for_each(|row| line(self.suite, table.kind, row.members(), &machine));
        }
        let suites = [Some(self.suite), is_part.then_some("all")];
        for (suite, goal) in
            suites.into_iter().flatten().flat_map(|suite| self.goals.iter().map(move |it| (suite, it)))
        {
            line(suite, "target", goal.members(self.is_quick), &here);
        }
    }

    /// The text without the machine of the measurement.
    fn body(&self) -> String {
        let mut text = if self.is_quick { format!("\n{QUICK}\n") } else { String::new() };
        for table in &self.tables {
            let _ = write!(text, "{table}");
        }
        if !self.goals.is_empty() {
            let _ = write!(text, "\n{}", list_of_goals(&[self]));
        }
        text
    }

    fn add_body(&self, page: &mut String) -> Result<(), BenchError> {
        for chart in self.tables.iter().flat_map(|table| &table.charts) {
            page.push_str(&chart.html()?);
        }
        let _ = writeln!(page, "<pre>{}</pre>", escape(&self.body()));
        Ok(())
    }
}

/// Prints reports and writes the requested files. Several reports form one page, with all goals at its head.
pub(crate) fn publish(reports: &[Report], run: &Run) -> Result<(), BenchError> {
    use std::io::Write as _;

    if let Some(file) = &run.json {
        write_text(file, &lines(reports))?;
    }
    if let Some(file) = &run.html {
        write_text(file, &page(reports)?)?;
    }
    let printed = std::io::stdout().lock().write_all(text(reports).as_bytes());
    match printed {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(BenchError::io("print the report")),
    }
}

/// The reports as text.
pub(crate) fn text(reports: &[Report]) -> String {
    let mut text = String::new();
    match reports {
        [report] => drop(write!(text, "{report}")),
        _ => {
            for report in reports {
                let _ = writeln!(text, "\n== {}\n{report}", report.title);
            }
            let _ = write!(text, "\n== all goals\n{}", all_goals(reports));
        }
    }
    text
}

/// The reports as lines of JSON. Each is a row or a goal, with the machine of the measurement.
pub(crate) fn lines(reports: &[Report]) -> String {
    let mut lines = String::new();
    reports.iter().for_each(|report| report.add_lines(&mut lines, reports.len() > 1));
    lines
}

/// The reports as one page, which refers to no other file.
///
/// # Errors
/// A plot cannot be drawn.
pub(crate) fn page(reports: &[Report]) -> Result<String, BenchError> {
    let title = if let [report] = reports { report.title } else { "What calls cost" };
    let mut page = head(title);
    if let Some(first) = reports.first() {
        if first.is_quick {
            let _ = writeln!(page, "<p><b>{QUICK}</b></p>");
        }
        let _ = writeln!(page, "<pre>{}</pre>", escape(&first.machine.to_string()));
    }
    if reports.len() > 1 {
        let _ = writeln!(page, "<h2>Goals</h2>\n<pre>{}</pre>", escape(&all_goals(reports)));
    }
    for report in reports {
        if reports.len() > 1 {
            let _ = writeln!(page, "<h2>{}</h2>", escape(report.title));
        }
        report.add_body(&mut page)?;
    }
    page.push_str(FOOT);
    Ok(page)
}

fn write_text(file: &Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(file, text).map_err(BenchError::io(format!("write {}", file.display())))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.machine, self.body())
    }
}

/// The goals of reports, with their verdicts.
fn list_of_goals(reports: &[&Report]) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "goal", Align::Left);
    grid.column("", "figure", Align::Right);
    for name in ["bound", "", "on"] {
        grid.column("", name, Align::Left);
    }
    for report in reports {
        let line = |goal: &Goal| Line { cells: goal.cells(report.is_quick), rest: None };
        grid.lines.extend(report.goals.iter().map(line));
    }
    grid
}

/// The goals of all reports, and how many are met.
fn all_goals(reports: &[Report]) -> String {
    let verdict = |report: &Report, goal: &Goal| goal.verdict(report.is_quick);
    let verdicts: Vec<Verdict> = reports
        .iter()
        .flat_map(|report| report.goals.iter().map(move |goal| verdict(report, goal)))
        .collect();
    let of = |wanted: Verdict| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let (all, met, missed) = (verdicts.len(), of(Verdict::Met), of(Verdict::Missed));
    let grid = list_of_goals(&reports.iter().collect::<Vec<_>>());
    format!("\n{grid}\n{met} of {all} goals met, {missed} missed, {} not judged\n", all - met - missed)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = |row: &Row| texts(self.blocks, row);
        for rows in partition(&self.rows, block) {
            let place = rows.first().map_or_else(String::new, |row| {
                let named = self.blocks.iter().map(|name| format!("{name} {}", row.text(name)));
                named.filter(|text| !text.ends_with(' ')).collect::<Vec<_>>().join(", ")
            });
            let colon = if place.is_empty() { "" } else { ": " };
            writeln!(f, "\n{}{colon}{place}", self.title)?;
            self.grid(&rows).fmt(f)?;
        }
        match self.rows.is_empty() || self.notes.is_empty() {
            true => Ok(()),
            false => writeln!(f, "\n{}", self.notes),
        }
    }
}

fn texts(names: &[&str], row: &Row) -> Vec<String> {
    names.iter().map(|name| row.text(name)).collect()
}

impl Table {
    /// Whether a parameter has no column: a title has it, or another parameter says as much.
    fn is_elsewhere(&self, name: &str) -> bool {
        self.blocks.contains(&name) || self.hidden.contains(&name)
    }

    fn grid(&self, rows: &[&Row]) -> Grid {
        let mut grid = Grid::default();
        let mut parameters: Vec<&'static str> = Vec::new();
        let mut across: Vec<String> = Vec::new();
        for (name, value) in rows.iter().flat_map(|row| &row.parameters) {
            if Some(*name) == self.across {
                note(&mut across, shown(value));
            } else if !self.is_elsewhere(name) && !shown(value).is_empty() && !parameters.contains(name) {
                parameters.push(name);
                let align = if value.is_number() { Align::Right } else { Align::Left };
                grid.column("", name, align);
            }
        }
        if across.is_empty() {
            across.push(String::new());
        }
        let of_place = |row: &&&Row, place: &str| self.across.is_none_or(|across| row.text(across) == place);
        let mut figures: Vec<(String, String, Figure)> = Vec::new();
        for place in &across {
            let rows = rows.iter().filter(|row| of_place(row, place));
            for (name, figure) in rows.flat_map(|row| row.outcome.iter().flatten()) {
                if !figures.iter().any(|(known_place, known, _)| known_place == place && known == name) {
                    figures.push((place.clone(), name.clone(), *figure));
                }
            }
        }
        // Figures about the machine come last, also where a later row has more figures.
        figures.sort_by_key(|(_, name, _)| name == "load");
        for (place, name, figure) in &figures {
            let title = format!("{place} {}", heading(name, figure));
            for (part, column) in figure.heads().into_iter().enumerate() {
                grid.column(if part == 0 { title.trim() } else { "" }, column, Align::Right);
            }
        }
        for line in partition(rows.iter().copied(), |row| texts(&parameters, row)) {
            let mut cells = texts(&parameters, line[0]);
            let missing = line.iter().find_map(|row| row.outcome.as_ref().err()).filter(|_| line.len() == 1);
            if missing.is_none() {
                for (place, name, like) in &figures {
                    let figure =
                        line.iter().filter(|row| of_place(row, place)).find_map(|row| row.figure(name));
                    let empty = || like.heads().iter().map(|_| "-".to_owned()).collect();
                    cells.extend(figure.map_or_else(empty, |figure| figure.cells()));
                }
            }
            grid.lines.push(Line { cells, rest: missing.cloned() });
        }
        grid
    }
}

fn note(known: &mut Vec<String>, text: String) {
    if !known.contains(&text) {
        known.push(text);
    }
}

/// The title of a column. The figures of the baseline and the ORB show their unit.
fn heading(name: &str, figure: &Figure) -> String {
    let name = match name {
        "raw" => "baseline".to_owned(),
        "subject" => String::new(),
        other => other.replace("_raw", " baseline").replace('_', " "),
    };
    match figure {
        Figure::Spread { unit, .. } => format!("{name} {}", unit.replace("_s", "/s")).trim().to_owned(),
        _ => name,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

/// Columns as wide as their contents.
#[derive(Default)]
struct Grid {
    columns: Vec<(String, String, Align)>,
    lines: Vec<Line>,
}

/// Cells, or a text in their place if there are none.
struct Line {
    cells: Vec<String>,
    rest: Option<String>,
}

impl Grid {
    fn column(&mut self, title: &str, name: &str, align: Align) {
        self.columns.push((title.to_owned(), name.to_owned(), align));
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let long = |text: &str| text.chars().count();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, (title, name, _))| {
                let cells = self.lines.iter().filter_map(|line| line.cells.get(place));
                cells.map(|cell| long(cell)).chain([long(title), long(name)]).max().unwrap_or(0)
            })
            .collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>, rest: Option<&str>| {
            let mut text = String::new();
            for (cell, (width, column)) in cells.zip(widths.iter().zip(&self.columns)) {
                let _ = match column.2 {
                    Align::Left => write!(text, "{cell:<width$}  "),
                    Align::Right => write!(text, "{cell:>width$}  "),
                };
            }
            text.push_str(rest.unwrap_or_default());
            writeln!(f, "{}", text.trim_end())
        };
        if self.columns.iter().any(|(title, ..)| !title.is_empty()) {
            line(&mut self.columns.iter().map(|(title, ..)| title.as_str()), None)?;
        }
        line(&mut self.columns.iter().map(|(_, name, _)| name.as_str()), None)?;
        for Line { cells, rest } in &self.lines {
            line(&mut cells.iter().map(String::as_str), rest.as_deref())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Bound;
    use crate::row::parameters;
    use crate::statistics::Ratio;

    fn report(is_quick: bool) -> Report {
        let ratio = Figure::Ratio(Ratio { of_bests: 1.0, of_medians: 1.0, median: 1.05, min: 1.0, max: 1.1 });
        let time = Figure::Spread { unit: "us", best: 10.0, median: 11.5, mean: 12.0, tail: ("p99", 123.45) };
        let figures = || vec![("raw".to_owned(), time), ("over_raw".to_owned(), ratio)];
        let row = |row: &str, side: &str, outcome| Row {
            parameters: parameters![layout = "one core", row = row, side = side, bytes = 7],
            outcome,
        };
        let rows = vec![
            row("void", "client", Ok(figures())),
            row("void", "server", Ok(figures())),
            row("long", "client", Err("omniORB: not <installed>".to_owned())),
        ];
        let run = Run { quick: is_quick, ..Run::default() };
        let mut report = Report::new("echo", "single calls", &run);
        report.tables.push(Table::new("row", "calls", rows).blocks(&["layout"]));
        report.goals.push(Goal::new("one core", "a goal".to_owned(), 1.05, Bound::AtMost(1.1)));
        report
    }

    #[test]
    fn a_table_has_a_block_for_each_place_and_a_column_for_each_figure() {
        let text = report(false).to_string();
        assert!(text.contains("calls: layout one core\n"), "{text}");
        let line = text.lines().find(|line| line.starts_with("void")).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>()[..6],
            ["void", "client", "7", "10", "11.50", "123.5"]
        );
        assert!(line.ends_with("1.050  1.00..1.10"), "{line}");
        assert!(text.contains("omniORB: not <installed>") && text.contains(" met "), "{text}");
        let mut across = report(false);
        across.tables[0].across = Some("side");
        let text = across.to_string();
        assert_eq!(text.lines().filter(|line| line.starts_with("void")).count(), 1, "{text}");
        assert!(text.contains("client baseline us") && text.contains("server over baseline"), "{text}");
    }

    #[test]
    fn quick_runs_say_so_everywhere_and_judge_nothing() {
        for (is_quick, judged) in [(false, 1), (true, 0)] {
            let reports = [report(is_quick), report(is_quick)];
            let (text, lines, page) = (text(&reports), lines(&reports), page(&reports).unwrap());
            assert_eq!(text.contains(QUICK), is_quick);
            assert_eq!(page.contains(QUICK), is_quick);
            assert!(text.contains(&format!("\n{} of 2 goals met", 2 * judged)), "{text}");
            assert_eq!(text.contains("not judged: quick run"), is_quick);
            for line in lines.lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                assert_eq!(line["quick"].as_bool().unwrap_or(false), is_quick, "{line}");
                assert!(line["kind"] != "target" || line["met"].is_boolean() != is_quick, "{line}");
            }
        }
    }

    #[test]
    fn lines_have_parameters_figures_and_where() {
        let lines = lines(&[report(false)]);
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["raw"]["p99_us"], 123.45);
        assert_eq!((&lines[0]["bench"], &lines[0]["bytes"]), (&json!("echo"), &json!(7)));
        assert_eq!(lines[2]["missing"], "omniORB: not <installed>");
        assert!(lines.iter().all(|line| line["machine"]["kernel"].is_string()));
        let page = page(&[report(false)]).unwrap();
        assert!(page.contains("not &lt;installed&gt;") && page.ends_with("</html>\n"));
    }
}
