//! Caches as they are seen from outside: counters, and the commands of `ironorb cache`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ironorb::cache::{Cell, ReadOptions, Source};
use ironorb::status::{CACHES_KEY, Caches as _, CachesRef, Snapshot, prometheus};
use ironorb::{CacheAudit, Orb, SystemExceptionKind, TypedRef};
use ironorb_tests::cached::{MeterRef, MeterState};
use ironorb_tests::command::run;
use ironorb_tests::testing::ProbeRef;
use ironorb_tests::{Counting, Probing};

const ANY: ReadOptions = ReadOptions::new().lag(Duration::from_secs(1_000_000));
const NEW: ReadOptions = ReadOptions::new().lag(Duration::ZERO);

/// A server that tells its status, and a meter in it.
struct Site {
    server: Orb,
    cell: Cell<MeterState>,
    local: MeterRef,
}

impl Site {
    fn new() -> Site {
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().status(true).build().unwrap();
        let servant = Counting::default();
        let cell = servant.cell.clone();
        let local: MeterRef = server.root_poa().activate(servant).unwrap();
        Site { server, cell, local }
    }

    fn address(&self) -> String {
        self.server.published_addresses()[0].clone()
    }

    fn ior(&self) -> String {
        self.local.object().to_ior_string()
    }

    /// A client that holds the meter.
    fn held_by(&self, client: &Orb) -> MeterRef {
        let meter: MeterRef = client.string_to_object(&self.ior()).unwrap().narrow_unchecked();
        let sources: Vec<_> = (0..3).map(|_| meter.value_with(&ANY).unwrap().source).collect();
        assert_eq!(sources, [Source::Remote, Source::Remote, Source::Cache]);
        meter
    }
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

/// Fills, probes, updates and sessions of one side.
fn counted(seen: &Snapshot, side: &str) -> [u64; 4] {
    ["cache_fills_total", "cache_probes_total", "cache_updates_total", "cache_sessions"]
        .map(|name| seen.total_where(name, "side", side))
}

#[test]
fn both_sides_count_what_caches_do() {
    let site = Site::new();
    let client = Orb::builder().no_endpoint().status(true).count_cached_reads(true).build().unwrap();
    assert_eq!(counted(&site.server.status(), "server"), [0; 4]);
    let meter = site.held_by(&client);
    let (here, there) = (client.status(), site.server.status());
    assert_eq!((counted(&here, "client"), counted(&there, "server")), ([1, 0, 0, 1], [1, 0, 0, 1]));
    assert_eq!((here.total("cache_misses_total"), here.total("cache_hits_total")), (2, 1));
    assert_eq!(here.total("cache_entries"), 1);
    assert_eq!((there.total("cache_held"), there.total("cache_writes_total")), (1, 0));

    (0..100).for_each(|_| assert_eq!(meter.value_with(&ANY).unwrap().value, 0));
    site.cell.update(|mut state| state.set_value(1));
    site.cell.update(|mut state| state.set_value(2));
    assert_eq!(site.server.status().total("cache_untold"), 1, "one object has changed");
    assert_eq!(meter.value_with(&NEW).unwrap().value, 2);
    let (here, there) = (client.status(), site.server.status());
    assert_eq!((counted(&here, "client"), counted(&there, "server")), ([1, 1, 1, 1], [1, 1, 1, 1]));
    assert_eq!((here.total("cache_misses_total"), here.total("cache_hits_total")), (3, 101));
    assert_eq!(there.total("cache_writes_total"), 2);
    assert_eq!((counted(&here, "server"), counted(&there, "client")), ([0; 4], [0; 4]));
    let ages = here.histogram("cache_age").unwrap();
    assert_eq!(ages.count_total, 3, "each read that has asked");

    let page = prometheus(&there);
    assert!(page.contains("ironorb_cache_sessions{lane=\"0\",side=\"server\"} 1\n"), "{page}");
    drop(meter);
    assert_eq!(client.status().total("cache_entries"), 0);
}

/// Unless they are to be counted, nothing is told of reads that ask no server.
#[test]
fn hits_are_counted_only_if_asked_for() {
    let (site, client) = (Site::new(), client());
    let _meter = site.held_by(&client);
    assert!(!client.status().metrics.iter().any(|metric| metric.name == "cache_hits_total"));
    assert!(client.status().more.iter().any(|fact| fact.name == "cache_epoch" && fact.value.len() == 16));
}

#[test]
fn stat_shows_them() {
    let (site, client) = (Site::new(), client());
    let _meter = site.held_by(&client);
    let shown = run(["cache", "stat", &site.address()]).expect();
    let row =
        shown.lines().find(|line| line.starts_with("cache_sessions ") && line.contains("server")).unwrap();
    assert_eq!(row.split_whitespace().take(3).collect::<Vec<_>>(), ["cache_sessions", "server", "1"]);
    let json: serde_json::Value =
        serde_json::from_str(&run(["cache", "stat", &site.address(), "--json"]).expect()).unwrap();
    let numbers = json["numbers"].as_array().unwrap();
    let held = numbers.iter().find(|number| number["name"] == "cache_held").unwrap();
    assert_eq!(held["value"], 1);
}

#[test]
fn flush_ends_all_sessions() {
    let site = Site::new();
    let (one, other) = (client(), client());
    let meters = [&one, &other].map(|client| site.held_by(client));
    assert_eq!(run(["cache", "flush", &site.address()]).expect(), "ended 2 sessions\n");
    assert_eq!(run(["cache", "flush", &site.address()]).expect(), "ended 0 sessions\n");
    for meter in &meters {
        assert_eq!(meter.value_with(&ANY).unwrap().source, Source::Cache, "it has not asked");
        assert_eq!(meter.value_with(&NEW).unwrap().source, Source::Remote);
    }
    let silent = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let _meter: MeterRef = silent.root_poa().activate(Counting::default()).unwrap();
    let refused = run(["cache", "flush", &silent.published_addresses()[0]]).expect_failure(1);
    assert!(refused.contains("-ORBstatus local"), "{refused}");
    // The object is there for programs, too.
    let url = format!("corbaloc::1.2@{}/{CACHES_KEY}", site.address());
    let caches: CachesRef = one.string_to_object(&url).unwrap().narrow_unchecked();
    assert_eq!(caches.revoke().unwrap(), 2, "both have begun another");
}

/// Writes the meter until it is dropped.
fn while_it_is_written<T>(cell: &Cell<MeterState>, f: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                cell.update(|mut state| *state.value_mut() += 1);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        f()
    })
}

#[test]
fn an_audit_finds_nothing_while_promises_are_kept() {
    let site = Site::new();
    let audit = ["cache", "audit", &site.ior(), "--seconds", "1", "--lag", "20ms"];
    let shown = while_it_is_written(&site.cell, || run(audit).expect());
    assert!(shown.contains(": 0 broken in "), "{shown}");
    let with_json = [&audit[..], &["--json"]].concat();
    let json = while_it_is_written(&site.cell, || run(with_json).expect());
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report[0]["findings_total"], 0);
    assert!(report[0]["changes_seen"].as_u64().unwrap() > 0, "{report}");
    // The end of its sessions is no broken promise.
    let object = client().string_to_object(&site.ior()).unwrap();
    let mut audit = CacheAudit::begin(&object, MeterRef::REPOSITORY_ID, Duration::from_millis(1)).unwrap();
    while_it_is_written(&site.cell, || {
        for round in 0..200 {
            if round % 50 == 20 {
                site.server.revoke_caches();
            }
            audit.step().unwrap();
        }
    });
    let report = audit.report();
    assert_eq!((report.findings_total, report.sessions), (0, 10), "{report:?}");
}

#[test]
fn an_audit_needs_cached_attributes() {
    let site = Site::new();
    let probe: ProbeRef = site.server.root_poa().activate(Probing::default()).unwrap();
    let refused = run(["cache", "audit", &probe.object().to_ior_string()]).expect_failure(1);
    assert!(refused.contains("has no cached attributes"), "{refused}");
    let object = client().string_to_object(&site.ior()).unwrap();
    let e = CacheAudit::begin(&object, "IDL:cached/Nobody:1.0", Duration::from_secs(1)).unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::BadOperation);
}

#[test]
fn advice_is_given_from_figures_and_from_a_server() {
    let figures =
        ["cache", "advise", "--reads", "5000", "--writes", "20", "--holders", "10", "--rtt", "100us"];
    let advice = run(figures).expect();
    assert!(advice.starts_with("cache: with a lag of 10 ms"), "{advice}");
    run(["cache", "advise", "--reads", "5000"]).expect_failure(2);
    let site = Site::new();
    let address = site.address();
    let of_server = ["cache", "advise", &address, "--reads", "5000", "--seconds", "0.05", "--json"];
    let advice: serde_json::Value = serde_json::from_str(&run(of_server).expect()).unwrap();
    assert_eq!((&advice["cache"], &advice["holders"]), (&true.into(), &1.into()));
}
