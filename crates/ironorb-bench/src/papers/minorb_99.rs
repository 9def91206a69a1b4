//! "High Performance Distributed Objects using Caching Proxies for Large Scale Applications", Martin, Callaghan and Clark, DOA 1999
//! (MinORB). Facts only.
//!
//! The paper shows its figures as plots without numbers. The numbers here are those in its text.

use super::axes;
use super::catalogue::{Conclusion, Configuration, Curve, Curves, Figure, NONE, Paper, Shows};
use super::rows::Measured;

pub(super) const PAPER: Paper = Paper {
    tag: "minorb-99",
    title: "Caching proxies and a billion objects",
    by: "Martin, Callaghan and Clark, DOA 1999",
    there: "MinORB and omniORB 2.6.1 on two Dell 6100 (four Pentium Pro of 200 MHz, Solaris 2.6); MinORB on a Sun E6000 (16 processors \
            of 250 MHz, 18 GB, Solaris 2.7) and an E4000; Ethernet of 100 Mbit/s",
    configurations: CONFIGURATIONS,
    figures: FIGURES,
    conclusions: CONCLUSIONS,
    differs: &[
        "Client and server are processes of one machine; cases 1, 3 and 4 are shown with both on one processor.",
        "Case 2: each client has 32 calls in flight on one thread; the paper's clients had a thread that sends and one that receives.",
        "Case 4: MinORB's server sends updates to the proxies. Here the proxies ask when a lag is over, and one answer tells of all \
         that was written: writes for each answer here are its updates for each message.",
        "A billion objects need 12 GB of memory. Where there is less, the largest number is smaller, and the figure ends earlier.",
    ],
};

const CONFIGURATIONS: &[Configuration] = &[
    Configuration::new(CASE_1, "extents --parts calls --peers ironorb", [54, 4]),
    Configuration {
        full: "--objects 1000000",
        quick: "--quick --objects 10000",
        ..Configuration::new(RIVALS, "extents --parts rivals --peers omniorb", [65, 5])
    },
    Configuration::new(CASE_2, "caching --parts throughput --peers ironorb", [29, 3]),
    Configuration::new(CASE_3, "caching --parts shares --peers ironorb", [61, 3]),
    Configuration {
        keeps_time: true,
        ..Configuration::new(DELAYS, "caching --parts delays --peers ironorb", [31, 3])
    },
    Configuration::new(
        CASE_4,
        "caching --parts lags --lags 10,80,100,300,700,1000,3000,6000,10000 --peers ironorb",
        [40, 4],
    ),
    Configuration {
        quick: "--clients 1,10",
        keeps_time: true,
        ..Configuration::new(MODEL, MODELLED, [66, 20])
    },
];

const CASE_1: &str = "case-1";
const RIVALS: &str = "case-1-omniorb";
const CASE_2: &str = "case-2";
const CASE_3: &str = "case-3";
const DELAYS: &str = "case-3-networks";
const CASE_4: &str = "case-4";
const MODEL: &str = "simulated";

/// Jobs of the paper on parallel interaction with a fifth of its demands, by processes and beside them in a model.
const MODELLED: &str = "jobs --sides processes --architectures hp --daemons multi --distributions fixed,exponential \
                        --demand 10,11 --cycles 100 --repetitions 5";

const FIGURES: &[Figure] = &[
    Figure {
        name: "figure-3",
        title: "Case 1: latency by the number of objects",
        configuration: CASE_1,
        shows: Shows::Curves(Curves {
            x: ("objects", axes::MANY_OBJECTS),
            y: ("subject", axes::MICROSECONDS_LOG),
            rows: &[&[("kind", "latency"), ("layout", "one core")]],
            lines: &[("row", "IronORB: ")],
            baseline: Some("IronORB, 100 objects, in the same turns"),
            paper: &[
                Curve("MinORB, Dell", &[(100.0, 585.0), (1e6, 600.0)]),
                Curve("omniORB, Dell", &[(100.0, 575.0), (5e5, 2_731.0)]),
                Curve("MinORB, E6000", &[(1e5, 516.0), (1e9, 520.0)]),
            ],
        }),
        note: "Calls to random objects. omniORB's memory ended at 953,000 objects.",
    },
    Figure {
        name: "figure-4",
        title: "Case 2: writes a second by the number of clients",
        configuration: CASE_2,
        shows: Shows::Curves(Curves {
            x: ("clients", axes::CLIENTS),
            y: ("subject", axes::CALLS),
            rows: &[&[("kind", "throughput")]],
            lines: &[("side", "")],
            baseline: Some("plain sockets, each message by itself"),
            paper: &[Curve("MinORB, E6000", &[(1.0, 6_000.0), (9.0, 42_000.0)])],
        }),
        note: "\"together\": plain sockets that write all that they can at once. Of MinORB the text tells what a client has and one point, with \
               nine clients.",
    },
    Figure {
        name: "figure-5",
        title: "Case 3: latency by the share of reads and of cached objects",
        configuration: CASE_3,
        shows: Shows::Curves(Curves {
            x: ("read_percent", axes::PERCENT),
            y: ("subject", axes::MICROSECONDS_LOG),
            rows: &[&[("kind", "shares"), ("layout", "one core"), ("peer", "ironorb")]],
            lines: &[("cached_percent", "per cent cached: ")],
            baseline: Some("a read by a call"),
            paper: &[
                Curve("MinORB, Dell: a call (case 1), and all cached", &[(0.0, 600.0), (100.0, 6.0)]),
                Curve("MinORB, E6000: a call (case 1), and all cached", &[(0.0, 516.0), (100.0, 4.0)]),
            ],
        }),
        note: "Of calls without caches the text tells only in case 1: with 1,000,000 objects (Dell) and 100,000 (E6000).",
    },
    Figure {
        name: "figure-6",
        title: "Case 4: latency of writes by the lag of the client that reads",
        configuration: CASE_4,
        shows: Shows::Curves(Curves {
            x: ("lag_us", axes::LAG),
            y: ("subject", axes::MICROSECONDS_LOG),
            rows: &[&[("kind", "lags")]],
            lines: &[("peer", "")],
            baseline: Some("no client holds what is written"),
            paper: &[Curve(
                "MinORB, Dell (ends of the steps)",
                &[(80.0, 680.0), (700.0, 663.0), (6_000.0, 652.0)],
            )],
        }),
        note: "",
    },
];

fn share(measured: &Measured, cached: &str, reads: &str) -> Option<f64> {
    share_of(measured, "one core", cached, reads)
}

fn share_of(measured: &Measured, layout: &str, cached: &str, reads: &str) -> Option<f64> {
    let wanted = [
        ("kind", "shares"),
        ("layout", layout),
        ("peer", "ironorb"),
        ("cached_percent", cached),
        ("read_percent", reads),
    ];
    measured.of(CASE_3).median("over_raw", &wanted)
}

fn rate(measured: &Measured) -> Vec<(f64, f64)> {
    measured.of(CASE_2).curve(("clients", "subject"), &[("kind", "throughput"), ("side", "ironorb")])
}

fn rate_at(measured: &Measured, clients: f64) -> Option<f64> {
    rate(measured).into_iter().find(|(number, _)| *number == clients).map(|(_, rate)| rate)
}

fn most(rates: &[(f64, f64)]) -> Option<f64> {
    rates.iter().map(|(_, rate)| *rate).reduce(f64::max)
}

/// The time of a write with the shortest and with the longest lag, or its messages.
fn lags(measured: &Measured, figure: &str) -> Option<[f64; 2]> {
    let all = measured.of(CASE_4).curve(("lag_us", figure), &[("kind", "lags")]);
    Some([all.first()?.1, all.last()?.1])
}

/// Calls of omniORB's objects beside those of as many elements of this ORB, by their number.
fn rival(measured: &Measured) -> Vec<(f64, f64)> {
    let reads = [
        ("kind", "rivals"),
        ("layout", "one core"),
        ("row", "read"),
        ("objects_are", "activated"),
        ("peer", "omniorb"),
    ];
    measured.of(RIVALS).curve(("objects", "over_raw"), &reads)
}

/// With how many objects omniORB's memory ended, or the most that it served, if they are more than in the paper. Fewer tell nothing.
fn objects_of_rival(measured: &Measured) -> Option<f64> {
    let most = |has_ended| {
        let reads = [
            ("kind", "rivals"),
            ("row", "read"),
            ("objects_are", "activated"),
            ("peer", "omniorb"),
            ("memory_ended", has_ended),
        ];
        measured.of(RIVALS).curve(("objects", "over_raw"), &reads).last().map(|(objects, _)| *objects)
    };
    most("true").or_else(|| most("false").filter(|objects| *objects > OBJECTS_OF_OMNIORB))
}

/// The objects that the paper's omniORB had memory for.
const OBJECTS_OF_OMNIORB: f64 = 953_000.0;

/// Reads of what is cached beside calls, over a network of this round-trip time.
fn over_network(measured: &Measured, rtt_ms: &str) -> Option<f64> {
    let wanted = [("kind", "delays"), ("rtt_ms", rtt_ms), ("cached_percent", "100"), ("read_percent", "100")];
    measured.of(DELAYS).median("over_raw", &wanted).map(f64::recip)
}

const CONCLUSIONS: &[Conclusion] = &[
    Conclusion {
        section: "6",
        theirs: "A remote call takes about 100 us more than the bare round trip: 1.3 times it (520 beside 401 us).",
        number: |measured| {
            let void = [
                ("kind", "latency"),
                ("mode", "twoway"),
                ("invocation", "sii"),
                ("settings", ""),
                ("objects", "1"),
            ];
            measured.of("void-robin").median("over_raw", &void)
        },
        ours: "A call takes {} times as long as the bare round trip (from the figures of tao-97).",
        holds: (1.0, 1.35),
        why: &[
            "The ORB's own part is small beside the system's.",
            "The ORB's own part is more than a third of the system's, as client and server share a warm processor.",
        ],
    },
    Conclusion {
        section: "4, case 1",
        theirs: "The latency of calls hardly grows up to 10^9 objects (516 to 520 us), which are found by memory look-up.",
        number: |measured| {
            let reads = [("kind", "latency"), ("layout", "one core"), ("row", "read")];
            measured.of(CASE_1).curve(("objects", "over_raw"), &reads).last().map(|(_, ratio)| *ratio)
        },
        ours: "With the most objects a call takes {} times as long as with 100.",
        holds: (0.0, 1.1),
        why: &[
            "An object is an index into memory: it costs a few misses of the caches, however many there are.",
            "Calls take a hundredth of MinORB's time, so that misses of the caches and of the table of pages show.",
        ],
    },
    Conclusion {
        section: "4, case 1",
        theirs: "It can serve 10^9 objects.",
        number: |measured| {
            let reads = [("kind", "latency"), ("layout", "one core"), ("row", "read")];
            measured.of(CASE_1).curve(("objects", "subject"), &reads).last().map(|(objects, _)| *objects)
        },
        ours: "{} objects were served.",
        holds: (1e9, NONE),
        why: &["They take 12 GB of memory.", "The memory, or a quick run, did not allow for more."],
    },
    Conclusion {
        section: "4, case 1",
        theirs: "An object costs 88 bytes beside its state on 64 bits (24 on 32).",
        number: |measured| {
            let made = measured.of(CASE_1).curve(("objects", "bytes_each"), &[("kind", "creation")]);
            // The state has four.
            made.last().map(|(_, bytes)| bytes - 4.0)
        },
        ours: "It costs {} bytes beside its state.",
        holds: (0.0, 88.0),
        why: &[
            "An element has a lock and a mark, and no entry in any table.",
            "Elements have more than MinORB's objects.",
        ],
    },
    Conclusion {
        section: "4, case 1",
        theirs: "With few objects omniORB is a little faster: 575 us beside 585.",
        number: |measured| rival(measured).first().map(|(_, over)| *over),
        ours: "With 100 objects the omniORB of today takes {} times as long as this ORB.",
        holds: (0.0, 1.0),
        why: &[
            "It calls on the client's own thread, with as little in between.",
            "Here, too, the client's own thread receives the reply, and neither side takes memory for a call.",
        ],
    },
    Conclusion {
        section: "4, case 1",
        theirs: "omniORB's latency grows with its objects: 4.7 times from 100 to 500,000 (575 to 2,731 us).",
        number: |measured| {
            let all = rival(measured);
            Some(all.last()?.1 / all.first()?.1)
        },
        ours: "The omniORB of today takes {} times as long with its most objects as with 100, beside elements of this ORB.",
        holds: (1.5, NONE),
        why: &[
            "Its table grows with them today, but entries and servants of so many objects lie apart in memory and miss the processor's caches.",
            "Its table of objects grows with them today, which the version of 1999 did not do.",
        ],
    },
    Conclusion {
        section: "4, case 1",
        theirs: "omniORB's memory ended at 953,000 objects of 256 bytes each, where MinORB's take 24.",
        number: objects_of_rival,
        ours: "The omniORB of today served {} objects.",
        holds: (0.0, OBJECTS_OF_OMNIORB),
        why: &[
            "Its objects took all the memory that its server may have.",
            "Its server has memory for more of its objects than that of the paper.",
        ],
    },
    Conclusion {
        section: "4, case 1",
        theirs: "The share of reads does not change the latency of remote calls.",
        number: |measured| Some(share(measured, "0", "0")? / share(measured, "0", "100")?),
        ours: "Without a cache a write takes {} times as long as a read.",
        holds: (0.9, 1.1),
        why: &[
            "Both carry four bytes one way or the other.",
            "Writes note what has changed, for caches to come.",
        ],
    },
    Conclusion {
        section: "4, case 2",
        theirs: "Throughput grows linearly with the clients as long as there are processors.",
        number: |measured| {
            // One processor of the server's for each of a client's.
            let clients = (measured.processors()? / 2.0).floor().clamp(2.0, 9.0);
            Some(rate_at(measured, clients)? / rate_at(measured, 1.0)? / clients)
        },
        ours: "With half as many clients as processors, at least two, a client reaches {} of one alone.",
        holds: (0.75, NONE),
        why: &[
            "Each client has a connection, and each connection a thread of the server.",
            "One client and its thread of the server keep two processors busy already; on this machine a second client has none left.",
        ],
    },
    Conclusion {
        section: "4, case 2",
        theirs: "More clients than processors reduce the throughput.",
        number: |measured| {
            let rates = rate(measured);
            Some(rates.last()?.1 / most(&rates)?)
        },
        ours: "The most clients reach {} of the greatest throughput.",
        holds: (0.0, 0.95),
        why: &[
            "Threads wait for processors, and each change between them costs.",
            "A thread that waits for a processor finds more requests in its connection, and serves them at once.",
        ],
    },
    Conclusion {
        section: "abstract",
        theirs: "It reaches 42,000 calls a second (16 processors).",
        number: |measured| most(&rate(measured)),
        ours: "It reaches {} calls a second.",
        holds: (42_000.0, NONE),
        why: &[
            "Its processors are those of 1998, and here many calls are in flight at once.",
            "The machine was busy, or the run was short.",
        ],
    },
    Conclusion {
        section: "4, case 3",
        theirs: "Reads of what is cached take a hundredth of a call (6 us; 4 us on the E6000).",
        number: |measured| share(measured, "100", "100").map(f64::recip),
        ours: "A call takes {} times as long as a cached read.",
        holds: (50.0, NONE),
        why: &[
            "A cached read sends no message: it reads a clock and memory.",
            "A call takes a fortieth of MinORB's time, and reads of random ones of 100,000 objects miss the processor's caches: some 0.6 us. \
             Reads of one object take less than a hundredth of a call.",
        ],
    },
    Conclusion {
        section: "4, case 3",
        theirs: "With all cached and writes only, a call takes only a little more than without caches.",
        number: |measured| Some(share(measured, "100", "0")? / share(measured, "0", "0")?),
        ours: "It takes {} times as long as without caches.",
        holds: (0.9, 1.25),
        why: &[
            "The server notes what has changed, and tells of many writes at once.",
            "What the server does for holders of the state is no longer small beside a call.",
        ],
    },
    Conclusion {
        section: "6",
        theirs: "More processors reduce what updates of proxies cost.",
        number: |measured| {
            let cost = |layout| {
                let of = |cached| share_of(measured, layout, cached, "0");
                Some(of("100")? / of("0")?)
            };
            Some(cost("a core each")? / cost("one core")?)
        },
        ours: "With all cached and writes only, what a call takes over one without caches is on two processors {} of what it is on one.",
        holds: (0.0, 1.0),
        why: &[
            "The client takes updates while the server goes on.",
            "The client's questions come to the server's processor as before, and that is what a write waits for.",
        ],
    },
    Conclusion {
        section: "4, case 3",
        theirs: "Partial caching lies in between, in proportion to what is cached.",
        number: |measured| {
            let at = |cached| share(measured, cached, "100");
            Some(2.0 * at("50")? / (at("0")? + at("100")?))
        },
        ours: "With reads only, half of the objects cached takes {} of the mean of none and all.",
        holds: (0.8, 1.2),
        why: &[
            "Half of the reads are calls.",
            "What is called and what is cached do not add up as they should.",
        ],
    },
    Conclusion {
        section: "6",
        theirs: "As writes prevail, the benefit of caches shrinks; they generally still outperform calls.",
        number: |measured| Some(share(measured, "100", "50")? / share(measured, "0", "50")?),
        ours: "With half reads and all cached, a call takes {} of the time without caches.",
        holds: (0.0, 1.0),
        why: &[
            "Half of the operations are local, and the others cost as before.",
            "A client reads its own writes: its first read after a write asks the server. With random reads and writes of one client, \
             most reads are of that kind.",
        ],
    },
    Conclusion {
        section: "4, case 4",
        theirs: "A write gets faster with the lag: 680 us up to 80 us, 663 up to 700 us, 652 beyond.",
        number: |measured| {
            let [short, long] = lags(measured, "subject")?;
            Some(short / long)
        },
        ours: "With the shortest lag a write takes {} times as long as with the longest.",
        holds: (1.01, NONE),
        why: &[
            "The server has fewer questions of caches to answer beside the writes.",
            "No write sends a message: caches ask, on a processor of their own, and one answer tells of all writes.",
        ],
    },
    Conclusion {
        section: "4, case 4; 6",
        theirs: "The gain of lags ends where updates fill an MTU before the lag is over: from 6,000 us on.",
        number: |measured| {
            let at = |lag| measured.of(CASE_4).median("subject", &[("kind", "lags"), ("lag_us", lag)]);
            Some(at("6000")? / at("10000")?)
        },
        ours: "With a lag of 6,000 us a write takes {} times as long as with 10,000.",
        holds: (0.95, 1.05),
        why: &[
            "Here it is time alone that ends a lag, but so few messages are left at 6,000 us that fewer save next to nothing.",
            "No buffer ends a lag here: the longer it is, the more writes one answer tells of.",
        ],
    },
    Conclusion {
        section: "4, case 4",
        theirs: "Lags save messages: up to 20 times fewer.",
        number: |measured| {
            let [short, long] = lags(measured, "messages_per_write")?;
            Some(short / long)
        },
        ours: "With the longest lag there are {} times fewer messages than with the shortest.",
        holds: (10.0, NONE),
        why: &[
            "A cache asks once a lag, and an answer tells of all writes since.",
            "The shortest lag is as long as several writes take, so that even there one answer tells of many.",
        ],
    },
    Conclusion {
        section: "6",
        theirs: "The longer the network's latency, the greater the benefit of caches.",
        number: |measured| Some(over_network(measured, "1")? / over_network(measured, "0")?),
        ours: "With a round trip of 1 ms more, cached reads gain {} times as much over calls.",
        holds: (2.0, NONE),
        why: &[
            "A cached read does not know the network.",
            "Reads that ask the server weigh as much as the calls.",
        ],
    },
    Conclusion {
        section: "6",
        theirs: "Simulation and measurement agree well.",
        number: |measured| {
            let wanted = [("kind", "runs"), ("side", "ironorb")];
            let off =
                |row: &super::rows::StoredRow| row.median("of_model").map(|part| (part - 1.0).abs() * 100.0);
            measured.of(MODEL).of(&wanted).filter_map(off).reduce(f64::max)
        },
        ours: "Of jobs of two parts, run by processes and in a model of events, throughput is at most {} % off. Its own four cases \
               `ironorb sim validate` measures and simulates.",
        holds: (0.0, 10.0),
        why: &[
            "The model has the stations, the queues and what messages cost.",
            "Short demands and a busy machine: what the system adds is not in the model.",
        ],
    },
];
