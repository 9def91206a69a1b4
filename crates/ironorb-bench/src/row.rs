//! A row: a measurement and its result. Every suite fills rows, and one renderer shows them.

use serde_json::{Map, Value};

use crate::statistics::{Ratio, Repeated};

/// Names and values that identify a row, in the order of the columns.
pub(crate) type Parameters = Vec<(&'static str, Value)>;

/// One line of a table.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was measured, and where.
    pub(crate) parameters: Parameters,
    /// The figures by name, or why there are none.
    pub(crate) outcome: Result<Vec<(String, Figure)>, String>,
}

/// The result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    /// A time or a rate over all repetitions.
    Spread {
        /// The unit: `us`, `mbit_s` and so on.
        unit: &'static str,
        /// The mean of the fastest repetition: the cost without disturbances.
        best: f64,
        /// For a time the median of all calls; for a rate the median repetition.
        median: f64,
        /// The mean of the median repetition. Reports do not show it.
        mean: f64,
        /// For a time `p99` of all calls; for a rate `worst`, the slowest repetition.
        tail: (&'static str, f64),
    },
    /// The ratio of two times or two rates.
    Ratio(Ratio),
    /// Any other number. Its name contains the unit.
    Number(f64),
    /// There are too few samples for the number.
    TooFew {
        /// How many it needs.
        needed: usize,
    },
}

/// The form in which a table shows times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Measure {
    /// As time per call, in this unit; the number of units in a microsecond.
    Time(&'static str, f64),
    /// As a rate in this unit; the number of units in a call, times 10^6.
    Rate(&'static str, f64),
}

impl Measure {
    /// Microseconds per call.
    pub(crate) const MICROSECONDS: Measure = Measure::Time("us", 1.0);
    /// Nanoseconds per call.
    pub(crate) const NANOSECONDS: Measure = Measure::Time("ns", 1e3);
    /// Calls per second.
    pub(crate) const CALLS: Measure = Measure::Rate("calls_s", 1e6);

    pub(crate) fn figure(self, repeated: &Repeated) -> Figure {
        let [slowest, middle, fastest] = repeated.spread_us();
        match self {
            Measure::Time(unit, scale) => {
                let [best, median, p99] = repeated.times_us().map(|us| us * scale);
                Figure::Spread { unit, best, median, mean: middle * scale, tail: ("p99", p99) }
            }
            Measure::Rate(unit, amount) => Figure::Spread {
                unit,
                best: amount / fastest,
                median: amount / middle,
                mean: amount / middle,
                tail: ("worst", amount / slowest),
            },
        }
    }

    /// The ratio to another side: for times the subject's over the other side's, for rates as a fraction of
    /// the other side's.
    pub(crate) fn ratio(self, subject: &Repeated, other: &Repeated, to: &str) -> (String, Figure) {
        match self {
            Measure::Time(..) => (format!("over_{to}"), Figure::Ratio(subject.over(other))),
            Measure::Rate(..) => (format!("of_{to}"), Figure::Ratio(other.over(subject))),
        }
    }
}

impl Row {
    /// A row of numbers that were measured once.
    pub(crate) fn of_numbers<const N: usize>(parameters: Parameters, numbers: [(&str, f64); N]) -> Row {
        let figures = numbers.map(|(name, number)| (name.to_owned(), Figure::Number(number)));
        Row { parameters, outcome: Ok(figures.into()) }
    }

    /// Rows of a text with a line for each. The first line names the columns, the last of which are figures.
    pub(crate) fn quoted(text: &'static str, figures: usize) -> Vec<Row> {
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap_or_default();
        let (of_parameters, of_figures) = names.split_at(names.len() - figures);
        let value = |cell: &str| serde_json::from_str(cell).unwrap_or_else(|_| cell.into());
        let row = |cells: Vec<&str>| {
            let (texts, numbers) = cells.split_at(of_parameters.len());
            let parameters = of_parameters.iter().zip(texts).map(|(name, cell)| (*name, value(cell)));
            let numbers = numbers.iter().map(|cell| Figure::Number(cell.parse().unwrap_or(f64::NAN)));
            let figures = of_figures.iter().map(|name| (*name).to_owned()).zip(numbers);
            Row { parameters: parameters.collect(), outcome: Ok(figures.collect()) }
        };
        lines.map(row).collect()
    }

    /// A parameter, if the row has it.
    pub(crate) fn parameter(&self, name: &str) -> Option<&Value> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// A parameter as text; empty if the row does not have it.
    pub fn text(&self, name: &str) -> String {
        self.parameter(name).map_or_else(String::new, shown)
    }

    /// A parameter that is a number.
    pub fn count(&self, name: &str) -> Option<f64> {
        self.parameter(name)?.as_f64()
    }

    /// Whether each of these parameters has this text.
    pub(crate) fn is(&self, wanted: &[(&str, &str)]) -> bool {
        wanted.iter().all(|(name, text)| self.text(name) == *text)
    }

    /// Whether the row is of this ORB with default settings.
    pub(crate) fn is_ours(&self) -> bool {
        self.is(&[("peer", "ironorb"), ("settings", "")])
    }

    /// The figure of this name, if there is one.
    pub(crate) fn figure(&self, name: &str) -> Option<Figure> {
        let figures = self.outcome.as_ref().ok()?;
        figures.iter().find(|(known, _)| known == name).map(|(_, figure)| *figure)
    }

    /// The median of a time, a rate or a ratio, or a plain number.
    pub fn median(&self, name: &str) -> Option<f64> {
        match self.figure(name)? {
            Figure::Spread { median, .. } | Figure::Ratio(Ratio { median, .. }) | Figure::Number(median) => {
                Some(median)
            }
            Figure::TooFew { .. } => None,
        }
    }

    /// The mean of a time or a rate, or a plain number.
    pub(crate) fn mean(&self, name: &str) -> Option<f64> {
        match self.figure(name)? {
            Figure::Spread { mean, .. } | Figure::Number(mean) => Some(mean),
            Figure::Ratio(_) | Figure::TooFew { .. } => None,
        }
    }

    /// The 99th percentile of a time.
    pub(crate) fn p99(&self, name: &str) -> Option<f64> {
        match self.figure(name)? {
            Figure::Spread { tail: ("p99", p99), .. } => Some(p99),
            _ => None,
        }
    }

    /// The figure of the best repetition.
    pub(crate) fn best(&self, name: &str) -> Option<f64> {
        match self.figure(name)? {
            Figure::Spread { best, .. } => Some(best),
            Figure::Ratio(ratio) => Some(ratio.of_bests),
            Figure::Number(number) => Some(number),
            Figure::TooFew { .. } => None,
        }
    }

    /// Adds a number to the figures, if the row has figures.
    pub(crate) fn add_number(&mut self, name: &str, number: f64) {
        if let Ok(figures) = &mut self.outcome {
            figures.push((name.to_owned(), Figure::Number(number)));
        }
    }

    /// The row's members in a line of JSON.
    pub(crate) fn members(&self) -> Map<String, Value> {
        let mut members: Map<String, Value> =
            self.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        match &self.outcome {
            Ok(figures) => members.extend(figures.iter().map(|(name, figure)| (name.clone(), figure.json()))),
            Err(why) => drop(members.insert("missing".to_owned(), why.as_str().into())),
        }
        members
    }
}

impl Figure {
    fn json(&self) -> Value {
        match self {
            Figure::Spread { unit, best, median, tail: (name, tail), .. } => {
                let parts = [("best", best), ("median", median), (*name, tail)];
                parts
                    .into_iter()
                    .map(|(part, value)| (format!("{part}_{unit}"), Value::from(*value)))
                    .collect()
            }
            Figure::Ratio(Ratio { of_bests, of_medians, median, min, max }) => serde_json::json!({
                "of_bests": of_bests, "of_medians": of_medians, "median": median, "min": min, "max": max
            }),
            Figure::Number(number) if number.fract() == 0.0 => (*number as i64).into(),
            Figure::Number(number) => (*number).into(),
            Figure::TooFew { needed } => serde_json::json!({ "needs_samples": needed }),
        }
    }

    /// The titles of the row's columns.
    pub(crate) fn heads(&self) -> Vec<&'static str> {
        match self {
            Figure::Spread { tail, .. } => vec!["best", "median", tail.0],
            Figure::Ratio(_) => vec!["", "min..max"],
            Figure::Number(_) | Figure::TooFew { .. } => vec![""],
        }
    }

    /// The contents of the row's columns.
    pub(crate) fn cells(&self) -> Vec<String> {
        match self {
            Figure::Spread { best, median, tail, .. } => [*best, *median, tail.1].map(digits).into(),
            Figure::Ratio(Ratio { median, min, max, .. }) => {
                vec![format!("{median:.3}"), format!("{min:.2}..{max:.2}")]
            }
            Figure::Number(number) => vec![digits(*number)],
            Figure::TooFew { needed } => vec![format!("needs {needed}")],
        }
    }
}

/// A parameter as text.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A number with its significant digits only.
pub(crate) fn digits(number: f64) -> String {
    match number.abs() {
        _ if number.fract() == 0.0 => format!("{number:.0}"),
        1000.0.. => format!("{number:.0}"),
        100.0.. => format!("{number:.1}"),
        1.0.. => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}

/// Groups rows with equal keys, in the order in which the keys first occur.
pub(crate) fn partition<'a, K: PartialEq>(
    rows: impl IntoIterator<Item = &'a Row>,
    key: impl Fn(&Row) -> K,
) -> Vec<Vec<&'a Row>> {
    let mut parts: Vec<(K, Vec<&Row>)> = Vec::new();
    for row in rows {
        let of = key(row);
        match parts.iter_mut().find(|(known, _)| *known == of) {
            Some((_, part)) => part.push(row),
            None => parts.push((of, vec![row])),
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Makes parameters: `parameters![name = value, ...]`.
macro_rules! parameters {
    ($($name:tt = $value:expr),* $(,)?) => {
        vec![$((stringify!($name), serde_json::json!($value))),*]
    };
}
pub(crate) use parameters;
