//! What callgrind counts between the markers of each side's thread.
//!
//! A thread's counts are set to zero when it enters the first marker and written to a file when it enters the second, so
//! neither the start of the process nor threads that wake now and then are in them.

use crate::table::Side;

/// Markers are the functions of these names in [`scenario`](crate::scenario).
pub(crate) const OPTIONS: [&str; 7] = [
    "--tool=callgrind",
    "--separate-threads=yes",
    "--zero-before=*client_begins*",
    "--dump-before=*client_ends*",
    "--zero-before=*server_begins*",
    "--dump-before=*server_ends*",
    "--quiet",
];

/// Both sides' counts of one scenario, a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counts {
    pub(crate) client: Side,
    /// Of calls that pass a wire.
    pub(crate) server: Option<Side>,
}

impl Counts {
    /// From all files of one run.
    pub(crate) fn of(dumps: &[String], calls: usize, has_server: bool) -> Result<Counts, String> {
        let side = |marker: &str| {
            let is_it = |dump: &&String| {
                dump.lines().any(|line| line.starts_with("desc: Trigger:") && line.contains(marker))
            };
            let dump = dumps.iter().find(is_it).ok_or_else(|| format!("callgrind saw nobody at {marker}"))?;
            let instructions =
                total(dump).ok_or_else(|| "callgrind's file has no totals that are understood".to_owned())?;
            let calls = calls as f64;
            Ok::<Side, String>(Side {
                instructions: instructions as f64 / calls,
                heap_calls: heap_calls(dump) as f64 / calls,
            })
        };
        let server = if has_server { Some(side("server_ends")?) } else { None };
        Ok(Counts { client: side("client_ends")?, server })
    }
}

/// Instructions of a file: `totals: 123456`, before that `summary: 123456`.
fn total(dump: &str) -> Option<u64> {
    let of = |name: &str| dump.lines().rev().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    of("totals:").or_else(|| of("summary:"))
}

/// What takes memory from the heap, as the C library calls it.
const ALLOCATORS: [&str; 6] = ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign"];

/// Calls of these. A call is `cfn=(ID) NAME`, or `cfn=(ID)` where the name has been told before, and then `calls=COUNT …`.
fn heap_calls(dump: &str) -> u64 {
    let mut known: Vec<&str> = Vec::new();
    let mut is_allocator = false;
    let mut caller_allocates = false;
    let mut count = 0;
    for line in dump.lines() {
        let function = ["cfn=", "fn="].iter().find_map(|kind| Some((*kind, line.strip_prefix(kind)?)));
        if let Some((kind, function)) = function {
            let (id, name) = function.split_once(' ').unwrap_or((function, ""));
            // `malloc'2` is the same function deeper in a recursion.
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
        // An allocator that calls another is one call.
        assert_eq!(counts.client, Side { instructions: 1200.0, heap_calls: 0.5 });
        assert_eq!(counts.server, None);
        assert!(Counts::of(&dumps, 10, true).unwrap_err().contains("server_ends"));
    }
}
