//! Scales: from values to places, with ticks at round values. Pure.

/// About how many ticks an axis has.
const TICKS: f64 = 6.0;

/// Days from the first of January 1970 to 0000-03-01, where the calendar of the computation begins.
const EPOCH: i64 = 719_468;

/// How values stand on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spacing {
    /// By their differences.
    Linear,
    /// By their ratios.
    Log,
    /// By their differences, told as days.
    Days,
}

/// A scale from values to a part of the drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// The ends, as `Spacing::measure` has them: the logarithm of a ratio is finite where the ratio is not.
    low: f64,
    high: f64,
    spacing: Spacing,
    from: f64,
    to: f64,
}

impl Spacing {
    /// What lies evenly on the axis.
    fn measure(self, value: f64) -> f64 {
        match self {
            Self::Linear | Self::Days => value,
            Self::Log => value.log10(),
        }
    }
}

/// What values reach from and to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Extent {
    /// Of these values; nothing when there are none.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        values.fold(None, |found: Option<Self>, value| {
            let found = found.unwrap_or(Self { low: value, high: value });
            Some(Self { low: found.low.min(value), high: found.high.max(value) })
        })
    }

    /// With this value in it.
    pub(super) fn with(self, value: f64) -> Self {
        Self { low: self.low.min(value), high: self.high.max(value) }
    }
}

impl Scale {
    /// A scale for these values, widened to ticks, from one place to another.
    pub(super) fn new(extent: Extent, spacing: Spacing, from: f64, to: f64) -> Self {
        let (low, high) = match spacing {
            Spacing::Linear => widened(extent),
            Spacing::Log => decades(extent),
            Spacing::Days if extent.low < extent.high => (extent.low, extent.high),
            Spacing::Days => (extent.low - 1.0, extent.high + 1.0),
        };
        Self { low, high, spacing, from, to }
    }

    /// Where a value stands.
    pub(super) fn place(&self, value: f64) -> f64 {
        let part = (self.spacing.measure(value) - self.low) / (self.high - self.low);
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The lowest value that is shown.
    pub(super) fn low(&self) -> f64 {
        match self.spacing {
            Spacing::Linear | Spacing::Days => self.low,
            Spacing::Log => 10_f64.powf(self.low),
        }
    }

    /// Ticks with what is written at them.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        match self.spacing {
            Spacing::Linear => {
                let step = step(self.high - self.low);
                let count = ((self.high - self.low) / step).round().clamp(1.0, 50.0);
                let at = |n: i32| self.low + f64::from(n) * step;
                let count = whole(count);
                (0..=count).map(|n| Tick { value: at(n), label: number(snapped(at(n), step)) }).collect()
            }
            Spacing::Log => {
                let (low, high) = (whole(self.low), whole(self.high));
                let every = usize::try_from(((high - low) / 8).max(1)).unwrap_or(1);
                (low..=high)
                    .step_by(every)
                    .map(|power| Tick { value: 10_f64.powi(power), label: number(10_f64.powi(power)) })
                    .collect()
            }
            Spacing::Days => {
                let step = (((self.high - self.low) / TICKS).ceil()).max(1.0);
                let first = self.low.ceil();
                let count = whole(((self.high - first) / step).floor().clamp(0.0, 50.0));
                let at = |n: i32| first + f64::from(n) * step;
                (0..=count).map(|n| Tick { value: at(n), label: day(at(n)) }).collect()
            }
        }
    }
}

/// A tick of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// The powers of ten around what is greater than nothing.
fn decades(extent: Extent) -> (f64, f64) {
    let (low, high) = (extent.low.log10().floor(), extent.high.log10().ceil());
    (low, if high > low { high } else { low + 1.0 })
}

fn widened(extent: Extent) -> (f64, f64) {
    let Extent { low, high } = extent;
    let (low, high) = if low < high {
        (low, high)
    } else if low == 0.0 {
        (0.0, 1.0)
    } else {
        (low - low.abs() / 2.0, high + high.abs() / 2.0)
    };
    let step = step(high - low);
    let (down, up) = ((low / step).floor() * step, (high / step).ceil() * step);
    if down < up { (down, up) } else { (low, low + step) }
}

/// A round distance between ticks: 1, 2 or 5 times a power of ten.
fn step(span: f64) -> f64 {
    let rough = (span / TICKS).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor()).max(f64::MIN_POSITIVE);
    let times = rough / power;
    power
        * if times <= 1.0 {
            1.0
        } else if times <= 2.0 {
            2.0
        } else if times <= 5.0 {
            5.0
        } else {
            10.0
        }
}

/// A multiple of the step without what adding up left over.
fn snapped(value: f64, step: f64) -> f64 {
    let snapped = (value / step).round() * step;
    if snapped == 0.0 { 0.0 } else { snapped }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "powers of ten and counts of ticks, far within bounds; a float cast saturates"
)]
fn whole(value: f64) -> i32 {
    value as i32
}

/// A number as it stands at an axis: `12,500`, `0.25`, `1.5e12`.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e10).contains(&size) {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let digits =
            if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        return format!("{digits}e{power}");
    }
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (whole, rest) =
        text.split_once('.').map_or((text, String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

/// The days since 1970 of `2026-11-22`, with the part of the day of `2026-11-22T12:00`; nothing for what is no date. By the
/// algorithm of Hinnant (days_from_civil).
pub(super) fn days(text: &str) -> Option<f64> {
    let text = text.trim();
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
    if text.get(4..5)? != "-" || text.get(7..8)? != "-" {
        return None;
    }
    let (year, month, day) = (i64::from(part(0, 4)?), i64::from(part(5, 7)?), i64::from(part(8, 10)?));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let clock = match (part(11, 13), part(14, 16)) {
        (Some(hour), Some(minute)) => f64::from(hour * 60 + minute) / 1440.0,
        (Some(_) | None, _) if text.len() == 10 => 0.0,
        (Some(_) | None, _) => return None,
    };
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH;
    #[expect(clippy::cast_precision_loss, reason = "days of four-digit years")]
    let days = days as f64;
    Some(days + clock)
}

/// The date of days since 1970, by the inverse of [`days`].
pub(super) fn day(days: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "days of four-digit years")]
    let shifted = days.floor() as i64 + EPOCH;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        for (low, high, wanted) in [
            (0.0, 97.0, vec!["0", "20", "40", "60", "80", "100"]),
            (-1.0, 1.0, vec!["-1", "-0.5", "0", "0.5", "1"]),
            (5.0, 5.0, vec!["2", "3", "4", "5", "6", "7", "8"]),
            (0.0, 12_345.0, vec!["0", "5,000", "10,000", "15,000"]),
        ] {
            let scale = Scale::new(Extent { low, high }, Spacing::Linear, 0.0, 100.0);
            let labels: Vec<String> = scale.ticks().into_iter().map(|tick| tick.label).collect();
            assert_eq!(labels, wanted, "{low} to {high}");
        }
        let scale = Scale::new(Extent { low: 3.0, high: 20_000.0 }, Spacing::Log, 0.0, 100.0);
        let labels: Vec<String> = scale.ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["1", "10", "100", "1,000", "10,000", "100,000"]);
        assert!((scale.place(100.0) - 40.0).abs() < 1e-9);
    }

    #[test]
    fn ratios_that_no_number_holds_have_places() {
        for (low, high) in
            [(1.6e-308, 1.9e83), (f64::from_bits(1), 1e150), (f64::from_bits(1), f64::from_bits(1))]
        {
            let scale = Scale::new(Extent { low, high }, Spacing::Log, 0.0, 100.0);
            let places = [scale.place(low), scale.place(high), scale.place(scale.low())];
            assert!(places.iter().all(|place| place.is_finite()), "{low} to {high}: {places:?}");
            assert!(places[0] <= places[1], "{low} to {high}: {places:?}");
        }
    }

    #[test]
    fn numbers_are_short_and_grouped() {
        for (value, wanted) in [
            (0.0, "0"),
            (1234567.0, "1,234,567"),
            (-0.25, "-0.25"),
            (1.5e12, "1.5e12"),
            (2e-7, "2e-7"),
            (1e10, "1e10"),
        ] {
            assert_eq!(number(value), wanted);
        }
    }

    #[test]
    fn days_are_counted_and_named_alike() {
        assert_eq!(days("1970-01-01"), Some(0.0));
        assert_eq!(days("2000-03-01"), Some(11_017.0));
        assert_eq!(days("1970-01-02T12:00:00Z"), Some(1.5));
        assert_eq!((days("2026-13-01"), days("hello worl"), days("1")), (None, None, None));
        for n in (-700_000..2_000_000).step_by(977) {
            let text = day(f64::from(n));
            assert_eq!(days(&text), Some(f64::from(n)), "{text}");
        }
    }
}
