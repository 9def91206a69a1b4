//! Runs that are repeated until their mean is known well enough.

use crate::error::BenchError;

/// The paper's: 95 % confidence that the mean is at most 2.5 % off.
pub(crate) const PART_MAX: f64 = 0.025;

/// With fewer runs an interval says little, however close they are.
pub(crate) const RUNS_MIN: usize = 3;

/// The mean of some runs' figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    /// With a confidence of 95 % the mean of all possible runs is at most so far away.
    pub(crate) half_width: f64,
}

impl Mean {
    /// That of figures that are independent of each other. Of one alone nothing is known.
    pub(crate) fn of(figures: &[f64]) -> Mean {
        let number = figures.len() as f64;
        let value = figures.iter().sum::<f64>() / number;
        if figures.len() < 2 {
            return Mean { value, half_width: f64::INFINITY };
        }
        let variance = figures.iter().map(|figure| (figure - value).powi(2)).sum::<f64>() / (number - 1.0);
        Mean { value, half_width: quantile(figures.len() - 1) * (variance / number).sqrt() }
    }

    /// The half width as a part of the mean.
    pub(crate) fn part(&self) -> f64 {
        if self.half_width == 0.0 { 0.0 } else { self.half_width / self.value.abs() }
    }
}

/// Repeats runs until the means of all figures are known to 2.5 %, or so many times. Gives what the runs have shown.
///
/// # Errors
/// A run failed.
pub(crate) fn repeat<T, const N: usize>(
    runs_max: usize,
    mut run: impl FnMut(usize) -> Result<T, BenchError>,
    figures: impl Fn(&T) -> [f64; N],
) -> Result<Vec<T>, BenchError> {
    let mut shown = Vec::new();
    loop {
        shown.push(run(shown.len())?);
        let is_known = |place: usize| {
            let of_figure: Vec<f64> = shown.iter().map(|shown| figures(shown)[place]).collect();
            Mean::of(&of_figure).part() <= PART_MAX
        };
        if shown.len() >= runs_max || shown.len() >= RUNS_MIN && (0..N).all(is_known) {
            return Ok(shown);
        }
    }
}

/// The quantile of Student's distribution that 97.5 % lie below, by its degrees of freedom.
fn quantile(freedom: usize) -> f64 {
    match QUANTILES.get(freedom - 1) {
        Some(quantile) => *quantile,
        // Cornish and Fisher's expansion around the normal distribution's; beyond 30 it is off by less than 0.001.
        None => {
            let (z, n) = (1.959_964_f64, freedom as f64);
            z + (z.powi(3) + z) / (4.0 * n) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n)
        }
    }
}

const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_covers_the_mean_in_95_of_100_cases() {
        let mut rng = fastrand::Rng::with_seed(95);
        let cases = 20_000;
        let covered = (0..cases).filter(|_| {
            // Sums of twelve numbers are normal enough.
            let figures: Vec<f64> = (0..5).map(|_| (0..12).map(|_| rng.f64()).sum::<f64>()).collect();
            let mean = Mean::of(&figures);
            (mean.value - 6.0).abs() <= mean.half_width
        });
        let share = covered.count() as f64 / f64::from(cases);
        assert!((0.945..0.955).contains(&share), "{share}");
    }

    #[test]
    fn the_interval_of_some_figures_is_known() {
        // Their deviation is 1, and so is t / sqrt(3) = 4.303 / 1.732.
        let mean = Mean::of(&[9.0, 10.0, 11.0]);
        assert!((mean.half_width - 2.4843).abs() < 0.001, "{mean:?}");
        assert!((mean.part() - 0.248).abs() < 0.001);
        assert!(Mean::of(&[1.0]).half_width.is_infinite());
        assert_eq!(Mean::of(&[7.0; 3]).part(), 0.0);
        assert!(quantile(31) < quantile(30) && (quantile(60) - 2.000).abs() < 0.001);
        assert!((quantile(1_000_000) - 1.96).abs() < 0.001);
    }

    #[test]
    fn runs_are_repeated_until_the_mean_is_known_or_their_number_is_used_up() {
        let runs = |runs_max: usize, figure: fn(usize) -> f64| {
            repeat(runs_max, |run| Ok(figure(run)), |figure| [*figure]).unwrap().len()
        };
        assert_eq!(runs(50, |_| 7.0), RUNS_MIN);
        assert_eq!(runs(1, |_| 7.0), 1);
        let alternating = |run: usize| if run.is_multiple_of(2) { 95.0 } else { 105.0 };
        let needed = runs(100, alternating);
        assert!((15..30).contains(&needed), "{needed}");
        assert_eq!(runs(10, alternating), 10);
    }
}
