//! Makes the matrix of `docs/interop.md` from the results of a test run.
//!
//! ```text
//! interop-matrix RESULTS print|check|write DOCUMENT
//! ```
//!
//! Everything between the markers comes from the files of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use ironorb_interop::constructs::{CONSTRUCTS, construct_of};
use ironorb_interop::peer::Peer;
use ironorb_interop::results::{Line, Outcome, Side};
use ironorb_interop::skips::reasons;

const BEGIN: &str = "<!-- The matrix: written by `cargo xtask interop`. -->";
const END: &str = "<!-- The end of the matrix. -->";

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("interop-matrix: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [results, mode, document] = arguments.as_slice() else {
        return Err("usage: interop-matrix RESULTS print|check|write DOCUMENT".into());
    };
    let lines = read(Path::new(results))?;
    let matrix = matrix(&lines)?;
    println!("{matrix}");
    let text = std::fs::read_to_string(document)?;
    let (before, rest) = text.split_once(BEGIN).ok_or("the document has no marker of the matrix")?;
    let (recorded, after) = rest.split_once(END).ok_or("the document has no end of the matrix")?;
    let problems = problems(&lines);
    match mode.as_str() {
        "print" => {}
        "write" => std::fs::write(document, format!("{before}{BEGIN}\n\n{matrix}\n{END}{after}"))?,
        "check" if recorded.trim() != matrix.trim() => {
            let old: BTreeSet<&str> = recorded.lines().collect();
            let new: BTreeSet<&str> = matrix.lines().collect();
            old.difference(&new).for_each(|line| eprintln!("- {line}"));
            new.difference(&old).for_each(|line| eprintln!("+ {line}"));
            return Err(format!("this run differs from {document}; `cargo xtask interop` rewrites it").into());
        }
        "check" => {}
        other => return Err(format!("what is {other}?").into()),
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

fn read(folder: &Path) -> Result<Vec<Line>, Failure> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // Tests that may be left out have a folder of their own.
        if path.is_dir() {
            lines.extend(read(&path)?);
            continue;
        }
        let text = std::fs::read_to_string(path)?;
        for line in text.lines() {
            lines.push(Line::parse(line).ok_or_else(|| format!("what is {line:?}?"))?);
        }
    }
    Ok(lines)
}

/// The problems of a run, apart from a difference to the recorded results: failed cases, and reasons that
/// left nothing out.
fn problems(lines: &[Line]) -> Vec<String> {
    let mut problems = Vec::new();
    for line in lines {
        if line.outcome == Outcome::Fail {
            problems.push(format!(
                "{} failed: {} {:?} {}",
                line.case,
                line.peer.name(),
                line.side,
                line.setup
            ));
        }
    }
    let used: BTreeSet<u32> = lines
        .iter()
        .filter_map(|line| if let Outcome::Skip(number) = line.outcome { Some(number) } else { None })
        .collect();
    for reason in reasons() {
        if !used.contains(&reason.number) {
            problems.push(format!("reason {} left nothing out: {}", reason.number, reason.text));
        }
    }
    problems
}

/// The columns, in their order.
const COLUMNS: [(Peer, Side); 4] = [
    (Peer::OmniOrb, Side::Server),
    (Peer::OmniOrb, Side::Client),
    (Peer::JacOrb, Side::Server),
    (Peer::JacOrb, Side::Client),
];

fn heading((peer, side): (Peer, Side)) -> String {
    match side {
        Side::Server => format!("{} calls IronORB", peer.name()),
        Side::Client => format!("IronORB calls {}", peer.name()),
    }
}

/// The results of a construct's cases between two ORBs.
#[derive(Default)]
struct Cell {
    has_passed: bool,
    has_failed: bool,
    /// The numbers of the reasons.
    left_out: BTreeSet<u32>,
}

fn matrix(lines: &[Line]) -> Result<String, Failure> {
    let mut cells: BTreeMap<(&str, Peer, Side), Cell> = BTreeMap::new();
    for line in lines {
        let construct = construct_of(&line.case)
            .ok_or_else(|| format!("the case {} belongs to no construct", line.case))?;
        let cell = cells.entry((construct, line.peer, line.side)).or_default();
        match line.outcome {
            Outcome::Pass => cell.has_passed = true,
            Outcome::Fail => cell.has_failed = true,
            Outcome::Skip(number) => {
                cell.left_out.insert(number);
            }
        }
    }
    let mut text = String::new();
    writeln!(text, "| construct | {} |", COLUMNS.map(heading).join(" | "))?;
    writeln!(text, "|---|{}", "---|".repeat(COLUMNS.len()))?;
    for (construct, _) in CONSTRUCTS {
        let row = COLUMNS.map(|(peer, side)| match cells.get(&(*construct, peer, side)) {
            None => "–".to_owned(),
            Some(cell) if cell.has_failed => "**fail**".to_owned(),
            Some(cell) => {
                let numbers: Vec<String> = cell.left_out.iter().map(u32::to_string).collect();
                match (cell.has_passed, numbers.join(", ")) {
                    (true, none) if none.is_empty() => "pass".to_owned(),
                    (true, numbers) => format!("pass ({numbers})"),
                    (false, numbers) => format!("skip ({numbers})"),
                }
            }
        });
        writeln!(text, "| {construct} | {} |", row.join(" | "))?;
    }
    writeln!(text, "\nNumbers in parentheses: cases of that row that are left out somewhere, and why.\n")?;
    write_reasons(&mut text, lines)?;
    write_runs(&mut text, lines)?;
    Ok(text)
}

/// Writes each reason with the cases that it left out.
fn write_reasons(text: &mut String, lines: &[Line]) -> Result<(), Failure> {
    writeln!(text, "| | reason | where | cases |\n|---|---|---|---|")?;
    for reason in reasons() {
        // The cases that are left out under the same circumstances share a row.
        let mut places: BTreeMap<(Peer, Side, String), BTreeSet<&str>> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.outcome == Outcome::Skip(reason.number)) {
            let version = line.setup.split(',').next().unwrap_or_default().to_owned();
            places.entry((line.peer, line.side, version)).or_default().insert(&line.case);
        }
        let mut rows: BTreeMap<(Peer, Side, BTreeSet<&str>), Vec<String>> = BTreeMap::new();
        for ((peer, side, version), cases) in places {
            rows.entry((peer, side, cases)).or_default().push(version);
        }
        for (at, ((peer, side, cases), versions)) in rows.into_iter().enumerate() {
            let (number, why) =
                if at == 0 { (reason.number.to_string(), reason.text) } else { (String::new(), "") };
            let cases = grouped(&cases);
            let place = format!("{}: {}", heading((peer, side)), versions.join("; "));
            writeln!(text, "| {number} | {why} | {place} | {cases} |")?;
        }
    }
    Ok(())
}

/// Names the cases. A group with more than three cases is given by its name and number.
fn grouped(cases: &BTreeSet<&str>) -> String {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for case in cases {
        groups.entry(case.split('/').next().unwrap_or(case)).or_default().push(case);
    }
    let names = groups.into_iter().map(|(group, cases)| match cases.len() {
        ..=3 => cases.iter().map(|case| format!("`{case}`")).collect::<Vec<_>>().join(", "),
        count => format!("{count} of `{group}`"),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Writes the number of cases of each setup.
fn write_runs(text: &mut String, lines: &[Line]) -> Result<(), Failure> {
    writeln!(text, "\n| direction | setup | cases passed | left out |\n|---|---|---|---|")?;
    let mut runs: BTreeMap<(Peer, Side, &str), (u32, u32)> = BTreeMap::new();
    for line in lines {
        let run = runs.entry((line.peer, line.side, &line.setup)).or_default();
        match line.outcome {
            Outcome::Pass => run.0 += 1,
            Outcome::Skip(_) => run.1 += 1,
            Outcome::Fail => {}
        }
    }
    for ((peer, side, setup), (passed, left_out)) in runs {
        let setup = if setup.is_empty() { "one at a time" } else { setup };
        writeln!(text, "| {} | {setup} | {passed} | {left_out} |", heading((peer, side)))?;
    }
    Ok(())
}
