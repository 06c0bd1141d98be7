//! Shares and numbers over repeats, with what they are sure of.

use serde::Serialize;

/// Two-sided, 95 %.
const Z: f64 = 1.959_964;
/// Samples of a bootstrap.
const SAMPLES: usize = 1_000;

/// A share with its interval (Wilson, 95 %).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Share {
    pub(crate) passed: usize,
    pub(crate) of: usize,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Numbers over repeats: middle and ends, and the mean with its interval (bootstrap, 95 %).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
    mean: f64,
    mean_low: f64,
    mean_high: f64,
}

/// The share of what passed.
pub(crate) fn share(passed: usize, of: usize) -> Share {
    if of == 0 {
        return Share { passed, of, low: 0.0, high: 1.0 };
    }
    let (n, p) = (of as f64, passed as f64 / of as f64);
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    Share { passed, of, low: ((middle - half) / scale).max(0.0), high: ((middle + half) / scale).min(1.0) }
}

/// How numbers spread.
pub(crate) fn spread(values: &[f64]) -> Spread {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else { return Spread::default() };
    let mut means: Vec<f64> = (0..SAMPLES).map(|sample| resampled_mean(values, sample)).collect();
    means.sort_by(f64::total_cmp);
    Spread {
        least: *least,
        median: median(&sorted),
        most: *most,
        mean: mean(values),
        mean_low: means[SAMPLES * 25 / 1000],
        mean_high: means[SAMPLES * 975 / 1000 - 1],
    }
}

fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[half - 1], sorted[half]) } else { sorted[half] }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of as many values drawn with replacement; the same for the same sample.
fn resampled_mean(values: &[f64], sample: usize) -> f64 {
    let mut state = sample as u64;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % values.len() as u64) as usize
    };
    (0..values.len()).map(|_| values[draw()]).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_as_sure_as_there_are_repeats() {
        let all = share(3, 3);
        assert!((all.low - 0.4385).abs() < 0.001 && (all.high - 1.0).abs() < 1e-9, "{all:?}");
        let half = share(50, 100);
        assert!((half.low - 0.4038).abs() < 0.001 && (half.high - 0.5962).abs() < 0.001, "{half:?}");
        assert!(share(0, 10).low.abs() < 1e-9);
    }

    #[test]
    fn numbers_have_a_middle_and_ends() {
        let seen = spread(&[4.0, 1.0, 3.0, 2.0]);
        assert!((seen.least, seen.median, seen.most, seen.mean) == (1.0, 2.5, 4.0, 2.5));
        assert!(
            seen.mean_low < 2.5 && seen.mean_low >= 1.0 && seen.mean_high > 2.5 && seen.mean_high <= 4.0,
            "{seen:?}"
        );
        let same = spread(&[7.0; 5]);
        assert!((same.mean_low, same.mean_high) == (7.0, 7.0));
        assert!(spread(&[]) == Spread::default());
    }
}
