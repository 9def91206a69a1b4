//! Reads the values of settings: durations, sizes, numbers and words.

use std::time::Duration;

use ironorb_giop::{CharSet, Version};
use ironorb_shm::RING_BYTES;

use crate::base::config::{
    BadConcurrency, BareExceptions, Demultiplexing, ObjectLookup, OperationLookup, ServerConcurrency,
    StatusAccess, Transport, Waiting,
};
use crate::base::config::{CacheLimit, OnewayBatching};
use crate::base::thread_pool_config::time_of;
use crate::base::watch::{self, WatchConfig};
use crate::object::priority::SchedulingPolicy;

pub(super) fn assign<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

pub(super) fn yes(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither yes nor no")),
    }
}

pub(super) fn bare_exceptions(text: &str) -> Result<BareExceptions, String> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(BareExceptions::Auto);
    }
    match yes(text) {
        Ok(true) => Ok(BareExceptions::Yes),
        Ok(false) => Ok(BareExceptions::No),
        Err(_) => Err(format!("{text:?} is none of auto, yes and no")),
    }
}

pub(super) fn status(text: &str) -> Result<StatusAccess, String> {
    match text.to_ascii_lowercase().as_str() {
        "local" => Ok(StatusAccess::Local),
        "anyone" => Ok(StatusAccess::Anyone),
        other => yes(other)
            .map(StatusAccess::from)
            .map_err(|_| format!("{text:?} is none of no, local and anyone; yes is local")),
    }
}

/// How an ORB watches its lanes; `None` if it does not.
pub(super) fn watch(text: &str) -> Result<Option<WatchConfig>, String> {
    let (word, bound) = match text.split_once(':') {
        Some((word, bound)) => (word, Some(duration(bound)?)),
        None => (text, None),
    };
    let config = match word.to_ascii_lowercase().as_str() {
        "on" | "yes" => WatchConfig::new(),
        "off" => WatchConfig::new().on(false),
        "no" if bound.is_none() => return Ok(None),
        _ => return Err(format!("{text:?} is none of no, off, on and on:100us")),
    };
    if !watch::ENABLED {
        return Err(watch::NOT_BUILT.to_owned());
    }
    Ok(Some(bound.map_or(config, |bound| config.wait_bound(bound))))
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number that can stand here"))
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match number(text)? {
        0 => Err("it must be at least 1".to_owned()),
        n => Ok(n),
    }
}

/// A limit of one interface's cached attributes.
pub(super) fn cache_limit(text: &str) -> Result<CacheLimit, String> {
    let form = || {
        format!("{text:?} is not of the form IDL:bank/Account:1.0=1000 or IDL:bank/Account:1.0=1000,64KiB")
    };
    let (interface, limits) = text.rsplit_once('=').ok_or_else(form)?;
    let (entries, bytes) = match limits.split_once(',') {
        Some((entries, bytes)) => (entries, Some(size(bytes)?)),
        None => (limits, None),
    };
    if interface.is_empty() {
        return Err(form());
    }
    Ok(CacheLimit { interface: interface.to_owned(), entries_max: at_least_one(entries)?, bytes_max: bytes })
}

/// The class of a real-time ORB's threads; `None` for an ORB without real time.
pub(super) fn scheduling_policy(text: &str) -> Result<Option<SchedulingPolicy>, String> {
    match text.to_ascii_lowercase().as_str() {
        "fifo" | "sched_fifo" => Ok(Some(SchedulingPolicy::Fifo)),
        "roundrobin" | "rr" | "sched_rr" => Ok(Some(SchedulingPolicy::RoundRobin)),
        "other" | "sched_other" => Ok(Some(SchedulingPolicy::Other)),
        "no" => Ok(None),
        _ => Err(format!("{text:?} is none of fifo, roundRobin, other and no")),
    }
}

/// A mapping of priorities, as text names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapping {
    Linear { min: i16, max: i16 },
    Continuous { min: i16, max: i16 },
    Direct,
}

pub(super) fn mapping(text: &str) -> Result<Mapping, String> {
    let bad = || {
        format!(
            "{text:?} is no mapping: write linear, continuous, either with :MIN-MAX from 1 to 99, or direct"
        )
    };
    let (name, range) = text.split_once(':').map_or((text, None), |(name, range)| (name, Some(range)));
    let (min, max) = range.map_or(Some((1, 98)), native_range).ok_or_else(bad)?;
    match name.to_ascii_lowercase().as_str() {
        "linear" => Ok(Mapping::Linear { min, max }),
        "continuous" => Ok(Mapping::Continuous { min, max }),
        "direct" if range.is_none() => Ok(Mapping::Direct),
        _ => Err(bad()),
    }
}

/// `1-98`, within the system's real-time priorities.
fn native_range(text: &str) -> Option<(i16, i16)> {
    let (min, max) = text.split_once('-')?;
    let (min, max) = (min.trim().parse().ok()?, max.trim().parse().ok()?);
    (1 <= min && min <= max && max <= 99).then_some((min, max))
}

/// Splits a text into a number and the unit behind it.
pub(super) fn with_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let found = with_unit(text).and_then(|(number, unit)| match unit {
        "m" | "min" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        unit => time_of(number, unit),
    });
    found.ok_or_else(|| format!("{text:?} is not a duration: write 250ms, 5s, 2m or 1h"))
}

pub(super) fn never_or<T>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if text.eq_ignore_ascii_case("never") { Ok(None) } else { read(text).map(Some) }
}

pub(super) fn duration_or_never(text: &str) -> Result<Option<Duration>, String> {
    never_or(text, duration)
}

pub(super) fn size(text: &str) -> Result<usize, String> {
    let found = with_unit(text).and_then(|(number, unit)| {
        let shift = match unit {
            "" | "B" => 0,
            "K" | "k" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            _ => return None,
        };
        usize::try_from(number).ok()?.checked_mul(1 << shift)
    });
    found.ok_or_else(|| format!("{text:?} is not a size in bytes: write 8192, 64KiB, 16MiB or 1GiB"))
}

/// The size of a ring of shared memory, in bytes.
pub(super) fn ring(text: &str) -> Result<usize, String> {
    match size(text)? {
        bytes if bytes.is_power_of_two() && RING_BYTES.contains(&bytes) => Ok(bytes),
        _ => Err(format!("{text:?} is no size of a ring: write a power of two from 4KiB to 64MiB")),
    }
}

pub(super) fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.0" => Ok(Version::V1_0),
        "1.1" => Ok(Version::V1_1),
        "1.2" => Ok(Version::V1_2),
        _ => Err(format!("{text:?} is not a GIOP version: write 1.0, 1.1 or 1.2")),
    }
}

pub(super) fn char_set(text: &str) -> Result<CharSet, String> {
    match text.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => Ok(CharSet::Utf8),
        "ISO-8859-1" | "LATIN1" => Ok(CharSet::Latin1),
        _ => Err(format!("{text:?} is not a code set that we work in: write UTF-8 or ISO-8859-1")),
    }
}

pub(super) fn concurrency(text: &str) -> Result<ServerConcurrency, String> {
    text.parse().map_err(|e: BadConcurrency| e.to_string())
}

pub(super) fn waiting(text: &str) -> Result<Waiting, String> {
    let (word, spin_max) = text.split_once(':').map_or((text, None), |(word, micros)| (word, Some(micros)));
    match (word.to_ascii_lowercase().as_str(), spin_max) {
        ("block", None) => Ok(Waiting::Block),
        ("spin", None) => Ok(Waiting::Spin),
        ("adaptive", None) => Ok(Waiting::ADAPTIVE),
        ("adaptive", Some(micros)) => {
            Ok(Waiting::Adaptive { spin_max: Duration::from_micros(number::<u32>(micros)?.into()) })
        }
        _ => Err(format!("{text:?} is neither block nor adaptive[:MICROSECONDS] nor spin")),
    }
}

/// Reads `yes`, `no` or limits separated by commas. A limit with a unit is a size or a duration; one without
/// is a number of requests.
pub(super) fn oneway_batching(text: &str) -> Result<Option<OnewayBatching>, String> {
    if let Ok(is_wanted) = yes(text) {
        return Ok(is_wanted.then_some(OnewayBatching::DEFAULT));
    }
    let mut batching = OnewayBatching::DEFAULT;
    for bound in text.split(',').map(str::trim) {
        if let Ok(count) = bound.parse() {
            batching.count_max = count;
        } else if let Ok(delay) = duration(bound) {
            batching.delay_max = delay;
        } else if let Ok(bytes) = size(bound) {
            batching.bytes_max = bytes;
        } else {
            return Err(format!(
                "{bound:?} is neither yes nor no nor a bound: write 16KiB, 1ms, or a number of requests"
            ));
        }
    }
    Ok(Some(batching))
}

/// Reads the mode of a file in octal, as chmod(1) does.
pub(super) fn mode(text: &str) -> Result<u32, String> {
    let is_octal = !text.is_empty() && text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    match u32::from_str_radix(text, 8) {
        Ok(mode @ 0..=0o777) if is_octal => Ok(mode),
        _ => Err(format!("{text:?} is no mode of a socket: write an octal number up to 777, such as 660")),
    }
}

pub(super) fn transports(text: &str) -> Result<Vec<Transport>, String> {
    let mut transports = Vec::new();
    for name in text.split(',') {
        let transport = match name.trim().to_ascii_lowercase().as_str() {
            "tcp" => Transport::Tcp,
            "unix" => Transport::Unix,
            "shm" => Transport::SharedMemory,
            _ => {
                return Err(format!(
                    "{name:?} is not a transport: write shm, unix, tcp, or several with commas"
                ));
            }
        };
        if transports.contains(&transport) {
            return Err(format!("{} stands there twice", name.trim()));
        }
        transports.push(transport);
    }
    Ok(transports)
}

/// Reads one of some words, in any case of letters.
fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
        Some((_, meant)) => Ok(*meant),
        None => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            Err(format!("{text:?} is none of {}", words.join(", ")))
        }
    }
}

pub(super) fn operation_lookup(text: &str) -> Result<OperationLookup, String> {
    use OperationLookup::{Binary, Hash, Linear, PerfectHash};
    one_of(text, &[("perfectHash", PerfectHash), ("hash", Hash), ("binary", Binary), ("linear", Linear)])
}

pub(super) fn object_lookup(text: &str) -> Result<ObjectLookup, String> {
    use ObjectLookup::{Active, Hash, Linear};
    one_of(text, &[("active", Active), ("hash", Hash), ("linear", Linear)])
}

pub(super) fn demultiplexing(text: &str) -> Result<Demultiplexing, String> {
    use Demultiplexing::{Delayered, Layered};
    one_of(text, &[("delayered", Delayered), ("layered", Layered)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_has_a_state_and_a_bound() {
        if !watch::ENABLED {
            assert!(super::watch("on").unwrap_err().contains("feature"));
            return;
        }
        let bound = |text: &str| super::watch(text).unwrap().map(|it| (it.is_on, it.wait_bound.as_micros()));
        assert_eq!((bound("no"), bound("off"), bound("On")), (None, Some((false, 100)), Some((true, 100))));
        assert_eq!(bound("off:2ms"), Some((false, 2_000)));
        for wrong in ["maybe", "on:long", "no:1ms"] {
            assert!(super::watch(wrong).unwrap_err().contains(" is no"), "{wrong}");
        }
    }

    #[test]
    fn classes_and_mappings_are_read() {
        assert_eq!(scheduling_policy("RoundRobin"), Ok(Some(SchedulingPolicy::RoundRobin)));
        assert_eq!(scheduling_policy("SCHED_OTHER"), Ok(Some(SchedulingPolicy::Other)));
        assert_eq!(scheduling_policy("no"), Ok(None));
        assert!(scheduling_policy("deadline").unwrap_err().contains("roundRobin"));
        assert_eq!(mapping("linear"), Ok(Mapping::Linear { min: 1, max: 98 }));
        assert_eq!(mapping("continuous:10-20"), Ok(Mapping::Continuous { min: 10, max: 20 }));
        assert_eq!(mapping("direct"), Ok(Mapping::Direct));
        for wrong in ["direct:1-2", "linear:0-5", "linear:9-5", "linear:1-100", "linear:", "round"] {
            assert!(mapping(wrong).unwrap_err().contains("MIN-MAX"), "{wrong}");
        }
    }
}
