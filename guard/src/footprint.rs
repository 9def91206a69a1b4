//! How much code calls, cached reads and writes touch in the steady state, on each side: distinct lines of 64 bytes of which an
//! instruction was executed between the markers.

use std::collections::HashSet;
use std::fmt;

/// Callgrind's further options: costs by address, each address in full.
pub(crate) const OPTIONS: [&str; 3] = ["--dump-instr=yes", "--dump-line=no", "--compress-pos=no"];

/// The most bytes that either side may touch: those of the paper on MinORB, whose code has 65 KB.
const BYTES_MAX: usize = 64 << 10;

/// Bytes of a processor's cache line.
const LINE_BYTES: u64 = 64;

/// Bytes of code that one kind of work touches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Footprint {
    pub(crate) name: &'static str,
    pub(crate) client: usize,
    /// `None` where the server does nothing.
    pub(crate) server: Option<usize>,
}

impl Footprint {
    /// Reads the files of one run.
    pub(crate) fn of(name: &'static str, dumps: &[String], has_server: bool) -> Result<Footprint, String> {
        let side = |marker: &str| {
            let is_it = |dump: &&String| {
                dump.lines().any(|line| line.starts_with("desc: Trigger:") && line.contains(marker))
            };
            let mut lines = HashSet::new();
            let dumps = dumps.iter().filter(is_it).inspect(|dump| lines.extend(touched(dump))).count();
            match dumps {
                0 => Err(format!("callgrind saw no thread at {marker}")),
                _ => Ok(lines.len() * LINE_BYTES as usize),
            }
        };
        let server = has_server.then(|| side("server_ends")).transpose()?;
        Ok(Footprint { name, client: side("client_ends")?, server })
    }
}

/// The lines of code of which a file has costs, each with the number of its object file.
fn touched(dump: &str) -> impl Iterator<Item = (&str, u64)> {
    let mut object = "";
    dump.lines().filter_map(move |line| {
        if let Some(named) = line.strip_prefix("ob=") {
            // `(3) /lib/libc.so` where it is named first, `(3)` from then on.
            object = named.split(' ').next().unwrap_or(named);
            return None;
        }
        // `0x4012a0 57`: the address of an instruction, and how often it was executed; after a line of a call, what was
        // called took so much.
        let (address, cost) = line.strip_prefix("0x")?.split_once(' ')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        (cost.trim() != "0").then_some((object, address / LINE_BYTES))
    })
}

/// All footprints. Its `Display` is a table.
pub(crate) struct Footprints(pub(crate) Vec<Footprint>);

impl Footprints {
    /// Whether each is within the bound.
    pub(crate) fn check(&self) -> Result<(), String> {
        let sides =
            |it: &Footprint| [(it.name, "client", it.client), (it.name, "server", it.server.unwrap_or(0))];
        let beyond = self.0.iter().flat_map(sides).filter(|(.., bytes)| *bytes > BYTES_MAX);
        let said: Vec<String> = beyond
            .map(|(name, side, bytes)| {
                format!("{name}, {side}: {bytes} bytes of code are touched, and {BYTES_MAX} may be")
            })
            .collect();
        if said.is_empty() { Ok(()) } else { Err(said.join("\n")) }
    }
}

impl fmt::Display for Footprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<16} {:>9} {:>9}", "bytes of code", "client", "server")?;
        self.0.iter().try_for_each(|Footprint { name, client, server }| {
            let server = server.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
            writeln!(f, "{name:<16} {client:>9} {server:>9}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "version: 1\ndesc: Trigger: --dump-before='guard::client_ends'\n\
        positions: instr\nevents: Ir\nob=(1) /guard\nfn=(10) invoke\n0x1000 5\n0x103f 5\n0x1040 7\n\
        cob=(2) /lib/libc.so\ncfn=(20) send\ncalls=3 0x1000\n0x1044 500\n\
        ob=(2)\nfn=(20)\n0x1000 3\n0x2000 0\n";

    #[test]
    fn lines_of_code_count_once_for_each_object_file() {
        let dumps = [DUMP.to_owned(), DUMP.replace("client_ends", "server_ends") + "0x5000 1\n"];
        let seen = Footprint::of("call", &dumps, true);
        assert_eq!(seen, Ok(Footprint { name: "call", client: 3 * 64, server: Some(4 * 64) }));
        assert_eq!(Footprint::of("cached-read", &dumps, false).unwrap().server, None);
        assert!(Footprint::of("call", &dumps[..1], true).unwrap_err().contains("server_ends"));
    }

    #[test]
    fn more_than_the_bound_is_reported_with_its_side() {
        let all = |server| Footprints(vec![Footprint { name: "all", client: 1, server: Some(server) }]);
        assert_eq!(all(65_536).check(), Ok(()));
        assert!(all(65_600).check().unwrap_err().starts_with("all, server: 65600 bytes"));
    }
}
