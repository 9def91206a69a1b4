//! Goals, and whether they are reached.

use serde_json::{Map, Value, json};

use crate::row::{Row, digits};

/// One goal, for one placement and transport.
#[derive(Debug, Clone)]
pub(crate) struct Goal {
    /// The processors of client and server.
    pub(crate) layout: String,
    /// The comparison.
    pub(crate) target: String,
    /// `at least` or `at most`.
    pub(crate) sense: &'static str,
    /// The bound that the figure must reach or not exceed.
    pub(crate) bound: f64,
    /// The worst of all rows that the goal covers, each by the median of its repetitions.
    pub(crate) figure: f64,
}

/// Whether a goal is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The figure keeps to the bound.
    Met,
    /// The figure does not keep to the bound.
    Missed,
    /// The figure decides nothing, for this reason.
    NotJudged(&'static str),
}

impl Goal {
    /// A goal whose figure must not exceed the bound.
    pub(crate) fn at_most(layout: &str, target: impl Into<String>, figure: f64, bound: f64) -> Goal {
        Goal { layout: layout.to_owned(), target: target.into(), sense: "at most", bound, figure }
    }

    /// A goal whose figure must reach the bound.
    pub(crate) fn at_least(layout: &str, target: impl Into<String>, figure: f64, bound: f64) -> Goal {
        Goal { layout: layout.to_owned(), target: target.into(), sense: "at least", bound, figure }
    }

    /// A goal that every row of this ORB with default settings is ahead of a peer's row. The worst row
    /// decides.
    pub(crate) fn ahead(
        layout: &str,
        rows: &[Row],
        peer: &str,
        describe: impl Fn(&Row) -> String,
    ) -> Option<Goal> {
        let of = |row: &Row| {
            // A time must be smaller, a rate larger.
            let time = row.median(&format!("over_{peer}"));
            time.or_else(|| row.median(&format!("of_{peer}")).map(f64::recip))
        };
        let ours = rows.iter().filter(|row| row.is_ours() && row.text("layout") == layout);
        let ratios: Vec<(f64, &Row)> = ours.filter_map(|row| Some((of(row)?, row))).collect();
        let (worst, row) = ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let ahead = ratios.iter().filter(|(ratio, _)| *ratio < 1.0).count();
        let what = format!(
            "time of every row / {peer}'s: {ahead} of {} ahead (worst: {})",
            ratios.len(),
            describe(row)
        );
        Some(Goal::at_most(layout, what, *worst, 1.0))
    }

    /// Whether the goal is reached. A quick run judges nothing, and a negative cost is impossible.
    pub(crate) fn verdict(&self, is_quick: bool) -> Verdict {
        let keeps =
            if self.sense == "at most" { self.figure <= self.bound } else { self.figure >= self.bound };
        match (is_quick, keeps) {
            (true, _) => Verdict::NotJudged("quick run"),
            _ if !self.figure.is_finite() || self.figure < 0.0 => {
                Verdict::NotJudged("no such figure is possible")
            }
            (false, true) => Verdict::Met,
            (false, false) => Verdict::Missed,
        }
    }

    /// The goal's members in a line of JSON.
    pub(crate) fn members(&self, is_quick: bool) -> Map<String, Value> {
        let met = match self.verdict(is_quick) {
            Verdict::Met => Value::Bool(true),
            Verdict::Missed => Value::Bool(false),
            Verdict::NotJudged(_) => Value::Null,
        };
        let Goal { layout, target, sense, bound, figure } = self;
        let members = json!({
            "layout": layout, "target": target, "sense": sense, "bound": bound, "figure": figure, "met": met,
            "verdict": self.verdict(is_quick).text(),
        });
        members.as_object().cloned().unwrap_or_default()
    }

    /// The goal's cells in the table of goals.
    pub(crate) fn cells(&self, is_quick: bool) -> Vec<String> {
        let Goal { layout, target, sense, bound, figure } = self;
        let bound = format!("{sense} {}", digits(*bound));
        vec![target.clone(), format!("{figure:.3}"), bound, self.verdict(is_quick).text(), layout.clone()]
    }
}

impl Verdict {
    fn text(self) -> String {
        match self {
            Verdict::Met => "met".to_owned(),
            Verdict::Missed => "missed".to_owned(),
            Verdict::NotJudged(why) => format!("not judged: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_judged_by_figures_that_can_be() {
        let bytes = |figure| Goal::at_most("one core", "bytes an object", figure, 64.0);
        assert_eq!(bytes(64.0).verdict(false), Verdict::Met);
        assert_eq!(bytes(64.1).verdict(false), Verdict::Missed);
        for figure in [-48.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(bytes(figure).verdict(false), Verdict::NotJudged(_)), "{figure}");
            assert!(bytes(figure).members(false)["met"].is_null());
        }
        let rate = |figure| Goal::at_least("one core", "calls", figure, 0.9);
        assert_eq!((rate(0.9).verdict(false), rate(0.8).verdict(false)), (Verdict::Met, Verdict::Missed));
    }

    #[test]
    fn a_quick_run_judges_nothing() {
        let goal = Goal::at_most("one core", "calls", 0.5, 1.0);
        assert_eq!(goal.verdict(true), Verdict::NotJudged("quick run"));
        assert!(goal.cells(true).contains(&"not judged: quick run".to_owned()));
        assert_eq!(goal.members(false)["met"], true);
    }
}
