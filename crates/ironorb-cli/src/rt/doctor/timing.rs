//! Time: how it is read, how late timers are, and what a hypervisor takes of it.

use super::finding::Finding;
use super::machine::Machine;

/// Ticks of all processors together since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// `cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE`; guests' time is part of the users'.
    pub(super) fn read(machine: &Machine) -> Option<Ticks> {
        let text = machine.read("/proc/stat").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let numbers: Vec<u64> = line.split_whitespace().take(8).filter_map(|it| it.parse().ok()).collect();
        Some(Ticks { all: numbers.iter().sum(), stolen: *numbers.get(7)? })
    }

    /// The stolen part of the time since another reading, in per cent; `None` if no time has passed.
    pub(super) fn stolen_since(self, before: Ticks) -> Option<f64> {
        let all = self.all.saturating_sub(before.all);
        let stolen = self.stolen.saturating_sub(before.stolen);
        (all > 0).then(|| 100.0 * stolen as f64 / all as f64)
    }
}

pub(super) fn findings(machine: &Machine, stolen: Option<f64>) -> Vec<Finding> {
    let source = machine.read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let slack = machine.of_process("timerslack_ns").ok().and_then(|text| text.parse().ok());
    vec![clock_source(source.ok().as_deref()), timer_slack(slack), steal(stolen)]
}

fn clock_source(source: Option<&str>) -> Finding {
    let name = "clock source";
    match source {
        Some(fast @ ("tsc" | "arch_sys_counter" | "timebase" | "riscv_clocksource")) => {
            Finding::ok(name, fast)
        }
        Some(other @ ("kvm-clock" | "hyperv_clocksource_tsc_page")) => Finding::note(
            name,
            other,
            "a hypervisor scales the counter: some tens of nanoseconds more in each reading",
        ),
        Some(slow) => Finding::warning(
            name,
            slow,
            "each reading is a system call or touches a device, a microsecond or more: find out why the kernel distrusts \
             the processor's counter (dmesg), then boot with tsc=reliable",
        ),
        None => Finding::unknown(name, "it cannot be read", "run the doctor where /sys is mounted"),
    }
}

fn timer_slack(ns: Option<u64>) -> Finding {
    let name = "timer slack";
    match ns {
        Some(ns @ ..=1_000) => Finding::ok(name, format!("{ns} ns")),
        Some(ns) => Finding::note(
            name,
            format!("timers of ordinary threads may be {} us late", ns / 1_000),
            "nothing for real-time threads, which have none; for others set it lower (prctl PR_SET_TIMERSLACK)",
        ),
        None => Finding::unknown(name, "it cannot be read", "run the doctor as root"),
    }
}

fn steal(per_cent: Option<f64>) -> Finding {
    let name = "steal time";
    let advice =
        "no setting of this machine bounds it: ask for processors of its own, pinned by the hypervisor";
    match per_cent {
        None => Finding::unknown(name, "no time has passed in /proc/stat", advice),
        Some(0.0) => Finding::ok(name, "none"),
        Some(little @ ..STOLEN_MUCH) => Finding::note(name, format!("{little:.2} % of all time"), advice),
        Some(much) => Finding::warning(name, format!("{much:.2} % of all time"), advice),
    }
}

/// A tenth of a tick in a second: a thread is then likely to be stopped in mid-call for longer than the call takes.
const STOLEN_MUCH: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::*;
    use super::super::machine::MadeUp;
    use super::*;

    fn ticks(line: &str) -> Option<Ticks> {
        Ticks::read(&MadeUp::new(&[("/proc/stat", line)]).machine())
    }

    #[test]
    fn stolen_time_is_a_part_of_the_time_between_two_readings() {
        let before = ticks("cpu  100 0 100 800 0 0 0 0 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n").unwrap();
        let after = ticks("cpu  150 0 150 890 0 0 0 10 9 0\n").unwrap();
        assert_eq!(after.stolen_since(before), Some(5.0));
        assert_eq!(after.stolen_since(after), None);
        assert!(ticks("cpu  1 2 3\n").is_none());
        let severities = [None, Some(0.0), Some(0.05), Some(5.0)].map(|it| steal(it).severity);
        assert_eq!(severities, [Unknown, Ok, Note, Warning]);
    }

    #[test]
    fn slow_clocks_and_lazy_timers_are_found() {
        let of = |source: &str, slack: &str| {
            let files = [
                ("/sys/devices/system/clocksource/clocksource0/current_clocksource", source),
                ("/proc/self/timerslack_ns", slack),
            ];
            let found = findings(&MadeUp::new(&files).machine(), None);
            (found[0].severity, found[1].severity)
        };
        assert_eq!(of("tsc\n", "1\n"), (Ok, Ok));
        assert_eq!(of("kvm-clock\n", "50000\n"), (Note, Note));
        assert_eq!(of("hpet\n", ""), (Warning, Unknown));
        assert_eq!(findings(&MadeUp::new(&[]).machine(), None)[0].severity, Unknown);
    }
}
