//! What the paper found ("Evaluating CORBA Latency and Scalability Over High-Speed ATM Networks", Gokhale and Schmidt, 1997:
//! two UltraSPARC-2 of 168 MHz, 155 Mbit/s ATM, Orbix 2.1, VisiBroker 2.0), and the same of these rows. Facts only.
//!
//! The paper has most of its figures as plots without numbers; these are the numbers that it tells.

use std::fmt;

use serde::Serialize;

use super::order::Algorithm;
use super::report::{CellRow, Measured};
use crate::settings::Settings;
use crate::variant::{CallType, DataType, Invocation, Mode, Peer};

/// Where the paper measured.
pub(super) const MACHINE: &str = "two UltraSPARC-2 of 168 MHz, ATM 155 Mbit/s";

/// One thing that the paper tells in numbers.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Claim {
    pub(super) what: &'static str,
    pub(super) orbix: f64,
    pub(super) visibroker: f64,
    pub(super) from: &'static str,
    #[serde(skip)]
    here: fn(&[CellRow], Peer) -> Option<f64>,
}

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        what: "void twoway: a plain socket's time over the ORB's",
        orbix: 0.46,
        visibroker: 0.50,
        from: "figure 8",
        here: |rows, peer| {
            let row = find(rows, peer, None, Invocation::Sii, 1)?;
            Some(1.0 / row.over_raw.median)
        },
    },
    Claim {
        what: "void twoway: growth for each 100 objects more",
        orbix: 1.12,
        visibroker: 1.0,
        from: "figures 4 to 7",
        here: |rows, peer| {
            let at = |objects| find(rows, peer, None, Invocation::Sii, objects).map(|it| it.over_raw.median);
            // Both over the plain socket of their own turns.
            Some((at(500)? / at(1)?).powf(1.0 / 5.0))
        },
    },
    Claim {
        what: "void twoway: dynamic over static",
        orbix: 2.6,
        visibroker: 1.0,
        from: "section 4.1.1",
        here: |rows, peer| dynamic(rows, peer, None),
    },
    Claim {
        what: "octets twoway, 1,024: dynamic over static",
        orbix: 3.0,
        visibroker: 1.0,
        from: "section 4.2.1",
        here: |rows, peer| dynamic(rows, peer, Some(DataType::Octet)),
    },
    Claim {
        what: "structs twoway, 1,024: dynamic over static",
        orbix: 14.0,
        visibroker: 4.0,
        from: "section 4.2.1",
        here: |rows, peer| dynamic(rows, peer, Some(DataType::Struct)),
    },
];

fn dynamic(rows: &[CellRow], peer: Peer, ty: Option<DataType>) -> Option<f64> {
    Some(find(rows, peer, ty, Invocation::DiiNew, 1)?.over_sii?.median)
}

/// Twoway calls, round robin, of the largest sequences.
fn find(
    rows: &[CellRow],
    peer: Peer,
    ty: Option<DataType>,
    invocation: Invocation,
    objects: usize,
) -> Option<&Measured> {
    let units = if ty.is_some() { 1024 } else { 0 };
    let is_it = |row: &&CellRow| {
        (row.peer, row.ty, row.invocation, row.objects, row.units)
            == (peer, CallType(ty), invocation, objects, units)
            && (row.mode, row.algorithm) == (Mode::Twoway, Algorithm::Robin)
            && row.settings == Settings::default()
    };
    rows.iter().find(is_it)?.outcome.measured()
}

pub(super) fn fmt_table(rows: &[CellRow], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "\nin the paper ({MACHINE}), and here")?;
    writeln!(
        f,
        "{:<52} {:>7} {:>10} {:<15} {:>8} {:>8} {:>8}",
        "", "Orbix", "VisiBroker", "", "ironorb", "omniorb", "jacorb"
    )?;
    for Claim { what, orbix, visibroker, from, here } in CLAIMS {
        let [ours, omniorb, jacorb] = Peer::ALL
            .map(|peer| here(rows, peer).map_or_else(|| "-".to_owned(), |figure| format!("{figure:.2}")));
        writeln!(
            f,
            "{what:<52} {orbix:>7.2} {visibroker:>10.2} {from:<15} {ours:>8} {omniorb:>8} {jacorb:>8}"
        )?;
    }
    let calls = rows.iter().filter(|row| row.outcome.measured().is_some()).map(|row| row.calls).max();
    writeln!(
        f,
        "requests until it crashes, 1,000 objects: VisiBroker 80,000 (section 4.4); here none: {} calls in the longest row",
        calls.unwrap_or(0)
    )
}
