//! Jobs of several parts at once, which end with the last part. They have no product form: a customer is at several stations
//! at a time. What is proven about them, and what is an estimate:
//!
//! | function | is | holds for |
//! |---|---|---|
//! | [`mean_of_longest`] | exact | parts that wait for nothing; a lower bound of every response |
//! | [`Closed::bounds`], throughput above, response below | proven | any distribution, any order of service |
//! | [`Closed::bounds`], throughput below, response above | proven | stations of one server in order of arrival, at most one part of a job at each, times of which the rest is never longer than a whole one, in distribution (fixed, exponential, uniform) |
//! | [`Closed::estimate`] | an estimate: parts as if they waited independently of each other | the same stations |
//! | [`Open::bounds`] above | proven (Baccelli and Makowski: siblings wait together, so the last comes sooner than if they waited each by itself) | Poisson arrivals, exponential times |
//! | [`Open::bounds`] below, several equal parts | of the literature (Varki, Merchant and Chen), checked here against the exact result for two | Poisson arrivals, equal exponential times |
//! | [`Open::bounds`] below, other parts | proven: the last part is no sooner than any | Poisson arrivals, exponential times |
//! | [`Open::estimate`] | exact for two equal parts (Flatto and Hahn), else an estimate (Nelson and Tantawi) | Poisson arrivals, equal exponential times |

use crate::scenario::Spread;

/// A part of a job without queues: a time that is always the same, and one that varies.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Seconds on the way and on processors.
    pub fixed: f64,
    /// What the servant takes.
    pub spread: Spread,
}

impl Part {
    /// The mean of the whole part, in seconds.
    pub fn mean(&self) -> f64 {
        self.fixed + mean(&self.spread)
    }

    /// The probability that the part takes at most this many seconds.
    fn within(&self, seconds: f64) -> f64 {
        let varying = seconds - self.fixed;
        let slack = 1e-12 * seconds.abs().max(1e-9);
        match &self.spread {
            _ if varying < -slack => 0.0,
            Spread::Fixed(time) => f64::from(u8::from(varying + slack >= time.as_secs_f64())),
            Spread::Exponential(mean) if mean.is_zero() => 1.0,
            Spread::Exponential(mean) => -libm::expm1(-varying.max(0.0) / mean.as_secs_f64()),
            Spread::Uniform(from, to) => {
                let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
                if to > from {
                    ((varying - from) / (to - from)).clamp(0.0, 1.0)
                } else {
                    f64::from(u8::from(varying + slack >= from))
                }
            }
            Spread::Samples(samples) => {
                let within = samples.iter().filter(|sample| sample.as_secs_f64() <= varying + slack).count();
                within as f64 / samples.len().max(1) as f64
            }
        }
    }

    /// Where the probability jumps or bends.
    fn corners(&self) -> Vec<f64> {
        let of: Vec<f64> = match &self.spread {
            Spread::Fixed(time) => vec![time.as_secs_f64()],
            Spread::Exponential(mean) => {
                [0.0, 1.0, 3.0, 8.0, 20.0, 40.0].map(|n| n * mean.as_secs_f64()).to_vec()
            }
            Spread::Uniform(from, to) => vec![from.as_secs_f64(), to.as_secs_f64()],
            Spread::Samples(samples) => samples.iter().map(|sample| sample.as_secs_f64()).collect(),
        };
        of.into_iter().map(|corner| corner + self.fixed).collect()
    }

    /// Whether the rest of a time under way is never longer than a whole one, in distribution.
    fn ages(&self) -> bool {
        !matches!(self.spread, Spread::Samples(_))
    }
}

/// The mean of a distribution, in seconds.
pub fn mean(spread: &Spread) -> f64 {
    match spread {
        Spread::Fixed(time) | Spread::Exponential(time) => time.as_secs_f64(),
        Spread::Uniform(from, to) => (from.as_secs_f64() + to.as_secs_f64()) / 2.0,
        Spread::Samples(samples) => {
            let sum: f64 = samples.iter().map(|sample| sample.as_secs_f64()).sum();
            sum / samples.len().max(1) as f64
        }
    }
}

/// The distribution of times that are so many times as long.
pub(crate) fn stretched(spread: &Spread, factor: f64) -> Spread {
    match spread {
        Spread::Fixed(time) => Spread::Fixed(time.mul_f64(factor)),
        Spread::Exponential(time) => Spread::Exponential(time.mul_f64(factor)),
        Spread::Uniform(from, to) => Spread::Uniform(from.mul_f64(factor), to.mul_f64(factor)),
        Spread::Samples(samples) => {
            Spread::Samples(samples.iter().map(|time| time.mul_f64(factor)).collect())
        }
    }
}

/// The squared coefficient of variation of a distribution: 0 if it is fixed, 1 if it is exponential.
pub fn variation(spread: &Spread) -> f64 {
    let mean = mean(spread);
    if mean == 0.0 {
        return 0.0;
    }
    match spread {
        Spread::Fixed(_) => 0.0,
        Spread::Exponential(_) => 1.0,
        Spread::Uniform(from, to) => {
            let width = to.as_secs_f64() - from.as_secs_f64();
            width * width / 12.0 / (mean * mean)
        }
        Spread::Samples(samples) => {
            let square: f64 = samples.iter().map(|it| it.as_secs_f64() * it.as_secs_f64()).sum();
            (square / samples.len().max(1) as f64 / (mean * mean) - 1.0).max(0.0)
        }
    }
}

/// The mean of the longest of independent parts, in seconds.
pub fn mean_of_longest(parts: &[Part]) -> f64 {
    let mut corners: Vec<f64> = parts.iter().flat_map(Part::corners).collect();
    corners.push(0.0);
    corners.sort_by(f64::total_cmp);
    corners.dedup();
    let is_longer = |seconds: f64| 1.0 - parts.iter().map(|part| part.within(seconds)).product::<f64>();
    corners.windows(2).map(|piece| integral(&is_longer, piece[0], piece[1])).sum()
}

/// By Simpson's rule. The ends are left out by a hair: the function may jump there.
fn integral(function: &impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    let inside = (to - from) * 1e-9;
    let step = (to - from - 2.0 * inside) / f64::from(STEPS);
    let at = |n: u32| function(from + inside + step * f64::from(n));
    let between: f64 = (1..STEPS).map(|n| if n % 2 == 1 { 4.0 * at(n) } else { 2.0 * at(n) }).sum();
    (at(0) + between + at(STEPS)) * (to - from) / f64::from(STEPS) / 3.0
}

/// A lower and an upper bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Nothing is below.
    pub lower: f64,
    /// Nothing is above. Infinite if nothing is proven.
    pub upper: f64,
}

/// Customers that think, do what no other customer delays, and then run a job of which each part queues at a station of its
/// own.
#[derive(Debug, Clone, PartialEq)]
pub struct Closed {
    /// Their number.
    pub customers: u32,
    /// Seconds between jobs.
    pub think: f64,
    /// Seconds of a job before and after its parts.
    pub around: f64,
    /// The parts.
    pub parts: Vec<Part>,
    /// Seconds a job for which the most demanded station is busy. That is the longest mean of a part's spread, or a half
    /// of it where every second job goes to another station.
    pub most_demanded: f64,
}

impl Closed {
    /// Bounds of jobs a second, and of the response time of a job in seconds.
    pub fn bounds(&self) -> (Bounds, Bounds) {
        let customers = f64::from(self.customers);
        let longest = mean_of_longest(&self.parts);
        let alone = self.around + longest;
        // Behind at most one part of each other customer.
        let waiting: Vec<Part> = self.parts.iter().map(|part| Part { fixed: 0.0, ..part.clone() }).collect();
        let slowest = match self.parts.iter().all(Part::ages) {
            true => alone + (customers - 1.0) * mean_of_longest(&waiting),
            false => f64::INFINITY,
        };
        let most = (1.0 / self.most_demanded).min(customers / (self.think + alone));
        let response =
            Bounds { lower: alone.max(customers * self.most_demanded - self.think), upper: slowest };
        let throughput = Bounds { lower: customers / (self.think + slowest), upper: most };
        (throughput, response)
    }

    /// An estimate of jobs a second and of the response time: by the recursion of mean value analysis, in which a job lasts as
    /// long as the longest of its parts, each stretched by the mean number of parts that it finds, as if they found them
    /// independently of each other. Within 3 % of small Markov chains of two and three parts.
    pub fn estimate(&self) -> (f64, f64) {
        let mut found = vec![0.0; self.parts.len()];
        let (mut throughput, mut response) = (0.0, 0.0);
        let share = self.share();
        for customers in 1..=self.customers {
            let delayed = |(part, found): (&Part, &f64)| Part {
                fixed: part.fixed,
                spread: stretched(&part.spread, 1.0 + found),
            };
            let parts: Vec<Part> = self.parts.iter().zip(&found).map(delayed).collect();
            response = self.around + mean_of_longest(&parts);
            throughput = f64::from(customers) / (self.think + response);
            for (found, part) in found.iter_mut().zip(&self.parts) {
                *found = throughput * share * mean(&part.spread) * (1.0 + *found);
            }
        }
        (
            throughput.min(1.0 / self.most_demanded),
            response.max(f64::from(self.customers) * self.most_demanded - self.think),
        )
    }

    /// The part of the jobs that come to a station of this job's parts.
    fn share(&self) -> f64 {
        let longest = self.parts.iter().map(|part| mean(&part.spread)).fold(0.0, f64::max);
        if longest > 0.0 { (self.most_demanded / longest).min(1.0) } else { 1.0 }
    }
}

/// Jobs that arrive by Poisson's law, with a part for each of several stations of one server with exponential times.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// Jobs a second.
    pub rate: f64,
    /// Mean seconds of each part.
    pub parts: Vec<f64>,
}

impl Open {
    /// Bounds of the response time of a job, in seconds; infinite if a station cannot carry its parts.
    pub fn bounds(&self) -> Bounds {
        let utilisation = self.parts.iter().map(|part| part * self.rate).fold(0.0, f64::max);
        if utilisation >= 1.0 {
            return Bounds { lower: f64::INFINITY, upper: f64::INFINITY };
        }
        let responses = self.parts.iter().map(|part| part / (1.0 - part * self.rate));
        let slowest = responses.clone().fold(0.0, f64::max);
        let lower = match self.equal_part() {
            Some(part) => {
                let later: f64 =
                    (1..=self.parts.len()).map(|i| utilisation / (i as f64 * (i as f64 - utilisation))).sum();
                part * (harmonic(self.parts.len()) + later)
            }
            None => slowest,
        };
        // Responses of one station are exponential, too.
        let each_by_itself: Vec<Part> = responses
            .map(|seconds| Part {
                fixed: 0.0,
                spread: Spread::Exponential(std::time::Duration::from_secs_f64(seconds)),
            })
            .collect();
        Bounds { lower, upper: mean_of_longest(&each_by_itself).max(slowest) }
    }

    /// The mean response time of a job with equal parts, in seconds; `None` if they are not equal.
    pub fn estimate(&self) -> Option<f64> {
        let part = self.equal_part()?;
        let utilisation = part * self.rate;
        if utilisation >= 1.0 {
            return Some(f64::INFINITY);
        }
        let one = part / (1.0 - utilisation);
        if self.parts.len() == 1 {
            return Some(one);
        }
        let two = (12.0 - utilisation) / 8.0 * one;
        let ratio = harmonic(self.parts.len()) / harmonic(2);
        Some((ratio + 4.0 / 11.0 * (1.0 - ratio) * utilisation) * two)
    }

    fn equal_part(&self) -> Option<f64> {
        let first = *self.parts.first()?;
        self.parts.iter().all(|part| *part == first).then_some(first)
    }
}

/// 1 + 1/2 + … + 1/n: the mean of the longest of n equal exponential times, in means.
pub fn harmonic(n: usize) -> f64 {
    (1..=n).map(|i| 1.0 / i as f64).sum()
}

/// Of each piece of an integral. It must be even.
const STEPS: u32 = 400;
