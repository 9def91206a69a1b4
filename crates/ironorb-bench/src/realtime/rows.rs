//! What was measured in the blocks of a configuration, as rows.

use std::time::Duration;

use super::options::Side;
use crate::paced::task::Served;
use crate::row::{Figure, Parameters, Row, parameters};
use crate::samples::{PERCENTILES, Samples, mean};
use crate::statistics::Ratio;
use crate::variant::name;

/// From when latencies are counted: from the beginning of the client's period, and from its call.
const SINCE: [&str; 2] = ["release", "call"];

/// A client that has been served less than this part of its calls a second starves.
const STARVING: f64 = 0.5;

/// What was measured of one side with one number of clients of a low priority.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) low: usize,
    pub(super) side: Side,
    high: [Samples; 2],
    lows: [Samples; 2],
    /// Calls a second of each client of a low priority in each block.
    rates: Vec<f64>,
    low_period: Duration,
}

impl Cell {
    pub(super) fn new(low: usize, side: Side, low_period: Duration) -> Cell {
        Cell { low, side, high: Default::default(), lows: Default::default(), rates: Vec::new(), low_period }
    }

    /// Adds a block: the high client's calls, and those of all others.
    pub(super) fn add(&mut self, served: &[Served]) {
        let [high, lows @ ..] = served else { return };
        for (since, samples) in self.high.iter_mut().enumerate() {
            samples.add_block(high.latencies.iter().map(|latency| latency[since]));
        }
        for (since, samples) in self.lows.iter_mut().enumerate() {
            samples.add_block(lows.iter().flat_map(|low| low.latencies.iter().map(move |it| it[since])));
        }
        self.rates.extend(lows.iter().map(Served::rate));
    }

    fn starving(&self) -> usize {
        let rate_min = STARVING / self.low_period.as_secs_f64();
        self.rates.iter().filter(|rate| **rate < rate_min).count()
    }

    fn rate(&self) -> f64 {
        mean(self.rates.iter().copied())
    }
}

/// The cells of a configuration, and why a side is missing.
pub(super) struct Cells {
    pub(super) parameters: Parameters,
    pub(super) cells: Vec<Cell>,
    pub(super) missing: Vec<(Side, String)>,
    pub(super) steal_ms: f64,
}

type Figures = Vec<(String, Figure)>;

fn number(name: &str, number: f64) -> (String, Figure) {
    (name.to_owned(), Figure::Number(number))
}

/// The figures of latencies, alike for high and low clients.
fn figures(samples: &mut Samples) -> Figures {
    let mut figures = vec![
        number("calls", samples.count() as f64),
        number("mean_us", samples.mean_us()),
        number("sd_us", samples.deviation_us()),
    ];
    figures.extend(PERCENTILES.map(|percentile| (percentile.0.to_owned(), samples.at(percentile))));
    figures.push(number("max_us", samples.max_us()));
    figures
}

impl Cells {
    fn find(&self, low: usize, side: Side) -> Option<&Cell> {
        self.cells.iter().find(|cell| (cell.low, cell.side) == (low, side))
    }

    fn row(&self, since: usize, cell: &Cell, figures: Figures) -> Row {
        let own = parameters![since = SINCE[since], clients = cell.low, side = name(cell.side)];
        Row { parameters: [&self.parameters[..], &own].concat(), outcome: Ok(figures) }
    }

    fn missing(&self) -> impl Iterator<Item = Row> + '_ {
        self.missing.iter().map(|(side, why)| {
            let own = parameters![since = SINCE[1], side = name(*side)];
            Row { parameters: [&self.parameters[..], &own].concat(), outcome: Err(why.clone()) }
        })
    }

    /// A row for each number of clients and side: the client of the highest priority.
    pub(super) fn high(&self) -> Vec<Row> {
        let rows = (0..2).flat_map(|since| self.cells.iter().map(move |cell| (since, cell)));
        let row = |(since, cell): (usize, &Cell)| {
            let mut figures = figures(&mut cell.high[since].clone());
            if cell.low > 0
                && let Some(alone) = self.find(0, cell.side)
            {
                let pairs = cell.high[since].means_us().iter().zip(alone.high[since].means_us());
                let pairs: Vec<(f64, f64)> = pairs.map(|(with, alone)| (*with, *alone)).collect();
                let ratio = Ratio::of_pairs(&pairs);
                figures.push(("over_0".to_owned(), Figure::Ratio(ratio)));
            }
            if cell.side == Side::Lanes {
                figures.extend(self.beside_twin(since, cell));
            }
            figures.push(number("steal_ms", self.steal_ms));
            self.row(since, cell, figures)
        };
        rows.map(row).chain(self.missing()).collect()
    }

    /// How the ORB compares with its twin.
    fn beside_twin(&self, since: usize, cell: &Cell) -> Figures {
        let p99 = |low, side| match self.find(low, side)?.high[since].clone().at(PERCENTILES[2]) {
            Figure::Number(us) => Some(us),
            _ => None,
        };
        let above = |low| Some(p99(low, Side::Lanes)? - p99(low, Side::Twin)?);
        let mut figures = Vec::new();
        if let (true, Some(with), Some(alone)) = (cell.low > 0, above(cell.low), above(0)) {
            figures.push(number("p99_growth_over_twin_us", with - alone));
        }
        if let Some(twin) = self.find(cell.low, Side::Twin) {
            let twin = &twin.high[since];
            let bound = twin.deviation_us() + 0.1 * twin.mean_us();
            figures.push(number("sd_of_bound", cell.high[since].deviation_us() / bound));
        }
        figures
    }

    /// A row for each number of clients above 0 and side: the clients of low priorities together.
    pub(super) fn low(&self) -> Vec<Row> {
        let cells = || self.cells.iter().filter(|cell| cell.low > 0);
        let rows = (0..2).flat_map(|since| cells().map(move |cell| (since, cell)));
        let row = |(since, cell): (usize, &Cell)| {
            let mut figures = figures(&mut cell.lows[since].clone());
            figures.push(number("rate_hz", cell.rate()));
            let previous = cells().filter(|other| other.side == cell.side && other.low < cell.low);
            if let Some(previous) = previous.max_by_key(|other| other.low) {
                figures.push(number("rate_of_previous", cell.rate() / previous.rate()));
            }
            figures.push(number("starving", cell.starving() as f64));
            self.row(since, cell, figures)
        };
        rows.map(row).chain(self.missing()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(100);

    /// A client that is served so often in so many periods, with this latency.
    fn served(calls: usize, periods: u32, us: u64) -> Served {
        Served { elapsed: PERIOD * periods, latencies: vec![[us * 1_000 + 500, us * 1_000]; calls] }
    }

    fn cell(low: usize, side: Side, blocks: &[(u64, usize)]) -> Cell {
        let mut cell = Cell::new(low, side, PERIOD);
        for &(us, low_calls) in blocks {
            let lows = std::iter::repeat_n(served(low_calls, 10, 2 * us), low);
            let all: Vec<Served> = std::iter::once(served(20, 20, us)).chain(lows).collect();
            cell.add(&all);
        }
        cell
    }

    fn cells(cells: Vec<Cell>) -> Cells {
        Cells { parameters: parameters![layout = "here"], cells, missing: Vec::new(), steal_ms: 0.0 }
    }

    fn find<'a>(rows: &'a [Row], since: &str, clients: &str, side: &str) -> &'a Row {
        let wanted = [("since", since), ("clients", clients), ("side", side)];
        rows.iter().find(|row| row.is(&wanted)).unwrap()
    }

    #[test]
    fn ratios_are_of_blocks_of_one_round() {
        let measured = cells(vec![
            cell(0, Side::Lanes, &[(100, 0), (200, 0), (100, 0)]),
            cell(5, Side::Lanes, &[(110, 10), (220, 10), (300, 10)]),
        ]);
        let rows = measured.high();
        let row = find(&rows, "call", "5", "lanes");
        assert_eq!(row.median("over_0"), Some(1.1));
        assert_eq!((row.median("calls"), row.median("mean_us")), (Some(60.0), Some(210.0)));
        assert_eq!(find(&rows, "release", "5", "lanes").median("mean_us"), Some(210.5));
        assert_eq!(find(&rows, "call", "0", "lanes").median("over_0"), None);
        assert_eq!(row.figure("p99_us"), Some(Figure::TooFew { needed: 10_000 }));
    }

    #[test]
    fn the_orb_is_compared_with_its_twin_where_there_are_enough_samples() {
        let many = |low, side, us| cell(low, side, &vec![(us, 1); 500]);
        let measured = cells(vec![
            many(0, Side::Lanes, 20),
            many(0, Side::Twin, 15),
            many(1, Side::Lanes, 40),
            many(1, Side::Twin, 28),
        ]);
        let rows = measured.high();
        let row = find(&rows, "call", "1", "lanes");
        assert_eq!(row.median("p99_growth_over_twin_us"), Some(7.0));
        // Neither deviates, so the bound is a tenth of the twin's mean.
        assert_eq!(row.median("sd_of_bound"), Some(0.0));
        assert_eq!(find(&rows, "call", "1", "twin").median("p99_growth_over_twin_us"), None);
    }

    #[test]
    fn low_clients_have_rates_and_those_that_are_served_less_than_half_starve() {
        let measured = cells(vec![
            cell(1, Side::Lanes, &[(10, 10)]),
            cell(3, Side::Lanes, &[(10, 8)]),
            cell(4, Side::Lanes, &[(10, 4)]),
        ]);
        let rows = measured.low();
        let of = |clients, name| find(&rows, "call", clients, "lanes").median(name);
        assert_eq!((of("1", "rate_hz"), of("1", "rate_of_previous")), (Some(10.0), None));
        assert_eq!((of("3", "rate_of_previous"), of("3", "starving")), (Some(0.8), Some(0.0)));
        assert_eq!((of("4", "rate_of_previous"), of("4", "starving")), (Some(0.5), Some(4.0)));
    }

    #[test]
    fn a_side_that_is_missing_says_why() {
        let missing = vec![(Side::Tao, "TAO_TREE is not set".to_owned())];
        let rows = Cells { missing, ..cells(Vec::new()) }.high();
        assert_eq!((rows.len(), rows[0].outcome.clone().unwrap_err()), (1, "TAO_TREE is not set".to_owned()));
    }
}
