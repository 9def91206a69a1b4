//! Figures of the paper ("The Performance of the CORBA Dynamic Invocation Interface and Dynamic Skeleton
//! Interface over High-Speed ATM Networks", Gokhale and Schmidt, GLOBECOM 1996): two SPARCstation 20 with two
//! processors of 70 MHz each, 155 Mbit/s ATM between them, 64 MB in buffers of 128K, socket queues of 64K.
//! Facts only.

use super::breakdown::OF_BYTES;
use crate::chart::{Chart, Series};
use crate::render::Table;
use crate::row::{Row, parameters, partition};
use crate::variant::{Bytes, Peer, name};

const MACHINE: &str = "two SPARCstation 20, ATM 155 Mbit/s";

/// The buffer of all figures.
const BUFFER: Bytes = Bytes(128 << 10);

/// The profiles of Tables 1 to 3: milliseconds and per cent of the largest categories of each column, the largest
/// first. Orbix cannot send a request again. A column of ORBeline without a way is one of reused requests.
pub(crate) fn shares() -> Vec<Row> {
    Row::quoted(include_str!("paper.csv"), 2)
}

/// The throughputs that the paper gives, and those that follow from its clients' profiles: the largest category of a
/// column tells the whole time.
fn figures() -> Vec<Row> {
    let row = |orb: &str, ty: &str, [mode, invocation, servant]: [&str; 3], from: String, mbit_s: f64| {
        let of = parameters![
            orb = format!("{orb} 2.0"), from = from, type = ty, buffer_bytes = BUFFER, mode = mode,
            invocation = invocation, servant = servant,
        ];
        Row::of_numbers(of, [("mbit_s", mbit_s)])
    };
    let told = [("Orbix", 34.0), ("ORBeline", 7.0)].map(|(orb, mbit_s)| {
        row(orb, "short", ["oneway", "dii-new", "static"], "section 1".to_owned(), mbit_s)
    });
    let shares = shares();
    let columns = partition(shares.iter().filter(|share| share.is(&[("side", "client")])), |share| {
        ["table", "type", "column"].map(|name| share.text(name))
    });
    let profiled = columns.into_iter().filter_map(|column| {
        let largest = column[0];
        let [orb, ty, mode, invocation, servant, table] =
            ["column", "type", "mode", "invocation", "servant", "table"].map(|name| largest.text(name));
        let seconds = largest.median("ms")? / largest.median("percent")? * 100.0 / 1e3;
        let (orb, from) = (orb.split(' ').next()?, format!("Table {table}"));
        Some(row(orb, &ty, [&mode, &invocation, &servant], from, OF_BYTES * 8.0 / 1e6 / seconds))
    });
    told.into_iter().chain(profiled).collect()
}

/// The paper's figures, beside those of the same calls here.
pub(super) fn table(rows: &[Row]) -> Table {
    let beside = |mut quoted: Row| {
        let same = ["type", "buffer_bytes", "mode", "invocation", "servant"];
        let is_same = |row: &&Row| same.iter().all(|name| row.text(name) == quoted.text(name));
        let rate =
            |peer| rows.iter().filter(is_same).find(|row| row.text("peer") == name(peer))?.median("subject");
        let rates = [Peer::Ironorb, Peer::Omniorb].map(|peer| (name(peer), rate(peer)));
        for (peer, rate) in rates {
            rate.into_iter().for_each(|rate| quoted.add_number(&peer, rate));
        }
        quoted
    };
    let title = "Mbit/s in the paper, and here over the first transport";
    Table::new("paper", title, figures().into_iter().map(beside).collect()).elsewhere(MACHINE)
}

/// Adds the paper's figures for a chart's type and mode.
pub(super) fn add_crosses(chart: &mut Chart, row: &Row) {
    let is_quoted = |figure: &Row| ["type", "mode"].iter().all(|name| figure.text(name) == row.text(name));
    chart.crosses.extend(figures().into_iter().filter(is_quoted).filter_map(|figure| {
        let [orb, invocation, servant, from] =
            ["orb", "invocation", "servant", "from"].map(|name| figure.text(name));
        let mbit_s = figure.median("mbit_s")?;
        Some(Series {
            label: format!("paper: {orb}, {invocation} to {servant}, {mbit_s:.1} Mbit/s ({from})"),
            color: plotters::style::BLACK,
            points: vec![(BUFFER.0 as f64, mbit_s)],
        })
    }));
}

/// The ratio of twoway to oneway: the least and the greatest of this ORB's static calls to static skeletons
/// with the paper's buffer.
pub(super) fn twoway_over_oneway(rows: &[Row]) -> Option<Table> {
    let buffer = BUFFER.0.to_string();
    let wanted = [("invocation", "sii"), ("servant", "static"), ("buffer_bytes", buffer.as_str())];
    let of_mode = |mode: &'static str| {
        rows.iter()
            .filter(move |row| row.is_ours() && row.is(&[("mode", mode)]))
            .filter(|row| row.is(&wanted))
    };
    let place = |row: &Row| ["layout", "transport", "type"].map(|name| row.text(name));
    let ratios = of_mode("twoway").filter_map(|twoway| {
        let oneway = of_mode("oneway").find(|oneway| place(oneway) == place(twoway))?;
        Some(twoway.median("subject")? / oneway.median("subject")?)
    });
    let (least, most) =
        ratios.fold((f64::INFINITY, 0f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
    let numbers = [("paper", 0.8), ("least", least), ("most", most)];
    let rows = vec![Row::of_numbers(
        parameters![what = "static calls of static skeletons, all types at 128K"],
        numbers,
    )];
    (least <= most).then(|| Table::new("twoway", "twoway over oneway", rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_column_are_parts_of_one_whole_and_give_the_rates_of_the_text() {
        let all = shares();
        let columns =
            partition(&all, |share| ["table", "side", "type", "column"].map(|name| share.text(name)));
        assert_eq!(columns.len(), 16);
        for column in columns {
            let of =
                |name: &str| column.iter().map(|share| share.median(name).unwrap()).collect::<Vec<f64>>();
            let (ms, percent) = (of("ms"), of("percent"));
            assert!(percent.iter().sum::<f64>() <= 100.0, "{column:?}");
            // All lines of a column imply one whole, within the precision of their digits.
            let wholes = ms.iter().zip(&percent).map(|(ms, percent)| ms * 100.0 / percent);
            let (least, most) = wholes
                .fold((f64::INFINITY, 0f64), |(least, most), whole| (least.min(whole), most.max(whole)));
            assert!(most / least < 1.05, "{column:?}: {least} to {most}");
        }
        // The text says "between 1 and 4 Mbit/s".
        let figures = figures();
        let structs = figures.iter().filter(|figure| figure.is(&[("type", "struct")]));
        let rates: Vec<f64> = structs.filter_map(|figure| figure.median("mbit_s")).collect();
        assert!(rates.len() == 4 && rates.iter().all(|rate| (0.9..4.6).contains(rate)), "{rates:?}");
    }
}
