//! "Evaluating CORBA Latency and Scalability Over High-Speed ATM Networks", Gokhale and Schmidt, ICDCS 1997. Facts only.
//!
//! The paper shows its figures as plots without numbers. The numbers here are those in its text and tables.

use super::axes;
use super::catalogue::{Conclusion, Configuration, Curves, Figure, Grid, NONE, Paper, Place, Shows, shown};
use super::rows::{Measured, StoredRow, Wanted};
use crate::statistics::middle;

pub(super) const PAPER: Paper = Paper {
    tag: "tao-97",
    title: "Latency and scalability of CORBA",
    by: "Gokhale and Schmidt, ICDCS 1997",
    there: "Orbix 2.1 and VisiBroker 2.0 on two UltraSPARC-2 with two processors of 168 MHz each, SunOS 5.5.1, ATM of 155 Mbit/s \
            with an MTU of 9,180 bytes",
    configurations: CONFIGURATIONS,
    figures: FIGURES,
    conclusions: CONCLUSIONS,
    differs: &[
        "The paper's figures are of two ORBs; here one ORB runs with its default look-ups, and in figures 4 to 8 with the kinds of look-up \
         that Orbix (linear for operations, hashing for objects) and VisiBroker (hashing for both) had. These turn the request cache off.",
        "Orbix could not send a request again and VisiBroker could: here each DII call makes a new request (dii-new), or sends one \
         request again with its data set anew (dii-reused).",
        "Oneways are in batches of a hundred whose last call is answered, so that a batch ends when the server has carried it out.",
        "Calls, plain sockets and settings take turns. In the figures each object is called 100 times as in the paper, or more where 5,000 \
         calls are not reached; each of 100,000 objects ten times, as those of the tables. Socket queues have 64K as there.",
        "Client and server share one processor.",
    ],
};

const CONFIGURATIONS: &[Configuration] = &[
    Configuration {
        full: "--iterations 100 --calls 20000",
        place: Place::TwoHosts,
        ..Configuration::new(
            "void-train",
            "latency --types void --algorithms train --modes oneway,twoway --objects 1,100,200,300,400,500 \
             --invocations sii,dii-new,dii-reused --queue 64K --peers ironorb --with operationLookup=linear+objectLookup=hash \
             --with operationLookup=hash+objectLookup=hash",
            [50, 8],
        )
    },
    Configuration {
        full: "--iterations 100 --calls 20000",
        place: Place::TwoHosts,
        ..Configuration::new(
            "void-robin",
            "latency --types void --algorithms robin --modes oneway,twoway --objects 1,100,200,300,400,500 \
             --invocations sii,dii-new,dii-reused --queue 64K --peers ironorb --with operationLookup=linear+objectLookup=hash \
             --with operationLookup=hash+objectLookup=hash",
            [50, 8],
        )
    },
    Configuration {
        full: "--iterations 100 --calls 20000",
        place: Place::TwoHosts,
        ..Configuration::new(
            "octets",
            "latency --types octet --algorithms robin --modes twoway --objects 1,100,200,300,400,500 \
             --invocations sii,dii-new,dii-reused --queue 64K --peers ironorb",
            [171, 15],
        )
    },
    Configuration {
        full: "--iterations 100 --calls 20000",
        place: Place::TwoHosts,
        ..Configuration::new(
            "structs",
            "latency --types struct --algorithms robin --modes twoway --objects 1,100,200,300,400,500 \
             --invocations sii,dii-new,dii-reused --queue 64K --peers ironorb",
            [188, 15],
        )
    },
    Configuration {
        full: "--iterations 100 --calls 200000",
        place: Place::TwoHosts,
        ..Configuration::new(
            LIMITS,
            "latency --types void --algorithms robin --modes twoway --objects 1000,10000,100000 --invocations sii \
             --queue 64K --peers ironorb",
            [136, 5],
        )
    },
    Configuration {
        place: Place::ProbesOnTwoHosts,
        ..Configuration::new(
            DEMULTIPLEXING,
            "latency --breakdown --types void --algorithms train,robin --modes oneway --objects 500 --iterations 10 \
             --repetitions 5 --invocations sii --queue 64K --peers ironorb",
            [3, 3],
        )
    },
    Configuration {
        place: Place::ProbesOnTwoHosts,
        ..Configuration::new(
            PATH,
            "latency --breakdown --types struct --units 1024 --algorithms robin --modes twoway --objects 1 \
             --invocations sii --queue 64K --peers ironorb",
            [3, 3],
        )
    },
];

const LIMITS: &str = "limits";
const DEMULTIPLEXING: &str = "demultiplexing";
const PATH: &str = "request-path";

/// The look-ups of the paper's ORBs as settings of this one.
const ORBIX: &str = "operationLookup=linear+objectLookup=hash";
const VISIBROKER: &str = "operationLookup=hash+objectLookup=hash";

const NO_NUMBERS: &str = "The paper draws this figure without numbers.";

macro_rules! void {
    ($name:literal $title:literal $configuration:literal $invocations:literal $settings:literal $note:expr) => {
        Figure {
            name: $name,
            title: $title,
            configuration: $configuration,
            shows: Shows::Curves(Curves {
                x: ("objects", axes::OBJECTS),
                y: ("subject", axes::MICROSECONDS),
                rows: &[&[("kind", "latency"), ("invocation", $invocations), ("settings", $settings)]],
                lines: &[("mode", ""), ("invocation", ""), ("settings", "with ")],
                baseline: None,
                paper: &[],
            }),
            note: $note,
        }
    };
}

macro_rules! sequences {
    ($name:literal $title:literal $configuration:literal $invocation:literal $note:expr) => {
        Figure {
            name: $name,
            title: $title,
            configuration: $configuration,
            shows: Shows::Curves(Curves {
                x: ("units", axes::UNITS),
                y: ("subject", axes::MICROSECONDS_LOG),
                rows: &[&[("kind", "latency"), ("invocation", $invocation)]],
                lines: &[("objects", "objects: ")],
                baseline: Some("plain socket"),
                paper: &[],
            }),
            note: $note,
        }
    };
}

const FIGURES: &[Figure] = &[
    void!("figure-4" "Orbix: no parameters, request train" "void-train" "sii|dii-new"
        "|operationLookup=linear+objectLookup=hash" NO_NUMBERS),
    void!("figure-5" "VisiBroker: no parameters, request train" "void-train" "sii|dii-reused"
        "|operationLookup=hash+objectLookup=hash" NO_NUMBERS),
    void!("figure-6" "Orbix: no parameters, round robin" "void-robin" "sii|dii-new"
        "|operationLookup=linear+objectLookup=hash"
        "The paper draws this figure without numbers. Its text: Orbix's twoways take 1.12 times as long for each 100 objects more."),
    void!("figure-7" "VisiBroker: no parameters, round robin" "void-robin" "sii|dii-reused"
        "|operationLookup=hash+objectLookup=hash" NO_NUMBERS),
    Figure {
        name: "figure-8",
        title: "Twoway latency beside plain sockets",
        configuration: "void-robin",
        shows: Shows::Curves(Curves {
            x: ("objects", axes::OBJECTS),
            y: ("subject", axes::MICROSECONDS),
            rows: &[&[("kind", "latency"), ("mode", "twoway"), ("invocation", "sii")]],
            lines: &[("peer", ""), ("settings", "with ")],
            baseline: Some("plain socket"),
            paper: &[],
        }),
        note: "The paper draws this figure without numbers. Its text: VisiBroker is 50 % as fast as plain sockets, Orbix 46 %.",
    },
    sequences!("figure-9" "Orbix: octets, twoway, static" "octets" "sii" NO_NUMBERS),
    sequences!("figure-10" "VisiBroker: octets, twoway, static" "octets" "sii"
        "The paper draws this figure without numbers. The same rows as figure 9: static calls do not differ here by the way of \
         looking objects up."),
    sequences!("figure-11" "Orbix: octets, twoway, a new dynamic request each" "octets" "dii-new" NO_NUMBERS),
    sequences!("figure-12" "VisiBroker: octets, twoway, a dynamic request sent again" "octets" "dii-reused" NO_NUMBERS),
    sequences!("figure-13" "Orbix: structs, twoway, static" "structs" "sii" NO_NUMBERS),
    sequences!("figure-14" "VisiBroker: structs, twoway, static" "structs" "sii"
        "The paper draws this figure without numbers. The same rows as figure 13: static calls do not differ here by the way of \
         looking objects up."),
    sequences!("figure-15" "Orbix: structs, twoway, a new dynamic request each" "structs" "dii-new" NO_NUMBERS),
    sequences!("figure-16" "VisiBroker: structs, twoway, a dynamic request sent again" "structs" "dii-reused" NO_NUMBERS),
    Figure {
        name: "figure-17",
        title: "Orbix: where a call with structs spends its time",
        configuration: PATH,
        shows: Shows::Table(|measured| path(measured, "Orbix", ["73", "25", "72"])),
        note: "Per cent of a side's time outside of reads, which are mostly waits, and of probes. The paper's shares are of a profiler.",
    },
    Figure {
        name: "figure-18",
        title: "VisiBroker: where a call with structs spends its time",
        configuration: PATH,
        shows: Shows::Table(|measured| path(measured, "VisiBroker", ["56", "42", "72"])),
        note: "Per cent of a side's time outside of reads, which are mostly waits, and of probes. VisiBroker's 72 has its demultiplexing, too.",
    },
    Figure {
        name: "table-1",
        title: "Orbix: demultiplexing of oneways to 500 objects, 10 iterations",
        configuration: DEMULTIPLEXING,
        shows: Shows::Table(|measured| demultiplexing(measured, "Orbix", TABLE_1)),
        note: DEMULTIPLEXED,
    },
    Figure {
        name: "table-2",
        title: "VisiBroker: demultiplexing of oneways to 500 objects, 10 iterations",
        configuration: DEMULTIPLEXING,
        shows: Shows::Table(|measured| demultiplexing(measured, "VisiBroker", TABLE_2)),
        note: DEMULTIPLEXED,
    },
];

const DEMULTIPLEXED: &str = "Milliseconds of 5,000 calls, and per cent of the side's time. Here reads include the time in which a side \
    waits for bytes; \"lookup\" finds the object and the operation. Verdicts are of the time outside of probes, which are the \
    instrument, and the server's outside of reads, too.";

/// Side, whether it is the request train, method, milliseconds and per cent.
type Profiled = (&'static str, &'static str, &'static str, f64, f64);

const TABLE_1: &[Profiled] = &[
    ("client", "no", "read", 112_795.0, 99.0),
    ("client", "yes", "read", 64_075.0, 99.0),
    ("server", "no", "strcmp", 2_559.0, 21.79),
    ("server", "no", "hashCode::lookup", 1_852.0, 15.77),
    ("server", "no", "write", 949.0, 8.08),
    ("server", "no", "select", 768.0, 6.54),
    ("server", "no", "hashCode::hash", 600.0, 5.10),
    ("server", "no", "SelectHandler::processSockets", 406.0, 3.45),
    ("server", "no", "read", 346.0, 2.95),
    ("server", "yes", "strcmp", 2_468.0, 21.35),
    ("server", "yes", "hashCode::lookup", 1_810.0, 15.66),
    ("server", "yes", "write", 960.0, 8.30),
    ("server", "yes", "select", 761.0, 6.59),
    ("server", "yes", "hashCode::hash", 595.0, 5.14),
    ("server", "yes", "SelectHandler::processSockets", 404.0, 3.50),
    ("server", "yes", "read", 323.0, 2.79),
];

const TABLE_2: &[Profiled] = &[
    ("client", "no", "write", 10_895.0, 99.0),
    ("client", "yes", "write", 10_992.0, 99.0),
    ("server", "no", "write", 393.0, 20.84),
    ("server", "no", "~NCTransDict", 138.0, 7.31),
    ("server", "no", "~NCClassInfoDict", 138.0, 7.31),
    ("server", "no", "read", 83.0, 4.40),
    ("server", "no", "NCOutTbl", 73.0, 3.84),
    ("server", "no", "NCClassInfoDict", 71.0, 3.75),
    ("server", "yes", "write", 275.0, 15.32),
    ("server", "yes", "~NCTransDict", 138.0, 7.67),
    ("server", "yes", "~NCClassInfoDict", 138.0, 7.67),
    ("server", "yes", "read", 83.0, 4.61),
    ("server", "yes", "NCOutTbl", 73.0, 4.03),
    ("server", "yes", "NCClassInfoDict", 71.0, 3.93),
];

/// Calls of tables 1 and 2: 500 objects, ten each.
const PROFILED_CALLS: f64 = 5_000.0;

/// The title of a group's rows in the table of stages.
fn row_of(train: &str) -> &'static str {
    if train == "yes" {
        "void oneway, train, 500 objects, sii"
    } else {
        "void oneway, robin, 500 objects, sii"
    }
}

fn demultiplexing(measured: &Measured, orb: &str, theirs: &[Profiled]) -> Grid {
    let mut grid = Grid::new(&["ORB", "method or category", "ms", "%"]);
    for side in ["client", "server"] {
        for train in ["no", "yes"] {
            let order = if train == "yes" { "request train" } else { "round robin" };
            grid.group(format!("{side}, {order}"));
            for (of, is_train, method, ms, percent) in theirs {
                if (*of, *is_train) == (side, train) {
                    grid.line([orb.to_owned(), (*method).to_owned(), shown(*ms), format!("{percent:.2}")]);
                }
            }
            for (category, ms, percent) in categories(measured.of(DEMULTIPLEXING), row_of(train), side) {
                let ms = shown(ms * PROFILED_CALLS / 1e3);
                grid.line(["IronORB".to_owned(), category, ms, format!("{percent:.2}")]);
            }
        }
    }
    grid
}

/// The categories of a side that take at least half a per cent, the largest first, with microseconds a call and per cent.
fn categories(rows: &super::rows::Rows, row: &str, side: &str) -> Vec<(String, f64, f64)> {
    let wanted = [("kind", "breakdown"), ("row", row), ("side", side), ("stage", "")];
    let category = |row: &super::rows::StoredRow| {
        Some((row.text("category"), row.median("us")?, row.median("percent")?))
    };
    let mut all: Vec<_> = rows.of(&wanted).filter_map(category).collect();
    all.retain(|(category, _, percent)| category != "all" && *percent >= 0.5);
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    all
}

/// Figures 17 and 18: shares of writing, of marshalling in the client, and of demarshalling in the server.
fn path(measured: &Measured, orb: &str, theirs: [&str; 3]) -> Grid {
    let mut grid = Grid::new(&["side", "part", orb, "IronORB"]);
    let percent = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.1}"));
    let parts = [
        ("client", "system: write", theirs[0], working(measured, "client", &["write"])),
        ("client", "marshalling and copies", theirs[1], working(measured, "client", MARSHALLING)),
        ("client", "the rest of the ORB", "", working(measured, "client", &["rest of the ORB", "lookup"])),
        ("server", "demarshalling", theirs[2], working(measured, "server", DEMARSHALLING)),
        ("server", "finding object and operation", "", working(measured, "server", &["lookup"])),
        ("server", "system: write", "", working(measured, "server", &["write"])),
        ("server", "the rest of the ORB", "", working(measured, "server", &["rest of the ORB"])),
    ];
    for (side, part, theirs, ours) in parts {
        grid.line([side.to_owned(), part.to_owned(), theirs.to_owned(), percent(ours)]);
    }
    grid
}

const MARSHALLING: &[&str] = &["populating and marshalling", "memcpy", "allocating memory"];
const DEMARSHALLING: &[&str] = &["demarshalling", "memcpy", "allocating memory", "typecode assertion"];

/// The per cent of these categories in a call with structs, of a side's time without probes and reads, which are mostly waits.
fn working(measured: &Measured, side: &str, wanted: &[&str]) -> Option<f64> {
    measured.of(PATH).time_share(&[("side", side)], wanted, &["read"])
}

/// A figure of calls without parameters: mode, invocation, settings and objects.
fn void(measured: &Measured, order: &str, figure: &str, of: [&str; 4]) -> Option<f64> {
    let [mode, invocation, settings, objects] = of;
    let wanted: [Wanted<'_>; 5] = [
        ("kind", "latency"),
        ("mode", mode),
        ("invocation", invocation),
        ("settings", settings),
        ("objects", objects),
    ];
    measured.of(order).median(figure, &wanted)
}

/// The growth from 1 to 500 objects of calls without parameters, beside plain sockets in the same turns.
fn growth(measured: &Measured, mode: &str) -> Option<f64> {
    let at = |objects| void(measured, "void-robin", "over_raw", [mode, "sii", "", objects]);
    Some(at("500")? / at("1")?)
}

/// Round robin over request train: twoways of 100 to 500 objects, beside plain sockets in the same turns.
fn robin_over_train(measured: &Measured, settings: &str) -> Option<f64> {
    let ratio = |objects| {
        let at = |order| void(measured, order, "over_raw", ["twoway", "sii", settings, objects]);
        Some(at("void-robin")? / at("void-train")?)
    };
    middle(["100", "200", "300", "400", "500"].into_iter().filter_map(ratio).collect())
}

/// Twoways without parameters, dynamic over static, at each number of objects.
fn dynamic(measured: &Measured, invocation: &str) -> Vec<f64> {
    let at = |objects| void(measured, "void-robin", "over_sii", ["twoway", invocation, "", objects]);
    ["1", "100", "200", "300", "400", "500"].into_iter().filter_map(at).collect()
}

/// A figure of twoways with sequences.
fn sequence(measured: &Measured, types: &str, figure: &str, of: [&str; 3]) -> Option<f64> {
    let [invocation, units, objects] = of;
    let wanted = [("kind", "latency"), ("invocation", invocation), ("units", units), ("objects", objects)];
    measured.of(types).median(figure, &wanted)
}

/// How much of the variance of latencies a straight line in the number of units explains.
fn linearity(measured: &Measured, types: &str) -> Option<f64> {
    let wanted = [("kind", "latency"), ("invocation", "sii"), ("objects", "1")];
    let points = measured.of(types).curve(("units", "subject"), &wanted);
    let number = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / number;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>();
    let (xy, xx, yy) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
    (points.len() > 2 && xx > 0.0 && yy > 0.0).then(|| xy * xy / (xx * yy))
}

/// The per cent of these categories in a side's time, of oneways without parameters to 500 objects in turn.
fn demultiplexed(measured: &Measured, side: &str, wanted: &[&str], left_out: &[&str]) -> Option<f64> {
    measured.of(DEMULTIPLEXING).time_share(&[("row", row_of("no")), ("side", side)], wanted, left_out)
}

/// The slowest of a hundred calls with 1,024 structs over the median, beside what that is with plain sockets in the same turns: the middle
/// over numbers of objects.
fn variance(measured: &Measured) -> Option<f64> {
    let spread = |row: &StoredRow, of: &str| Some(row.slowest(of)? / row.median(of)?);
    let ratio = |row: &StoredRow| Some(spread(row, "subject")? / spread(row, "raw")?);
    let calls = [("kind", "latency"), ("invocation", "sii"), ("units", "1024")];
    middle(measured.of("structs").of(&calls).filter_map(ratio).collect())
}

/// What calls with 1,024 structs to 500 objects take over those to one.
fn growth_with_structs(measured: &Measured) -> Option<f64> {
    let at = |objects| sequence(measured, "structs", "over_raw", ["sii", "1024", objects]);
    Some(at("500")? / at("1")?)
}

const CONCLUSIONS: &[Conclusion] = &[
    Conclusion {
        section: "abstract",
        theirs: "Buffers and conversions in the ORBs cause substantial variance of delays.",
        number: variance,
        ours: "The slowest of a hundred calls with 1,024 structs over the median is {} times what it is with plain sockets.",
        holds: (1.5, NONE),
        why: &[
            "What the ORB does for a call takes another time from call to call.",
            "What the ORB does for a call takes about the same time each: delays vary as the system's part does.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "Neither ORB caches the objects called last: request train and round robin take nearly the same time.",
        number: |measured| robin_over_train(measured, ""),
        ours: "With the request cache, round robin takes {} times as long as request train.",
        holds: (0.95, 1.05),
        why: &[
            "The server does cache, but finding an object by its number costs so little that the system's part of a call hides it.",
            "The request cache finds an object that is called again and again faster than one that is called in turn with others.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "Without a cache, request train and round robin take nearly the same time.",
        number: |measured| robin_over_train(measured, VISIBROKER),
        ours: "Without the request cache, round robin takes {} times as long as request train.",
        holds: (0.95, 1.05),
        why: &[
            "Nothing is remembered from call to call, and a hash finds any object in the same time.",
            "A train finds what it needs in the processor's caches, which a round over all objects does not.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "VisiBroker: the time of oneways hardly depends on the number of objects.",
        number: |measured| growth(measured, "oneway"),
        ours: "500 objects take {} times as long as one.",
        holds: (0.0, 1.1),
        why: &[
            "All references share one connection, and an object is found by its number.",
            "Oneways are short, so that the memory of 500 objects shows beside one that is always in the processor's cache.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "Orbix: the time of oneways grows about linearly with the number of objects.",
        number: |measured| growth(measured, "oneway"),
        ours: "500 objects take {} times as long as one.",
        holds: (1.25, NONE),
        why: &[
            "Oneways to many objects cost more here, too.",
            "Orbix opened a connection for each reference. Here all references share one, and no search grows with the objects.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "Orbix: beyond 200 objects oneways take longer than twoways, as the transport's flow control holds the client up.",
        number: |measured| {
            let at = |mode| void(measured, "void-robin", "subject", [mode, "sii", "", "500"]);
            Some(at("oneway")? / at("twoway")?)
        },
        ours: "With 500 objects a oneway takes {} times as long as a twoway.",
        holds: (1.0, NONE),
        why: &[
            "The server carries requests out more slowly than the client sends them, and flow control holds the client up.",
            "The server reads many oneways from one connection at once and keeps up with the client; a twoway waits for two wake-ups.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "VisiBroker: the time of twoways hardly depends on the number of objects.",
        number: |measured| growth(measured, "twoway"),
        ours: "500 objects take {} times as long as one.",
        holds: (0.0, 1.1),
        why: &[
            "All references share one connection, and an object is found by its number.",
            "Calls of many objects cost more here than in VisiBroker.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "Orbix: twoways take 1.12 times as long for each 100 objects more.",
        number: |measured| Some(growth(measured, "twoway")?.powf(0.2)),
        ours: "They take {} times as long for each 100 objects more.",
        holds: (1.06, NONE),
        why: &[
            "Calls of many objects cost more here, too.",
            "There is neither a connection for each reference nor a search that grows with the objects.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "VisiBroker: dynamic twoways take about as long as static ones, because a request can be sent again.",
        number: |measured| middle(dynamic(measured, "dii-reused")),
        ours: "A request sent again takes {} times as long as a static call.",
        holds: (0.0, 1.25),
        why: &[
            "A request keeps what does not change, and it is made only once.",
            "Even a request that is sent again costs more than a generated stub.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "Orbix: dynamic twoways take 2.6 times as long as static ones, because each needs a new request.",
        number: |measured| middle(dynamic(measured, "dii-new")),
        ours: "A new request for each call takes {} times as long as a static call.",
        holds: (2.0, NONE),
        why: &[
            "Making a request costs as much here as calls themselves do.",
            "A new request costs one description that is shared and no copy of its arguments: little beside the system's part.",
        ],
    },
    Conclusion {
        section: "4.1.1",
        theirs: "Orbix: dynamic twoways always take longer than static ones.",
        number: |measured| dynamic(measured, "dii-new").into_iter().reduce(f64::min),
        ours: "At each number of objects they take at least {} times as long.",
        holds: (1.0, NONE),
        why: &[
            "A request is made for each call, and that is never free.",
            "The difference is smaller than what the system's part of a call varies by.",
        ],
    },
    Conclusion {
        section: "4.1",
        theirs: "Calls are half as fast as plain sockets: VisiBroker 50 %, Orbix 46 %.",
        number: |measured| {
            Some(100.0 / void(measured, "void-robin", "over_raw", ["twoway", "sii", "", "1"])?)
        },
        ours: "Calls are {} % as fast as plain sockets.",
        holds: (0.0, 60.0),
        why: &[
            "Here, too, the ORB costs about as much as the system.",
            "The ORB adds some 1,300 instructions on both sides together to what the system does for the same bytes, and no system call.",
        ],
    },
    Conclusion {
        section: "4.2.1",
        theirs: "The time of calls grows linearly with the size of the request.",
        number: |measured| linearity(measured, "structs"),
        ours: "A straight line explains {} of the variance of calls with 1 to 1,024 structs.",
        holds: (0.97, NONE),
        why: &[
            "Each struct costs the same to copy and to send.",
            "Plain sockets have the same bend: structs cost little until they no longer fit one packet of the network, and the second \
             packet costs some microseconds at once.",
        ],
    },
    Conclusion {
        section: "4.2",
        theirs: "Octets take far less time than as many structs, whose conversion costs.",
        number: |measured| {
            let at = |types| sequence(measured, types, "subject", ["sii", "1024", "1"]);
            Some(at("structs")? / at("octets")?)
        },
        ours: "1,024 structs take {} times as long as 1,024 octets.",
        holds: (1.5, NONE),
        why: &[
            "They are 24 times as many bytes, with padding that has to be cleared.",
            "Structs are copied nearly as fast as octets, and the system's part of a call hides the difference.",
        ],
    },
    Conclusion {
        section: "4.2.1",
        theirs: "VisiBroker: with parameters, too, the time does not depend on the number of objects.",
        number: growth_with_structs,
        ours: "Calls with 1,024 structs to 500 objects take {} times as long as to one.",
        holds: (0.0, 1.1),
        why: &[
            "Object and operation are found in a time that grows with neither.",
            "The parameters and 500 objects compete for the processor's caches.",
        ],
    },
    Conclusion {
        section: "4.2.1",
        theirs: "Orbix: with parameters, too, the time grows linearly with the number of objects.",
        number: growth_with_structs,
        ours: "Calls with 1,024 structs to 500 objects take {} times as long as to one.",
        holds: (1.3, NONE),
        why: &[
            "The server looks through its objects, or the system through as many sockets.",
            "One connection leads to all objects, and the server finds each by its key in one step.",
        ],
    },
    Conclusion {
        section: "4.2.1",
        theirs: "Orbix: with octets, a dynamic call takes 3 times as long as a static one.",
        number: |measured| sequence(measured, "octets", "over_sii", ["dii-new", "1024", "1"]),
        ours: "With 1,024 octets it takes {} times as long.",
        holds: (2.0, NONE),
        why: &[
            "A new request and its argument cost as much as a call.",
            "A request borrows its octets, and they are copied once, as by a stub.",
        ],
    },
    Conclusion {
        section: "4.2.1",
        theirs: "VisiBroker: with octets, a dynamic call takes about as long as a static one.",
        number: |measured| sequence(measured, "octets", "over_sii", ["dii-reused", "1024", "1"]),
        ours: "With 1,024 octets it takes {} times as long.",
        holds: (0.0, 1.25),
        why: &[
            "A request that is sent again does what a stub does.",
            "Setting the argument anew costs more than a stub's call.",
        ],
    },
    Conclusion {
        section: "4.2.1",
        theirs: "Orbix: with structs, a dynamic call takes 14 times as long as a static one.",
        number: |measured| sequence(measured, "structs", "over_sii", ["dii-new", "1024", "1"]),
        ours: "With 1,024 structs it takes {} times as long.",
        holds: (2.0, NONE),
        why: &[
            "Structs are marshalled member by member through their type's description.",
            "A request marshals its structs by the same code as a stub, without a copy into an any.",
        ],
    },
    Conclusion {
        section: "4.2.1",
        theirs: "VisiBroker: with structs, a dynamic call takes 4 times as long as a static one.",
        number: |measured| sequence(measured, "structs", "over_sii", ["dii-reused", "1024", "1"]),
        ours: "With 1,024 structs it takes {} times as long.",
        holds: (2.0, NONE),
        why: &[
            "Structs are marshalled member by member through their type's description.",
            "A request marshals its structs by the same code as a stub, without a copy into an any.",
        ],
    },
    Conclusion {
        section: "4.2",
        theirs: "A dynamic call with 1,024 structs takes 4.5 times as long where requests cannot be sent again (Orbix) as where \
                 they can (VisiBroker).",
        number: |measured| {
            let at = |invocation| sequence(measured, "structs", "over_sii", [invocation, "1024", "1"]);
            Some(at("dii-new")? / at("dii-reused")?)
        },
        ours: "It takes {} times as long with a new request as with one that is sent again.",
        holds: (1.5, NONE),
        why: &[
            "Making the request outweighs its structs.",
            "What differs is only the making of a request, which is small beside 24 KB of structs.",
        ],
    },
    Conclusion {
        section: "4.5",
        theirs: "Most of the sender's time goes into system calls that send: 73 % (Orbix), 56 % (VisiBroker).",
        number: |measured| working(measured, "client", &["write"]),
        ours: "{} % of the client's time outside of reads and probes goes into writes.",
        holds: (50.0, NONE),
        why: &[
            "What the ORB itself does is little beside the copy into the system and its protocols.",
            "Client and server share a processor, and structs are copied here once, so that the system's part is no longer the largest.",
        ],
    },
    Conclusion {
        section: "4.5",
        theirs: "Most of the receiver's time goes into demarshalling and demultiplexing: 72 % of either ORB.",
        number: |measured| {
            Some(working(measured, "server", DEMARSHALLING)? + working(measured, "server", &["lookup"])?)
        },
        ours: "{} % of the server's time outside of reads and probes goes into them.",
        holds: (50.0, NONE),
        why: &[
            "Structs are still the most that a server does with such a call.",
            "Structs with the layout of the wire are lent to the servant as they lie in the message, and look-ups do not search.",
        ],
    },
    Conclusion {
        section: "4.3.3",
        theirs: "Demultiplexing takes 22 % (VisiBroker, hashing) to 43 % (Orbix, strcmp and hash tables) of the server's time.",
        number: |measured| demultiplexed(measured, "server", &["lookup"], &["read"]),
        ours: "Finding object and operation takes {} % of the server's time outside of reads and probes.",
        holds: (15.0, NONE),
        why: &[
            "A look-up takes little time, but a oneway without parameters leaves the server little else to do outside of the system.",
            "The object is an index in the key, and the operation comes from the request cache or one perfect hash.",
        ],
    },
    Conclusion {
        section: "4.3.3",
        theirs: "The client of oneways spends 99 % of its time in the system: reads in Orbix, writes in VisiBroker.",
        number: |measured| demultiplexed(measured, "client", &["write", "read"], &[]),
        ours: "{} % of the client's time outside of probes goes into writes and reads.",
        holds: (90.0, NONE),
        why: &[
            "A oneway costs the client little more than its system call.",
            "The system's calls have become cheap enough for the ORB's own instructions to show.",
        ],
    },
    Conclusion {
        section: "4.3.3",
        theirs: "VisiBroker has one connection for all references to a server, and Orbix one for each.",
        number: |measured| void(measured, "void-robin", "connections", ["twoway", "sii", "", "500"]),
        ours: "The client of 500 objects has {} connection(s).",
        holds: (0.0, 2.0),
        why: &[
            "As VisiBroker: references to one server share connections; threads have their own, and there is one thread.",
            "As Orbix: references do not share their connections.",
        ],
    },
    Conclusion {
        section: "4.5",
        theirs: "Linear search for operations makes Orbix's demultiplexing worse than VisiBroker's hashing.",
        number: |measured| {
            let at = |settings| void(measured, "void-robin", "over_raw", ["twoway", "sii", settings, "500"]);
            Some(at(ORBIX)? / at(VISIBROKER)?)
        },
        ours: "With linear search a call takes {} times as long as with hashing.",
        holds: (1.02, NONE),
        why: &[
            "The search compares strings for each call.",
            "The interface has some 14 operations: comparing their names costs tens of nanoseconds, which the system's part hides.",
        ],
    },
    Conclusion {
        section: "4.4",
        theirs: "Neither ORB can serve more than about 1,000 objects.",
        number: |measured| {
            let rows = measured.of(LIMITS).curve(("objects", "subject"), &[("kind", "latency")]);
            rows.last().map(|(objects, _)| *objects)
        },
        ours: "{} objects were called.",
        holds: (0.0, 1_000.0),
        why: &["Larger numbers of objects failed.", "No object costs a connection or a descriptor."],
    },
    Conclusion {
        section: "4.4",
        theirs: "With 1,000 objects VisiBroker crashes after 80,000 requests.",
        number: answered,
        ours: "{} requests to 1,000 objects were answered.",
        holds: (0.0, 80_000.0),
        why: &["The run with more requests failed.", "Requests leave nothing behind in the server's memory."],
    },
    Conclusion {
        section: "4.5",
        theirs: "ORBs spend too much of their time in calls between their own layers.",
        number: |measured| working(measured, "server", &["rest of the ORB"]),
        ours: "{} % of the server's time outside of reads and probes goes into parts of the ORB other than (de)marshalling and look-ups.",
        holds: (20.0, NONE),
        why: &[
            "Beside structs that cost little, the fixed part of a call shows.",
            "Each layer is compiled into the next: a call takes some 850 instructions in the server.",
        ],
    },
    Conclusion {
        section: "4.5",
        theirs: "The larger the request, the worse is DII beside static calls.",
        number: |measured| {
            let at = |units| sequence(measured, "structs", "over_sii", ["dii-new", units, "1"]);
            Some(at("1024")? / at("1")?)
        },
        ours: "The ratio of dynamic to static calls with 1,024 structs is {} times that with one.",
        holds: (1.1, NONE),
        why: &[
            "The description of the type is walked for each struct.",
            "A request's fixed cost is spread over more bytes, and its structs are marshalled as by a stub.",
        ],
    },
];

/// How many requests were answered to 1,000 objects: none if the run failed. A run of fewer than 80,000 tells nothing.
fn answered(measured: &Measured) -> Option<f64> {
    let wanted = [("kind", "latency"), ("objects", "1000")];
    let row = measured.of(LIMITS).of(&wanted).next()?;
    let calls = row.count("calls").filter(|calls| *calls > 80_000.0)?;
    Some(if row.median("subject").is_some() { calls } else { 0.0 })
}
