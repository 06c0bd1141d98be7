//! Reader of dates in text, in English, German, French, Spanish, Italian and Portuguese.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::calendar::{DAYS, SHORT_MONTHS, month_names, month_of};

/// Date as far as a text gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// Year.
    pub year: Option<u32>,
    /// Month, from 1.
    pub month: u32,
    /// Day of the month, from 1.
    pub day: Option<u32>,
}

impl Date {
    /// A date that exists in the calendar.
    fn new(year: Option<u32>, month: u32, day: Option<u32>) -> Option<Self> {
        let is_leap =
            |year: u32| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if year.is_none_or(is_leap) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => return None,
        };
        let exists = day.is_none_or(|day| (1..=days).contains(&day)) && (year.is_some() || day.is_some());
        exists.then_some(Self { year, month, day })
    }

    /// Whether both dates can be the same one: no part that both give differs.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let same = |one: Option<u32>, other: Option<u32>| one.is_none() || other.is_none() || one == other;
        self.month == other.month && same(self.year, other.year) && same(self.day, other.day)
    }

    /// Days since a fixed day, if year, month and day are known.
    #[must_use]
    pub fn day_number(&self) -> Option<i64> {
        let (year, day) = (i64::from(self.year?), i64::from(self.day?));
        // Years start in March, so that the day of a leap year is the last one.
        let month = i64::from(self.month);
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(year) = self.year {
            write!(f, "{year:04}-")?;
        }
        write!(f, "{:02}", self.month)?;
        self.day.map_or(Ok(()), |day| write!(f, "-{day:02}"))
    }
}

/// A date in a text, with the dates that its characters can mean: two for `3/4/2026`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenDate {
    /// Its range, in bytes.
    pub at: Range<usize>,
    /// Possible dates; at least one.
    pub readings: Vec<Date>,
}

#[expect(clippy::expect_used, reason = "a constant pattern, used by tests")]
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let names: Vec<&str> = month_names().chain(SHORT_MONTHS).collect();
    let (name, link) = (names.join("|"), r"(?:(?:of|de|del|den)\s+)?");
    let forms = [
        r"\b(?<iso_year>\d{4})[-/](?<iso_month>\d{2})(?:[-/](?<iso_day>\d{2}))?(?:T\d\d:?\d\d[\d:.]*(?:Z|[+-]\d\d:?\d\d)?|\b)".to_owned(),
        r"\b(?<dot_day>\d{1,2})\.\s?(?<dot_month>\d{1,2})\.\s?(?<dot_year>\d{4})\b".to_owned(),
        r"\b(?<one>\d{1,2})/(?<other>\d{1,2})/(?<slash_year>\d{4})\b".to_owned(),
        r"\b(?<month>\d{1,2})/(?<year>(?:19|20)\d{2})\b".to_owned(),
        format!(r"\b(?<first_day>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?\s+{link}(?<first_name>{name})\b\.?(?:,?\s+{link}(?<first_year>\d{{4}})\b)?"),
        format!(r"\b(?<last_name>{name})\b\.?\s+(?<last_day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?<last_year>\d{{4}})\b)?"),
        format!(r"\b(?<only_name>{name})\b\.?\s+{link}(?<only_year>\d{{4}})\b"),
    ];
    Regex::new(&format!("(?i){}", forms.join("|"))).expect("a pattern")
});

/// Dates of a text, in order.
#[must_use]
pub fn find(text: &str) -> Vec<WrittenDate> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '/' | '_' | '.');
    let found = DATE.captures_iter(text).filter_map(|captures| {
        let at = captures.get(0)?.range();
        let after = &text[at.end..];
        // A part of an address, a version or a longer row of digits is not a date.
        let goes_on =
            after.starts_with(['-', '/', '_']) && after[1..].starts_with(|c: char| c.is_alphanumeric());
        let readings = readings(&captures);
        let goes_before =
            text[at.start..].starts_with(|c: char| c.is_ascii_digit()) && text[..at.start].ends_with(is_part);
        (!goes_before && !goes_on && !readings.is_empty()).then_some(WrittenDate { at, readings })
    });
    found.collect()
}

fn readings(captures: &Captures<'_>) -> Vec<Date> {
    let text = |name: &str| captures.name(name).map(|found| found.as_str());
    let number = |name: &str| text(name).and_then(|digits| digits.parse::<u32>().ok());
    if let (Some(one), Some(other), year) = (number("one"), number("other"), number("slash_year")) {
        let both = [Date::new(year, other, Some(one)), Date::new(year, one, Some(other))];
        let mut found: Vec<Date> = both.into_iter().flatten().collect();
        found.dedup();
        return found;
    }
    let forms =
        [("iso_year", "iso_month", "iso_day"), ("dot_year", "dot_month", "dot_day"), ("year", "month", "")];
    let in_digits =
        forms.iter().find_map(|(year, month, day)| Some((number(year)?, number(month)?, number(day))));
    if let Some((year, month, day)) = in_digits {
        return Date::new(Some(year), month, day).into_iter().collect();
    }
    let forms = [
        ("first_year", "first_name", "first_day"),
        ("last_year", "last_name", "last_day"),
        ("only_year", "only_name", ""),
    ];
    let named = forms.iter().find_map(|(year, name, day)| {
        let (name, year, day) = (text(name)?, number(year), number(day));
        // "2 may" is also a number and a verb.
        let is_name = year.is_some() || !["may", "mar", "mars"].contains(&name);
        let month = month_of(&name.to_lowercase()).filter(|_| is_name)?;
        Date::new(year, month, day)
    });
    named.into_iter().collect()
}

/// The day that a text names, as `2026-11-22`, or the month, as `2026-11`; `None` if it names none for certain.
#[must_use]
pub fn read(text: &str) -> Option<String> {
    let found = find(text);
    let [WrittenDate { at, readings }] = found.as_slice() else { return None };
    let [date] = readings.as_slice() else { return None };
    let mut around = [&text[..at.start], &text[at.end..]].into_iter().flat_map(|part| {
        part.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
    });
    let is_all = around.all(|word| is_filler(&word.to_lowercase()));
    (is_all && date.year.is_some()).then(|| date.to_string())
}

fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 4] = ["of", "the", "on", "in"];
    FILLERS.contains(&word) || DAYS.iter().any(|day| word.len() >= 3 && day.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_found_in_several_languages() {
        for (text, expected) in [
            ("from 2023-06-10 to 10 June 2023", &["2023-06-10", "2023-06-10"][..]),
            ("2005-04-07T22:13:13.019, 2010-04-29,2010-10-10", &["2005-04-07", "2010-04-29", "2010-10-10"]),
            ("am 17. Juni 2017, 1er mai 2026", &["2017-06-17", "2026-05-01"]),
            ("el 19   de   marzo\n de 2015; 6 novembre 2026", &["2015-03-19", "2026-11-06"]),
            ("October 20th, 2004 and 24 January 1994", &["2004-10-20", "1994-01-24"]),
            (
                "19.09.2023, 12/2011, im Dezember 2011, July 2022.",
                &["2023-09-19", "2011-12", "2011-12", "2022-07"],
            ),
            ("always 4 Jan. and January 1", &["01-04", "01-01"]),
            ("v1.11.13, 2009-2024, rule 2 may apply, in 2019, 1.2.2020-3, a/2020/05/x", &[]),
        ] {
            let found: Vec<String> = find(text).iter().map(|date| date.readings[0].to_string()).collect();
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(find("3/4/2026")[0].readings.len(), 2);
    }

    #[test]
    fn days_between_dates_are_counted() {
        let number = |text: &str| find(text)[0].readings[0].day_number().unwrap();
        for (from, to, days) in [
            ("2023-06-10", "2026-07-11", 1127),
            ("2004-02-28", "2004-03-01", 2),
            ("1900-02-28", "1900-03-01", 1),
            ("1999-12-31", "2000-01-01", 1),
        ] {
            assert_eq!(number(to) - number(from), days, "{from} {to}");
        }
    }
}
