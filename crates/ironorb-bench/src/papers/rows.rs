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

    /// What the slowest of a hundred calls takes, of a figure that is a spread.
    pub(super) fn slowest(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.get("p99_us")?.as_f64()
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

    /// The sum of a figure over categories of where a side's time goes. `None` where none of them was measured.
    pub(super) fn sum(&self, figure: &str, side: &[Wanted<'_>], categories: &[&str]) -> Option<f64> {
        let one = |category: &&str| {
            let own = [("kind", "breakdown"), ("stage", ""), ("category", *category)];
            self.median(figure, &[side, &own].concat())
        };
        let all: Vec<f64> = categories.iter().filter_map(one).collect();
        (!all.is_empty()).then(|| all.iter().sum())
    }

    /// The per cent that categories have of a side's time without `left_out`, and without the probes, which are the instrument.
    pub(super) fn time_share(
        &self,
        side: &[Wanted<'_>],
        categories: &[&str],
        left_out: &[&str],
    ) -> Option<f64> {
        let percent = |categories: &[&str]| self.sum("percent", side, categories);
        let others = if left_out.is_empty() { 0.0 } else { percent(left_out)? };
        let counted = 100.0 - others - percent(&["probes"]).unwrap_or(0.0);
        percent(categories).filter(|_| counted > 0.0).map(|part| 100.0 * part / counted)
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
    fn shares_of_time_leave_out_probes_and_what_is_named() {
        let row = |side: &str, category: &str, percent: f64| {
            format!(
                r#"{{"kind":"breakdown","stage":"","side":"{side}","category":"{category}","percent":{percent},"ms":1}}"#
            )
        };
        let lines = [
            row("server", "lookup", 2.0),
            row("server", "write", 3.0),
            row("server", "read", 80.0),
            row("server", "probes", 10.0),
            row("client", "write", 40.0),
        ];
        let rows = rows(&lines.each_ref().map(String::as_str));
        let share = |side, categories: &[&str], left_out: &[&str]| {
            rows.time_share(&[("side", side)], categories, left_out)
        };
        assert_eq!(share("server", &["lookup"], &["read"]), Some(20.0));
        assert_eq!(share("server", &["lookup", "write"], &["read"]), Some(50.0));
        assert_eq!(share("server", &["write", "memcpy"], &[]), Some(100.0 * 3.0 / 90.0));
        assert_eq!(share("client", &["write"], &[]), Some(40.0), "a side without probes");
        assert_eq!(share("client", &["write"], &["read"]), None, "what is left out was not measured");
        assert_eq!(share("client", &["lookup"], &[]), None);
        assert_eq!(rows.sum("ms", &[("side", "server")], &["lookup", "read", "memcpy"]), Some(2.0));
    }

    #[test]
    fn rows_that_are_asked_for_are_known() {
        let measured = Measured::default();
        measured.of("before");
        let (sum, asked) = measured.asked_by(|it| it.of("one").median("us", &[]).or(Some(3.0)));
        assert_eq!((sum, asked.into_iter().collect::<Vec<_>>()), (Some(3.0), vec!["one".to_owned()]));
    }
}
