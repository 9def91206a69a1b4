//! "The Performance of the CORBA Dynamic Invocation Interface and Dynamic Skeleton Interface over High-Speed ATM Networks", Gokhale and
//! Schmidt, GLOBECOM 1996. Facts only.
//!
//! The paper shows its figures as plots without numbers. The points here are those in its text, and those that follow from its
//! tables: a category's milliseconds and per cent tell how long the 64 MB took.

use super::axes;
use super::catalogue::{
    Conclusion, Configuration, Curve, Curves, Figure, Grid, NONE, Paper, Place, Runs, Shows, shown,
};
use super::rows::{Measured, StoredRow, Wanted};
use crate::statistics::middle;

pub(super) const PAPER: Paper = Paper {
    tag: "dii-96",
    title: "Dynamic invocation and dynamic skeletons",
    by: "Gokhale and Schmidt, GLOBECOM 1996",
    there: "Orbix 2.0 and ORBeline 2.0 on two SPARCstation 20 with two processors of 70 MHz each, SunOS 5.5, ATM of 155 Mbit/s with an \
            MTU of 9,180 bytes; socket queues of 64K",
    configurations: CONFIGURATIONS,
    figures: FIGURES,
    conclusions: CONCLUSIONS,
    differs: &[
        "The paper's figures are of two ORBs. Here one ORB makes a new request for each call (dii-new), as both did in figures 2 and 3, \
         or sends one request again with its data set anew (dii-reused), as ORBeline could.",
        "A run of oneways ends with a call that is answered once all have arrived, so that rates are of what the receiver has.",
        "Client and server have a processor each. 64 MB in each run, and queues of 64K, as in the paper; ten runs where there is time for them.",
        "The paper's loopback went through the backplane at 1.4 Gbit/s; here memory is some hundred times as fast as its processors \
         were, and the system's share of a call is larger.",
    ],
};

pub(super) const TYPES: &[&str] = &["short", "char", "long", "octet", "double", "struct"];

const BUFFERS_OF_QUICK: &str = "--quick --buffers 1K,8K,16K,128K";

macro_rules! rates {
    ($name:literal $modes:literal $invocations:literal $servants:literal $place:expr, $seconds:expr) => {
        Configuration {
            each: TYPES,
            runs: Some(Runs { wanted: 10, least: 2 }),
            quick: BUFFERS_OF_QUICK,
            place: $place,
            ..Configuration::new(
                $name,
                concat!(
                    "ttcp --rates-only --types {} --modes ",
                    $modes,
                    " --invocations ",
                    $invocations,
                    " --servants ",
                    $servants,
                    " --transports tcp --queue 64K --peers ironorb"
                ),
                $seconds,
            )
        }
    };
}

const CONFIGURATIONS: &[Configuration] = &[
    rates!("oneway" "oneway" "dii-new,dii-reused,dii-unchanged" "static" Place::TwoHosts, [78, 2]),
    rates!("oneway-loopback" "oneway" "dii-new,dii-reused" "static" Place::OneHost, [50, 2]),
    rates!("twoway" "twoway" "dii-new,dii-reused" "static" Place::TwoHosts, [149, 3]),
    rates!("twoway-loopback" "twoway" "dii-new,dii-reused" "static" Place::OneHost, [142, 3]),
    rates!("dynamic-skeletons" "oneway,twoway" "dii-reused" "dsi" Place::TwoHosts, [141, 3]),
    Configuration {
        full: "--repetitions 10",
        place: Place::ProbesOnTwoHosts,
        ..Configuration::new(
            BREAKDOWN,
            "ttcp --breakdown --transports tcp --queue 64K --types octet,struct --buffers 128K \
             --invocations dii-new,dii-reused --peers ironorb",
            [11, 4],
        )
    },
];

const BREAKDOWN: &str = "breakdown";

macro_rules! rate {
    ($name:literal $title:literal $configuration:literal $mode:literal $invocation:literal $paper:expr, $note:expr) => {
        Figure {
            name: $name,
            title: $title,
            configuration: $configuration,
            shows: Shows::Curves(Curves {
                x: ("buffer_bytes", axes::BUFFER),
                y: ("subject", axes::MEGABITS),
                rows: &[&[("kind", "rate"), ("mode", $mode), ("invocation", $invocation)]],
                lines: &[("type", ""), ("invocation", "")],
                baseline: None,
                paper: $paper,
            }),
            note: $note,
        }
    };
}

const PROFILED: &str = "Points from a table follow from its times, which are those under the profiler: they do not agree with the \
    throughputs of the text.";

/// The largest buffer of the paper, of which its text and tables tell.
const K128: f64 = 131_072.0;

const FIGURES: &[Figure] = &[
    rate!("figure-2" "Orbix: oneway, a new request each" "oneway" "oneway" "dii-new" &[
        Curve("Orbix, shorts", &[(K128, 34.0)]),
        Curve("Orbix, octets (from table 1)", &[(K128, 14.8)]),
        Curve("Orbix, structs (from table 1)", &[(K128, 1.30)]),
    ], PROFILED),
    rate!("figure-3" "ORBeline: oneway, a new request each" "oneway" "oneway" "dii-new" &[
        Curve("ORBeline, shorts", &[(K128, 7.0)]),
        Curve("ORBeline, octets (from table 1)", &[(K128, 71.0)]),
        Curve("ORBeline, structs (from table 1)", &[(K128, 3.85)]),
    ], PROFILED),
    rate!("figure-4" "ORBeline: oneway, one request sent again" "oneway" "oneway" "dii-reused" &[
        Curve("ORBeline, octets (from table 1)", &[(K128, 79.5)]),
        Curve("ORBeline, structs (from table 1)", &[(K128, 4.55)]),
    ], PROFILED),
    rate!("figure-5" "Oneway over loopback" "oneway-loopback" "oneway" "dii-new|dii-reused" &[],
        "The paper draws this figure without numbers."),
    rate!("figure-6" "Twoway" "twoway" "twoway" "dii-new|dii-reused" &[],
        "The paper draws this figure without numbers. Its text: twoways have 80 % of the throughput of oneways."),
    rate!("figure-7" "Twoway over loopback" "twoway-loopback" "twoway" "dii-new|dii-reused" &[],
        "The paper draws this figure without numbers."),
    rate!("figure-8" "ORBeline: twoway to dynamic skeletons" "dynamic-skeletons" "twoway" "dii-reused" &[
        Curve("ORBeline, octets (from table 3)", &[(K128, 65.8)]),
        Curve("ORBeline, structs (from table 3)", &[(K128, 0.969)]),
    ], PROFILED),
    Figure {
        name: "table-1",
        title: "DII: where the client's time goes",
        configuration: BREAKDOWN,
        shows: Shows::Table(|measured| breakdown(measured, "1", "client")),
        note: SHARES,
    },
    Figure {
        name: "table-2",
        title: "DII: where the server's time goes",
        configuration: BREAKDOWN,
        shows: Shows::Table(|measured| breakdown(measured, "2", "server")),
        note: SHARES,
    },
    Figure {
        name: "table-3",
        title: "DII to dynamic skeletons, twoway: where the time goes",
        configuration: BREAKDOWN,
        shows: Shows::Table(|measured| {
            let mut grid = breakdown(measured, "3", "client");
            grid.lines.extend(breakdown(measured, "3", "server").lines);
            grid
        }),
        note: SHARES,
    },
];

const SHARES: &str = "Milliseconds for 64 MB in buffers of 128K, and per cent of the side's time. Reads and writes include the time in \
    which a side waits. The paper's categories are those of a profiler; ours of at least half a per cent are shown. Verdicts are of the \
    time outside of probes, which are the instrument.";

fn breakdown(measured: &Measured, table: &str, side: &str) -> Grid {
    let mut grid = Grid::new(&["ORB", "category", "ms", "%"]);
    for ty in ["octet", "struct"] {
        grid.group(format!("{side}, {ty}s"));
        let wanted = [("table", table), ("side", side), ("type", ty)];
        for share in crate::ttcp::shares_of_paper().iter().filter(|share| share.is(&wanted)) {
            let figures = ["ms", "percent"].map(|name| share.median(name));
            grid.line(line_of_share([share.text("column"), share.text("category")], figures));
        }
        let rows = measured.of(BREAKDOWN);
        for invocation in ["dii-new", "dii-reused"] {
            let of = [&wanted[..], &[("kind", "breakdown"), ("stage", ""), ("column", invocation)]].concat();
            let mut ours: Vec<_> = rows.of(&of).filter(|row| row.text("category") != "all").collect();
            ours.retain(|row| row.median("percent") >= Some(0.5));
            let share = |row: &StoredRow| row.median("percent").unwrap_or(0.0);
            ours.sort_by(|a, b| share(b).total_cmp(&share(a)));
            for row in ours {
                let figures = ["ms", "percent"].map(|name| row.median(name));
                grid.line(line_of_share([format!("IronORB {invocation}"), row.text("category")], figures));
            }
        }
    }
    grid
}

fn line_of_share([orb, category]: [String; 2], [ms, share]: [Option<f64>; 2]) -> [String; 4] {
    [orb, category, ms.map_or_else(String::new, shown), percent(share)]
}

fn percent(number: Option<f64>) -> String {
    number.map_or_else(String::new, |number| format!("{number:.2}"))
}

/// The rate of sequences of a type in buffers of a size.
fn rate_of(
    measured: &Measured,
    configuration: &str,
    figure: &str,
    [mode, invocation, ty]: [&str; 3],
    bytes: u32,
) -> Option<f64> {
    let bytes = bytes.to_string();
    let wanted: [Wanted<'_>; 5] = [
        ("kind", "rate"),
        ("mode", mode),
        ("invocation", invocation),
        ("type", ty),
        ("buffer_bytes", &bytes),
    ];
    measured.of(configuration).median(figure, &wanted)
}

/// The throughput with the largest buffers as a part of that of plain sockets in the same turns. Types are measured one after the
/// other, and between them the machine changes by more than they differ.
fn of_raw(measured: &Measured, configuration: &str, of: [&str; 3]) -> Option<f64> {
    rate_of(measured, configuration, "of_raw", of, LARGEST)
}

fn oneway_of_raw(measured: &Measured, ty: &str) -> Option<f64> {
    of_raw(measured, "oneway", ["oneway", "dii-new", ty])
}

fn rate(measured: &Measured, configuration: &str, of: [&str; 3], bytes: u32) -> Option<f64> {
    rate_of(measured, configuration, "subject", of, bytes)
}

const LARGEST: u32 = 128 << 10;

/// The median over types of a ratio.
fn over_types(ratio: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    middle(TYPES.iter().filter_map(|ty| ratio(ty)).collect())
}

fn oneway(measured: &Measured, invocation: &str, ty: &str, bytes: u32) -> Option<f64> {
    rate(measured, "oneway", ["oneway", invocation, ty], bytes)
}

/// The rows of a side of a table: table, side, type and invocation.
fn side_of([table, side, ty, invocation]: [&str; 4]) -> [Wanted<'_>; 4] {
    [("table", table), ("side", side), ("type", ty), ("column", invocation)]
}

/// The per cent of categories in a side's time without the probes.
fn time_share(measured: &Measured, of: [&str; 4], categories: &[&str]) -> Option<f64> {
    measured.of(BREAKDOWN).time_share(&side_of(of), categories, &[])
}

/// What the client of structs takes to marshal them, with a new request for each call over one that is sent again.
fn marshalling_of_new(measured: &Measured) -> Option<f64> {
    let ms = |invocation| {
        let client = side_of(["1", "client", "struct", invocation]);
        measured.of(BREAKDOWN).sum("ms", &client, &["populating and marshalling", "memcpy"])
    };
    Some(ms("dii-new")? / ms("dii-reused")?)
}

/// The least per cent of categories that the sides of table 3 have of these types.
fn least_share(measured: &Measured, types: &[&str], categories: &[&str]) -> Option<f64> {
    let sides =
        types.iter().flat_map(|ty| [["3", "client", ty, "dii-reused"], ["3", "server", ty, "dii-reused"]]);
    let shares: Option<Vec<f64>> = sides.map(|side| time_share(measured, side, categories)).collect();
    shares?.into_iter().reduce(f64::min)
}

/// How many of the types have a throughput of twoways that is 70 to 90 % of that of oneways.
fn near_four_fifths(measured: &Measured) -> Option<f64> {
    let part = |ty: &&str| {
        let twoway = rate(measured, "twoway", ["twoway", "dii-new", ty], LARGEST)?;
        Some(twoway / oneway(measured, "dii-new", ty, LARGEST)?)
    };
    let parts: Option<Vec<f64>> = TYPES.iter().map(part).collect();
    Some(parts?.into_iter().filter(|part| (0.7..=0.9).contains(part)).count() as f64)
}

const CONCLUSIONS: &[Conclusion] = &[
    Conclusion {
        section: "1",
        theirs: "A request that is sent again gives twice the throughput of a new request for each call.",
        number: |measured| {
            over_types(|ty| {
                Some(oneway(measured, "dii-reused", ty, LARGEST)? / oneway(measured, "dii-new", ty, LARGEST)?)
            })
        },
        ours: "It gives {} times the throughput (median of the types, 128K).",
        holds: (1.5, NONE),
        why: &[
            "Making a request costs as much as sending 128K.",
            "A new request borrows its data and its description: it costs nanoseconds, and 128K cost microseconds.",
        ],
    },
    Conclusion {
        section: "5",
        theirs: "It is desirable to permit a request to be sent again, if it is oneway and its parameters do not change.",
        number: |measured| {
            over_types(|ty| {
                Some(
                    oneway(measured, "dii-unchanged", ty, 1 << 10)?
                        / oneway(measured, "dii-new", ty, 1 << 10)?,
                )
            })
        },
        ours: "Unchanged requests of 1K have {} times the throughput of new ones (median of the types).",
        holds: (1.2, NONE),
        why: &[
            "With small buffers, what need not be made again counts. CORBA 3 allows it, and so does this ORB.",
            "The system's part of a oneway hides what a new request costs, even with 1K.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Throughput differs greatly by type, as conversion costs differ.",
        number: |measured| {
            let rates = || TYPES.iter().filter_map(|ty| oneway_of_raw(measured, ty));
            Some(rates().reduce(f64::max)? / rates().reduce(f64::min)?)
        },
        ours: "The fastest type has {} times the throughput of the slowest, each beside plain sockets in the same turns.",
        holds: (2.0, NONE),
        why: &[
            "Structs with padding are copied element by element; numbers and octets leave from where they lie.",
            "All types leave as they lie in memory, or nearly so.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Structs have the lowest throughput of all types.",
        number: |measured| {
            let of = |ty: &str| oneway_of_raw(measured, ty);
            let others = TYPES.iter().filter(|ty| **ty != "struct");
            let slowest = others.filter_map(|ty| of(ty)).reduce(f64::min)?;
            Some(of("struct")? / slowest)
        },
        ours: "Structs have {} of the throughput of the slowest other type, each beside plain sockets in the same turns.",
        holds: (0.0, 1.0),
        why: &[
            "Their padding must not leave the process as it is, so that they are copied once.",
            "Structs with the layout of the wire are sent as fast as numbers.",
        ],
    },
    Conclusion {
        section: "1",
        theirs: "Structs are very slow beside octets: 1 to 4 Mbit/s (by the profiled times of table 1 octets take an 11th in Orbix and an \
                 18th in ORBeline).",
        number: |measured| {
            let at = |ty| oneway_of_raw(measured, ty);
            Some(at("octet")? / at("struct")?)
        },
        ours: "Octets have {} times the throughput of structs, each beside plain sockets in the same turns.",
        holds: (5.0, NONE),
        why: &[
            "Each struct is converted member by member.",
            "A struct costs a few instructions to copy, and none to read.",
        ],
    },
    Conclusion {
        section: "1",
        theirs: "Shorts in buffers of 128K have 34 Mbit/s in Orbix and 7 in ORBeline, over a network of 155 Mbit/s.",
        number: |measured| Some(100.0 * oneway_of_raw(measured, "short")?),
        ours: "They have {} % of the throughput of plain sockets in the same turns.",
        holds: (0.0, 30.0),
        why: &[
            "Shorts are converted one by one.",
            "Numbers in the machine's own byte order leave as they lie in memory.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Shorts are slower than longs, because there are more of them to convert.",
        number: |measured| {
            let at = |ty| oneway_of_raw(measured, ty);
            Some(at("short")? / at("long")?)
        },
        ours: "Shorts have {} of the throughput of longs, each beside plain sockets in the same turns.",
        holds: (0.0, 0.95),
        why: &[
            "Twice as many elements take longer to convert.",
            "Numbers in the machine's own byte order are copied as blocks, whatever their size.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Twoways have 80 % of the throughput of oneways, for each type.",
        number: near_four_fifths,
        ours: "They have 70 to 90 % with {} of 6 types (128K).",
        holds: (5.0, NONE),
        why: &[
            "Each call waits for two wake-ups, which are a fifth of what 128K take.",
            "The wait for a reply has another weight than on the paper's machines, and the machine varies between oneways and twoways, which \
             are measured some minutes apart.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Throughput rises with the size of the buffers, as there are fewer writes.",
        number: |measured| {
            over_types(|ty| {
                Some(oneway(measured, "dii-new", ty, LARGEST)? / oneway(measured, "dii-new", ty, 1 << 10)?)
            })
        },
        ours: "128K have {} times the throughput of 1K (median of the types).",
        holds: (1.5, NONE),
        why: &[
            "A write costs about as much for 1K as for several.",
            "Small oneways are so cheap that their number hardly matters.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "The rise levels off once buffers are larger than the network's MTU (9,180 bytes).",
        number: |measured| {
            over_types(|ty| {
                Some(oneway(measured, "dii-new", ty, LARGEST)? / oneway(measured, "dii-new", ty, 16 << 10)?)
            })
        },
        ours: "128K have {} times the throughput of 16K (median of the types).",
        holds: (0.8, 1.35),
        why: &[
            "From there on what a byte costs decides, and not what a write costs.",
            "The system takes large writes in one piece, whatever the MTU: a write still costs less for each byte of a larger buffer.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Over loopback, octets go on rising with the buffers, as nothing is fragmented.",
        number: |measured| {
            let at = |bytes| rate(measured, "oneway-loopback", ["oneway", "dii-new", "octet"], bytes);
            Some(at(LARGEST)? / at(8 << 10)?)
        },
        ours: "128K of octets have {} times the throughput of 8K.",
        holds: (1.2, NONE),
        why: &[
            "Each write costs, and larger ones carry more.",
            "The copies by the system are the limit from 8K on.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Clients of octets spend most of their time writing: 73 % (Orbix), 61 and 86 % (ORBeline).",
        number: |measured| time_share(measured, ["1", "client", "octet", "dii-new"], &["write"]),
        ours: "{} % of the client's time is writing.",
        holds: (60.0, NONE),
        why: &[
            "Nothing else has to be done with octets.",
            "The client waits for the receiver's last answer, or copies.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Orbix spends 97 % of the client's time marshalling structs (ORBeline 25 %, with copies).",
        number: |measured| {
            let parts = ["populating and marshalling", "memcpy", "allocating memory"];
            time_share(measured, ["1", "client", "struct", "dii-new"], &parts)
        },
        ours: "{} % of the client's time is marshalling structs and copying.",
        holds: (25.0, NONE),
        why: &[
            "Structs are copied once, because of their padding, and the system takes little longer for the same bytes.",
            "A struct is copied in a few instructions.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "A request that is sent again takes less time to marshal its structs: with copies a new one takes 2.4 times as long.",
        number: marshalling_of_new,
        ours: "A new request for each call takes {} times as long to populate, marshal and copy.",
        holds: (1.5, NONE),
        why: &[
            "What a request keeps need not be made again.",
            "Either copies its structs once into the message, and that is most of it.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "Orbix's server spends half of its time asserting type codes (octets; 28 % with structs).",
        number: |measured| time_share(measured, ["2", "server", "octet", "dii-new"], &["typecode assertion"]),
        ours: "{} % of the server's time.",
        holds: (10.0, NONE),
        why: &[
            "Types are compared for each call.",
            "A skeleton knows its types: none are compared on its way.",
        ],
    },
    Conclusion {
        section: "3.4.1",
        theirs: "The server of structs spends half of its time demarshalling: 49 % (Orbix), 59 % (ORBeline).",
        number: |measured| {
            time_share(measured, ["2", "server", "struct", "dii-new"], &["demarshalling", "memcpy"])
        },
        ours: "{} % of the server's time is demarshalling and copying.",
        holds: (40.0, NONE),
        why: &[
            "Its bytes are read once more than the system does.",
            "Structs with the layout of the wire are lent to the servant where they lie in the message.",
        ],
    },
    Conclusion {
        section: "3.4.2",
        theirs: "To dynamic skeletons, too, octets are the fastest and structs the slowest (68 times by the profiled times of table 3).",
        number: |measured| {
            let at = |ty| of_raw(measured, "dynamic-skeletons", ["twoway", "dii-reused", ty]);
            Some(at("octet")? / at("struct")?)
        },
        ours: "Octets have {} times the throughput of structs, each beside plain sockets in the same turns.",
        holds: (2.0, NONE),
        why: &[
            "An any of structs is checked and converted once more by its servant.",
            "An any keeps its bytes, and its structs are read in one pass.",
        ],
    },
    Conclusion {
        section: "3.4.2",
        theirs: "With dynamic skeletons and structs, either side spends more than nine tenths of its time in writes.",
        number: |measured| least_share(measured, &["struct"], &["write"]),
        ours: "On the side that has less of it, {} % of the time is writing.",
        holds: (90.0, NONE),
        why: &[
            "Either side waits in its writes for room, as the other is slow to read.",
            "A client of twoways waits in its reads for the reply, and a server in its own for the request.",
        ],
    },
    Conclusion {
        section: "1, 5",
        theirs: "Buffers that are not managed well make for long writes and reads: with dynamic skeletons 84 to 93 % of a side's time.",
        number: |measured| least_share(measured, &["octet", "struct"], &["write", "read"]),
        ours: "Of octets and structs, either side spends at least {} % of its time in writes and reads.",
        holds: (50.0, NONE),
        why: &[
            "Buffers are not the reason here: the system's copies and the waits for the other side take longer than what the ORB does.",
            "More than half of a side's time goes into what the ORB and the servant do.",
        ],
    },
    Conclusion {
        section: "3.4.2",
        theirs: "ORBeline often drops oneways to a server with dynamic skeletons.",
        number: |measured| {
            let wanted = [("kind", "rate"), ("mode", "oneway")];
            let lost = |row: &StoredRow| {
                // Every side runs once more, to warm up.
                let sent = row.count("elements_a_run")? * (row.count("repetitions")? + 1.0);
                Some(100.0 * (1.0 - row.count("elements_received")? / sent))
            };
            measured.of("dynamic-skeletons").of(&wanted).filter_map(lost).reduce(f64::max)
        },
        ours: "{} % of the elements of oneways were lost.",
        holds: (1e-6, NONE),
        why: &[
            "The receiver counted fewer than were sent.",
            "TCP loses nothing, and neither does the ORB: the receiver's counts are compared with what was sent.",
        ],
    },
];
