//! Memory: what makes a thread wait that only touches or takes some.

use super::finding::Finding;
use super::machine::Machine;

pub(super) fn findings(machine: &Machine) -> Vec<Finding> {
    vec![
        huge_pages(machine.read("/sys/kernel/mm/transparent_hugepage/enabled").ok().as_deref()),
        swap(machine.read("/proc/swaps").ok().as_deref()),
        allocator(machine.of_process("environ").ok().as_deref()),
    ]
}

/// `always [madvise] never`.
fn huge_pages(enabled: Option<&str>) -> Finding {
    let name = "transparent huge pages";
    let chosen = enabled.and_then(|text| text.split_once('[')?.1.split_once(']')).map(|(chosen, _)| chosen);
    match chosen {
        Some(chosen @ ("never" | "madvise")) => Finding::ok(name, chosen),
        Some(chosen) => Finding::warning(
            name,
            format!(
                "{chosen}: a page fault may clear 2 MiB or wait for free space, and khugepaged moves pages"
            ),
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        None => Finding::ok(name, "this kernel has none"),
    }
}

fn swap(swaps: Option<&str>) -> Finding {
    let name = "swap";
    let advice = "swapoff -a, or lock the process's memory (mlockall)";
    let Some(swaps) = swaps else { return Finding::ok(name, "this kernel has none") };
    let areas: Vec<&str> = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    match areas[..] {
        [] => Finding::ok(name, "none"),
        _ => Finding::warning(name, format!("{}: a page may have to be read back", areas.join(", ")), advice),
    }
}

/// What the environment makes of glibc's allocator.
#[derive(Debug, Default, PartialEq, Eq)]
struct Allocator<'e> {
    arenas: Option<&'e str>,
    mmap_threshold: Option<&'e str>,
    trim_threshold: Option<&'e str>,
}

impl<'e> Allocator<'e> {
    /// `environ` separates variables by NUL. Tunables count for more than the older variables.
    fn read(environ: &'e str) -> Allocator<'e> {
        let variable =
            |name: &str| environ.split('\0').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='));
        let tunables = variable("GLIBC_TUNABLES").unwrap_or_default();
        let of = |tunable: &str, name: &str| {
            let set = tunables.split(':').filter_map(|entry| entry.split_once('='));
            let set = set.filter(|(name, _)| name.strip_prefix("glibc.malloc.") == Some(tunable));
            set.map(|(_, value)| value).next_back().or_else(|| variable(name))
        };
        Allocator {
            arenas: of("arena_max", "MALLOC_ARENA_MAX"),
            mmap_threshold: of("mmap_threshold", "MALLOC_MMAP_THRESHOLD_"),
            trim_threshold: of("trim_threshold", "MALLOC_TRIM_THRESHOLD_"),
        }
    }
}

fn allocator(environ: Option<&str>) -> Finding {
    let name = "allocator";
    let Some(environ) = environ else {
        return Finding::unknown(
            name,
            "the process's environment cannot be read",
            "run the doctor as the process's user",
        );
    };
    let Allocator { arenas, mmap_threshold, trim_threshold } = Allocator::read(environ);
    let shown = |value: Option<&str>| value.unwrap_or("not set").to_owned();
    let seen = format!(
        "arenas {}, mmap threshold {}, trim threshold {}",
        shown(arenas),
        shown(mmap_threshold),
        shown(trim_threshold)
    );
    if arenas == Some("1") {
        let advice = "all threads share one lock, which lends no priority: remove MALLOC_ARENA_MAX (glibc.malloc.arena_max)";
        return Finding::warning(name, seen, advice);
    }
    if mmap_threshold.is_none() || trim_threshold.is_none() {
        let advice = "servants that allocate: GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:\
                      glibc.malloc.trim_threshold=1073741824, lest memory go back to the system and be faulted in again; \
                      arenas have locks that lend no priority: a lane can have memory of its own (ironorb-lane-alloc). \
                      The ORB allocates nothing in calls of fixed size";
        return Finding::note(name, seen, advice);
    }
    Finding::ok(name, seen)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::*;
    use super::super::machine::MadeUp;
    use super::*;

    #[test]
    fn huge_pages_for_all_are_a_warning() {
        let of = |text| {
            let made = MadeUp::new(&[("/sys/kernel/mm/transparent_hugepage/enabled", text)]);
            findings(&made.machine())[0].severity
        };
        assert_eq!([of("[always] madvise never\n"), of("always [madvise] never\n")], [Warning, Ok]);
    }

    #[test]
    fn swap_is_a_warning() {
        let head = "Filename\tType\tSize\tUsed\tPriority\n";
        let of = |text: &str| findings(&MadeUp::new(&[("/proc/swaps", text)]).machine())[1].severity;
        assert_eq!([of(head), of(&format!("{head}/dev/sda2 partition 1 0 -2\n"))], [Ok, Warning]);
    }

    #[test]
    fn the_allocators_settings_are_read_from_the_environment() {
        let of = |text: &str| findings(&MadeUp::new(&[("/proc/self/environ", text)]).machine())[2].severity;
        assert_eq!(of("HOME=/\0"), Note);
        assert_eq!(of("MALLOC_ARENA_MAX=1\0"), Warning);
        assert_eq!(of("A=1\0MALLOC_MMAP_THRESHOLD_=1\0MALLOC_TRIM_THRESHOLD_=2\0"), Ok);
        assert_eq!(of("GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1:glibc.malloc.trim_threshold=2\0"), Ok);
        assert_eq!(of("MALLOC_ARENA_MAX=4\0GLIBC_TUNABLES=glibc.malloc.arena_max=1\0"), Warning);
        assert_eq!(allocator(None).severity, Unknown);
    }
}
