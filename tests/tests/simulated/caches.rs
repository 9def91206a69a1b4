//! Caching proxies: level L0 tells the messages and octets of the program that a scenario describes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ironorb::{Orb, PoaPolicies, TypedRef as _};
use ironorb_model::{queueing, scenario};
use ironorb_sim::Sim;
use ironorb_tests::Counting;
use ironorb_tests::cached::{Meter as _, MeterRef};

/// Two meters.
fn serve(told: &OnceLock<[String; 2]>) {
    let orb = Orb::builder()
        .endpoint("iiop://:2810")
        .unwrap()
        .publish("meters:2810")
        .server_id("meters")
        .build()
        .unwrap();
    let poa = orb.root_poa().create_poa("objects", None, PoaPolicies::PERSISTENT).unwrap();
    poa.manager().activate().unwrap();
    let meter = |id: &[u8]| -> MeterRef { poa.activate_with_id(id.to_vec(), Counting::default()).unwrap() };
    told.set([b"12345678", b"12345679"].map(|id| meter(id).object().to_ior_string())).unwrap();
    orb.run().unwrap();
}

/// What a client does, cycle by cycle. Reads of the two meters are `a` and `b`, writes `A` and `B`; `p` reads what is not cached.
const CYCLES: [&str; 12] =
    ["p", "a", "a", "ba", "Aa", "BBa", "pb", "ab", "AAAAAAAAAAAAAAAAAAAAa", "Apab", "ABABbp", "b"];

/// Longer than it takes until a read is too old, and than three rounds of the cycles.
const SPAN: Duration = Duration::from_millis(5_060);
const THINK: Duration = Duration::from_millis(130);

fn scenario_of_the_program() -> String {
    let operation = |op: char| match op {
        'a' | 'b' => "_get_value",
        'A' | 'B' => "add",
        _ => "_get_place",
    };
    let call = |op: char| {
        let object = u8::from(op.eq_ignore_ascii_case(&'b'));
        format!("{{ call = \"meters.{}\", target = {{ object = {object} }} }}", operation(op))
    };
    let mix = CYCLES.map(|cycle| {
        let calls: Vec<String> = cycle.chars().map(call).collect();
        format!("[[classes.mix]]\ncalls = [{}]\n", calls.join(", "))
    });
    format!(
        r#"
        span = "{SPAN:?}"
        hosts = [{{ name = "client" }}, {{ name = "meters", cores = 4 }}]
        link = {{ latency = "100 us" }}
        [[servers]]
        name = "meters"
        hosts = "meters"
        objects = 2
        object_octets = 12
        operations = [
            {{ name = "_get_value", kind = "read", reply_octets = 4 }},
            {{ name = "add", kind = "write", request_octets = 4 }},
            {{ name = "_get_place", reply_octets = 11 }},
        ]
        [[classes]]
        name = "client"
        hosts = "client"
        clients = 1
        think = "{THINK:?}"
        choice = "in-turn"
        cache = {{ lag = "2 s", update_octets = 36, mode = "asked", warm = false }}
        {}"#,
        mix.join("\n")
    )
}

/// Runs the client, and gives the calls that it has made.
fn act(references: &[String; 2], calls: &AtomicU64) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let meters: [MeterRef; 2] = references.each_ref().map(|it| orb.resolve(it).unwrap());
    let begun = Instant::now();
    for cycle in CYCLES.iter().cycle() {
        std::thread::sleep(THINK);
        if begun.elapsed() >= SPAN {
            break;
        }
        for op in cycle.chars() {
            let meter = &meters[usize::from(op.eq_ignore_ascii_case(&'b'))];
            match op {
                'a' | 'b' => drop(meter.value().unwrap()),
                'A' | 'B' => meter.add(1).unwrap(),
                _ => drop(meter.place().unwrap()),
            }
            calls.fetch_add(u64::from(!"ab".contains(op)), Ordering::Relaxed);
        }
    }
    std::mem::forget(orb); // its end would send messages
}

#[ironorb_sim::test(seeds = 4)]
fn caches_ask_at_both_levels(sim: &mut Sim) {
    let text = scenario_of_the_program();
    let scenarios = scenario::read(&text, "caches.toml").unwrap();
    let queued = queueing::run(&scenarios[0], sim.seed(), Duration::ZERO).unwrap();
    let references: Arc<OnceLock<[String; 2]>> = Arc::default();
    let calls: Arc<AtomicU64> = Arc::default();
    let (told, counted) = (references.clone(), calls.clone());
    let server = sim.host("meters", move || serve(&told));
    let client = sim.host("client", move || act(references.get().unwrap(), &counted));
    sim.start(&server);
    sim.run_for(Duration::from_secs(1));
    sim.start(&client);
    sim.run_for(SPAN + Duration::from_secs(1));
    let counts = sim.counts();
    assert_eq!(
        (calls.load(Ordering::Relaxed), counts.messages, counts.octets),
        (queued.calls, queued.messages, queued.octets),
        "calls, messages and octets of the program, and at L0"
    );
    let seen = &queued.classes[0];
    let asked = (seen.cache_hits, seen.cache_misses, seen.cache_probes, seen.cache_probes_carried);
    assert!(
        asked.0 > 30 && asked.1 > 5 && asked.2 > 3 && asked.3 > 50,
        "hits, misses, probes and carried ones: {asked:?}"
    );
}
