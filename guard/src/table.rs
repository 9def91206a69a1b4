//! The committed table, and its comparison with new counts.

use std::fmt;

/// The cost of one side of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Side {
    /// Instructions in user space.
    pub(crate) instructions: f64,
    /// Calls of malloc and related functions.
    pub(crate) heap_calls: f64,
}

/// The counts of one scenario.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) client: Side,
    pub(crate) server: Option<Side>,
    /// How far the counts may be apart.
    pub(crate) tolerance: Tolerance,
}

/// A tolerated difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tolerance {
    /// Of instructions, as a fraction.
    instructions: f64,
    /// Of heap calls.
    heap_calls: f64,
}

impl Tolerance {
    /// Heap calls differ by an allocation once in many calls.
    pub(crate) const STEADY: Tolerance = Tolerance { instructions: 0.02, heap_calls: 0.02 };
    /// Where threads look before they sleep, the counts depend on how soon the other side comes.
    pub(crate) const VARYING: Tolerance = Tolerance { instructions: 0.10, heap_calls: 0.35 };
    /// Where one thread hands another its reply, a third of the count is whether that one sleeps already, and how long both
    /// look for a lock that the other has: beside other work that is more.
    pub(crate) const HANDED_OVER: Tolerance = Tolerance { instructions: 0.60, heap_calls: 0.35 };
}

/// The counts of all scenarios, for one compiler. Its `Display` is the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) compiler: String,
    pub(crate) rows: Vec<Row>,
}

/// So many instructions are tolerated anyway, because small counts change when code moves.
const ALWAYS_ALLOWED: f64 = 2.0;
/// Tolerated difference of instructions with another compiler, which makes other code.
const ELSEWHERE: f64 = 0.15;

impl Table {
    pub(crate) fn parse(text: &str) -> Result<Table, String> {
        let mut table = Table { compiler: String::new(), rows: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let row = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                ["compiler", version] => {
                    table.compiler = version.to_owned();
                    continue;
                }
                [name, instructions, heap] => side(instructions, heap).map(|client| (name, client, None)),
                [name, instructions, heap, server_instructions, server_heap] => side(instructions, heap)
                    .zip(side(server_instructions, server_heap))
                    .map(|(client, server)| (name, client, Some(server))),
                _ => None,
            };
            let (name, client, server) =
                row.ok_or_else(|| format!("line {} is not understood", number + 1))?;
            table.rows.push(Row { name: name.to_owned(), client, server, tolerance: Tolerance::STEADY });
        }
        Ok(table)
    }

    /// Reports differences from the committed table, and what to do.
    pub(crate) fn compare(&self, committed: &Table) -> Result<(), String> {
        let same_compiler = release(&self.compiler) == release(&committed.compiler);
        let mut said = Vec::new();
        for row in &self.rows {
            let Some(known) = committed.rows.iter().find(|known| known.name == row.name) else {
                said.push(format!("{}: not in the table", row.name));
                continue;
            };
            let mut tolerance = row.tolerance;
            if !same_compiler {
                tolerance.instructions = ELSEWHERE;
            }
            let sides =
                [("client", Some(row.client), Some(known.client)), ("server", row.server, known.server)];
            for (side, now, before) in sides {
                match (now, before) {
                    (Some(now), Some(before)) => said.extend(
                        differences(now, before, tolerance)
                            .map(|what| format!("{}, {side}: {what}", row.name)),
                    ),
                    (None, None) => {}
                    _ => said.push(format!("{}, {side}: only in one of them", row.name)),
                }
            }
        }
        for known in &committed.rows {
            if !self.rows.iter().any(|row| row.name == known.name) {
                said.push(format!("{}: in the table, but no scenario", known.name));
            }
        }
        if said.is_empty() {
            return Ok(());
        }
        let compiler = match same_compiler {
            true => String::new(),
            false => format!(" (the table is of rustc {}, this is {})", committed.compiler, self.compiler),
        };
        Err(format!(
            "the cost of a call differs from guard/counts.txt by more than is tolerated{compiler}:\n  {}\n\
             If it costs more, find out why. If that is intended, or it costs less, rewrite the table and commit it with the \
             change that causes it:\n    cargo xtask counts --update",
            said.join("\n  ")
        ))
    }
}

fn side(instructions: &str, heap_calls: &str) -> Option<Side> {
    Some(Side { instructions: instructions.parse().ok()?, heap_calls: heap_calls.parse().ok()? })
}

/// The release of a compiler: `1.95` of `1.95.0`.
fn release(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(release, _)| release)
}

fn differences(now: Side, before: Side, tolerance: Tolerance) -> impl Iterator<Item = String> {
    let share = (now.instructions - before.instructions) / before.instructions.max(1.0);
    let is_far = share.abs() > tolerance.instructions
        && (now.instructions - before.instructions).abs() > ALWAYS_ALLOWED;
    let instructions = is_far.then(|| {
        let word = if share > 0.0 { "more" } else { "less" };
        format!(
            "{:.1} instructions instead of {:.1}, {:.1} % {word}",
            now.instructions,
            before.instructions,
            share.abs() * 100.0
        )
    });
    let heap = ((now.heap_calls - before.heap_calls).abs() > tolerance.heap_calls)
        .then(|| format!("{:.2} heap calls instead of {:.2}", now.heap_calls, before.heap_calls));
    instructions.into_iter().chain(heap)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# The cost of a call in the steady state: instructions in user space and calls of the heap, on the calling and on\n\
             # the serving thread, counted by callgrind in a release build. `cargo xtask test` compares with a tolerance of\n\
             # 2 % (10 % or 60 % where other threads take part, 15 % with another compiler). `cargo xtask counts --update` writes it."
        )?;
        writeln!(f, "compiler {}\n", self.compiler)?;
        writeln!(f, "# {:<14} {:>9} {:>6} {:>9} {:>6}", "scenario", "client", "heap", "server", "heap")?;
        for Row { name, client, server, .. } in &self.rows {
            write!(f, "{name:<16} {:>9.1} {:>6.2}", client.instructions, client.heap_calls)?;
            if let Some(server) = server {
                write!(f, " {:>9.1} {:>6.2}", server.instructions, server.heap_calls)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(compiler: &str, void: f64, heap: f64, server: f64) -> Table {
        let side = |instructions, heap_calls| Side { instructions, heap_calls };
        let row = |name: &str, client, server| {
            let tolerance = Tolerance::STEADY;
            Row { name: name.to_owned(), client, server, tolerance }
        };
        Table {
            compiler: compiler.to_owned(),
            rows: vec![
                row("void", side(void, heap), Some(side(server, 0.0))),
                row("collocated", side(30.0, 0.0), None),
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = table("1.95.0", 600.5, 1.0, 900.0);
        assert_eq!(Table::parse(&written.to_string()), Ok(written));
        assert_eq!(Table::parse("void 1 2 3").unwrap_err(), "line 1 is not understood");
    }

    #[test]
    fn more_than_the_tolerance_either_way_is_reported_with_what_to_do() {
        let committed = table("1.95.0", 600.0, 0.0, 900.0);
        let check = |compiler, void, heap, server| table(compiler, void, heap, server).compare(&committed);
        assert_eq!(check("1.95.1", 611.0, 0.0, 885.0), Ok(()));
        let said = check("1.95.0", 613.0, 0.0, 900.0).unwrap_err();
        assert!(said.contains("void, client: 613.0 instructions instead of 600.0, 2.2 % more"), "{said}");
        assert!(said.contains("cargo xtask counts --update"));
        let said = check("1.95.0", 600.0, 1.0, 800.0).unwrap_err();
        assert!(said.contains("1.00 heap calls instead of 0.00") && said.contains("11.1 % less"), "{said}");
        assert_eq!(check("1.99.0", 650.0, 0.0, 800.0), Ok(()), "another compiler, and within 15 %");
        let mut varying = table("1.95.0", 650.0, 0.1, 900.0);
        assert!(varying.compare(&committed).is_err());
        varying.rows[0].tolerance = Tolerance::VARYING;
        assert_eq!(varying.compare(&committed), Ok(()));
        let mut fewer = committed.clone();
        fewer.rows.pop();
        assert!(committed.compare(&fewer).unwrap_err().contains("collocated: not in the table"));
        assert!(fewer.compare(&committed).unwrap_err().contains("collocated: in the table, but no scenario"));
    }
}
