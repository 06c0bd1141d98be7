//! What two sides differ by, and how sure that is (95 %): shares by Wilson and Newcombe, means by Student's t.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::eval::stats::{Share, share};

/// Fewest tasks of each side, or pairs, of which anything is said.
pub(crate) const LEAST: usize = 8;

/// A difference, the second side less the first, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Difference {
    pub(crate) by: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What may be said of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Says {
    /// There are too few tasks.
    TooLittle,
    /// The interval holds nothing as well.
    NoDifference,
    /// The second is more.
    More,
    /// The second is less.
    Less,
}

impl Difference {
    fn around(by: f64, half: f64) -> Self {
        Self { by, low: by - half, high: by + half }
    }

    /// What it says where so many were compared.
    pub(crate) fn says(&self, least: usize) -> Says {
        if least < LEAST {
            Says::TooLittle
        } else if self.low > 0.0 {
            Says::More
        } else if self.high < 0.0 {
            Says::Less
        } else {
            Says::NoDifference
        }
    }
}

/// Of pairs: both went well, the first alone, the second alone, neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Pairs {
    pub(crate) both: usize,
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) neither: usize,
}

/// The difference of two shares of separate tasks (Newcombe's hybrid score interval); nothing where a side is empty.
pub(crate) fn of_shares(first: Share, second: Share) -> Option<Difference> {
    of_related_shares(first, second, 0.0)
}

/// The same where both did the same tasks (Newcombe's interval for pairs).
pub(crate) fn of_pairs(pairs: Pairs) -> Option<Difference> {
    let Pairs { both, first, second, neither } = pairs;
    let of = both + first + second + neither;
    let [a, b, c, d] = [both, first, second, neither].map(real);
    let spread = ((a + b) * (c + d) * (a + c) * (b + d)).sqrt();
    let cross = a * d - b * c;
    // With his correction for few pairs.
    let cross = if cross > 0.0 { (cross - real(of) / 2.0).max(0.0) } else { cross };
    let related = if spread > 0.0 { cross / spread } else { 0.0 };
    of_related_shares(share(both + first, of), share(both + second, of), related)
}

fn of_related_shares(first: Share, second: Share, related: f64) -> Option<Difference> {
    if first.of == 0 || second.of == 0 {
        return None;
    }
    let part = |of: Share| real(of.passed) / real(of.of);
    let (one, other) = (part(first), part(second));
    let reach =
        |own: f64, others: f64| (own * own - 2.0 * related * own * others + others * others).max(0.0).sqrt();
    let by = other - one;
    let low = by - reach(other - second.low, first.high - one);
    let high = by + reach(second.high - other, one - first.low);
    Some(Difference { by, low: low.max(-1.0), high: high.min(1.0) })
}

/// The difference of two means of separate values (Welch); nothing where a side has fewer than two.
pub(crate) fn of_means(first: &[f64], second: &[f64]) -> Option<Difference> {
    let ((one, spread_of_one), (other, spread_of_other)) = (mean_and_error(first)?, mean_and_error(second)?);
    let both = spread_of_one + spread_of_other;
    let by = other - one;
    if both <= 0.0 {
        return Some(Difference::around(by, 0.0));
    }
    let part = |spread: f64, count: usize| spread * spread / (real(count) - 1.0);
    let freedom = both * both / (part(spread_of_one, first.len()) + part(spread_of_other, second.len()));
    Some(Difference::around(by, quantile(freedom)? * both.sqrt()))
}

/// The mean of differences of pairs (paired t); nothing where there are fewer than two.
pub(crate) fn of_paired_means(pairs: &[(f64, f64)]) -> Option<Difference> {
    let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
    let (by, spread) = mean_and_error(&differences)?;
    Some(Difference::around(by, quantile(real(pairs.len()) - 1.0)? * spread.sqrt()))
}

/// The mean, and the square of its standard error.
fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let count = real(values.len());
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((mean, squares / (count - 1.0) / count))
}

const fn real(count: usize) -> f64 {
    count as f64
}

/// Between minus and plus this lie 95 % of Student's t with so many degrees of freedom.
fn quantile(freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 5e-4 * other.abs().max(1.0)
    }

    #[test]
    fn quantiles_of_t_are_those_of_the_tables() {
        for (freedom, t) in
            [(1.0, 12.7062), (2.0, 4.3027), (5.0, 2.5706), (10.0, 2.2281), (30.0, 2.0423), (1e6, 1.95997)]
        {
            let found = quantile(freedom).unwrap();
            assert!(near(found, t), "{freedom}: {found}");
        }
    }

    /// Newcombe 1998: 56 of 70 and 48 of 80.
    #[test]
    fn the_difference_of_shares_is_that_of_the_literature() {
        let found = of_shares(share(48, 80), share(56, 70)).unwrap();
        assert!(near(found.by, 0.2) && near(found.low, 0.0524) && near(found.high, 0.3339), "{found:?}");
        assert_eq!(of_shares(share(0, 0), share(1, 2)), None);
    }

    /// Two samples of ten, worked by hand: means 10 and 12, variances 4 and 9.
    #[test]
    fn the_difference_of_means_is_welchs() {
        let of = |mean: f64, deviation: f64| -> Vec<f64> {
            // Nine tenths of ten: the variance of the sample is the square of the deviation.
            let step = deviation * (0.9_f64).sqrt();
            (0..10).map(|at| if at % 2 == 0 { mean - step } else { mean + step }).collect()
        };
        let found = of_means(&of(10.0, 2.0), &of(12.0, 3.0)).unwrap();
        // Standard error 1.140, 15.68 degrees of freedom, t = 2.1235.
        assert!(
            near(found.by, 2.0) && (found.low + 0.421).abs() < 0.003 && (found.high - 4.421).abs() < 0.003,
            "{found:?}"
        );
        let pairs: Vec<(f64, f64)> = [1.0, 2.0, 3.0, 4.0, 5.0].map(|value| (value, 2.0 * value)).to_vec();
        // Mean 3, standard error 0.7071, t with 4 degrees 2.7764.
        let found = of_paired_means(&pairs).unwrap();
        assert!(near(found.by, 3.0) && near(found.low, 1.0368) && near(found.high, 4.9632), "{found:?}");
        assert_eq!(of_means(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(of_means(&[1.0; 9], &[2.0; 9]).unwrap(), Difference { by: 1.0, low: 1.0, high: 1.0 });
    }

    #[test]
    fn nothing_is_said_of_too_little() {
        let sure = Difference { by: 2.0, low: 1.0, high: 3.0 };
        assert_eq!(sure.says(LEAST - 1), Says::TooLittle);
        assert_eq!(sure.says(LEAST), Says::More);
        assert_eq!(Difference { by: -2.0, low: -3.0, high: -1.0 }.says(LEAST), Says::Less);
        assert_eq!(Difference { by: 0.5, low: -1.0, high: 2.0 }.says(LEAST), Says::NoDifference);
    }

    proptest! {
        /// The interval holds the difference, and the sides may be named the other way round.
        #[test]
        fn intervals_hold_what_was_seen(
            one in 1usize..200, other in 1usize..200, part in 0.0f64..1.0, of_other in 0.0f64..1.0,
        ) {
            let passed = |of: usize, part: f64| ((real(of) * part) as usize).min(of);
            let (first, second) = (share(passed(one, part), one), share(passed(other, of_other), other));
            let (there, back) = (of_shares(first, second).unwrap(), of_shares(second, first).unwrap());
            prop_assert!(there.low <= there.by + 1e-12 && there.by <= there.high + 1e-12, "{:?}", there);
            prop_assert!((there.by + back.by).abs() < 1e-9 && (there.low + back.high).abs() < 1e-9);
        }

        #[test]
        fn pairs_that_have_nothing_to_do_with_each_other_are_like_separate_ones(n in 2usize..50) {
            let even = Pairs { both: n, first: n, second: n, neither: n };
            let apart = of_shares(share(2 * n, 4 * n), share(2 * n, 4 * n)).unwrap();
            let paired = of_pairs(even).unwrap();
            prop_assert!((paired.low - apart.low).abs() < 1e-9 && (paired.high - apart.high).abs() < 1e-9);
            // The more both do alike, the surer it is.
            let alike = of_pairs(Pairs { both: 2 * n, first: 0, second: 0, neither: 2 * n }).unwrap();
            prop_assert!(alike.high - alike.low < paired.high - paired.low);
        }
    }
}
