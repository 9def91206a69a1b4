//! The kernel: its version, when it lets threads preempt it, its interrupt threads, its futexes.

use super::finding::Finding;
use super::machine::Machine;

/// When a thread that becomes runnable takes the processor from another one that is in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preemption {
    RealTime,
    Full,
    Lazy,
    Voluntary,
    None,
}

impl Preemption {
    /// The kernel's own name for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Preemption::RealTime => "PREEMPT_RT",
            Preemption::Full => "PREEMPT (full)",
            Preemption::Lazy => "PREEMPT_LAZY",
            Preemption::Voluntary => "PREEMPT_VOLUNTARY",
            Preemption::None => "PREEMPT_NONE",
        }
    }

    /// The sources in the order in which they may be believed: what runs, what was asked for at the start, what was built.
    pub(super) fn read(machine: &Machine) -> Option<Preemption> {
        let version = machine.read("/proc/sys/kernel/version").unwrap_or_default();
        if machine.read("/sys/kernel/realtime").is_ok_and(|text| text == "1")
            || version.contains("PREEMPT_RT")
        {
            return Some(Preemption::RealTime);
        }
        let chosen = machine.read("/sys/kernel/debug/sched/preempt").ok();
        chosen
            .and_then(|text| Preemption::in_brackets(&text))
            .or_else(|| Preemption::of_command_line(&machine.read("/proc/cmdline").ok()?))
            .or_else(|| Preemption::of_config(&machine.kernel_config().ok()?))
            .or_else(|| Preemption::of_version(&version))
    }

    /// `none voluntary (full)`: the chosen one is in brackets.
    fn in_brackets(text: &str) -> Option<Preemption> {
        Preemption::named(text.split_once('(')?.1.split_once(')')?.0)
    }

    /// `preempt=none`; the last one counts.
    fn of_command_line(text: &str) -> Option<Preemption> {
        let mut chosen = text.split_whitespace().rev().filter_map(|word| word.strip_prefix("preempt="));
        chosen.find_map(Preemption::named)
    }

    fn named(word: &str) -> Option<Preemption> {
        match word {
            "full" => Some(Preemption::Full),
            "lazy" => Some(Preemption::Lazy),
            "voluntary" => Some(Preemption::Voluntary),
            "none" => Some(Preemption::None),
            _ => None,
        }
    }

    /// One of these is set in each kernel's options. With PREEMPT_DYNAMIC it is the default.
    fn of_config(config: &str) -> Option<Preemption> {
        let is_set = |name: &str| has_option(config, name);
        let models = [
            ("CONFIG_PREEMPT_RT", Preemption::RealTime),
            ("CONFIG_PREEMPT", Preemption::Full),
            ("CONFIG_PREEMPT_LAZY", Preemption::Lazy),
            ("CONFIG_PREEMPT_VOLUNTARY", Preemption::Voluntary),
            ("CONFIG_PREEMPT_NONE", Preemption::None),
        ];
        models.into_iter().find(|(name, _)| is_set(name)).map(|(_, model)| model)
    }

    /// `#1 SMP PREEMPT Thu …`. PREEMPT_DYNAMIC leaves open which, and no word says that it is none or voluntary.
    fn of_version(version: &str) -> Option<Preemption> {
        let mut words = version.split_whitespace();
        if words.any(|word| word == "PREEMPT") { Some(Preemption::Full) } else { None }
    }
}

/// Whether an option is set in the kernel's options.
pub(super) fn has_option(config: &str, name: &str) -> bool {
    config.lines().any(|line| line.strip_prefix(name) == Some("=y"))
}

/// The two first numbers of the kernel's version; `None` if there are none.
pub(super) fn version(machine: &Machine) -> Option<(u32, u32)> {
    let release = machine.read("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

pub(super) fn findings(machine: &Machine, pi_futexes: Option<bool>) -> Vec<Finding> {
    let preemption = Preemption::read(machine);
    vec![
        kernel(version(machine)),
        of_preemption(preemption),
        interrupt_threads(preemption, &machine.read("/proc/cmdline").unwrap_or_default()),
        of_pi_futexes(pi_futexes, machine.kernel_config().ok().as_deref()),
    ]
}

fn kernel(version: Option<(u32, u32)>) -> Finding {
    let name = "kernel";
    let seen = |(major, minor): (u32, u32)| format!("Linux {major}.{minor}");
    match version {
        None => Finding::unknown(name, "the version cannot be read", "run the doctor where /proc is mounted"),
        Some(old) if old < (5, 14) => Finding::warning(
            name,
            seen(old),
            "take 5.14 or later: before, a wait for a lock with a time limit lends no priority (FUTEX_LOCK_PI2)",
        ),
        Some(middle) if middle < (6, 12) => Finding::note(
            name,
            seen(middle),
            "6.12 and later have PREEMPT_RT without patches, and deadline servers instead of throttling",
        ),
        Some(new) => Finding::ok(name, seen(new)),
    }
}

fn of_preemption(model: Option<Preemption>) -> Finding {
    let name = "preemption";
    let Some(model) = model else {
        let advice =
            "run the doctor as root, with debugfs mounted, or install the kernel's configuration in /boot";
        return Finding::unknown(name, "no source says which model the kernel has", advice);
    };
    let seen = model.word();
    match model {
        Preemption::RealTime => Finding::ok(name, seen),
        Preemption::Full => Finding::note(
            name,
            seen,
            "locks of the kernel and interrupts still delay; PREEMPT_RT bounds both",
        ),
        Preemption::Lazy => Finding::note(
            name,
            seen,
            "real-time threads preempt as with PREEMPT, ordinary ones only at a tick; PREEMPT_RT bounds locks and interrupts",
        ),
        Preemption::Voluntary | Preemption::None => Finding::warning(
            name,
            seen,
            "a system call of any thread delays a real-time one until it ends or offers the processor, for milliseconds: \
             boot with preempt=full (kernels with PREEMPT_DYNAMIC), or take a kernel with PREEMPT_RT",
        ),
    }
}

fn interrupt_threads(preemption: Option<Preemption>, command_line: &str) -> Finding {
    let name = "interrupt threads";
    if preemption == Some(Preemption::RealTime) {
        return Finding::ok(name, "interrupts have threads, as always with PREEMPT_RT");
    }
    if command_line.split_whitespace().any(|word| word == "threadirqs") {
        return Finding::ok(name, "interrupts have threads (threadirqs)");
    }
    Finding::warning(
        name,
        "interrupts run before all threads",
        "boot with threadirqs, and give the interrupts' threads (`irq/…`) priorities below those of urgent lanes; \
         or move interrupts to other processors (/proc/irq/*/smp_affinity_list)",
    )
}

/// A trial counts for more than the kernel's options.
fn of_pi_futexes(tried: Option<bool>, config: Option<&str>) -> Finding {
    let name = "PI futexes";
    let has = tried.or_else(|| config.map(|config| has_option(config, "CONFIG_FUTEX_PI")));
    match has {
        Some(true) => Finding::ok(name, "locks lend the priorities of the threads that wait"),
        Some(false) => Finding::problem(
            name,
            "locks lend no priorities",
            "take a kernel with CONFIG_FUTEX_PI: the ORB works without, but a low thread with a lock delays a high one",
        ),
        None => Finding::unknown(
            name,
            "neither tried nor in the kernel's options",
            "run the doctor on the machine itself",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::super::finding::Severity::{self, *};
    use super::super::machine::MadeUp;
    use super::*;

    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.18.44-fc-v657\n");
    const DYNAMIC: (&str, &str) = ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC @0\n");

    fn check_model(files: &[(&str, &str)], expected: Option<Preemption>, severity: Severity) {
        let made = MadeUp::new(files);
        let model = Preemption::read(&made.machine());
        assert_eq!(model, expected, "{files:?}");
        let finding = of_preemption(model);
        assert_eq!(finding.severity, severity, "{finding:?}");
        assert_eq!(finding.advice.is_empty(), severity == Ok, "{finding:?}");
    }

    #[test]
    fn the_preemption_model_is_that_of_the_best_source() {
        let full = ("/sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n");
        check_model(&[RELEASE, DYNAMIC, ("/sys/kernel/realtime", "1\n")], Some(Preemption::RealTime), Ok);
        check_model(
            &[RELEASE, DYNAMIC, full, ("/proc/cmdline", "preempt=none")],
            Some(Preemption::Full),
            Note,
        );
        check_model(
            &[RELEASE, DYNAMIC, ("/proc/cmdline", "quiet preempt=lazy")],
            Some(Preemption::Lazy),
            Note,
        );
        let voluntary =
            ("/boot/config-6.18.44-fc-v657", "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_RCU=y\n");
        check_model(&[RELEASE, DYNAMIC, voluntary], Some(Preemption::Voluntary), Warning);
        check_model(
            &[RELEASE, ("/proc/sys/kernel/version", "#1 SMP PREEMPT x")],
            Some(Preemption::Full),
            Note,
        );
        check_model(
            &[RELEASE, ("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT x")],
            Some(Preemption::RealTime),
            Ok,
        );
        check_model(&[RELEASE, DYNAMIC], None, Unknown);
    }

    #[test]
    fn a_kernel_that_never_preempts_itself_is_recognised_by_its_packed_options() {
        let made = MadeUp::new(&[RELEASE, DYNAMIC]);
        let options = "CONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_FUTEX_PI=y\n";
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(options.as_bytes()).unwrap();
        made.write("/proc/config.gz", &packed.finish().unwrap());
        let model = Preemption::read(&made.machine());
        assert_eq!(model, Some(Preemption::None));
        assert_eq!(of_preemption(model).severity, Warning);
        assert_eq!(of_pi_futexes(None, made.machine().kernel_config().ok().as_deref()).severity, Ok);
    }

    #[test]
    fn kernels_are_judged_by_their_version() {
        let severity = |release| {
            kernel(version(&MadeUp::new(&[("/proc/sys/kernel/osrelease", release)]).machine())).severity
        };
        assert_eq!(severity("5.10.0-32-amd64"), Warning);
        assert_eq!(severity("6.1.0"), Note);
        assert_eq!(severity("6.12.3-rt1"), Ok);
        assert_eq!(severity("none"), Unknown);
    }

    #[test]
    fn interrupts_without_threads_are_found() {
        let severity = |model, line| interrupt_threads(model, line).severity;
        assert_eq!(severity(Some(Preemption::Full), "quiet threadirqs"), Ok);
        assert_eq!(severity(Some(Preemption::RealTime), ""), Ok);
        assert_eq!(severity(None, "nothreadirqs"), Warning);
    }

    #[test]
    fn a_trial_of_futexes_counts_for_more_than_options() {
        assert_eq!(of_pi_futexes(Some(false), Some("CONFIG_FUTEX_PI=y")).severity, Problem);
        assert_eq!(of_pi_futexes(Some(true), Some("")).severity, Ok);
        assert_eq!(of_pi_futexes(None, Some("# CONFIG_FUTEX_PI is not set")).severity, Problem);
        assert_eq!(of_pi_futexes(None, None).severity, Unknown);
    }
}
