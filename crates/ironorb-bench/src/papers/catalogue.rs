//! What the papers show and conclude, as data: each figure with the configuration that measures it here and the numbers that the
//! paper gives, and each conclusion with the function that judges it.

use std::collections::BTreeSet;

use super::rows::{Measured, Wanted};
use crate::chart::Axis;
use crate::error::BenchError;

/// A paper.
pub(super) struct Paper {
    /// Its short name: `tao-97`.
    pub(super) tag: &'static str,
    pub(super) title: &'static str,
    /// Its authors, and where and when it appeared.
    pub(super) by: &'static str,
    /// What was measured there, and on which machines.
    pub(super) there: &'static str,
    pub(super) configurations: &'static [Configuration],
    pub(super) figures: &'static [Figure],
    pub(super) conclusions: &'static [Conclusion],
    /// What differs in the set-up here.
    pub(super) differs: &'static [&'static str],
}

/// What is run for one figure or several: a suite with options.
pub(super) struct Configuration {
    /// Unique among all papers.
    pub(super) name: &'static str,
    /// The suite, and options of every run. `{}` stands for a value of each part, `{class}` for the scheduling class.
    pub(super) line: &'static str,
    /// The parts, which are run and stored one by one. Without values there is one.
    pub(super) each: &'static [&'static str],
    /// Further options of a whole run.
    pub(super) full: &'static str,
    /// Further options of a quick run.
    pub(super) quick: &'static str,
    /// How often a whole run repeats all of a part, where that is an option.
    pub(super) runs: Option<Runs>,
    /// Its calls and demands have their times, so that it takes as long on every machine.
    pub(super) keeps_time: bool,
    pub(super) place: Place,
    /// About how many seconds a part takes, whole and quick.
    pub(super) seconds: [u32; 2],
}

/// How often all of a part is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runs {
    /// As often as there should be runs: as in the paper, where it tells. There are fewer where time is short.
    pub(super) wanted: u32,
    /// Fewer tell nothing.
    pub(super) least: u32,
}

impl Runs {
    /// The seconds of so many runs, if all take these. What comes before runs takes about as long as one.
    pub(super) fn seconds_of(self, number: u32, seconds_of_all: f64) -> f64 {
        seconds_of_all * f64::from(number + 1) / f64::from(self.wanted + 1)
    }

    /// The seconds of all runs, if so many took these.
    pub(super) fn seconds_of_all(self, number: u32, seconds: f64) -> f64 {
        seconds * f64::from(self.wanted + 1) / f64::from(number + 1)
    }

    /// How many there are in a share of the time of all.
    pub(super) fn within(self, share: f64) -> u32 {
        // Rounded down, but for what rounding has made of a whole number.
        let number = f64::from(self.wanted + 1) * share - 1.0 + 1e-9;
        (number as u32).clamp(self.least, self.wanted)
    }
}

/// How long a part is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Quick,
    /// With so many runs, or all, where their number is an option.
    Whole(Option<u32>),
}

/// Where a configuration is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On this host, as in the paper, or because there is no network in it.
    OneHost,
    /// With the servers on a second host, if there is one.
    TwoHosts,
    /// As on two hosts, by the program that has probes.
    ProbesOnTwoHosts,
}

impl Place {
    pub(super) fn needs_probes(self) -> bool {
        self == Place::ProbesOnTwoHosts
    }

    pub(super) fn has_two_hosts(self) -> bool {
        matches!(self, Place::TwoHosts | Place::ProbesOnTwoHosts)
    }
}

impl Configuration {
    /// A configuration of one part on one host.
    pub(super) const fn new(name: &'static str, line: &'static str, seconds: [u32; 2]) -> Configuration {
        Configuration {
            name,
            line,
            each: &[],
            full: "",
            quick: "--quick",
            runs: None,
            keeps_time: false,
            place: Place::OneHost,
            seconds,
        }
    }

    /// The number of its parts.
    pub(super) fn parts(&self) -> usize {
        self.each.len().max(1)
    }

    /// The words of a part's command line, after `bench`.
    pub(super) fn words(&self, part: usize, length: Length, class: &str) -> Vec<String> {
        let more = match (length, self.runs) {
            (Length::Quick, _) => self.quick.to_owned(),
            (Length::Whole(_), None) => self.full.to_owned(),
            (Length::Whole(number), Some(runs)) => {
                format!("{} --repetitions {}", self.full, number.unwrap_or(runs.wanted))
            }
        };
        let line = format!("{} {more}", self.line);
        let line = line.replace("{}", self.each.get(part).unwrap_or(&"")).replace("{class}", class);
        line.split_whitespace().map(str::to_owned).collect()
    }

    pub(super) fn seconds(&self, is_quick: bool) -> f64 {
        f64::from(self.seconds[usize::from(is_quick)])
    }
}

/// A figure or a table of a paper.
pub(super) struct Figure {
    /// `figure-4` or `table-1`.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// The name of its configuration.
    pub(super) configuration: &'static str,
    pub(super) shows: Shows,
    /// What a reader must know of it.
    pub(super) note: &'static str,
}

/// How a figure shows its rows.
pub(super) enum Shows {
    Curves(Curves),
    Table(fn(&Measured) -> Grid),
}

/// Curves of rows, beside points that the paper gives.
pub(super) struct Curves {
    /// A parameter, and its axis.
    pub(super) x: (&'static str, Axis),
    /// A figure, and its axis.
    pub(super) y: (&'static str, Axis),
    /// The rows: those that have all members of any of these lists.
    pub(super) rows: &'static [&'static [Wanted<'static>]],
    /// The parameters whose combinations have a curve each, and the words before their values.
    pub(super) lines: &'static [(&'static str, &'static str)],
    /// The label of the baseline's curve, if the rows have one.
    pub(super) baseline: Option<&'static str>,
    pub(super) paper: &'static [Curve],
}

/// A curve of a paper, as far as its text gives numbers.
pub(super) struct Curve(pub(super) &'static str, pub(super) &'static [(f64, f64)]);

/// A table: its columns, and lines of as many cells. A line of one cell heads those that follow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Grid {
    pub(super) columns: Vec<String>,
    pub(super) lines: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn new(columns: &[&str]) -> Grid {
        Grid { columns: columns.iter().map(|&column| column.to_owned()).collect(), lines: Vec::new() }
    }

    /// Begins a group of lines.
    pub(super) fn group(&mut self, heading: String) {
        self.lines.push(vec![heading]);
    }

    pub(super) fn line(&mut self, cells: impl IntoIterator<Item = String>) {
        self.lines.push(cells.into_iter().collect());
    }
}

/// A conclusion of a paper, and what decides whether it holds here.
pub(super) struct Conclusion {
    /// The section of the paper.
    pub(super) section: &'static str,
    /// The conclusion.
    pub(super) theirs: &'static str,
    /// The number that decides; `None` where it was not measured.
    pub(super) number: fn(&Measured) -> Option<f64>,
    /// The number in words: `{}` stands for it.
    pub(super) ours: &'static str,
    /// The conclusion holds here where the number is between these.
    pub(super) holds: (f64, f64),
    /// Why it holds, and why it does not. A third reason is of numbers below the range; without it [`BELOW`] is, if the range has two ends.
    pub(super) why: &'static [&'static str],
}

const BELOW: &str = "The number is on the other side of what the conclusion allows, which the paper did not see: the machine varies by as \
    much, or what is measured beside it has become slower.";

/// No bound.
pub(super) const NONE: f64 = f64::INFINITY;

/// Whether a conclusion holds here.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub(super) ours: String,
    /// `None` where it was not measured.
    pub(super) same: Option<bool>,
    pub(super) why: &'static str,
    /// The configurations whose rows it is of.
    pub(super) of: BTreeSet<String>,
}

impl Conclusion {
    /// What these rows say of it.
    pub(super) fn judge(&self, measured: &Measured) -> Verdict {
        let (number, of) = measured.asked_by(self.number);
        let Some(number) = number.filter(|number| number.is_finite()) else {
            return Verdict { ours: "not measured".to_owned(), same: None, why: "", of };
        };
        let (least, most) = self.holds;
        let same = (least..=most).contains(&number);
        let ours = self.ours.replace("{}", &shown(number));
        let is_below = number < least && least < most && most.is_finite();
        let why = match (same, is_below) {
            (true, _) => self.why[0],
            (false, true) => self.why.get(2).unwrap_or(&BELOW),
            (false, false) => self.why[1],
        };
        Verdict { ours, same: Some(same), why, of }
    }
}

/// A number with three significant digits.
pub(super) fn shown(number: f64) -> String {
    match number.abs() {
        100.0.. => {
            // Thousands are kept apart, for numbers of objects and calls.
            let digits = format!("{number:.0}");
            let mut text = String::new();
            for (place, digit) in digits.chars().enumerate() {
                let left = digits.len() - place;
                if place > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
                    text.push(',');
                }
                text.push(digit);
            }
            text
        }
        _ if number.fract() == 0.0 => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        1.0.. => format!("{number:.2}"),
        size => {
            // 0.0123: as many more digits as there are noughts behind the point.
            let noughts = (-size.log10().floor()) as usize;
            format!("{number:.*}", noughts.min(9) + 2)
        }
    }
}

/// All papers, in the order of the page.
pub(super) fn papers() -> [&'static Paper; 5] {
    [
        &super::tao_97::PAPER,
        &super::rt_99::PAPER,
        &super::minorb_99::PAPER,
        &super::dii_96::PAPER,
        &super::par_04::PAPER,
    ]
}

/// The chosen part of a paper.
pub(super) struct Chosen {
    pub(super) paper: &'static Paper,
    /// Only these figures, without the conclusions; all where there are none.
    pub(super) figures: Vec<&'static Figure>,
    /// Whether the whole paper is chosen, and so its conclusions.
    pub(super) is_whole: bool,
}

impl Chosen {
    /// The configurations of the chosen figures, or all of the paper's.
    pub(super) fn configurations(&self) -> impl Iterator<Item = &'static Configuration> + '_ {
        let is_chosen = |configuration: &&Configuration| {
            self.is_whole || self.figures.iter().any(|figure| figure.configuration == configuration.name)
        };
        self.paper.configurations.iter().filter(is_chosen)
    }
}

/// The papers and figures with these names, each `tao-97` or `tao-97/figure-8`; all without names.
pub(super) fn choose(names: &[String]) -> Result<Vec<Chosen>, BenchError> {
    let is_known = |name: &&String| {
        papers().iter().any(|paper| {
            paper.tag == name.as_str()
                || paper.figures.iter().any(|figure| **name == format!("{}/{}", paper.tag, figure.name))
        })
    };
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let tags: Vec<&str> = papers().iter().map(|paper| paper.tag).collect();
        let known = format!("{}, or one of their figures: tao-97/figure-8", tags.join(", "));
        return Err(BenchError::UnknownRow { name: unknown.clone(), known });
    }
    let of_paper = |paper: &'static Paper| {
        let is_whole = names.is_empty() || names.iter().any(|name| name == paper.tag);
        let is_chosen =
            |figure: &&Figure| is_whole || names.contains(&format!("{}/{}", paper.tag, figure.name));
        let figures: Vec<&Figure> = paper.figures.iter().filter(is_chosen).collect();
        (!figures.is_empty()).then_some(Chosen { paper, figures, is_whole })
    };
    Ok(papers().into_iter().filter_map(of_paper).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_say_something() {
        for (number, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (1.0 / 3.0, "0.333"),
            (0.012_34, "0.0123"),
            (0.000_146_2, "0.000146"),
            (1.128, "1.13"),
            (64.21, "64.2"),
            (117.4, "117"),
            (12_096.3, "12,096"),
            (1e9, "1,000,000,000"),
            (-1_234.0, "-1,234"),
            (-0.5, "-0.500"),
        ] {
            assert_eq!(shown(number), text);
        }
    }

    #[test]
    fn reasons_are_of_the_side_on_which_a_number_is() {
        let conclusion = |holds, why| Conclusion {
            section: "1",
            theirs: "It is one.",
            number: |measured| measured.of("any").median("number", &[]),
            ours: "It is {}.",
            holds,
            why,
        };
        let judged = |number: f64, holds| {
            let mut measured = Measured::default();
            let row = super::super::rows::StoredRow::parse(&format!(r#"{{"number":{number}}}"#));
            measured.add("any", row);
            let (two, three) = (&["as it should", "too much"], &["as it should", "too much", "too little"]);
            let [verdict, of_three] = [two as &[_], three].map(|why| conclusion(holds, why).judge(&measured));
            let why = if verdict.why == BELOW { "too little" } else { verdict.why };
            assert_eq!(of_three, Verdict { why, ..verdict.clone() }, "{number} in {holds:?}");
            verdict
        };
        let of = |number, holds| (judged(number, holds).same, judged(number, holds).why);
        assert_eq!(of(1.0, (0.9, 1.1)), (Some(true), "as it should"));
        assert_eq!(of(1.2, (0.9, 1.1)), (Some(false), "too much"));
        assert_eq!(of(0.8, (0.9, 1.1)), (Some(false), BELOW));
        assert_eq!(
            of(0.8, (0.9, NONE)),
            (Some(false), "too much"),
            "one end: the reason is of the other side"
        );
        assert_eq!(of(2.0, (3.0, 3.0)), (Some(false), "too much"), "a count");
        assert_eq!(judged(1.25, (0.9, 1.1)).ours, "It is 1.25.");
    }
}
