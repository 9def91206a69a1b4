//! Reads callgrind's counts between the markers of each side's thread.
//!
//! Callgrind sets a thread's counts to zero when the thread enters the first marker, and writes them to a
//! file when it enters the second. The counts thus contain neither the start of the process nor threads that
//! wake now and then.

use crate::table::Side;

/// Callgrind's options. The markers are the functions of these names in [`scenario`](mod@crate::scenario).
pub(crate) const OPTIONS: [&str; 7] = [
    "--tool=callgrind",
    "--separate-threads=yes",
    "--zero-before=*client_begins*",
    "--dump-before=*client_ends*",
    "--zero-before=*server_begins*",
    "--dump-before=*server_ends*",
    "--quiet",
];

/// The counts per call of both sides of one scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counts {
    pub(crate) client: Side,
    /// The server's counts; `None` for calls without a wire.
    pub(crate) server: Option<Side>,
}

impl Counts {
    /// Reads the counts from all files of one run. Where a marker was passed several times, the counts are
    /// added up.
    pub(crate) fn of(dumps: &[String], calls: usize, has_server: bool) -> Result<Counts, String> {
        let side = |marker: &str| {
            let is_it = |dump: &&String| {
                dump.lines().any(|line| line.starts_with("desc: Trigger:") && line.contains(marker))
            };
            let mut instructions = None;
            let mut heap = 0;
            for dump in dumps.iter().filter(is_it) {
                let total = total(dump)
                    .ok_or_else(|| "callgrind's file has no totals that are understood".to_owned())?;
                instructions = Some(instructions.unwrap_or(0) + total);
                heap += heap_calls(dump);
            }
            let instructions = instructions.ok_or_else(|| format!("callgrind saw no thread at {marker}"))?;
            let calls = calls as f64;
            Ok::<Side, String>(Side {
                instructions: instructions as f64 / calls,
                heap_calls: heap as f64 / calls,
            })
        };
        let server = if has_server { Some(side("server_ends")?) } else { None };
        Ok(Counts { client: side("client_ends")?, server })
    }
}

/// Instructions in a file: `totals: 123456`, and before that `summary: 123456`.
fn total(dump: &str) -> Option<u64> {
    let of = |name: &str| dump.lines().rev().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    of("totals:").or_else(|| of("summary:"))
}

/// Functions that allocate memory, as the C library names them.
const ALLOCATORS: [&str; 6] = ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign"];

/// The number of calls of these functions. A call is `cfn=(ID) NAME`, or `cfn=(ID)` for a name that occurred
/// before, followed by `calls=COUNT …`.
fn heap_calls(dump: &str) -> u64 {
    let mut known: Vec<&str> = Vec::new();
    let mut is_allocator = false;
    let mut caller_allocates = false;
    let mut count = 0;
    for line in dump.lines() {
        let function = ["cfn=", "fn="].iter().find_map(|kind| Some((*kind, line.strip_prefix(kind)?)));
        if let Some((kind, function)) = function {
            let (id, name) = function.split_once(' ').unwrap_or((function, ""));
            // `malloc'2` is `malloc` at a deeper level of a recursion.
            let name = name.split('\'').next().unwrap_or_default();
            if ALLOCATORS.contains(&name) {
                known.push(id);
            }
            let is_known = known.contains(&id);
            match kind {
                "cfn=" => is_allocator = is_known,
                _ => caller_allocates = is_known,
            }
        } else if let Some(calls) = line.strip_prefix("calls=")
            && is_allocator
            && !caller_allocates
        {
            count += calls.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "version: 1\ncreator: callgrind-3.19.0\npid: 7\nthread: 2\npart: 1\n\n\
        desc: Trigger: --dump-before='ironorb_guard::scenario::client_ends'\n\nevents: Ir\nsummary: 12000\n\n\
        fn=(10) ironorb::invoke\n12 100\ncfn=(20) malloc\ncalls=3 0\n12 500\ncfn=(21) other\ncalls=9 0\n13 1\n\
        fn=(20)\n1 400\ncfn=(22) calloc\ncalls=5 0\n1 3\n\n\
        fn=(11) another\ncfn=(20)\ncalls=2 0\n5 1\n\ntotals: 12000\n";

    #[test]
    fn counts_are_those_between_the_markers_a_call() {
        let dumps = ["desc: Trigger: Program termination\ntotals: 5\n".to_owned(), DUMP.to_owned()];
        let counts = Counts::of(&dumps, 10, false).unwrap();
        // An allocator that calls another one counts as one call.
        assert_eq!(counts.client, Side { instructions: 1200.0, heap_calls: 0.5 });
        assert_eq!(counts.server, None);
        assert!(Counts::of(&dumps, 10, true).unwrap_err().contains("server_ends"));
    }
}
