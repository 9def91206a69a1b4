//! Figures of the paper ("Evaluating CORBA Latency and Scalability Over High-Speed ATM Networks", Gokhale and
//! Schmidt, 1997: two UltraSPARC-2 of 168 MHz, 155 Mbit/s ATM, Orbix 2.1, VisiBroker 2.0), beside those of
//! these rows. Facts only.
//!
//! The paper shows most of its figures as plots without numbers. The numbers here are those in its text.

use crate::render::Table;
use crate::row::{Figure, Row, parameters};
use crate::variant::{Peer, name};

/// A comparison for which the paper gives numbers, for Orbix and VisiBroker.
struct Claim(&'static str, f64, f64, &'static str, fn(&[Row], Peer) -> Option<f64>);

const CLAIMS: [Claim; 5] = [
    Claim("void twoway: a plain socket's time over the ORB's", 0.46, 0.50, "figure 8", |rows, peer| {
        Some(1.0 / find(rows, peer, "void", "sii", 1)?.median("over_raw")?)
    }),
    Claim("void twoway: growth for each 100 objects more", 1.12, 1.0, "figures 4 to 7", |rows, peer| {
        // Both are ratios to the plain socket of their own turns.
        let at = |objects| find(rows, peer, "void", "sii", objects)?.median("over_raw");
        Some((at(500)? / at(1)?).powf(1.0 / 5.0))
    }),
    Claim("void twoway: dynamic over static", 2.6, 1.0, "section 4.1.1", |rows, peer| {
        dynamic(rows, peer, "void")
    }),
    Claim("octets twoway, 1,024: dynamic over static", 3.0, 1.0, "section 4.2.1", |rows, peer| {
        dynamic(rows, peer, "octet")
    }),
    Claim("structs twoway, 1,024: dynamic over static", 14.0, 4.0, "section 4.2.1", |rows, peer| {
        dynamic(rows, peer, "struct")
    }),
];

fn dynamic(rows: &[Row], peer: Peer, ty: &str) -> Option<f64> {
    find(rows, peer, ty, "dii-new", 1)?.median("over_sii")
}

/// The row of twoway calls, round robin, of the largest sequences.
fn find<'a>(rows: &'a [Row], peer: Peer, ty: &str, invocation: &str, objects: usize) -> Option<&'a Row> {
    let units = if ty == "void" { "0" } else { "1024" };
    let (peer, objects) = (name(peer), objects.to_string());
    let wanted = [("peer", peer.as_str()), ("type", ty), ("invocation", invocation), ("objects", &objects)];
    let rest = [("units", units), ("mode", "twoway"), ("algorithm", "robin"), ("settings", "")];
    rows.iter().find(|row| row.is(&wanted) && row.is(&rest))
}

/// The paper's numbers beside those of these rows.
pub(super) fn table(rows: &[Row]) -> Table {
    let claim = |Claim(what, orbix, visibroker, from, here): &Claim| {
        let numbers = [("orbix", *orbix), ("visibroker", *visibroker)];
        let mut row = Row::of_numbers(parameters![what = what, from = from], numbers);
        for peer in Peer::ALL {
            if let (Some(figure), Ok(figures)) = (here(rows, peer), &mut row.outcome) {
                figures.push((name(peer), Figure::Number(figure)));
            }
        }
        row
    };
    let title = "in the paper, on two UltraSPARC-2 of 168 MHz, and here";
    Table::new("paper", title, CLAIMS.iter().map(claim).collect())
        .elsewhere("two UltraSPARC-2 of 168 MHz, ATM 155 Mbit/s")
        .notes("requests until it crashes, 1,000 objects: VisiBroker 80,000 (section 4.4).")
}
