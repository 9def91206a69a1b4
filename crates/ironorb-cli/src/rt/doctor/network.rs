//! The network: which thread processes what comes, and in which order what goes leaves.

use super::finding::Finding;
use super::machine::Machine;

pub(super) fn findings(machine: &Machine, queues: Option<&[Queue]>) -> Vec<Finding> {
    let default = machine.read("/proc/sys/net/core/default_qdisc").ok();
    vec![napi(&interfaces(machine)), queueing(queues, default.as_deref())]
}

/// How an interface's packets leave: the kind of its queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Queue {
    pub(super) interface: String,
    pub(super) kind: String,
}

/// An interface with a device, and whether its packets are received by threads of their own.
#[derive(Debug)]
struct Interface {
    name: String,
    is_threaded: Option<bool>,
}

/// Interfaces of devices: what the kernel makes up, such as the loopback interface, has no interrupts.
fn interfaces(machine: &Machine) -> Vec<Interface> {
    let folder = |name: &str| format!("/sys/class/net/{name}");
    let mut names = machine.names("/sys/class/net", "");
    names.retain(|name| !machine.names(&format!("{}/device", folder(name)), "").is_empty());
    let read = |name: String| Interface {
        is_threaded: machine
            .number(&format!("{}/threaded", folder(&name)))
            .ok()
            .map(|threaded| threaded != 0),
        name,
    };
    names.into_iter().map(read).collect()
}

fn napi(interfaces: &[Interface]) -> Finding {
    let name = "NAPI threads";
    let named = |wanted: Option<bool>| -> Vec<&str> {
        interfaces.iter().filter(|it| it.is_threaded == wanted).map(|it| it.name.as_str()).collect()
    };
    let (without, unknown) = (named(Some(false)), named(None));
    if interfaces.is_empty() {
        return Finding::ok(name, "no network device");
    }
    if !without.is_empty() {
        return Finding::note(
            name,
            format!("{} receives in interrupts' context, before any thread", without.join(", ")),
            "echo 1 > /sys/class/net/NAME/threaded, and give the threads `napi/…` priorities between those of lanes; \
             needed only if load of the network must not delay lanes of this machine",
        );
    }
    if !unknown.is_empty() {
        let seen = format!("{} does not say", unknown.join(", "));
        return Finding::unknown(
            name,
            seen,
            "take Linux 5.12 or later, which has /sys/class/net/NAME/threaded",
        );
    }
    Finding::ok(name, "all devices receive by threads")
}

/// What the interfaces have counts for more than the default for new ones.
fn queueing(queues: Option<&[Queue]>, default: Option<&str>) -> Finding {
    let name = "queueing disciplines";
    let advice = "with bulk traffic beside calls: tc qdisc replace dev NAME root prio (or mqprio), \
                  and SO_PRIORITY or a DSCP for urgent lanes";
    let shown = |queue: &Queue| format!("{} {}", queue.interface, queue.kind);
    match (queues, default) {
        (Some(queues), _) => {
            let seen = queues.iter().map(shown).collect::<Vec<_>>().join(", ");
            let ordered = queues.iter().all(|queue| BY_PRIORITY.contains(&queue.kind.as_str()));
            if ordered { Finding::ok(name, seen) } else { Finding::note(name, seen, advice) }
        }
        (None, Some(kind)) => {
            Finding::note(name, format!("the default for new interfaces is {kind}"), advice)
        }
        (None, None) => Finding::unknown(name, "they cannot be read", "ask with `tc qdisc show`"),
    }
}

/// Disciplines that let urgent packets pass, by SO_PRIORITY or by their marks. `noqueue` holds nothing back.
const BY_PRIORITY: [&str; 8] = ["pfifo_fast", "prio", "mqprio", "taprio", "etf", "hfsc", "drr", "noqueue"];

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, *};
    use super::super::machine::MadeUp;
    use super::*;

    fn of_napi(files: &[(&str, &str)]) -> Severity {
        findings(&MadeUp::new(files).machine(), None)[0].severity
    }

    #[test]
    fn devices_without_threads_are_found() {
        let device = ("/sys/class/net/eth0/device/vendor", "0x1af4");
        let loopback = ("/sys/class/net/lo/threaded", "0");
        assert_eq!(of_napi(&[device, ("/sys/class/net/eth0/threaded", "1"), loopback]), Ok);
        assert_eq!(of_napi(&[device, ("/sys/class/net/eth0/threaded", "0")]), Note);
        assert_eq!(of_napi(&[device]), Unknown);
        assert_eq!(of_napi(&[loopback]), Ok);
    }

    #[test]
    fn disciplines_without_order_by_priority_are_found() {
        let of = |kinds: &[&str]| {
            let queue = |kind: &&str| Queue { interface: "eth0".to_owned(), kind: (*kind).to_owned() };
            queueing(Some(&kinds.iter().map(queue).collect::<Vec<_>>()), Some("fq")).severity
        };
        assert_eq!([of(&["mqprio", "noqueue"]), of(&["noqueue", "fq_codel"])], [Ok, Note]);
        assert_eq!(queueing(None, Some("fq_codel")).severity, Note);
        assert_eq!(queueing(None, None).severity, Unknown);
    }
}
