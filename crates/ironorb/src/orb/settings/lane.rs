//! Lanes as text: `NAME; SETTING=VALUE; …`, and the table of what may stand there.

use std::num::NonZeroUsize;

use super::table::{endpoint_form, waiting_form};
use super::values::{at_least_one, concurrency, duration, never_or, number, size, waiting, yes};
use crate::object::priority::Priority;
use crate::orb::LaneConfig;

/// A setting of a lane, in the value of the setting `lane`. Letters may be of either case in its name.
#[derive(Debug)]
pub struct LaneSetting {
    /// The name in camel case: `serverThreadsMax`.
    pub name: &'static str,
    /// The form of the value.
    pub form: &'static str,
    /// What the setting decides. What is not set is as for the ORB.
    pub help: &'static str,
    /// Whether it may stand several times.
    pub repeats: bool,
    set: Set,
}

type Set = fn(LaneConfig, &str) -> Result<LaneConfig, String>;

/// Every setting that a lane may have in a configuration file.
pub fn lane_settings() -> &'static [LaneSetting] {
    SETTINGS
}

/// Reads a lane.
pub(super) fn lane(text: &str) -> Result<LaneConfig, String> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty() && !name.contains('='));
    let name = name.ok_or("a lane begins with its name: write NAME; SETTING=VALUE; …")?;
    let (mut lane, mut seen) = (LaneConfig::new(name), Vec::new());
    for part in parts.filter(|part| !part.is_empty()) {
        let (setting, value) =
            part.split_once('=').ok_or_else(|| format!("{part:?}: write SETTING=VALUE"))?;
        let setting = find(setting.trim())?;
        if seen.contains(&setting.name) && !setting.repeats {
            return Err(format!("{} stands twice in lane {name:?}: write it once", setting.name));
        }
        seen.push(setting.name);
        lane = (setting.set)(lane, value.trim()).map_err(|why| format!("{}: {why}", setting.name))?;
    }
    Ok(lane)
}

fn find(name: &str) -> Result<&'static LaneSetting, String> {
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        format!("no setting of a lane is called {name:?}; there are {}", names.join(", "))
    })
}

const fn once(name: &'static str, form: &'static str, help: &'static str, set: Set) -> LaneSetting {
    LaneSetting { name, form, help, repeats: false, set }
}

const fn several(name: &'static str, form: &'static str, help: &'static str, set: Set) -> LaneSetting {
    LaneSetting { name, form, help, repeats: true, set }
}

static SETTINGS: &[LaneSetting] = &[
    several("endpoint", endpoint_form(), "Where the lane listens. Default: nowhere.", |lane, v| {
        Ok(lane.endpoint(v))
    }),
    several("publish", "HOST[:PORT]", "The address that the lane's references carry.", |lane, v| {
        Ok(lane.publish(v))
    }),
    once("priority", "0 to 32767", "The CORBA priority of its threads; needs `scheduling`.", |lane, v| {
        Ok(lane.priority(priority(v)?))
    }),
    once("threadpool", "NAME", "The thread pool that it belongs to; needs `scheduling`.", |lane, v| {
        Ok(lane.threadpool(v))
    }),
    once("processors", "NUMBERS, as 0-2,5", "The processors on which its threads run.", |lane, v| {
        Ok(lane.processors(processors(v)?))
    }),
    once("nice", "-20 to 19", "The nice value of its threads without a real-time class.", |lane, v| {
        Ok(lane.nice(number(v)?))
    }),
    once("timerSlack", "DURATION", "By how much timers of such threads may be late.", |lane, v| {
        Ok(lane.timer_slack(duration(v)?))
    }),
    once(
        "prefaultStackBytes",
        "SIZE",
        "Bytes of its threads' stacks that have memory from the start.",
        |lane, v| Ok(lane.prefault_stack_bytes(size(v)?)),
    ),
    once(
        "prefaultHeapBytes",
        "SIZE",
        "Bytes that each thread takes from the allocator at its start, and gives back.",
        |lane, v| Ok(lane.prefault_heap_bytes(size(v)?)),
    ),
    once("concurrency", "as of the ORB", "Which of its threads run servants.", |lane, v| {
        Ok(lane.concurrency(concurrency(v)?))
    }),
    once("clientWaiting", waiting_form(), "How callers in the lane wait.", |lane, v| {
        Ok(lane.client_waiting(waiting(v)?))
    }),
    once("serverWaiting", waiting_form(), "How its threads wait for requests.", |lane, v| {
        Ok(lane.server_waiting(waiting(v)?))
    }),
    once("serverThreadsMax", "NUMBER", "The most threads that serve its clients.", |lane, v| {
        Ok(lane.server_threads_max(at_least_one(v)?))
    }),
    once("serverThreadsStatic", "NUMBER", "Those that are made before a client comes.", |lane, v| {
        Ok(lane.server_threads_static(number(v)?))
    }),
    once("serverConnectionsMax", "NUMBER", "Connections that it accepts at once.", |lane, v| {
        Ok(lane.server_connections_max(at_least_one(v)?))
    }),
    once("serverRequestsMax", "NUMBER | never", "The most requests of its clients in flight.", |lane, v| {
        Ok(lane.server_requests_max(never_or(v, at_least_one)?))
    }),
    once("connectionsPerEndpointMax", "NUMBER", "The most of its connections to one server.", |lane, v| {
        Ok(lane.connections_per_endpoint_max(at_least_one(v)?))
    }),
    once("clientConnectionsMax", "NUMBER", "The most of its connections to servers.", |lane, v| {
        Ok(lane.client_connections_max(at_least_one(v)?))
    }),
    once("receiveMemoryMax", "SIZE | never", "Memory for large messages of its clients.", |lane, v| {
        Ok(lane.receive_memory_max(never_or(v, size)?))
    }),
    once("transmitMemoryMax", "SIZE | never", "Unread replies of its clients.", |lane, v| {
        Ok(lane.transmit_memory_max(never_or(v, size)?))
    }),
    once("socketPriority", "0 to 15", "The priority of its packets in the system's queues.", |lane, v| {
        Ok(lane.socket_priority(Some(number(v)?)))
    }),
    once("busyPoll", "DURATION", "How long its threads poll the network device.", |lane, v| {
        Ok(lane.busy_poll(Some(duration(v)?)))
    }),
    once("tcpQuickAck", "yes | no", "Whether its TCP connections acknowledge at once.", |lane, v| {
        Ok(lane.tcp_quick_ack(yes(v)?))
    }),
    once(
        "sendQueueBytes",
        "SIZE",
        "The system's queue of bytes to send, of clients' TCP connections.",
        |lane, v| {
            let bytes = queue_bytes(v)?;
            Ok(lane.change_tcp(|tcp| tcp.send_buffer_bytes = Some(bytes)))
        },
    ),
    once(
        "receiveQueueBytes",
        "SIZE",
        "The system's queue of received bytes, of such connections.",
        |lane, v| {
            let bytes = queue_bytes(v)?;
            Ok(lane.change_tcp(|tcp| tcp.receive_buffer_bytes = Some(bytes)))
        },
    ),
    once("keepAlive", "yes | no", "Whether the system finds out that an idle client is gone.", |lane, v| {
        let yes = yes(v)?;
        Ok(lane.change_tcp(|tcp| tcp.keep_alive = yes))
    }),
    once("noDelay", "yes | no", "Whether short replies leave at once.", |lane, v| {
        let yes = yes(v)?;
        Ok(lane.change_tcp(|tcp| tcp.no_delay = yes))
    }),
    once("tcpUserTimeout", "DURATION", "How long its sent bytes may stay unacknowledged.", |lane, v| {
        Ok(lane.tcp_user_timeout(Some(duration(v)?)))
    }),
];

pub(super) fn priority(text: &str) -> Result<Priority, String> {
    let read = text.parse().ok().and_then(Priority::new);
    read.ok_or_else(|| format!("{text:?} is no priority: write a number from 0 to 32767"))
}

fn queue_bytes(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| format!("{text:?} is too long: write less than 4GiB"))
}

/// `0-2,5`. A range is bounded before it is walked.
fn processors(text: &str) -> Result<Vec<usize>, String> {
    let bad = || format!("{text:?} lists no processors: write numbers from 0 to 1023 and ranges, as 0-2,5");
    let mut numbers = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let read =
            |number: &str| number.trim().parse::<usize>().ok().filter(|number| *number < PROCESSORS_MAX);
        let (first, last) =
            read(first).zip(read(last)).filter(|(first, last)| first <= last).ok_or_else(bad)?;
        numbers.extend(first..=last);
    }
    NonZeroUsize::new(numbers.len()).map(|_| numbers).ok_or_else(bad)
}

const PROCESSORS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(processors("0-2, 5"), Ok(vec![0, 1, 2, 5]));
        for wrong in ["", "x", "3-1", "0-99999999999", "1024", "1,,2", "-1"] {
            assert!(processors(wrong).unwrap_err().contains("0-2,5"), "{wrong}");
        }
    }

    #[test]
    fn a_lane_is_as_its_text_says() {
        let text =
            "urgent; endpoint=iiop://:0; ENDPOINT = uiop:///run/x; priority=30000; nice=-5; timerSlack=1us;";
        let slack = std::time::Duration::from_micros(1);
        let expected = LaneConfig::new("urgent").endpoint("iiop://:0").endpoint("uiop:///run/x").nice(-5);
        let expected = expected.priority(Priority::new(30_000).unwrap()).timer_slack(slack);
        assert_eq!(format!("{:?}", lane(text).unwrap()), format!("{expected:?}"));
    }

    #[test]
    fn a_mistake_in_a_lane_is_named() {
        for (text, why) in [
            ("", "begins with its name"),
            ("priority=3", "begins with its name"),
            ("a; fast", "\"fast\": write SETTING=VALUE"),
            ("a; speed=3", "no setting of a lane is called \"speed\"; there are endpoint, "),
            ("a; nice=1; nice=2", "nice stands twice"),
            ("a; priority=40000", "priority: \"40000\" is no priority: write a number from 0 to 32767"),
            ("a; busyPoll=5", "busyPoll: \"5\" is not a duration"),
        ] {
            let refused = lane(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
