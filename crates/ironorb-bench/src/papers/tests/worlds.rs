//! Rows that no suite has measured: worlds in which ORBs are as the papers found them, and others in which they are not.

use serde_json::{Value, json};

use crate::papers::rows::{Measured, StoredRow};

/// What ORBs are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum World {
    /// As Orbix, TAO on Linux, MinORB, and so on: the papers' own numbers.
    OfPapers,
    /// As VisiBroker and LynxOS, where two of a paper's conclusions exclude one another.
    OfOthers,
    /// As no paper has seen it.
    Modern,
}

use World::{Modern, OfOthers, OfPapers};

impl World {
    pub(super) const ALL: [World; 3] = [OfPapers, OfOthers, Modern];

    /// All rows of the world.
    pub(super) fn rows(self) -> Measured {
        let mut measured = Measured::default();
        let mut add = |configuration: &str, rows: Vec<Value>| {
            measured.add(configuration, rows.iter().filter_map(|row| StoredRow::parse(&row.to_string())));
        };
        self.add_tao_97(&mut add);
        self.add_rt_99(&mut add);
        self.add_minorb_99(&mut add);
        self.add_dii_96(&mut add);
        self.add_par_04(&mut add);
        measured
    }

    /// A number of the world.
    fn of<T>(self, papers: T, others: T, modern: T) -> T {
        match self {
            OfPapers => papers,
            OfOthers => others,
            Modern => modern,
        }
    }
}

/// Takes the rows of a configuration.
type Add<'a> = &'a mut dyn FnMut(&str, Vec<Value>);

const OBJECTS: [u32; 6] = [1, 100, 200, 300, 400, 500];
const UNITS: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

impl World {
    fn add_tao_97(self, add: Add<'_>) {
        for (order, factor) in [("train", 1.0), ("robin", self.of(1.0, 1.0, 1.2))] {
            let mut rows = Vec::new();
            for objects in OBJECTS {
                for (settings, strategy) in [
                    ("", 1.0),
                    ("operationLookup=linear+objectLookup=hash", self.of(1.1, 1.1, 1.0)),
                    ("operationLookup=hash+objectLookup=hash", 1.0),
                ] {
                    for mode in ["twoway", "oneway"] {
                        for invocation in ["sii", "dii-new", "dii-reused"] {
                            let over_sii = match invocation {
                                "sii" => 1.0,
                                "dii-new" => self.of(2.6, 1.0, 0.98),
                                _ => self.of(2.6, 1.0, 1.0),
                            };
                            let (us, raw) = self.void(mode, objects);
                            let us = us * over_sii * strategy * factor;
                            rows.push(json!({
                                "kind": "latency", "mode": mode, "algorithm": order, "objects": objects,
                                "invocation": invocation, "settings": settings, "peer": "ironorb",
                                "raw": {"median_us": raw}, "subject": {"median_us": us},
                                "over_raw": {"median": us / raw}, "over_sii": {"median": over_sii},
                                "connections": if self == OfPapers { objects } else { 1 },
                                "machine": {"processors": self.of(16, 4, 2)},
                            }));
                        }
                    }
                }
            }
            add(&format!("void-{order}"), rows);
        }
        add("octets", self.sequences("octets"));
        add("structs", self.sequences("structs"));
        let limits = |objects: u32| {
            let mut row = json!({"kind": "latency", "objects": objects, "calls": 100_000});
            if self != OfPapers {
                row["subject"] = json!({"median_us": 7.0});
            }
            row
        };
        add(
            "limits",
            if self == Modern { vec![limits(1_000), limits(100_000)] } else { vec![limits(1_000)] },
        );
        let mut rows = Vec::new();
        for train in ["train", "robin"] {
            let row = format!("void oneway, {train}, 500 objects, sii");
            for (side, category, percent) in [
                ("client", "write", self.of(99.0, 99.0, 60.0)),
                ("client", "read", self.of(0.6, 0.6, 10.0)),
                ("client", "probes", self.of(0.0, 0.0, 10.0)),
                ("server", "lookup", self.of(43.0, 22.0, 1.0)),
                ("server", "read", self.of(3.0, 4.4, 80.0)),
            ] {
                rows.push(json!({
                    "kind": "breakdown", "row": row, "side": side, "category": category, "stage": "", "us": 3.0,
                    "percent": percent,
                }));
            }
        }
        add("demultiplexing", rows);
        let shares = |side: &'static str, shares: Vec<(&'static str, f64)>| {
            shares.into_iter().map(move |(category, percent)| {
                json!({
                    "kind": "breakdown", "side": side, "category": category, "stage": "", "us": 1.0, "percent": percent,
                })
            })
        };
        let client = vec![
            ("write", self.of(73.0, 56.0, 20.0)),
            ("populating and marshalling", self.of(25.0, 42.0, 10.0)),
            ("read", self.of(1.0, 1.0, 20.0)),
        ];
        let server = vec![
            ("demarshalling", self.of(72.0, 50.0, 20.0)),
            ("lookup", self.of(2.0, 22.0, 2.0)),
            ("rest of the ORB", self.of(22.0, 22.0, 5.0)),
            ("read", self.of(1.0, 1.0, 20.0)),
        ];
        add("request-path", shares("client", client).chain(shares("server", server)).collect());
    }

    /// A call without parameters, and plain sockets.
    fn void(self, mode: &str, objects: u32) -> (f64, f64) {
        let hundreds = f64::from(objects) / 100.0;
        match (self, mode) {
            (OfPapers, "twoway") => (100.0 * 1.12f64.powf(hundreds), 46.0),
            (OfPapers, _) => (90.0 * (1.0 + 0.5 * hundreds), 40.0),
            (OfOthers, "twoway") => (90.0, 45.0),
            (OfOthers, _) => (50.0, 40.0),
            (Modern, "twoway") => (7.5, 7.0),
            (Modern, _) => (0.6, 0.5),
        }
    }

    fn sequences(self, types: &str) -> Vec<Value> {
        let is_struct = types == "structs";
        let mut rows = Vec::new();
        for (place, units) in UNITS.into_iter().enumerate() {
            for objects in OBJECTS {
                let growth = if self == OfPapers { 1.12f64.powf(f64::from(objects) / 100.0) } else { 1.0 };
                let us = match (self, is_struct) {
                    // Up and down: no line explains it.
                    (Modern, true) => [10.0, 14.0][place % 2],
                    (Modern, false) => 9.5,
                    (_, true) => 100.0 + 2.0 * f64::from(units),
                    (_, false) => 100.0 + 0.1 * f64::from(units),
                };
                for invocation in ["sii", "dii-new", "dii-reused"] {
                    let of_new = if is_struct { self.of(14.0, 5.0, 1.0) } else { self.of(3.0, 1.0, 1.0) };
                    let of_reused = if is_struct { self.of(4.0, 4.0, 1.0) } else { self.of(3.0, 1.0, 1.0) };
                    let over_sii = match (invocation, units) {
                        ("sii", _) => 1.0,
                        ("dii-new", 1) => self.of(3.0, 1.5, 1.3),
                        ("dii-new", _) => of_new,
                        _ => of_reused,
                    };
                    rows.push(json!({
                        "kind": "latency", "objects": objects, "units": units, "invocation": invocation,
                        "raw": {"median_us": 40.0, "p99_us": 60.0},
                        "subject": {"median_us": us * growth * over_sii, "p99_us": us * growth * over_sii * self.of(4.0, 3.0, 1.5)},
                        "over_raw": {"median": us * growth * over_sii / 40.0}, "over_sii": {"median": over_sii},
                    }));
                }
            }
        }
        rows
    }

    fn add_rt_99(self, add: Add<'_>) {
        let mut rows = Vec::new();
        for clients in [0, 5, 10, 15, 20, 25, 30, 40, 50] {
            // Linux ran out of descriptors.
            if self == OfPapers && clients > 40 {
                continue;
            }
            for side in ["lanes", "twin"] {
                let growth = self.of(1.0 + 2.06 * f64::from(clients) / 40.0, 1.0, 1.7);
                let of_twin = if side == "twin" { self.of(1.0, 1.0, 0.4) } else { 1.0 };
                let mean = 236.0 * growth * of_twin;
                rows.push(json!({
                    "kind": "high", "since": "call", "side": side, "clients": clients, "mean_us": mean,
                    "sd_us": mean * self.of(0.4, 0.1, 0.01 + f64::from(clients) / 5_000.0), "max_us": mean * self.of(5.0, 1.5, 5.0), "over_0": {"median": growth},
                }));
                let low = self.of(1.0, 1.0 + f64::from(clients) / 10.0, 1.0);
                rows.push(json!({
                    "kind": "low", "since": "call", "side": side, "clients": clients, "mean_us": 300.0 * low, "sd_us": 50.0 * low,
                }));
            }
        }
        add("high-and-low", rows);
        let cube = |row: &str, mode: &str, us: f64| {
            json!({
                "kind": "row", "row": row, "mode": mode, "raw": {"median_us": 200.0}, "subject": {"median_us": us},
                "over_raw": {"median": us / 200.0},
            })
        };
        add(
            "cubit",
            vec![
                cube("void", "twoway", 236.0),
                cube("long", "twoway", self.of(236.0, 262.0, 300.0)),
                cube("manies-1024", "twoway", self.of(2_000.0, 2_000.0, 310.0)),
                cube("void", "oneway", self.of(72.0, 72.0, 200.0)),
            ],
        );
        let time = |what: &str, us: f64, scavenged: f64| {
            json!({
                "kind": "time", "what": what, "calls": 1_000, "seconds": us / 1e3,
                "sd_seconds": us / 1e3 * self.of(0.0675, 0.01, 0.001), "us_each": us,
                "scavenger_runs_per_100": scavenged,
            })
        };
        let collocated = self.of(0.02, 0.02, 0.05);
        let both = collocated * self.of(1.07, 1.05, 400.0);
        add(
            "overhead",
            vec![
                time("client-server", both, self.of(2.3, 0.0, 0.0)),
                time("collocated", collocated, 0.0),
                time("plain", both, 0.0),
                json!({"kind": "difference", "what": "T_CS - T_CO", "us_each": both - collocated, "sd_seconds": 0.1}),
            ],
        );
    }

    fn add_minorb_99(self, add: Add<'_>) {
        let is_modern = self == Modern;
        let most = if is_modern { 1e6 } else { 1e9 };
        let case_1 = [(1e4, 1.0), (most, self.of(1.008, 1.0, 1.5))].map(|(objects, over)| {
            json!({
                "kind": "latency", "layout": "one core", "row": "read", "objects": objects, "raw": {"median_us": 516.0},
                "subject": {"median_us": 516.0 * over}, "over_raw": {"median": over},
            })
        });
        let made = json!({"kind": "creation", "objects": most, "bytes_each": self.of(92.0, 12.0, 200.0)});
        add("case-1", case_1.into_iter().chain([made]).collect());
        let rival = |objects: u32, over: f64| {
            json!({
                "kind": "rivals", "layout": "one core", "row": "read", "objects_are": "activated", "peer": "omniorb",
                "objects": objects, "memory_ended": objects == 953_000, "over_raw": {"median": over},
            })
        };
        let most = self.of(953_000, 500_000, 1_000_000);
        add(
            "case-1-omniorb",
            vec![rival(100, self.of(0.98, 0.98, 1.4)), rival(most, self.of(4.6, 4.6, 1.4))],
        );
        let rate = |clients: u32| {
            let linear = 6_000.0 * f64::from(clients);
            let rate = match (self, clients) {
                (Modern, _) => 10_000.0 + f64::from(clients),
                (_, 9) => 42_500.0,
                _ => linear,
            };
            json!({
                "kind": "throughput", "side": "ironorb", "clients": clients, "raw": {"median_calls_s": rate},
                "subject": {"median_calls_s": rate},
            })
        };
        add("case-2", (1..=9).map(rate).collect());
        let mut shares = Vec::new();
        for (layout, cached, reads, of_papers, of_modern) in [
            ("one core", 0, 0, 1.0, 1.5),
            ("one core", 0, 50, 1.0, 1.0),
            ("one core", 0, 100, 1.0, 1.0),
            ("one core", 50, 100, 0.505, 0.2),
            ("one core", 100, 0, 1.1, 3.0),
            ("one core", 100, 50, 0.55, 1.2),
            ("one core", 100, 100, 0.01, 0.1),
            ("a core each", 0, 0, 1.0, 1.5),
            ("a core each", 100, 0, 1.05, 6.0),
        ] {
            let over = if is_modern { of_modern } else { of_papers };
            shares.push(json!({
                "kind": "shares", "layout": layout, "peer": "ironorb", "cached_percent": cached, "read_percent": reads,
                "raw": {"median_us": 600.0}, "subject": {"median_us": 600.0 * over}, "over_raw": {"median": over},
            }));
        }
        add("case-3", shares);
        let delays = [(0, 0.5), (1, self.of(0.05, 0.05, 0.5))].map(|(rtt_ms, over)| {
            json!({
                "kind": "delays", "rtt_ms": rtt_ms, "cached_percent": 100, "read_percent": 100, "over_raw": {"median": over},
            })
        });
        add("case-3-networks", delays.into());
        let lags = [
            (10, 680.0, 1.0),
            (6_000, self.of(652.0, 652.0, 800.0), self.of(0.05, 0.05, 0.5)),
            (10_000, self.of(652.0, 652.0, 680.0), self.of(0.05, 0.05, 0.5)),
        ];
        add(
            "case-4",
            lags.map(|(lag, us, messages)| {
                json!({
                    "kind": "lags", "lag_us": lag, "peer": "ironorb", "raw": {"median_us": 600.0}, "subject": {"median_us": us},
                    "messages_per_write": messages,
                })
            })
            .into(),
        );
        add(
            "simulated",
            vec![json!({"kind": "runs", "side": "ironorb", "of_model": self.of(0.98, 0.98, 0.5)})],
        );
    }

    fn add_dii_96(self, add: Add<'_>) {
        let modes: [(&str, &[&str]); 5] = [
            ("oneway", &["oneway"]),
            ("oneway-loopback", &["oneway"]),
            ("twoway", &["twoway"]),
            ("twoway-loopback", &["twoway"]),
            ("dynamic-skeletons", &["oneway", "twoway"]),
        ];
        for (configuration, modes) in modes {
            let mut rows = Vec::new();
            for mode in modes {
                for ty in super::super::dii_96::TYPES {
                    for invocation in ["dii-new", "dii-reused", "dii-unchanged"] {
                        for bytes in [1 << 10, 8 << 10, 16 << 10, 128 << 10] {
                            rows.push(json!({
                                "kind": "rate", "mode": mode, "type": ty, "invocation": invocation, "buffer_bytes": bytes,
                                "subject": {"median_mbit_s": self.rate(mode, ty, invocation, bytes)},
                                "of_raw": {"median": self.rate(mode, ty, invocation, bytes) / 10_000.0},
                                "elements_a_run": 1_000, "repetitions": 9,
                                "elements_received": self.of(9_000, 10_000, 10_000),
                            }));
                        }
                    }
                }
            }
            add(configuration, rows);
        }
        let share = |table: u8, side: &str, ty: &str, invocation: &str, category: &str, percent: f64| {
            json!({
                "kind": "breakdown", "stage": "", "table": table, "side": side, "type": ty, "column": invocation,
                "category": category, "ms": 10.0 * percent, "percent": percent,
            })
        };
        add(
            "breakdown",
            vec![
                share(1, "client", "octet", "dii-new", "write", self.of(73.5, 61.1, 40.0)),
                share(
                    1,
                    "client",
                    "struct",
                    "dii-new",
                    "populating and marshalling",
                    self.of(96.6, 16.0, 10.0),
                ),
                share(1, "client", "struct", "dii-new", "memcpy", self.of(0.0, 9.6, 1.0)),
                share(
                    1,
                    "client",
                    "struct",
                    "dii-reused",
                    "populating and marshalling",
                    self.of(40.0, 12.0, 9.0),
                ),
                share(2, "server", "octet", "dii-new", "typecode assertion", self.of(50.0, 0.0, 0.0)),
                share(2, "server", "struct", "dii-new", "demarshalling", self.of(49.0, 58.5, 1.0)),
                share(3, "client", "octet", "dii-reused", "write", self.of(35.8, 35.8, 70.0)),
                share(3, "client", "octet", "dii-reused", "read", self.of(48.0, 48.0, 10.0)),
                share(3, "client", "struct", "dii-reused", "write", self.of(91.3, 91.3, 92.0)),
                share(3, "server", "octet", "dii-reused", "write", self.of(82.0, 82.0, 10.0)),
                share(3, "server", "octet", "dii-reused", "read", self.of(6.3, 6.3, 20.0)),
                share(3, "server", "struct", "dii-reused", "write", self.of(92.4, 92.4, 5.0)),
            ],
        );
    }

    fn rate(self, mode: &str, ty: &str, invocation: &str, bytes: u32) -> f64 {
        if self == Modern {
            let of_struct = if ty == "struct" { 1.2 } else { 1.0 };
            return 10_000.0 * of_struct * if bytes == 16 << 10 { 0.5 } else { 1.0 };
        }
        let of_type = match ty {
            "octet" | "char" => 71.0,
            "double" => 40.0,
            "long" => 14.0,
            "short" => 7.0,
            _ => 1.3,
        };
        let of_bytes =
            [0.4, 0.7, 0.85, 1.0][[1 << 10, 8 << 10, 16 << 10].iter().filter(|size| bytes > **size).count()];
        let of_invocation = if invocation == "dii-new" { 1.0 } else { 2.0 };
        of_type * of_bytes * of_invocation * if mode == "twoway" { 0.8 } else { 1.0 }
    }

    fn add_par_04(self, add: Add<'_>) {
        // Response of one client in milliseconds, and the most cycles a second.
        let of = |way: &str, daemon: &str| match (way, daemon) {
            ("S", _) => self.of((118.5, 34.6), (105.3, 36.3), (50.0, 25.0)),
            ("HP", _) => self.of((64.0, 34.6), (55.3, 36.3), (700.0, 99.0)),
            ("FP", _) => self.of((76.6, 27.1), (55.4, 36.3), (60.0, 60.0)),
            (_, "single") => self.of((57.6, 17.2), (55.2, 18.0), (80.0, 30.0)),
            _ => self.of((57.6, 35.5), (55.2, 36.3), (80.0, 10.0)),
        };
        let mut rows = Vec::new();
        for (way, messages) in [("S", 12), ("HP", 10), ("FP", 11), ("SP", 6)] {
            let daemons: &[&str] = if way == "SP" { &["single", "multi"] } else { &["multi"] };
            for daemon in daemons {
                for clients in 1..=10 {
                    let (response_ms, most) = of(way, daemon);
                    // Stations are sometimes idle until there are six clients, but for those of FP, which saturate early.
                    let is_idle = self == OfPapers && ["S", "HP"].contains(&way) && clients < 6;
                    let most = if is_idle { 0.95 * most } else { most };
                    let cycles = f64::min(f64::from(clients) * 1e3 / response_ms, most);
                    rows.push(json!({
                        "kind": "runs", "side": "ironorb", "architecture": way, "daemon": daemon, "clients": clients,
                        "response_ms": response_ms, "cycles_s": cycles, "messages": messages + self.of(0, 0, 1),
                    }));
                }
            }
        }
        add("fixed", rows);
        let exponential: [(u32, [f64; 4]); 3] = self.of(
            [
                (1, [8.55, 11.72, 10.56, 12.38]),
                (4, [20.29, 24.71, 23.79, 25.47]),
                (10, [27.57, 30.78, 29.17, 31.58]),
            ],
            [(1, [8.6, 12.4, 12.5, 12.4]), (4, [21.0, 25.0, 25.0, 26.0]), (10, [28.0, 31.0, 31.0, 32.0])],
            [(1, [10.0, 11.0, 12.0, 10.0]), (4, [10.0, 11.0, 12.0, 10.0]), (10, [10.0, 11.0, 12.0, 3.0])],
        );
        let row = |clients: u32, way: &str, cycles: f64| {
            json!({
                "kind": "runs", "side": "ironorb", "architecture": way, "daemon": "multi", "clients": clients, "cycles_s": cycles,
            })
        };
        let ways = ["S", "HP", "FP", "SP"];
        let rows = exponential
            .iter()
            .flat_map(|(clients, all)| ways.iter().zip(all).map(|(way, it)| row(*clients, way, *it)));
        add("exponential", rows.collect());
        let model = |way: &str, daemon: &str, cycles: f64| json!({"kind": "runs", "side": "model", "architecture": way, "daemon": daemon, "clients": 10, "cycles_s": cycles});
        let with_threads = self.of(36.3, 36.3, 50.0);
        let of_way = |way| [model(way, "single", 36.3), model(way, "multi", with_threads)];
        add("model", ["S", "HP", "FP"].into_iter().flat_map(of_way).collect());
    }
}
