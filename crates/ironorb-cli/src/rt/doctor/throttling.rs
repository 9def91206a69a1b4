//! How much of a processor the kernel leaves to real-time threads.

use super::finding::Finding;
use super::kernel;
use super::machine::Machine;

/// Time that is granted in each period, in one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    runtime: i64,
    period: i64,
}

impl Share {
    fn per_cent(self) -> f64 {
        100.0 * self.runtime as f64 / self.period.max(1) as f64
    }
}

pub(super) fn findings(machine: &Machine) -> Vec<Finding> {
    let share = |runtime: &str, period: &str| {
        Some(Share { runtime: machine.number(runtime).ok()?, period: machine.number(period).ok()? })
    };
    let global = share("/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us");
    let servers = "/sys/kernel/debug/sched/fair_server/cpu0";
    let server = share(&format!("{servers}/runtime"), &format!("{servers}/period"));
    let version = kernel::version(machine);
    vec![throttling(global, version), fair_server(server, version), group(machine)]
}

fn throttling(share: Option<Share>, version: Option<(u32, u32)>) -> Finding {
    let name = "throttling";
    let has_servers = version.is_some_and(|version| version >= DEADLINE_SERVERS);
    let Some(share) = share else {
        return Finding::unknown(
            name,
            "sched_rt_runtime_us cannot be read",
            "run the doctor where /proc is mounted",
        );
    };
    let seen = format!("real-time threads may run {} of {} us", share.runtime, share.period);
    match share.runtime {
        ..0 => Finding::ok(name, "off (sched_rt_runtime_us is -1)"),
        0 => {
            Finding::problem(name, "no real-time thread may run", "sysctl kernel.sched_rt_runtime_us=950000")
        }
        _ if has_servers => Finding::note(
            name,
            format!("{seen}: a bound of admission only, as this kernel has deadline servers"),
            "nothing, unless SCHED_DEADLINE threads need more: sysctl kernel.sched_rt_runtime_us=-1",
        ),
        _ => Finding::warning(
            name,
            format!("{seen}; at the bound all of a processor stop until the period ends"),
            "keep lanes below that share, or sysctl kernel.sched_rt_runtime_us=-1: a thread that spins then needs a reset",
        ),
    }
}

fn fair_server(share: Option<Share>, version: Option<(u32, u32)>) -> Finding {
    let name = "fair server";
    match (share, version) {
        (Some(Share { runtime: 0, .. }), _) => {
            Finding::ok(name, "off: ordinary threads get what real-time threads leave")
        }
        (Some(share), _) => Finding::note(
            name,
            format!(
                "ordinary threads that starve get {:.0} % of a processor, ahead of real-time threads",
                share.per_cent()
            ),
            "leave idle time on each processor of a lane, or write 0 to /sys/kernel/debug/sched/fair_server/cpu*/runtime",
        ),
        (None, Some(old)) if old < DEADLINE_SERVERS => Finding::ok(name, "this kernel has none"),
        (None, _) => Finding::unknown(
            name,
            "/sys/kernel/debug/sched/fair_server cannot be read",
            "run the doctor as root, with debugfs mounted. By default ordinary threads that starve get 5 % of a processor",
        ),
    }
}

/// Groups of real-time threads exist with the first version of control groups only.
fn group(machine: &Machine) -> Finding {
    let Some(folder) = group_folder(machine) else { return of_group(None) };
    let file = |name: &str| machine.number(&format!("{folder}/{name}")).ok();
    let share = file("cpu.rt_runtime_us").zip(file("cpu.rt_period_us"));
    of_group(share.map(|(runtime, period)| Share { runtime, period }))
}

/// Where the control group of the process is, of the hierarchy with the controller `cpu`.
fn group_folder(machine: &Machine) -> Option<String> {
    let mounts = machine.of_process("mounts").ok()?;
    let groups = machine.of_process("cgroup").ok()?;
    let has_cpu = |list: &str| list.split(',').any(|word| word == "cpu");
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup" && has_cpu(options)).then(|| folder.to_owned())
    })?;
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        parts.next().filter(|controllers| has_cpu(controllers))?;
        parts.next()
    })?;
    Some(format!("{mount}{}", path.trim_end_matches('/')))
}

fn of_group(share: Option<Share>) -> Finding {
    let name = "real-time groups";
    match share {
        None => Finding::ok(name, "real-time threads are not scheduled by groups"),
        Some(Share { runtime: 0, .. }) => Finding::problem(
            name,
            "the process's control group has no time for real-time threads: they cannot be made",
            "write a time to cpu.rt_runtime_us of the group and of all above it, or move the process to the root group",
        ),
        Some(Share { runtime: ..0, .. }) => Finding::ok(name, "the process's control group is not limited"),
        Some(share) => Finding::note(
            name,
            format!(
                "real-time threads of the process's control group get {:.0} % of a processor",
                share.per_cent()
            ),
            "keep the group's lanes below it, or boot with rt_group_sched=0 where the kernel takes it",
        ),
    }
}

/// The first version in which a deadline server runs starving ordinary threads, instead of a stop of real-time ones.
const DEADLINE_SERVERS: (u32, u32) = (6, 12);

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, *};
    use super::super::machine::MadeUp;
    use super::*;

    fn check(files: &[(&str, &str)], expected: [Severity; 3]) {
        let found = findings(&MadeUp::new(files).machine());
        assert_eq!(found.iter().map(|it| it.severity).collect::<Vec<_>>(), expected, "{found:?}");
        assert!(found.iter().all(|it| it.advice.is_empty() == (it.severity == Ok)), "{found:?}");
    }

    const PERIOD: (&str, &str) = ("/proc/sys/kernel/sched_rt_period_us", "1000000\n");
    const OLD: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.1.0\n");
    const NEW: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.18.0\n");

    fn runtime(us: &'static str) -> (&'static str, &'static str) {
        ("/proc/sys/kernel/sched_rt_runtime_us", us)
    }

    #[test]
    fn throttling_is_a_matter_of_the_kernels_version() {
        check(&[PERIOD, runtime("950000"), OLD], [Warning, Ok, Ok]);
        check(&[PERIOD, runtime("950000"), NEW], [Note, Unknown, Ok]);
        check(&[PERIOD, runtime("-1"), OLD], [Ok, Ok, Ok]);
        check(&[PERIOD, runtime("0"), OLD], [Problem, Ok, Ok]);
        check(&[], [Unknown, Unknown, Ok]);
    }

    #[test]
    fn the_fair_server_is_read_where_it_may_be() {
        let server = |runtime| {
            [
                ("/sys/kernel/debug/sched/fair_server/cpu0/runtime", runtime),
                ("/sys/kernel/debug/sched/fair_server/cpu0/period", "1000000000"),
                (PERIOD),
                self::runtime("-1"),
                NEW,
            ]
        };
        check(&server("50000000"), [Ok, Note, Ok]);
        check(&server("0"), [Ok, Ok, Ok]);
    }

    #[test]
    fn a_group_without_time_is_a_problem() {
        let of = |runtime| {
            let files = [
                ("/proc/self/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0"),
                ("/proc/self/cgroup", "2:cpuset:/\n1:cpu,cpuacct:/bank\n0::/\n"),
                ("/sys/fs/cgroup/cpu/bank/cpu.rt_runtime_us", runtime),
                ("/sys/fs/cgroup/cpu/bank/cpu.rt_period_us", "1000000"),
            ];
            group(&MadeUp::new(&files).machine()).severity
        };
        assert_eq!([of("0"), of("400000"), of("-1")], [Problem, Note, Ok]);
    }
}
