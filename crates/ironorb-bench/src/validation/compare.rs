//! What a prediction is worth: its error beside the spread between two measurements.

use serde::Serialize;

/// How far off a figure may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Bar {
    /// A mean: 10 %, or twice the spread between two measurements if that is more.
    Mean,
    /// 5 %: throughput and response of jobs whose demands are known.
    Tight,
    /// A figure that is shown, and not judged.
    Reported,
}

/// A figure measured twice and simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Compared {
    /// Which row it is, as `layout one core, objects 100`.
    pub(super) place: String,
    /// `mean`, `p99`, `rate`.
    pub(super) what: &'static str,
    pub(super) unit: &'static str,
    pub(super) measured: [f64; 2],
    pub(super) simulated: f64,
    pub(super) bar: Bar,
    /// The simulated figure's distance from the mean of the measured ones, as a part of that.
    pub(super) error: f64,
    /// The distance between the measured ones, as a part of their mean.
    pub(super) spread: f64,
    /// The greatest error that holds; none for figures that are only reported.
    pub(super) allowed: Option<f64>,
    pub(super) holds: Option<bool>,
}

/// The ratio of two rows that are neighbours: what changes from one configuration to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Ratio {
    pub(super) of: String,
    pub(super) to: String,
    pub(super) what: &'static str,
    pub(super) measured: f64,
    pub(super) simulated: f64,
    pub(super) error: f64,
    /// The distance between the ratios of the two measurements, as a part of their mean.
    pub(super) spread: f64,
    pub(super) holds: bool,
}

/// Beyond this a mean holds by the spread alone.
pub(super) const MEAN_MAX: f64 = 0.10;
const TIGHT_MAX: f64 = 0.05;
const RATIO_MAX: f64 = 0.10;

impl Compared {
    pub(super) fn of(
        place: String,
        what: &'static str,
        unit: &'static str,
        measured: [f64; 2],
        simulated: f64,
        bar: Bar,
    ) -> Compared {
        let (error, spread) = (error(simulated, mean(measured)), spread(measured));
        let allowed = match bar {
            Bar::Mean => Some((2.0 * spread).max(MEAN_MAX)),
            Bar::Tight => Some(TIGHT_MAX),
            Bar::Reported => None,
        };
        // A figure that is no number holds nowhere.
        let holds = allowed.map(|allowed| error.abs() <= allowed);
        Compared { place, what, unit, measured, simulated, bar, error, spread, allowed, holds }
    }
}

fn mean(measured: [f64; 2]) -> f64 {
    measured.iter().sum::<f64>() / 2.0
}

fn error(simulated: f64, measured: f64) -> f64 {
    simulated / measured - 1.0
}

fn spread(measured: [f64; 2]) -> f64 {
    (measured[0] - measured[1]).abs() / mean(measured).abs()
}

/// The ratios of all figures that are judged to the one of the same kind before them.
pub(super) fn ratios(figures: &[Compared]) -> Vec<Ratio> {
    let mut all = Vec::new();
    for (place, one) in figures.iter().enumerate().filter(|(_, one)| one.bar != Bar::Reported) {
        let before = figures[..place].iter().rfind(|other| (other.what, other.bar) == (one.what, one.bar));
        let Some(other) = before else { continue };
        let of_measurement = |number: usize| one.measured[number] / other.measured[number];
        let both = [of_measurement(0), of_measurement(1)];
        let (measured, simulated) = (mean(both), one.simulated / other.simulated);
        let error = error(simulated, measured);
        all.push(Ratio {
            of: one.place.clone(),
            to: other.place.clone(),
            what: one.what,
            measured,
            simulated,
            error,
            spread: spread(both),
            holds: error.abs() <= RATIO_MAX,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(measured: [f64; 2], simulated: f64, bar: Bar) -> Compared {
        Compared::of("here".to_owned(), "mean", "us", measured, simulated, bar)
    }

    #[test]
    fn errors_count_from_the_mean_of_two_measurements() {
        let figure = compared([90.0, 110.0], 105.0, Bar::Tight);
        assert!((figure.error - 0.05).abs() < 1e-12 && (figure.spread - 0.2).abs() < 1e-12, "{figure:?}");
        assert!(compared([100.0; 2], 80.0, Bar::Mean).error < 0.0);
    }

    #[test]
    fn a_mean_holds_within_ten_per_cent_or_twice_the_spread() {
        for (measured, simulated, bar, holds) in [
            ([100.0, 100.0], 109.9, Bar::Mean, Some(true)),
            ([100.0, 100.0], 89.9, Bar::Mean, Some(false)),
            ([100.0, 100.0], 110.1, Bar::Mean, Some(false)),
            ([95.0, 105.0], 119.9, Bar::Mean, Some(true)),
            ([95.0, 105.0], 120.1, Bar::Mean, Some(false)),
            ([95.0, 105.0], 104.9, Bar::Tight, Some(true)),
            ([95.0, 105.0], 105.1, Bar::Tight, Some(false)),
            ([100.0, 100.0], 900.0, Bar::Reported, None),
            ([100.0, 100.0], f64::NAN, Bar::Mean, Some(false)),
            ([0.0, 0.0], 1.0, Bar::Mean, Some(false)),
        ] {
            let figure = compared(measured, simulated, bar);
            assert_eq!(figure.holds, holds, "{figure:?}");
        }
    }

    #[test]
    fn ratios_are_those_of_neighbours_of_one_kind() {
        let figures = [
            compared([100.0, 100.0], 150.0, Bar::Mean),
            Compared { what: "p99", ..compared([1.0, 1.0], 1.0, Bar::Reported) },
            compared([200.0, 220.0], 315.0, Bar::Mean),
            compared([200.0, 200.0], 200.0, Bar::Mean),
        ];
        let ratios = ratios(&figures);
        assert_eq!(ratios.len(), 2);
        assert!((ratios[0].measured - 2.1).abs() < 1e-12 && (ratios[0].simulated - 2.1).abs() < 1e-12);
        assert!(ratios[0].holds, "both means are off, their ratio is not");
        assert!((ratios[0].spread - 0.2 / 2.1).abs() < 1e-12);
        assert!(!ratios[1].holds && ratios[1].error < 0.0, "{:?}", ratios[1]);
    }
}
