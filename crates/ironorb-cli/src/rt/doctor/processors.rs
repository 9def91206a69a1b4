//! The processors: how fast they run, how deep they sleep, what else uses them.

use super::finding::Finding;
use super::machine::Machine;

pub(super) fn findings(machine: &Machine) -> Vec<Finding> {
    vec![
        governor(&of_each(machine, "cpufreq/scaling_governor")),
        idle_states(deepest(machine)),
        isolation(
            &machine.read("/sys/devices/system/cpu/isolated").unwrap_or_default(),
            &machine.read("/sys/devices/system/cpu/nohz_full").unwrap_or_default(),
        ),
        smt(machine.number("/sys/devices/system/cpu/smt/active").ok()),
        numa_balancing(machine.number("/proc/sys/kernel/numa_balancing").ok()),
    ]
}

/// The different texts of a file of each processor.
fn of_each(machine: &Machine, file: &str) -> Vec<String> {
    let texts =
        machine.processors().into_iter().filter_map(|cpu| machine.read(&format!("{cpu}/{file}")).ok());
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts.dedup();
    texts
}

fn governor(governors: &[String]) -> Finding {
    let name = "governor";
    match governors {
        [] => Finding::unknown(
            name,
            "the kernel does not govern the processors' speed",
            "ask firmware or hypervisor for constant speed",
        ),
        [only] if only == "performance" => Finding::ok(name, only),
        several => Finding::warning(
            name,
            several.join(", "),
            "write `performance` to /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor: \
             a processor that was idle is slow when work comes",
        ),
    }
}

/// A state in which an idle processor sleeps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IdleState {
    name: String,
    exit_us: i64,
}

/// The state with the longest way back that is not disabled.
fn deepest(machine: &Machine) -> Option<IdleState> {
    let folders = machine.processors().into_iter().map(|cpu| format!("{cpu}/cpuidle"));
    let states = folders.flat_map(|folder| {
        machine.names(&folder, "state").into_iter().map(move |state| format!("{folder}/{state}"))
    });
    let enabled = states.filter(|state| machine.number(&format!("{state}/disable")) != Ok(1));
    let read = enabled.filter_map(|state| {
        let name = machine.read(&format!("{state}/name")).ok()?;
        Some(IdleState { name, exit_us: machine.number(&format!("{state}/latency")).ok()? })
    });
    read.max_by_key(|state| state.exit_us)
}

fn idle_states(deepest: Option<IdleState>) -> Finding {
    let name = "idle states";
    let advice = "keep processors of urgent lanes awake: hold /dev/cpu_dma_latency open with 0 in it, \
                  or boot with processor.max_cstate=1 or idle=poll";
    let Some(IdleState { name: state, exit_us }) = deepest else {
        return Finding::unknown(
            name,
            "the kernel lists none",
            "a hypervisor may put processors to sleep on its own",
        );
    };
    let seen = format!("the deepest is {state}, {exit_us} us to leave");
    match exit_us {
        _ if exit_us <= WAKE_SHORT_US => Finding::ok(name, seen),
        _ if exit_us <= WAKE_LONG_US => Finding::note(name, seen, advice),
        _ => Finding::warning(name, seen, advice),
    }
}

fn isolation(isolated: &str, tickless: &str) -> Finding {
    let name = "isolated processors";
    let advice = "boot with isolcpus=LIST nohz_full=LIST rcu_nocbs=LIST and pin urgent lanes there, \
                  if ordinary load of the machine must not delay them";
    match (isolated, tickless) {
        ("", "") => Finding::note(name, "none", advice),
        (list, "") => {
            Finding::note(name, format!("{list}; all have a tick"), "add nohz_full=LIST rcu_nocbs=LIST")
        }
        ("", list) => Finding::note(name, format!("none; {list} without a tick"), advice),
        (list, tickless) => Finding::ok(name, format!("{list}; {tickless} without a tick")),
    }
}

fn smt(active: Option<i64>) -> Finding {
    let name = "SMT";
    match active {
        Some(0) => Finding::ok(name, "off: no two processors share a core"),
        Some(_) => Finding::warning(
            name,
            "on: two processors share a core, and slow each other at any priority",
            "echo off > /sys/devices/system/cpu/smt/control, or leave the siblings of urgent lanes' processors idle",
        ),
        None => Finding::unknown(
            name,
            "the kernel does not say",
            "ask the hypervisor whether virtual processors share cores",
        ),
    }
}

fn numa_balancing(on: Option<i64>) -> Finding {
    let name = "NUMA balancing";
    match on {
        Some(0) => Finding::ok(name, "off"),
        None => Finding::ok(name, "this kernel has none"),
        Some(_) => Finding::warning(
            name,
            "on: the kernel unmaps pages to see which thread touches them",
            "sysctl kernel.numa_balancing=0, and pin lanes to processors of one node",
        ),
    }
}

/// As long as a wake-up takes in any case.
const WAKE_SHORT_US: i64 = 10;
/// As long as a call within a machine takes.
const WAKE_LONG_US: i64 = 100;

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, *};
    use super::super::machine::MadeUp;
    use super::*;

    /// The severity of the finding with this name on a machine with these files.
    fn severity(name: &str, files: &[(&str, &str)]) -> Severity {
        let found = findings(&MadeUp::new(files).machine());
        let finding = found.iter().find(|it| it.name == name).unwrap();
        assert_eq!(finding.advice.is_empty(), finding.severity == Ok, "{finding:?}");
        finding.severity
    }

    const CPU: &str = "/sys/devices/system/cpu";

    #[test]
    fn one_slow_processor_is_enough() {
        let of = |cpu: u8| format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor");
        let (first, second) = (of(0), of(12));
        let check = |a, b| severity("governor", &[(&first, a), (&second, b)]);
        assert_eq!(check("performance\n", "performance\n"), Ok);
        assert_eq!(check("performance\n", "powersave\n"), Warning);
        assert_eq!(severity("governor", &[]), Unknown);
    }

    #[test]
    fn the_deepest_state_that_is_enabled_counts() {
        let place = |file| format!("{CPU}/cpu0/cpuidle/state2/{file}");
        let (name, latency, disable) = (place("name"), place("latency"), place("disable"));
        let check = |us, disabled| {
            let shallow = [
                ("/sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1"),
                ("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2"),
            ];
            let deep = [(&*name, "C6"), (&*latency, us), (&*disable, disabled)];
            severity("idle states", &[&shallow[..], &deep[..]].concat())
        };
        assert_eq!([check("133", "0"), check("50", "0"), check("133", "1")], [Warning, Note, Ok]);
        assert_eq!(severity("idle states", &[]), Unknown);
    }

    #[test]
    fn processors_are_isolated_and_tickless_or_not() {
        let name = "isolated processors";
        let (isolated, tickless) = (format!("{CPU}/isolated"), format!("{CPU}/nohz_full"));
        assert_eq!(severity(name, &[(&isolated, "2-3\n"), (&tickless, "2-3\n")]), Ok);
        assert_eq!(severity(name, &[(&isolated, "2-3\n"), (&tickless, "\n")]), Note);
        assert_eq!(severity(name, &[(&isolated, "\n")]), Note);
    }

    #[test]
    fn siblings_and_moving_pages_are_found() {
        let smt = format!("{CPU}/smt/active");
        assert_eq!([severity("SMT", &[(&smt, "1")]), severity("SMT", &[(&smt, "0")])], [Warning, Ok]);
        assert_eq!(severity("SMT", &[]), Unknown);
        let balancing = "/proc/sys/kernel/numa_balancing";
        let check = |on| severity("NUMA balancing", &[(balancing, on)]);
        assert_eq!([check("1"), check("0"), severity("NUMA balancing", &[])], [Warning, Ok, Ok]);
    }
}
