//! The measured side of a case: of the suite, or of an earlier run's file.

use std::path::Path;

use serde::Deserialize;

use super::cases::{Case, Foreseen};
use super::compare::Bar;
use crate::error::BenchError;
use crate::render::Report;
use crate::row::{Row, shown};
use crate::statistics::middle;

/// What was measured twice.
pub(super) enum Measured {
    /// What the suite's runs have reported, of each measurement at least one.
    Suite([Vec<Report>; 2]),
    Earlier(EarlierCase),
}

/// What `--json` has written.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Earlier {
    machine: EarlierMachine,
    cases: Vec<EarlierCase>,
}

#[derive(Debug, Clone, Deserialize)]
struct EarlierMachine {
    commit: String,
    date: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct EarlierCase {
    name: String,
    figures: Vec<EarlierFigure>,
    /// What its predictions came from, if that was measured as well.
    #[serde(default)]
    pub(super) scenario: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct EarlierFigure {
    place: String,
    what: String,
    measured: [f64; 2],
}

impl Earlier {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is not of `ironorb sim validate`.
    pub(super) fn read(file: &Path) -> Result<Earlier, BenchError> {
        let text =
            std::fs::read_to_string(file).map_err(BenchError::io(format!("read {}", file.display())))?;
        serde_json::from_str(&text).map_err(|e| {
            let name = file.display();
            BenchError::Unusable(format!(
                "{name}: {e}; name a file that `ironorb sim validate --json` has written"
            ))
        })
    }

    /// When it was measured, and of which commit.
    pub(super) fn origin(&self) -> String {
        format!("commit {}, {}", self.machine.commit, self.machine.date)
    }

    pub(super) fn case(&self, name: &str) -> Option<Measured> {
        self.stored(name).cloned().map(Measured::Earlier)
    }

    pub(super) fn stored(&self, name: &str) -> Option<&EarlierCase> {
        self.cases.iter().find(|case| case.name == name)
    }
}

impl EarlierCase {
    /// A figure of a place, as both measurements have it.
    pub(super) fn twice(&self, place: &str, what: &str) -> Option<[f64; 2]> {
        self.figures.iter().find(|it| it.place == place && it.what == what).map(|it| it.measured)
    }
}

impl Measured {
    /// The rows, as the suite has named them.
    pub(super) fn rows(&self, case: &Case) -> Vec<Row> {
        match self {
            Measured::Suite([first, _]) => first[0].rows(case.kind).to_vec(),
            Measured::Earlier(earlier) => {
                let mut places: Vec<&str> = earlier.figures.iter().map(|figure| &*figure.place).collect();
                places.dedup();
                places.into_iter().map(|place| row_of(case, place)).collect()
            }
        }
    }

    /// A figure of a row, as both measurements have it.
    pub(super) fn figure(&self, case: &Case, row: &Row, foreseen: &Foreseen) -> Option<[f64; 2]> {
        match self {
            Measured::Suite([first, second]) => {
                let keys = |row: &Row| case.keys.iter().map(|key| row.text(key)).collect::<Vec<_>>();
                let read = |report: &Report| {
                    let row = report.rows(case.kind).iter().find(|other| keys(other) == keys(row))?;
                    match foreseen.bar {
                        Bar::Reported => row.p99(foreseen.figure).or_else(|| row.median(foreseen.figure)),
                        Bar::Mean | Bar::Tight => row.mean(foreseen.figure),
                    }
                };
                // Of all runs, or of none.
                let of_runs = |runs: &[Report]| middle(runs.iter().map(read).collect::<Option<_>>()?);
                Some([of_runs(first)?, of_runs(second)?])
            }
            Measured::Earlier(earlier) => {
                let place = place_of(case, row);
                earlier.twice(&place, foreseen.what)
            }
        }
    }
}

/// What tells a row from others, as `layout one core, objects 100`.
pub(super) fn place_of(case: &Case, row: &Row) -> String {
    let each = case.keys.iter().filter_map(|key| Some(format!("{key} {}", shown(row.parameter(key)?))));
    each.collect::<Vec<_>>().join(", ")
}

/// The row of a place.
fn row_of(case: &Case, place: &str) -> Row {
    let value = |key: &str| {
        let of_key = format!("{key} ");
        let cell = place.split(", ").find_map(|part| part.strip_prefix(&of_key))?;
        // Numbers read as such, all else is text.
        Some(serde_json::from_str(cell).unwrap_or_else(|_| cell.into()))
    };
    let parameters = case.keys.iter().filter_map(|key| Some((*key, value(key)?))).collect();
    Row { parameters, outcome: Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::parameters;
    use crate::validation::cases::CASES;

    #[test]
    fn places_lead_back_to_their_rows() {
        let case = CASES.iter().find(|case| case.name == "shares").unwrap();
        let parameters = parameters![layout = "a core each", cached_percent = 75, read_percent = 0];
        let row = Row { parameters: parameters.clone(), outcome: Ok(Vec::new()) };
        let place = place_of(case, &row);
        assert_eq!(place, "layout a core each, cached_percent 75, read_percent 0");
        assert_eq!(row_of(case, &place).parameters, parameters);
    }

    #[test]
    fn figures_of_an_earlier_run_are_found_by_their_place() {
        let text = r#"{ "machine": { "commit": "abc", "date": "today", "processors": 2 }, "cases": [{ "name": "throughput",
            "figures": [{ "place": "clients 1, side ironorb", "what": "rate", "measured": [1.0, 2.0], "error": 0.5 }] }] }"#;
        let earlier: Earlier = serde_json::from_str(text).unwrap();
        assert_eq!(earlier.origin(), "commit abc, today");
        let case = CASES.iter().find(|case| case.name == "throughput").unwrap();
        let measured = earlier.case("throughput").unwrap();
        let rows = measured.rows(case);
        let foreseen =
            |what| Foreseen { figure: "subject", what, unit: "1/s", simulated: 1.0, bar: Bar::Mean };
        assert_eq!(measured.figure(case, &rows[0], &foreseen("rate")), Some([1.0, 2.0]));
        assert_eq!(measured.figure(case, &rows[0], &foreseen("mean")), None);
        assert!(earlier.case("lags").is_none());
    }
}
