//! "An Empirical Evaluation of OS Support for Real-time CORBA Object Request Brokers", Levine, Flores-Gaitan and Schmidt, 1999.
//! Facts only.
//!
//! The paper shows its figures as plots without numbers. The numbers here are those in its text.

use super::axes;
use super::catalogue::{
    Conclusion, Configuration, Curve, Curves, Figure, Grid, NONE, Paper, Runs, Shows, shown,
};
use super::rows::{Measured, Wanted};

pub(super) const PAPER: Paper = Paper {
    tag: "rt-99",
    title: "Real-time ORBs on five operating systems",
    by: "Levine, Flores-Gaitan and Schmidt, RTAS 1999",
    there: "TAO 1.0 on a Pentium II of 450 MHz with VxWorks 5.3.1, LynxOS 3.0, Windows NT 4.0, Solaris 2.6 and Linux 2.0.34; client \
            and server on one machine",
    configurations: CONFIGURATIONS,
    figures: FIGURES,
    conclusions: CONCLUSIONS,
    differs: &[
        "The paper compares five systems under one ORB; here is one system. The curves beside the ORB's are of plain sockets with the \
         same threads and priorities: what they have in common is the system's part.",
        "Each low client makes 500 calls at its rate, in five rounds in which the numbers of clients follow one another at random; \
         the paper's made 4,000.",
        "CPU overhead: ten runs of 1,000,000 calls, fewer where there is not time for ten; the paper's had 10,000,000.",
        "The machine has several processors, and all of them serve the test of latency; the test of overhead has one, as the paper's \
         machine.",
        "The paper does not tell how long its small and large sequences are. Here they have 4 and 1,024 elements.",
    ],
};

const CONFIGURATIONS: &[Configuration] = &[
    Configuration {
        each: &["1", "2", "3", "4", "5"],
        full: "--calls 100",
        keeps_time: true,
        quick: "--calls 5",
        ..Configuration::new(
            LATENCY,
            "realtime --regimes paper --classes {class} --transports tcp --sides lanes,twin \
             --clients 5,10,15,20,25,30,40,50 --high-hz 20 --low-hz 10 --repetitions 1 --seed {}",
            [180, 12],
        )
    },
    Configuration::new("cubit", "cubit --peers ironorb", [10, 4]),
    Configuration {
        full: "--calls 1000000",
        runs: Some(Runs { wanted: 10, least: 3 }),
        quick: "--quick --calls 2000 --repetitions 3",
        ..Configuration::new(OVERHEAD, "overhead --class {class}", [476, 3])
    },
];

const LATENCY: &str = "high-and-low";
const OVERHEAD: &str = "overhead";

macro_rules! by_clients {
    ($name:literal $title:literal $kind:literal $figure:literal $paper:expr, $note:literal) => {
        Figure {
            name: $name,
            title: $title,
            configuration: LATENCY,
            shows: Shows::Curves(Curves {
                x: ("clients", axes::LOW_CLIENTS),
                y: ($figure, axes::MICROSECONDS),
                rows: &[&[("kind", $kind), ("since", "call")]],
                lines: &[("side", "")],
                baseline: None,
                paper: $paper,
            }),
            note: $note,
        }
    };
}

const FIGURES: &[Figure] = &[
    by_clients!("figure-3" "Latency of the client of the highest priority" "high" "mean_us" &[
        Curve("TAO, LynxOS", &[(0.0, 307.0), (50.0, 467.0)]),
        Curve("TAO, Linux 2.0", &[(0.0, 236.0), (40.0, 722.0)]),
        Curve("TAO, Solaris (about)", &[(0.0, 750.0), (50.0, 900.0)]),
    ], "Of the paper's curves its text tells both ends. Linux ran out of descriptors beyond 40 clients."),
    by_clients!("figure-4" "Jitter of the client of the highest priority" "high" "sd_us" &[
        Curve("TAO, Solaris (about)", &[(0.0, 250.0), (50.0, 250.0)]),
    ], "The text tells of Solaris that its jitter is about 250 us with any number of clients."),
    by_clients!("figure-5" "Latency of clients of low priorities" "low" "mean_us" &[],
        "The paper draws this figure without numbers."),
    by_clients!("figure-6" "Jitter of clients of low priorities" "low" "sd_us" &[],
        "The paper draws this figure without numbers."),
    Figure {
        name: "figure-7",
        title: "IDL_Cubit: microseconds a call",
        configuration: "cubit",
        shows: Shows::Table(cubit),
        note: "The paper draws bars; the numbers are those in its text, of which some are about right.",
    },
    Figure {
        name: "figure-8",
        title: "CPU overhead: calls between client and server",
        configuration: OVERHEAD,
        shows: Shows::Table(|measured| configuration_of(measured, &["client-server", "plain"])),
        note: "The paper's figure shows the configuration: two threads of one process that call over loopback, and the scavenger, a \
               thread of a lower priority, which should never run. The last column is the paper's for Linux.",
    },
    Figure {
        name: "figure-9",
        title: "CPU overhead: collocated calls",
        configuration: OVERHEAD,
        shows: Shows::Table(|measured| configuration_of(measured, &["collocated"])),
        note: "The paper's figure shows the configuration: client and servant on one thread. A virtual call took 20 ns there.",
    },
    Figure {
        name: "figure-10",
        title: "CPU overhead: client and server over collocated",
        configuration: OVERHEAD,
        shows: Shows::Table(overheads),
        note: "The paper calls this the difference in per cent of a collocated call. Its own times, some 250 us and 20 ns, give far \
               more than 100 per cent, so that its numbers cannot be what it calls them, and no number here stands beside them.",
    },
];

/// System, IDL type, whether it is a oneway, and microseconds.
type Told = (&'static str, &'static str, &'static str, &'static str);

const TOLD: [Told; 12] = [
    ("Linux", "void", "twoway", "236"),
    ("Linux", "long", "twoway", "236"),
    ("LynxOS", "void", "twoway", "259"),
    ("LynxOS", "long", "twoway", "262"),
    ("LynxOS", "void", "oneway", "about 72"),
    ("Solaris", "void", "twoway", "about 400"),
    ("Solaris", "long", "twoway", "about 400"),
    ("Solaris", "void", "oneway", "about 175"),
    ("VxWorks", "void", "twoway", "234"),
    ("VxWorks", "long", "twoway", "239"),
    ("NT", "void", "twoway", "about 310"),
    ("NT", "long", "twoway", "320"),
];

fn cubit(measured: &Measured) -> Grid {
    const SYSTEMS: [&str; 5] = ["Linux", "LynxOS", "Solaris", "VxWorks", "NT"];
    let columns = [&["type", "call", "IronORB", "plain socket"][..], &SYSTEMS].concat();
    let mut grid = Grid::new(&columns);
    let rows = measured.of("cubit");
    for mode in ["twoway", "oneway"] {
        for row in rows.of(&[("kind", "row"), ("mode", mode)]) {
            let ty = row.text("row");
            let time = |figure| row.median(figure).map_or_else(|| "-".to_owned(), shown);
            let told = |system: &str| {
                let is_it = |told: &&Told| (told.0, told.1, told.2) == (system, ty.as_str(), mode);
                TOLD.iter().find(is_it).map_or(String::new(), |told| told.3.to_owned())
            };
            let ours = [ty.clone(), mode.to_owned(), time("subject"), time("raw")];
            grid.line(ours.into_iter().chain(SYSTEMS.map(told)));
        }
    }
    grid
}

fn configuration_of(measured: &Measured, whats: &[&str]) -> Grid {
    let mut grid = Grid::new(&[
        "calls",
        "calls in a run",
        "runs",
        "seconds a run",
        "deviation",
        "us a call",
        "scavenger runs per 100 calls",
        "in the paper",
    ]);
    for what in whats {
        for row in measured.of(OVERHEAD).of(&[("kind", "time"), ("what", what)]) {
            let number = |figure| row.median(figure).map_or_else(|| "-".to_owned(), shown);
            let calls = row.count("calls").map_or_else(String::new, shown);
            let theirs = if *what == "client-server" { "2.1 to 2.4" } else { "" };
            let figures = ["runs", "seconds", "sd_seconds", "us_each", "scavenger_runs_per_100"].map(number);
            grid.line([(*what).to_owned(), calls].into_iter().chain(figures).chain([theirs.to_owned()]));
        }
    }
    grid
}

fn overheads(measured: &Measured) -> Grid {
    let mut grid = Grid::new(&["system", "overhead in %", "us a call", "deviation of a run in s"]);
    for (system, percent) in [
        ("Windows NT", "2.61"),
        ("LynxOS", "5.73"),
        ("Linux 2.0", "7.17"),
        ("Solaris", "8.75"),
        ("VxWorks", "17.6"),
    ] {
        grid.line([format!("TAO, {system}"), percent.to_owned(), String::new(), String::new()]);
    }
    for (what, title) in
        [("T_CS - T_CO", "IronORB here"), ("T_plain - T_CO", "plain sockets here: the system's part")]
    {
        for row in measured.of(OVERHEAD).of(&[("kind", "difference"), ("what", what)]) {
            let number = |figure| row.median(figure).map_or_else(|| "-".to_owned(), shown);
            let collocated = collocated_us(measured);
            let percent = row.median("us_each").zip(collocated).map(|(over, of)| shown(100.0 * over / of));
            let cells =
                [title.to_owned(), percent.unwrap_or_default(), number("us_each"), number("sd_seconds")];
            grid.line(cells);
        }
    }
    grid
}

fn time(measured: &Measured, what: &str, figure: &str) -> Option<f64> {
    measured.of(OVERHEAD).median(figure, &[("kind", "time"), ("what", what)])
}

fn collocated_us(measured: &Measured) -> Option<f64> {
    time(measured, "collocated", "us_each")
}

fn of_clients(measured: &Measured, kind: &str, side: &str, figure: &str, clients: &str) -> Option<f64> {
    let wanted: [Wanted<'_>; 4] = [("kind", kind), ("since", "call"), ("side", side), ("clients", clients)];
    measured.of(LATENCY).median(figure, &wanted)
}

/// The mean latency of the high client with so many others over that without. Of each round, as the machine drifts between rounds.
fn high_growth(measured: &Measured, clients: &str) -> Option<f64> {
    of_clients(measured, "high", "lanes", "over_0", clients)
}

/// The jitter of the high client as a part of its mean latency, at its largest.
fn jitter(measured: &Measured, side: &str) -> Option<f64> {
    let of = |clients| {
        let figure = |name| of_clients(measured, "high", side, name, clients);
        Some(figure("sd_us")? / figure("mean_us")?)
    };
    CLIENTS.into_iter().filter_map(of).reduce(f64::max)
}

/// Numbers of low clients.
const CLIENTS: [&str; 9] = ["0", "5", "10", "15", "20", "25", "30", "40", "50"];

fn low_growth(measured: &Measured, figure: &str) -> Option<f64> {
    let at = |clients| of_clients(measured, "low", "lanes", figure, clients);
    Some(at("50")? / at("5")?)
}

fn cube(measured: &Measured, row: &str, mode: &str) -> Option<f64> {
    measured.of("cubit").median("over_raw", &[("kind", "row"), ("row", row), ("mode", mode)])
}

/// The longest of the twoways over the shortest. Plain sockets send as many bytes in the same turns: from type to type the machine drifts by
/// more than most types differ.
fn by_type(measured: &Measured) -> Option<f64> {
    let rows = measured.of("cubit");
    let wanted = [("kind", "row"), ("mode", "twoway")];
    let times = || rows.of(&wanted).filter_map(|row| row.median("over_raw"));
    Some(times().reduce(f64::max)? / times().reduce(f64::min)?)
}

/// The largest jitter of the high client over its smallest, among numbers of low clients.
fn jitters(measured: &Measured) -> Option<f64> {
    let of = |clients| of_clients(measured, "high", "lanes", "sd_us", clients);
    let all = || CLIENTS.into_iter().filter_map(of);
    Some(all().reduce(f64::max)? / all().reduce(f64::min)?)
}

const CONCLUSIONS: &[Conclusion] = &[
    Conclusion {
        section: "3.1.2",
        theirs: "Linux does not scale: with 40 low clients the high client's latency is 3.06 times that without (236 to 722 us).",
        number: |measured| high_growth(measured, "40"),
        ours: "With 40 low clients it is {} times that without.",
        holds: (2.0, NONE),
        why: &[
            "The high client's call waits behind work of the system for the others, which has no priority.",
            "Linux schedules threads by priority in constant time today, and each priority has a lane of its own in the ORB.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "LynxOS is stable: with 50 low clients the high client's latency is 1.52 times that without (307 to 467 us).",
        number: |measured| high_growth(measured, "50"),
        ours: "With 50 low clients it is {} times that without.",
        holds: (0.0, 1.6),
        why: &[
            "No thread of a lower priority stands in its way, in the ORB or in the system.",
            "With idle times between calls, what the processors do first after a sleep depends on the other clients.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "Solaris: the high client's latency grows gradually, to 1.2 times with 50 low clients (750 to over 900 us).",
        number: |measured| high_growth(measured, "50"),
        ours: "With 50 low clients it is {} times that without.",
        holds: (1.05, NONE),
        why: &[
            "It grows with the clients here, too.",
            "Low clients keep processors awake that sleep between the calls of one client alone, and that saves more than they take.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "General-purpose systems such as Windows NT are erratic: the high client's latency varies with the number of low ones.",
        number: |measured| {
            let of = |clients| of_clients(measured, "high", "lanes", "mean_us", clients);
            let means = || CLIENTS.into_iter().filter_map(of);
            Some(means().reduce(f64::max)? / means().reduce(f64::min)?)
        },
        ours: "Its largest mean latency is {} times its smallest.",
        holds: (1.5, NONE),
        why: &[
            "What the processors do after a sleep depends on who else has used them.",
            "Its thread goes before those of all others.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "VxWorks does not scale: from 15 low clients on latencies are as long as those of Solaris or longer.",
        number: |measured| high_growth(measured, "15"),
        ours: "With 15 low clients the high client's latency is {} times that without.",
        holds: (1.5, NONE),
        why: &[
            "The high client waits for the others' work here, too.",
            "How many others there are makes no difference to a thread that goes before them.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "On Solaris the high client's jitter is relatively constant: about 250 us with any number of low clients.",
        number: jitters,
        ours: "At its largest the jitter is {} times what it is at its smallest.",
        holds: (0.0, 1.5),
        why: &[
            "What makes calls differ does not depend on the number of low clients.",
            "The jitter is of few calls that are held up, and how many there are changes from run to run.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "The high client's jitter is a third of its latency (Solaris: 250 of 750 us).",
        number: |measured| jitter(measured, "lanes"),
        ours: "At its largest the jitter is {} of the latency.",
        holds: (0.2, 0.5),
        why: &[
            "Between calls the processors sleep, and how long their wake-up takes varies with how deep they slept.",
            "What varies are wake-ups: little where processors do not sleep, and more than a call takes where the machine has other work too.",
        ],
    },
    Conclusion {
        section: "3.2",
        theirs: "What differs is due to the operating system and not to the ORB.",
        number: |measured| {
            let mean = |side| of_clients(measured, "high", side, "mean_us", "50");
            Some(mean("lanes")? / mean("twin")?)
        },
        ours: "With 50 low clients the high client takes {} times as long as over plain sockets with the same threads.",
        holds: (0.0, 1.3),
        why: &[
            "The ORB adds little to what wake-ups and the network's protocols take.",
            "The ORB's own part is no longer small beside the system's.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "The latency of low clients grows with their number, as they compete for the processor.",
        number: |measured| low_growth(measured, "mean_us"),
        ours: "With 50 of them it is {} times that with 5.",
        holds: (1.05, NONE),
        why: &[
            "They begin their periods together, and each waits for those above it.",
            "Together they need so little of the processors that they hardly meet, and busy processors wake up sooner.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "The jitter of low clients grows with their number.",
        number: |measured| low_growth(measured, "sd_us"),
        ours: "With 50 of them it is {} times that with 5.",
        holds: (1.2, NONE),
        why: &[
            "The least of them waits for all others, the first for none.",
            "The system's own variation is larger than what they wait for one another.",
        ],
    },
    Conclusion {
        section: "3.1.2",
        theirs: "Linux runs out of descriptors beyond 40 low clients.",
        number: |measured| {
            let of_lanes = [("kind", "high"), ("since", "call"), ("side", "lanes")];
            measured.of(LATENCY).curve(("clients", "mean_us"), &of_lanes).last().map(|(clients, _)| *clients)
        },
        ours: "{} low clients were run.",
        holds: (0.0, 40.0),
        why: &[
            "More clients did not run.",
            "Threads are no processes any more, and the limit on descriptors is higher.",
        ],
    },
    Conclusion {
        section: "3.1.3",
        theirs: "The cost of cubing is negligible: void and long take the same time (236 us each on Linux).",
        number: |measured| Some(cube(measured, "long", "twoway")? / cube(measured, "void", "twoway")?),
        ours: "A call with a long takes {} times as long as a void one, beside plain sockets in the same turns.",
        holds: (0.9, 1.1),
        why: &[
            "A long is four bytes more in each message.",
            "The argument's own path shows beside so short a call.",
        ],
    },
    Conclusion {
        section: "3.1.3",
        theirs: "Throughput depends dramatically on the type.",
        number: by_type,
        ours: "The slowest type takes {} times as long as the fastest, each beside plain sockets that send as many bytes in the same turns.",
        holds: (2.0, NONE),
        why: &[
            "A thousand structs are as many cubes, and each is converted by itself.",
            "What a thousand structs cost in the ORB and in cubes is little more than what the system takes for as many bytes, if it is more.",
        ],
    },
    Conclusion {
        section: "3.1.3",
        theirs: "Oneways save what replies cost: LynxOS takes 72 us in place of 259, Solaris 175 in place of 400.",
        number: |measured| {
            let time = |mode| {
                measured.of("cubit").median("subject", &[("kind", "row"), ("row", "void"), ("mode", mode)])
            };
            Some(time("oneway")? / time("twoway")?)
        },
        ours: "A oneway takes {} of a twoway's time.",
        holds: (0.0, 0.5),
        why: &[
            "The client does not wait for wake-ups, and the server reads several requests at once.",
            "The server's work for a oneway is as long as that for a twoway.",
        ],
    },
    Conclusion {
        section: "3.1.4",
        theirs: "The overhead of ORB and system is moderate: 2.61 to 17.6 per cent of a collocated call, 7.17 on Linux.",
        number: |measured| {
            let over = time(measured, "client-server", "us_each")? - collocated_us(measured)?;
            Some(100.0 * over / collocated_us(measured)?)
        },
        ours: "It is {} per cent of a collocated call.",
        holds: (0.0, 20.0),
        why: &[
            "A call between threads costs hardly more than one within a thread.",
            "A collocated call takes nanoseconds and one between threads microseconds, here as there: the paper's per cent are of \
             something else than it says.",
        ],
    },
    Conclusion {
        section: "3.1.4",
        theirs: "On Linux and VxWorks times between client and server vary much from run to run: on VxWorks by 6.75 % of the mean.",
        number: |measured| {
            let of = |figure| time(measured, "client-server", figure);
            Some(100.0 * of("sd_seconds")? / of("seconds")?)
        },
        ours: "The deviation of runs is {} % of their mean.",
        holds: (3.0, NONE),
        why: &[
            "Other work of the machine holds some runs up.",
            "What holds some calls up is little beside a whole run.",
        ],
    },
    Conclusion {
        section: "3.1.4",
        theirs: "A collocated call costs one virtual call, about 20 ns.",
        number: |measured| Some(1e3 * collocated_us(measured)?),
        ours: "A collocated call takes {} ns.",
        holds: (0.0, 40.0),
        why: &[
            "It checks that the object is still active and calls the servant.",
            "The build has no optimisation across crates, or other work disturbed the run.",
        ],
    },
    Conclusion {
        section: "3.1.4",
        theirs: "Linux does not strictly obey priorities: the scavenger runs 2.1 to 2.4 times for 100 calls.",
        number: |measured| time(measured, "client-server", "scavenger_runs_per_100"),
        ours: "The scavenger runs {} times for 100 calls.",
        holds: (0.1, NONE),
        why: &[
            "Client and server both wait for a moment, and the scavenger gets the processor; or this machine gives them no real-time \
             priority.",
            "With SCHED_FIFO the processor goes from the client to the server and back, and to no thread below them.",
        ],
    },
    Conclusion {
        section: "5",
        theirs: "On VxWorks the high client's jitter rises progressively with the number of low clients.",
        number: |measured| {
            let sd = |clients| of_clients(measured, "high", "lanes", "sd_us", clients);
            Some(sd("50")? / sd("0")?)
        },
        ours: "With 50 low clients it is {} times that without.",
        holds: (1.5, NONE),
        why: &[
            "The more clients there are, the more their work in the system stands in its way.",
            "Low clients keep the processors awake, so that wake-ups vary less.",
        ],
    },
    Conclusion {
        section: "5",
        theirs: "Real-time support is possible in CORBA ORBs over well-designed systems: LynxOS gives low latency that stays predictable.",
        number: |measured| {
            let high = |figure| of_clients(measured, "high", "lanes", figure, "50");
            Some(high("max_us")? / high("mean_us")?)
        },
        ours: "With 50 low clients the high client's longest call takes {} times as long as the mean.",
        holds: (0.0, 3.0),
        why: &[
            "Nothing of a lower priority stands in its way, in the ORB or in the system.",
            "Some of its calls are held up by what has no priority.",
        ],
    },
];
