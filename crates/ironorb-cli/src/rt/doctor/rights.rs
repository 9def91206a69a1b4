//! What the system lets the process do: real-time priorities and locked memory.

use super::finding::Finding;
use super::machine::Machine;

/// A limit of a process (getrlimit(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Unlimited,
    AtMost(u64),
}

pub(super) fn findings(machine: &Machine) -> Vec<Finding> {
    let limits = machine.of_process("limits").ok();
    let limit = |name| limits.as_deref().and_then(|limits| soft_limit(limits, name));
    let capabilities = machine.of_process("status").ok().and_then(|status| effective(&status));
    let has = |bit: u32| capabilities.is_some_and(|set| set & (1 << bit) != 0);
    vec![
        priorities(limit("Max realtime priority"), has(CAP_SYS_NICE)),
        locked_memory(limit("Max locked memory"), has(CAP_IPC_LOCK)),
    ]
}

/// `Max realtime priority     0                    0`: the soft limit comes first.
fn soft_limit(limits: &str, name: &str) -> Option<Limit> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::AtMost),
    }
}

/// `CapEff:` and the set in hexadecimal digits.
fn effective(status: &str) -> Option<u64> {
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

fn priorities(limit: Option<Limit>, may_all: bool) -> Finding {
    let name = "real-time priorities";
    let advice = "raise RLIMIT_RTPRIO to 98 (`rtprio` in /etc/security/limits.d, LimitRTPRIO= of a systemd unit), \
                  or grant CAP_SYS_NICE (setcap cap_sys_nice+ep PROGRAM)";
    match limit {
        _ if may_all => Finding::ok(name, "all, by CAP_SYS_NICE"),
        Some(Limit::Unlimited) => Finding::ok(name, "all, by RLIMIT_RTPRIO"),
        Some(Limit::AtMost(most @ DEFAULT_HIGHEST..)) => {
            Finding::ok(name, format!("up to {most}, by RLIMIT_RTPRIO"))
        }
        Some(Limit::AtMost(0)) => {
            Finding::problem(name, "none: RLIMIT_RTPRIO is 0, and CAP_SYS_NICE is missing", advice)
        }
        Some(Limit::AtMost(most)) => Finding::warning(
            name,
            format!("up to {most}, by RLIMIT_RTPRIO; the ORB's default mapping goes up to {DEFAULT_HIGHEST}"),
            format!("{advice}; or map priorities below it (LinearMapping {{ min: 1, max: {most} }})"),
        ),
        None => Finding::unknown(name, "the limits of the process cannot be read", advice),
    }
}

fn locked_memory(limit: Option<Limit>, may_all: bool) -> Finding {
    let name = "locked memory";
    let advice = "raise RLIMIT_MEMLOCK (`memlock` in /etc/security/limits.d, LimitMEMLOCK=infinity of a systemd unit), \
                  or grant CAP_IPC_LOCK; else mlockall fails, and a page that was given back is read from disk in a call";
    match limit {
        _ if may_all => Finding::ok(name, "without limit, by CAP_IPC_LOCK"),
        Some(Limit::Unlimited) => Finding::ok(name, "without limit, by RLIMIT_MEMLOCK"),
        Some(Limit::AtMost(bytes)) => {
            Finding::warning(name, format!("at most {} KiB, by RLIMIT_MEMLOCK", bytes >> 10), advice)
        }
        None => Finding::unknown(name, "the limits of the process cannot be read", advice),
    }
}

/// The highest native priority of the ORB's default mapping.
const DEFAULT_HIGHEST: u64 = 98;

/// Bits of capabilities(7).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, *};
    use super::super::machine::MadeUp;
    use super::*;

    fn check(limits: &str, status: &str, expected: [Severity; 2]) {
        let made = MadeUp::new(&[("/proc/self/limits", limits), ("/proc/self/status", status)]);
        let found = findings(&made.machine());
        assert_eq!(found.iter().map(|it| it.severity).collect::<Vec<_>>(), expected, "{found:?}");
        assert!(found.iter().all(|it| it.advice.is_empty() == (it.severity == Ok)), "{found:?}");
    }

    #[test]
    fn limits_and_capabilities_decide() {
        let limits = |rtprio, memlock| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max locked memory         {memlock}              unlimited              bytes     \n\
                 Max realtime priority     {rtprio}                    99                    \n"
            )
        };
        let without = "CapEff:\t0000000000000000\n";
        check(&limits("0", "8388608"), without, [Problem, Warning]);
        check(&limits("50", "8388608"), without, [Warning, Warning]);
        check(&limits("98", "unlimited"), without, [Ok, Ok]);
        check(&limits("unlimited", "0"), without, [Ok, Warning]);
        check(&limits("0", "0"), "CapEff:\t0000000000804000\n", [Ok, Ok]);
        check(&limits("0", "0"), "CapEff:\t0000000000800000\n", [Ok, Warning]);
        check("", "", [Unknown, Unknown]);
    }
}
