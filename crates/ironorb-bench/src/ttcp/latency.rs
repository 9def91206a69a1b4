//! What single calls take: for the comparison of ways to call, which throughput hides behind the system's work.

use std::fmt;

use serde::Serialize;

use crate::statistics::{Latency, Ratio};
use crate::variant::{DataType, Invocation, Peer, ServantKind, Transport, name};

/// A call whose latency is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct LatencyCall {
    pub(super) name: &'static str,
    /// Nothing of an operation without parameters.
    pub(super) ty: Option<DataType>,
    pub(super) elements: usize,
}

pub(super) const CALLS: [LatencyCall; 4] = [
    LatencyCall { name: "void", ty: None, elements: 0 },
    LatencyCall { name: "octet-1k", ty: Some(DataType::Octet), elements: 1 << 10 },
    LatencyCall { name: "octet-64k", ty: Some(DataType::Octet), elements: 64 << 10 },
    LatencyCall { name: "struct-1024", ty: Some(DataType::Struct), elements: 1024 },
];

/// What one kind of call takes, beside a plain exchange of as many bytes and beside the other kinds.
#[derive(Debug, Clone, Serialize)]
pub struct CallRow {
    /// Which processor each side was on.
    pub layout: &'static str,
    /// What carried the bytes.
    pub transport: Transport,
    /// `void`, `octet-1k`, `octet-64k` or `struct-1024` (24 KiB).
    pub call: &'static str,
    /// Which ORB.
    pub peer: Peer,
    /// How the client called.
    pub invocation: Invocation,
    /// What it called.
    pub servant: ServantKind,
    /// As many bytes over a plain socket, and 24 back.
    pub raw: Latency,
    /// The call.
    pub subject: Latency,
    /// The median call over the median exchange of the same repetition.
    pub over_raw: Ratio,
    /// Over that of the static call of the same servant.
    pub over_sii: Option<Ratio>,
    /// Over that of the same call of a static skeleton.
    pub over_static: Option<Ratio>,
    /// The load average before.
    pub load: f64,
}

pub(super) fn fmt_table(rows: &[CallRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for rows in rows.chunk_by(|a, b| (a.layout, a.transport) == (b.layout, b.transport)) {
        let first = &rows[0];
        writeln!(
            f,
            "\nmicroseconds a twoway call over {}, client and server on {}",
            name(first.transport),
            first.layout
        )?;
        writeln!(
            f,
            "{:<12} {:<7} {:<13} {:<6}  {:>8} {:>8} {:>8}  {:>6} {:>11}  {:>8} {:>11}  {:>8} {:>11} {:>5}",
            "call",
            "",
            "invocation",
            "to",
            "best",
            "median",
            "p99",
            "/raw",
            "min..max",
            "/sii",
            "min..max",
            "/static",
            "min..max",
            "load"
        )?;
        let mut call = "";
        for row in rows {
            if row.call != call {
                call = row.call;
                let Latency { best_us, median_us, p99_us } = row.raw;
                writeln!(
                    f,
                    "{call:<12} {:<7} {:<13} {:<6}  {best_us:>8.2} {median_us:>8.2} {p99_us:>8.2}",
                    "plain", "", ""
                )?;
            }
            let Latency { best_us, median_us, p99_us } = row.subject;
            let ratio = |ratio: Option<Ratio>| match ratio {
                Some(ratio) => {
                    (format!("{:.3}", ratio.median), format!("{:.2}..{:.2}", ratio.min, ratio.max))
                }
                None => ("-".to_owned(), String::new()),
            };
            let (over_raw, raw_spread) = ratio(Some(row.over_raw));
            let (over_sii, sii_spread) = ratio(row.over_sii);
            let (over_static, static_spread) = ratio(row.over_static);
            writeln!(
                f,
                "{call:<12} {:<7} {:<13} {:<6}  {best_us:>8.2} {median_us:>8.2} {p99_us:>8.2}  {over_raw:>6} \
                 {raw_spread:>11}  {over_sii:>8} {sii_spread:>11}  {over_static:>8} {static_spread:>11} {:>5.1}",
                name(row.peer),
                name(row.invocation),
                name(row.servant),
                row.load,
            )?;
        }
    }
    Ok(())
}
