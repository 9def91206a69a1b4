//! The figures of the paper's Tables 1 to 3, as times and shares: 64 MB in buffers of 128K. Only what took most of the time
//! is given there. What the paper is, and what it measured on, is in `ttcp/paper.rs`.

use serde::Serialize;

use super::category::Category::{self, Allocate, Copy, Demarshal, Populate, Read, TypeCode, Write};
use super::table::{Table, WatchedSide};
use crate::variant::DataType::{self, Octet, Struct};

/// One column of the paper: what it says of one ORB, one side and one type.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PaperColumn {
    #[serde(skip)]
    table: Table,
    #[serde(skip)]
    side: WatchedSide,
    #[serde(skip)]
    ty: DataType,
    /// Which ORB, and how its requests were used.
    pub orb: &'static str,
    /// Milliseconds and per cent of the execution, by category.
    pub shares: &'static [(Category, u32, f64)],
}

impl PaperColumn {
    /// Milliseconds and per cent of one category.
    pub fn find(&self, category: Category) -> Option<(u32, f64)> {
        self.shares.iter().find(|share| share.0 == category).map(|&(_, ms, percent)| (ms, percent))
    }
}

/// What the paper has of a table, one side of it and one type.
pub(super) fn columns(table: Table, side: WatchedSide, ty: DataType) -> impl Iterator<Item = PaperColumn> {
    let asked = move |column: &PaperColumn| (column.table, column.side, column.ty) == (table, side, ty);
    COLUMNS.into_iter().filter(asked)
}

const ORBIX: &str = "Orbix";
const ORBELINE: &str = "ORBeline";
const NEW: &str = "ORBeline new";
const REUSED: &str = "ORBeline reused";

const fn column(
    (table, side, ty): (Table, WatchedSide, DataType),
    orb: &'static str,
    shares: &'static [(Category, u32, f64)],
) -> PaperColumn {
    PaperColumn { table, side, ty, orb, shares }
}

const ONEWAY_CLIENT_OCTET: (Table, WatchedSide, DataType) = (Table::Oneway, WatchedSide::Client, Octet);
const ONEWAY_CLIENT_STRUCT: (Table, WatchedSide, DataType) = (Table::Oneway, WatchedSide::Client, Struct);
const ONEWAY_SERVER_OCTET: (Table, WatchedSide, DataType) = (Table::Oneway, WatchedSide::Server, Octet);
const ONEWAY_SERVER_STRUCT: (Table, WatchedSide, DataType) = (Table::Oneway, WatchedSide::Server, Struct);

const COLUMNS: [PaperColumn; 16] = [
    column(
        ONEWAY_CLIENT_OCTET,
        ORBIX,
        &[(Write, 26_728, 73.52), (Populate, 7_160, 19.70), (Allocate, 1_164, 3.15), (Copy, 895, 2.46)],
    ),
    column(ONEWAY_CLIENT_OCTET, NEW, &[(Write, 4_623, 61.14), (Copy, 1_791, 23.69), (Allocate, 940, 12.43)]),
    column(ONEWAY_CLIENT_OCTET, REUSED, &[(Write, 5_794, 85.83), (Copy, 898, 13.31)]),
    column(ONEWAY_CLIENT_STRUCT, ORBIX, &[(Populate, 397_724, 96.6), (Write, 5_016, 1.23)]),
    column(
        ONEWAY_CLIENT_STRUCT,
        NEW,
        &[(Write, 77_605, 55.72), (Populate, 22_215, 15.95), (Copy, 13_428, 9.64)],
    ),
    column(ONEWAY_CLIENT_STRUCT, REUSED, &[(Write, 76_575, 64.89), (Populate, 14_168, 12.01)]),
    column(ONEWAY_SERVER_OCTET, ORBIX, &[(TypeCode, 3_361, 50.00), (Read, 2_140, 32.00), (Copy, 896, 13.39)]),
    column(ONEWAY_SERVER_OCTET, NEW, &[(Read, 3_177, 90.48)]),
    column(ONEWAY_SERVER_OCTET, REUSED, &[(Read, 3_238, 90.60)]),
    column(
        ONEWAY_SERVER_STRUCT,
        ORBIX,
        &[(Demarshal, 11_849, 49.00), (TypeCode, 6_665, 27.57), (Read, 4_985, 20.62)],
    ),
    column(
        ONEWAY_SERVER_STRUCT,
        NEW,
        &[(Demarshal, 10_552, 58.52), (Copy, 3_878, 21.5), (Read, 3_318, 18.4)],
    ),
    column(
        ONEWAY_SERVER_STRUCT,
        REUSED,
        &[(Demarshal, 10_552, 58.52), (Copy, 3_878, 21.41), (Read, 3_395, 18.74)],
    ),
    column(
        (Table::TwowayToDsi, WatchedSide::Client, Octet),
        ORBELINE,
        &[(Read, 3_911, 47.95), (Write, 2_923, 35.84), (Copy, 912, 11.19)],
    ),
    column(
        (Table::TwowayToDsi, WatchedSide::Client, Struct),
        ORBELINE,
        &[(Write, 505_914, 91.34), (Populate, 13_341, 2.41), (Copy, 7_198, 1.30), (Read, 5_062, 0.91)],
    ),
    column(
        (Table::TwowayToDsi, WatchedSide::Server, Octet),
        ORBELINE,
        &[(Write, 23_572, 82.00), (Copy, 2_701, 9.40), (Read, 1_806, 6.29)],
    ),
    column(
        (Table::TwowayToDsi, WatchedSide::Server, Struct),
        ORBELINE,
        &[(Write, 1_250_130, 92.41), (Demarshal, 39_373, 2.89), (Copy, 19_693, 1.46)],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_part_of_a_whole() {
        for column in COLUMNS {
            let percent: f64 = column.shares.iter().map(|(.., percent)| percent).sum();
            assert!(percent <= 100.0, "{column:?}");
            // Every line of a column tells the same whole, as far as its digits go.
            let wholes = column.shares.iter().map(|(_, ms, percent)| f64::from(*ms) * 100.0 / percent);
            let (least, most) = wholes
                .fold((f64::INFINITY, 0f64), |(least, most), whole| (least.min(whole), most.max(whole)));
            assert!(most / least < 1.05, "{column:?}: {least} to {most}");
        }
    }

    #[test]
    fn each_table_has_its_columns() {
        let count = |table, side, ty| columns(table, side, ty).count();
        for side in [WatchedSide::Client, WatchedSide::Server] {
            for ty in [Octet, Struct] {
                assert_eq!((count(Table::Oneway, side, ty), count(Table::TwowayToDsi, side, ty)), (3, 1));
            }
        }
        assert_eq!(count(Table::Oneway, WatchedSide::Client, DataType::Long), 0);
    }
}
