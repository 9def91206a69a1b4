//! A process that takes all its memory at the start (`OrbConfig::memory`). A program of its own, because the heap is the
//! process's.

use std::thread;

use ironorb::{CannotCreateExtent, ExtentConfig, ExtentError, ExtentRange, Orb, TypedRef};
use ironorb_tests::Counters;
use ironorb_tests::Probing;
use ironorb_tests::extents::{Counter as _, CounterRef};
use ironorb_tests::testing::{Probe as _, ProbeRef};

const MEMORY: usize = 256 << 20;

/// Kilobytes of memory that the process has and that are of no file.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap()
}

/// What a client does: calls of many elements, large messages, and objects that come and go.
fn use_memory(server: &Orb, counter: &CounterRef, probe: &ProbeRef) {
    let client = Orb::builder().no_endpoint().build().unwrap();
    let there = |object: &ironorb::ObjectRef| client.string_to_object(&object.to_ior_string()).unwrap();
    let counters = ExtentRange::of(&there(counter.object()).narrow_unchecked::<CounterRef>()).unwrap();
    let probe: ProbeRef = there(probe.object()).narrow_unchecked();
    for n in 0..300 {
        counters.get(n * 9_001).unwrap().add(1).unwrap();
        let octets = vec![7; 100_000];
        assert_eq!(probe.reflect(&octets).unwrap().len(), octets.len());
        let other: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        other.ping().unwrap();
        let id = server.root_poa().reference_to_id(other.object()).unwrap();
        server.root_poa().deactivate(&id).unwrap();
    }
    client.shutdown(true).unwrap();
}

#[test]
fn the_resident_size_stays_as_it_is_after_the_start() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().memory(MEMORY).build().unwrap();
    let root = server.root_poa();
    let config = ExtentConfig::in_memory;
    let large = root.create_extent("large", 100_000_000, config(), |_| 0_i64).unwrap_err();
    assert!(matches!(large, CannotCreateExtent::Elements(ExtentError::NotEnoughMemory { .. })), "{large}");
    let extent = root.create_extent("counters", 4_000_000, config(), |_| 0_i64).unwrap();
    extent.serve::<CounterRef, _>(Counters(extent.clone())).unwrap();
    let (counter, probe) = (extent.reference(0).unwrap(), root.activate(Probing::default()).unwrap());
    server.settle_memory().unwrap();
    server.settle_memory().unwrap();
    let more = root.create_extent("more", 1, config(), |_| 0_i64).unwrap_err();
    assert!(matches!(more, CannotCreateExtent::Elements(ExtentError::NotEnoughMemory { .. })), "{more}");
    let settled = resident();
    assert!(settled * 1024 >= MEMORY as i64, "{settled} kB are there");
    thread::scope(|scope| {
        for _client in 0..4 {
            scope.spawn(|| use_memory(&server, &counter, &probe));
        }
    });
    let after = resident();
    // The stacks of new threads are not of the heap.
    let stacks = 2_048;
    assert!(after - settled <= stacks, "{settled} kB have become {after} kB");
    server.shutdown(true).unwrap();
}
