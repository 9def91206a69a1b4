//! Rows as they are stored: lines of JSON, which a suite has written.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::row::shown;
use crate::statistics::middle;

/// A line of JSON: a row of a suite's table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredRow(Map<String, Value>);

impl StoredRow {
    /// `None` if the line is no object.
    pub(super) fn parse(line: &str) -> Option<StoredRow> {
        serde_json::from_str(line).ok().map(StoredRow)
    }

    /// A member as text; empty if the row does not have it.
    pub(super) fn text(&self, name: &str) -> String {
        self.0.get(name).map_or_else(String::new, shown)
    }

    /// A member that is a number.
    pub(super) fn count(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// A figure: a number, or the median of a spread or a ratio.
    pub(super) fn median(&self, name: &str) -> Option<f64> {
        match self.0.get(name)? {
            Value::Object(parts) => parts.iter().find(|(part, _)| part.starts_with("median"))?.1.as_f64(),
            number => number.as_f64(),
        }
    }

    /// A member of the row's machine.
    pub(super) fn machine(&self, name: &str) -> Option<&Value> {
        self.0.get("machine")?.get(name)
    }

    /// Whether each of these members has one of these texts, which `|` separates.
    pub(super) fn is(&self, wanted: &[Wanted<'_>]) -> bool {
        wanted.iter().all(|(name, texts)| {
            let text = self.text(name);
            texts.split('|').any(|one| one == text)
        })
    }
}

/// A member, and its texts that are wanted, separated by `|`.
pub(super) type Wanted<'a> = (&'a str, &'a str);

/// The rows of a configuration.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows(Vec<StoredRow>);

impl Rows {
    pub(super) fn add(&mut self, rows: impl IntoIterator<Item = StoredRow>) {
        self.0.extend(rows);
    }

    pub(super) fn of<'a>(&'a self, wanted: &'a [Wanted<'a>]) -> impl Iterator<Item = &'a StoredRow> + Clone {
        self.0.iter().filter(|row| row.is(wanted))
    }

    /// The figure of these rows. Of several, which repetitions in other parts are, the median.
    pub(super) fn median(&self, figure: &str, wanted: &[Wanted<'_>]) -> Option<f64> {
        middle(self.of(wanted).filter_map(|row| row.median(figure)).collect())
    }

    /// The figure by a parameter that is a number, in order. Of several rows with one number, the median.
    pub(super) fn curve(&self, (x, y): (&str, &str), wanted: &[Wanted<'_>]) -> Vec<(f64, f64)> {
        let points = self.of(wanted).filter_map(|row| Some((row.count(x)?, row.median(y)?)));
        curve(points.filter(|(_, y)| y.is_finite()))
    }
}

/// Points in the order of x. Of several with one x, the median.
pub(super) fn curve(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, Vec<f64>)> = Vec::new();
    for (x, y) in points {
        match all.iter_mut().find(|(known, _)| *known == x) {
            Some((_, ys)) => ys.push(y),
            None => all.push((x, vec![y])),
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().filter_map(|(x, ys)| Some((x, middle(ys)?))).collect()
}

/// All rows that have been measured, by their configuration.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    rows: BTreeMap<String, Rows>,
    /// The configurations whose rows were asked for.
    asked: RefCell<BTreeSet<String>>,
}

impl Measured {
    /// The rows of a configuration; none where it has not been run.
    pub(super) fn of(&self, configuration: &str) -> &Rows {
        static NONE: Rows = Rows(Vec::new());
        self.asked.borrow_mut().insert(configuration.to_owned());
        self.rows.get(configuration).unwrap_or(&NONE)
    }

    /// What a function makes of the rows, and the configurations whose rows it has asked for.
    pub(super) fn asked_by<T>(&self, function: impl FnOnce(&Measured) -> T) -> (T, BTreeSet<String>) {
        self.asked.take();
        let made = function(self);
        (made, self.asked.take())
    }

    pub(super) fn add(&mut self, configuration: &str, rows: impl IntoIterator<Item = StoredRow>) {
        self.rows.entry(configuration.to_owned()).or_default().add(rows);
    }

    /// How many processors the machine has on which the rows were measured.
    pub(super) fn processors(&self) -> Option<f64> {
        self.rows.values().flat_map(|rows| &rows.0).find_map(|row| row.machine("processors")?.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Rows {
        Rows(lines.iter().map(|line| StoredRow::parse(line).unwrap()).collect())
    }

    #[test]
    fn figures_are_numbers_or_medians_of_spreads() {
        let rows = rows(&[
            r#"{"mode":"oneway","objects":100,"subject":{"best_us":1.0,"median_us":2.0,"p99_us":9.0},"load":3}"#,
            r#"{"mode":"twoway","objects":1,"over_raw":{"of_bests":1.0,"median":1.5,"min":1.0,"max":2.0}}"#,
            r#"{"mode":"twoway","objects":2,"missing":"omniORB: not installed"}"#,
        ]);
        assert_eq!(rows.median("subject", &[("mode", "oneway"), ("objects", "100")]), Some(2.0));
        assert_eq!(rows.median("load", &[]), Some(3.0));
        assert_eq!(rows.median("over_raw", &[("mode", "oneway|twoway")]), Some(1.5));
        assert_eq!(rows.median("subject", &[("objects", "2")]), None);
        assert_eq!(rows.median("load", &[("settings", ""), ("mode", "oneway")]), Some(3.0), "no settings");
    }

    #[test]
    fn repetitions_in_other_parts_are_one_point() {
        let row = |clients: u32, us: f64| format!(r#"{{"clients":{clients},"mean_us":{us}}}"#);
        let lines = [row(5, 9.0), row(0, 1.0), row(0, 3.0), row(0, 8.0), row(5, 10.0)];
        let rows = rows(&lines.each_ref().map(String::as_str));
        assert_eq!(rows.curve(("clients", "mean_us"), &[]), [(0.0, 3.0), (5.0, 9.5)]);
        assert_eq!(middle(Vec::new()), None);
    }

    #[test]
    fn rows_that_are_asked_for_are_known() {
        let measured = Measured::default();
        measured.of("before");
        let (sum, asked) = measured.asked_by(|it| it.of("one").median("us", &[]).or(Some(3.0)));
        assert_eq!((sum, asked.into_iter().collect::<Vec<_>>()), (Some(3.0), vec!["one".to_owned()]));
    }
}
