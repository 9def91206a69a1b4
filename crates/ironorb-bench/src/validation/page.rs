//! The outcome as text, and as a page of Markdown.

use std::fmt;

use super::compare::{Compared, MEAN_MAX, Ratio};
use super::{Outcome, Validation};
use crate::row::digits;

const QUICK: &str = "quick: it shows that the command works; its figures judge nothing";
const FOREIGN: &str =
    "the profile was measured on another machine or kernel: errors are those of the machine, too";

impl Validation {
    /// How many judged means, and how many ratios, hold, of how many.
    fn verdicts(&self) -> [(usize, usize); 2] {
        let figures = self.cases.iter().flat_map(|case| &case.figures).filter_map(|figure| figure.holds);
        let ratios = self.cases.iter().flat_map(|case| &case.ratios).map(|ratio| ratio.holds);
        [count(figures), count(ratios)]
    }

    fn warnings(&self) -> impl Iterator<Item = &'static str> {
        let quick = self.is_quick || self.profile.is_quick;
        [quick.then_some(QUICK), self.profile.is_foreign.then_some(FOREIGN)].into_iter().flatten()
    }

    /// How many figures and ratios hold, in words.
    fn sum(&self) -> String {
        let [(figures, of_figures), (ratios, of_ratios)] = self.verdicts();
        let by_spread =
            self.cases.iter().flat_map(|case| &case.figures).filter(|it| is_by_spread(it)).count();
        let beside = match by_spread {
            0 => String::new(),
            some => format!(", {some} of them only by the spread of their measurements"),
        };
        format!("{figures} of {of_figures} figures hold{beside}; {ratios} of {of_ratios} ratios hold")
    }

    /// A page for the documentation.
    pub(super) fn markdown(&self) -> String {
        use std::fmt::Write as _;
        let mut page = String::from("## Validation\n\n");
        let _ = writeln!(
            page,
            "Level {}, by a profile of commit {} ({}). {}. A mean holds within 10 %, or twice the spread between two measurements; R and X \
             of jobs within 5 %; a ratio to the row before within 10 %. Percentiles are shown, and not judged.\n",
            self.level,
            self.profile.commit,
            self.profile.date,
            self.sum(),
        );
        for warning in self.warnings() {
            let _ = writeln!(page, "**{warning}**\n");
        }
        if let Some(measured) = &self.measured {
            let _ = writeln!(page, "Measured before: {measured}.\n");
        }
        for line in self.machine.to_string().lines() {
            let _ = writeln!(page, "    {line}");
        }
        for case in &self.cases {
            let _ = writeln!(page, "\n### {}: {}\n\n{}.\n", case.name, case.title, sentence(case.notes));
            if let Some(why) = &case.missing {
                let _ = writeln!(page, "Not run: {why}.");
                continue;
            }
            page.push_str("| row | figure | measured | again | simulated | error | spread | holds |\n");
            page.push_str("|---|---|---:|---:|---:|---:|---:|---|\n");
            for figure in &case.figures {
                let cells = cells(figure);
                let _ = writeln!(page, "| {} |", cells.join(" | "));
            }
            let off: Vec<&Ratio> = case.ratios.iter().filter(|ratio| !ratio.holds).collect();
            let [(hold, of), _] = [count(case.ratios.iter().map(|ratio| ratio.holds)), (0, 0)];
            let _ = writeln!(page, "\nRatios to {}: {hold} of {of} hold.", case.ratios_to);
            for Ratio { of, to, what, measured, simulated, error, .. } in off {
                let [measured, simulated] = [measured, simulated].map(|ratio| digits(*ratio));
                let _ = writeln!(
                    page,
                    "- {what}, {of} over {to}: measured {measured}, simulated {simulated}, {:+.1} %",
                    error * 100.0
                );
            }
        }
        page
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn count(verdicts: impl Iterator<Item = bool>) -> (usize, usize) {
    verdicts.fold((0, 0), |(held, all), holds| (held + usize::from(holds), all + 1))
}

/// Whether it holds only since two measurements of it do not agree.
fn is_by_spread(figure: &Compared) -> bool {
    figure.holds == Some(true) && figure.error.abs() > MEAN_MAX
}

fn cells(figure: &Compared) -> [String; 8] {
    let number = |number: f64| digits((number * 1e4).round() / 1e4);
    [
        figure.place.clone(),
        format!("{} {}", figure.what, figure.unit),
        number(figure.measured[0]),
        number(figure.measured[1]),
        number(figure.simulated),
        format!("{:+.1} %", figure.error * 100.0),
        format!("{:.1} %", figure.spread * 100.0),
        match figure.holds {
            // What two measurements do not agree about says little about the simulation.
            Some(true) if is_by_spread(figure) => "by spread".to_owned(),
            Some(true) => "yes".to_owned(),
            Some(false) => format!("NO ({:.0} %)", figure.allowed.unwrap_or_default() * 100.0),
            None => "-".to_owned(),
        },
    ]
}

impl fmt::Display for Validation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.machine)?;
        let profile = &self.profile;
        writeln!(f, "profile   commit {}, {}, kernel {}", profile.commit, profile.date, profile.kernel)?;
        writeln!(f, "level     {}", self.level)?;
        self.measured.iter().try_for_each(|measured| writeln!(f, "measured  {measured}"))?;
        self.warnings().try_for_each(|warning| writeln!(f, "\n{warning}"))?;
        self.cases.iter().try_for_each(|case| write!(f, "{case}"))?;
        writeln!(f, "\n{}", self.sum())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n== {}: {}\n{}", self.name, self.title, self.notes)?;
        if let Some(why) = &self.missing {
            return writeln!(f, "not run: {why}");
        }
        let heads = ["row", "figure", "measured", "again", "simulated", "error", "spread", "holds"];
        let lines: Vec<[String; 8]> =
            std::iter::once(heads.map(str::to_owned)).chain(self.figures.iter().map(cells)).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        for line in &lines {
            let text = line.iter().enumerate().map(|(column, cell)| match column {
                0 | 1 => format!("{cell:<0$}", width(column)),
                _ => format!("{cell:>0$}", width(column)),
            });
            writeln!(f, "{}", text.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        let (hold, all) = count(self.ratios.iter().map(|ratio| ratio.holds));
        if all > 0 {
            writeln!(f, "ratios to {}: {hold} of {all} hold", self.ratios_to)?;
        }
        Ok(())
    }
}
