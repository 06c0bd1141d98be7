//! Days as people write them.

use super::calendar::{DAYS, MONTHS};

/// The day that a text names, as `2026-11-22`, or the month, as `2026-11`; nothing when it names none for certain.
#[must_use]
pub fn read(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches('.').to_lowercase();
    let text =
        text.split_once('t').filter(|(day, _)| iso(day).is_some()).map_or(text.as_str(), |(day, _)| day);
    iso(text).or_else(|| in_numbers(text)).or_else(|| in_words(text))
}

/// `2026-11-22`, `2026/11/22` and `2026-11`.
fn iso(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(['-', '/']).collect();
    match parts.as_slice() {
        [year, month, day] => written(year_of(year)?, number(month)?, Some(number(day)?)),
        [year, month] if month.len() == 2 => written(year_of(year)?, number(month)?, None),
        _ => None,
    }
}

/// `22.11.2026`, and `22/11/2026` or `11/22/2026` where only one of the two can be meant.
fn in_numbers(text: &str) -> Option<String> {
    if let [day, month, year] = text.split('.').map(str::trim).collect::<Vec<_>>().as_slice() {
        return written(year_of(year)?, number(month)?, Some(number(day)?));
    }
    let [one, other, year] = <[&str; 3]>::try_from(text.split('/').collect::<Vec<_>>()).ok()?;
    let (one, other, year) = (number(one)?, number(other)?, year_of(year)?);
    match (one > 12, other > 12) {
        (true, false) => written(year, other, Some(one)),
        (false, true) => written(year, one, Some(other)),
        (false, false) if one == other => written(year, one, Some(other)),
        (false, false) | (true, true) => None,
    }
}

/// `22 November 2026`, `Nov 22nd, 2026`, `November 2026`.
fn in_words(text: &str) -> Option<String> {
    let (mut day, mut month_named, mut year) = (None, None, None);
    for word in text.split([' ', ',', '.']).filter(|word| !word.is_empty() && !is_filler(word)) {
        let plain =
            ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
        let slot = match (month_of(word), year_of(word), number(plain)) {
            (Some(month), _, _) => (&mut month_named, month),
            (None, Some(found), _) => (&mut year, found),
            (None, None, Some(found)) => (&mut day, found),
            (None, None, None) => return None,
        };
        if slot.0.replace(slot.1).is_some() {
            return None;
        }
    }
    written(year?, month_named?, day)
}

fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 4] = ["of", "the", "on", "in"];
    FILLERS.contains(&word) || DAYS.iter().any(|day| word.len() >= 3 && day.starts_with(word))
}

fn month_of(word: &str) -> Option<u32> {
    let at = MONTHS.iter().position(|month| word.len() >= 3 && month.starts_with(word))?;
    u32::try_from(at + 1).ok()
}

fn year_of(text: &str) -> Option<u32> {
    if text.len() == 4 { number(text) } else { None }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn written(year: u32, month: u32, day: Option<u32>) -> Option<String> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    match day {
        None => Some(format!("{year:04}-{month:02}")),
        Some(day) if (1..=days).contains(&day) => Some(format!("{year:04}-{month:02}-{day:02}")),
        Some(_) => None,
    }
}
