//! A text without markup, case and white space, in which quotes are found wherever their lines break.

use std::ops::Range;

use muster_shared::text::numerals;

use super::page::Lines;

/// Quotes shorter than this have to begin and end with a word, in letters and digits.
const SHORT: usize = 12;
/// Lines over which the parts of one shortened quote may lie apart.
const APART: u32 = 60;
/// Most places of one quote in one document that are looked at.
const MOST_PLACES: usize = 2_000;

/// Letters and digits in lower case, with what is needed to tell numbers and lines.
#[derive(Debug, Default)]
pub(super) struct Flat {
    bare: String,
    /// Where words begin.
    starts: Vec<u32>,
    /// Where each line begins.
    lines: Vec<u32>,
    /// The numbers, with where they stand.
    numbers: Vec<(Range<u32>, String)>,
}

impl Flat {
    pub(super) fn of<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut flat = Self::default();
        for line in lines {
            flat.lines.push(small(flat.bare.len()));
            flat.add(line);
        }
        flat
    }

    fn add(&mut self, line: &str) {
        // Where every byte of the line lands.
        let mut landed: Vec<(usize, u32)> = Vec::new();
        let mut is_inside = false;
        for (at, letter) in line.char_indices() {
            if letter.is_alphanumeric() {
                let here = small(self.bare.len());
                if !is_inside {
                    self.starts.push(here);
                }
                landed.push((at, here));
                self.bare.extend(letter.to_lowercase());
            }
            is_inside = letter.is_alphanumeric();
        }
        let end = small(self.bare.len());
        let land = |byte: usize| {
            let next = landed.partition_point(|(at, _)| *at < byte);
            landed.get(next).map_or(end, |(_, here)| *here)
        };
        for number in numerals(line) {
            self.numbers.push((land(number.at.start)..land(number.at.end), number.digits));
        }
    }

    fn line_at(&self, at: u32) -> u32 {
        small(self.lines.partition_point(|start| *start <= at)).max(1)
    }

    /// Whether a quote, as it stands here, holds the same numbers.
    fn holds(&self, span: &Range<u32>, numbers: &[String]) -> bool {
        let from = self.numbers.partition_point(|(at, _)| at.end <= span.start);
        let inside = self.numbers[from..].iter().take_while(|(at, _)| at.start < span.end);
        let mut expected = numbers.iter();
        for (at, digits) in inside {
            let is_cut = at.start < span.start || at.end > span.end;
            let same = |other: &String| {
                other == digits || other.trim_start_matches('-') == digits.trim_start_matches('-')
            };
            if is_cut || !expected.next().is_some_and(same) {
                return false;
            }
        }
        expected.next().is_none()
    }

    fn is_whole(&self, span: &Range<u32>) -> bool {
        let begins = |at: u32| self.starts.binary_search(&at).is_ok();
        begins(span.start) && (span.end == small(self.bare.len()) || begins(span.end))
    }

    /// The places of a part of a quote, from a place on.
    fn find<'a>(&'a self, part: &'a Part, from: usize) -> impl Iterator<Item = Range<u32>> + 'a {
        let text = self.bare.get(from..).unwrap_or_default();
        let places = text.match_indices(part.bare.as_str()).take(MOST_PLACES);
        let spans = places.map(move |(at, found)| small(from + at)..small(from + at + found.len()));
        spans.filter(|span| {
            self.holds(span, &part.numbers) && (part.bare.len() >= SHORT || self.is_whole(span))
        })
    }

    /// Where a quote stands.
    pub(super) fn places(&self, quote: &Quote) -> Vec<Lines> {
        let Some((first, rest)) = quote.parts.split_first() else { return Vec::new() };
        let whole = |begin: Range<u32>| {
            let mut last = begin.clone();
            for part in rest {
                last = self.find(part, last.end as usize).next()?;
            }
            let (first, last) = (self.line_at(begin.start), self.line_at(last.end.saturating_sub(1)));
            (last - first <= APART || rest.is_empty()).then_some(Lines { first, last })
        };
        self.find(first, 0).filter_map(whole).collect()
    }
}

fn small(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// A quote, in the parts that an ellipsis leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quote {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    bare: String,
    numbers: Vec<String>,
}

impl Quote {
    /// The quote as one part; nothing when it has neither letters nor digits.
    pub(super) fn whole(text: &str) -> Option<Self> {
        let part = Part::of(text);
        (!part.bare.is_empty()).then(|| Self { parts: vec![part] })
    }

    /// The quote in the parts that an ellipsis leaves; nothing when it has none.
    pub(super) fn shortened(text: &str) -> Option<Self> {
        let text = text.replace("...", "…");
        let parts: Vec<Part> = text.split('…').map(Part::of).filter(|part| !part.bare.is_empty()).collect();
        (text.contains('…') && !parts.is_empty()).then_some(Self { parts })
    }

    /// How many letters and digits it has.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.bare.len()).sum()
    }
}

impl Part {
    fn of(text: &str) -> Self {
        let bare = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        // A number that goes on over the end of a line stands on both.
        let numbers = text.lines().flat_map(numerals).map(|number| number.digits).collect();
        Self { bare, numbers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_found_however_it_is_set_and_not_with_another_number() {
        let flat = Flat::of([
            "# Limits",
            "The limit is **20** levels,",
            "no more than `max_depth`: 17.5 %",
            "end 2,009",
        ]);
        let at = |text: &str| flat.places(&Quote::whole(text).unwrap()).first().copied();
        let span = |first, last| Some(Lines { first, last });
        for (quote, expected) in [
            ("The limit is 20 levels", span(2, 2)),
            ("the LIMIT is “20” levels, no more", span(2, 3)),
            ("limit is 2", None),
            ("limit is 21 levels", None),
            ("max_depth: 175", None),
            ("max depth 17.5 %", span(3, 3)),
            ("2009", span(4, 4)),
            ("mit is 20 levels", span(2, 2)),
            ("mit is 20", None),
            ("09", None),
        ] {
            assert_eq!(at(quote), expected, "{quote}");
        }
        let short = |text: &str| flat.places(&Quote::shortened(text).unwrap()).first().copied();
        assert_eq!(short("The limit … no more than"), span(2, 3));
        assert_eq!(short("no more than ... The limit"), None, "in order");
    }
}
