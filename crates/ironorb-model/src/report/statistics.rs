//! Student's t.

/// A mean, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The mean; not a number if there are no values.
    pub mean: f64,
    /// The true mean is no further away, with the confidence that was asked for. Without bound for fewer than two values.
    pub half_width: f64,
    /// The number of values.
    pub count: usize,
}

impl Interval {
    /// The mean of independent values of one distribution.
    pub fn of(values: &[f64], confidence: f64) -> Interval {
        let count = values.len();
        if count == 0 {
            return Interval { mean: f64::NAN, half_width: f64::INFINITY, count };
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        if count == 1 {
            return Interval { mean, half_width: f64::INFINITY, count };
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = libm::sqrt(squares / (count - 1) as f64 / count as f64);
        let quantile = student_quantile(count - 1, 0.5 + confidence / 2.0);
        Interval { mean, half_width: quantile * error, count }
    }

    /// The half-width as a part of the mean. Zero for what was never seen: more runs would not tell more.
    pub fn half_width_share(&self) -> f64 {
        if self.count == 0 || self.half_width == 0.0 {
            return 0.0;
        }
        self.half_width / self.mean.abs()
    }

    /// The lower and the upper end.
    pub fn ends(&self) -> (f64, f64) {
        (self.mean - self.half_width, self.mean + self.half_width)
    }
}

/// The number that a value of Student's distribution with so many degrees of freedom does not exceed with this probability,
/// which is from 0.5 to 1.
pub fn student_quantile(degrees: usize, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student(degrees, high) < probability {
        high *= 2.0;
        if high > 1e12 {
            return f64::INFINITY;
        }
    }
    // Each step halves the distance.
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match student(degrees, middle) < probability {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

/// The probability that a value of Student's distribution does not exceed `t`, which is not negative. By the finite series
/// for whole degrees of freedom.
fn student(degrees: usize, t: f64) -> f64 {
    let n = degrees.max(1);
    let angle = libm::atan2(t, libm::sqrt(n as f64));
    let cos = libm::cos(angle);
    let cos_squared = cos * cos;
    let sum_of = |first: f64, from: usize, to: usize| {
        let (mut term, mut sum) = (first, first);
        for k in (from..=to).step_by(2) {
            term *= cos_squared * (k - 1) as f64 / k as f64;
            sum += term;
        }
        sum
    };
    let within = if n.is_multiple_of(2) {
        libm::sin(angle) * sum_of(1.0, 2, n - 2)
    } else {
        let tail = if n == 1 { 0.0 } else { libm::sin(angle) * sum_of(cos, 3, n - 2) };
        (angle + tail) * std::f64::consts::FRAC_2_PI
    };
    0.5 + within / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, probability, quantile) in [
            (1, 0.975, 12.706),
            (2, 0.975, 4.303),
            (3, 0.95, 2.353),
            (4, 0.975, 2.776),
            (9, 0.995, 3.250),
            (30, 0.975, 2.042),
            (999, 0.975, 1.962),
        ] {
            let found = student_quantile(degrees, probability);
            assert!((found - quantile).abs() < 0.0006, "{degrees}: {found} instead of {quantile}");
        }
    }

    #[test]
    fn intervals_hold_the_true_mean_as_often_as_they_say() {
        let mut random = crate::Random::stream(5, 5);
        let mean = std::time::Duration::from_millis(1);
        let hits = (0..2_000).filter(|_| {
            // Means of fifty: nearly normal.
            let of_fifty = |_| {
                let sum: f64 = (0..50).map(|_| random.exponential(mean).as_secs_f64()).sum();
                sum / 50.0
            };
            let values: Vec<f64> = (0..6).map(of_fifty).collect();
            let (low, high) = Interval::of(&values, 0.9).ends();
            low <= 1e-3 && 1e-3 <= high
        });
        let share = hits.count() as f64 / 2_000.0;
        // Three standard errors are 2 %.
        assert!((0.87..0.92).contains(&share), "{share}");
    }

    #[test]
    fn one_value_tells_nothing_of_its_error() {
        assert_eq!(Interval::of(&[3.0], 0.95).half_width, f64::INFINITY);
        assert!(Interval::of(&[], 0.95).mean.is_nan());
        assert_eq!(Interval::of(&[3.0, 3.0], 0.95).half_width_share(), 0.0);
    }
}
