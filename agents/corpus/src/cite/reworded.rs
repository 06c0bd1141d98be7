//! Quotes that are not quite as the words stand: they count, with the words as they stand in their place.

use muster_shared::text::numerals;

use super::page::Page;
use super::words::{chunks, negates};

/// Lines from a cited one on in which the words may stand.
const BEFORE: u32 = 1;
const AFTER: u32 = 14;
/// Share of the quote's words that has to stand there, in order.
const ENOUGH: f64 = 0.85;
/// Fewest words of a quote that is taken so.
const FEWEST: usize = 5;
/// Most words of a quote that are compared.
const MOST: usize = 300;

struct Word {
    text: String,
    line: u32,
}

fn words_of(text: &str, line: u32) -> impl Iterator<Item = Word> {
    chunks(text).map(move |chunk| Word { text: chunk.to_lowercase(), line })
}

/// The lines where the quote stands nearly so, from a cited line on; nothing when a number or a denial differs.
pub(super) fn reworded(page: &Page, line: u32, quote: &str) -> Option<(u32, u32)> {
    let wanted: Vec<Word> = words_of(quote, 0).take(MOST).collect();
    if wanted.len() < FEWEST {
        return None;
    }
    let window = line.saturating_sub(BEFORE).max(1)..=line.saturating_add(AFTER).min(page.len());
    let there: Vec<Word> =
        window.flat_map(|at| words_of(page.line(at), at).collect::<Vec<_>>()).take(MOST * 2).collect();
    let pairs = common(&wanted, &there);
    #[expect(clippy::cast_precision_loss, reason = "a quote has few words")]
    let share = pairs.len() as f64 / wanted.len() as f64;
    let (first, last) = (*pairs.first()?, *pairs.last()?);
    let span = there.get(first..=last)?;
    if share < ENOUGH || span.len() > wanted.len() + wanted.len() / 2 {
        return None;
    }
    let denials = |words: &[Word]| words.iter().filter(|word| negates(&word.text)).count();
    let (from, to) = (there[first].line, there[last].line);
    let known = numbers(&(from..=to).map(|at| page.line(at)).collect::<Vec<_>>().join("\n"));
    let same = numbers(quote).iter().all(|number| known.contains(number));
    (denials(&wanted) == denials(span) && same).then_some((from, to))
}

fn numbers(text: &str) -> Vec<String> {
    text.lines().flat_map(numerals).map(|number| number.digits).collect()
}

/// The places in `there` of the longest sequence of words that both have in order.
fn common(wanted: &[Word], there: &[Word]) -> Vec<usize> {
    let width = there.len() + 1;
    let mut lengths = vec![0_u16; (wanted.len() + 1) * width];
    for (row, one) in wanted.iter().enumerate().rev() {
        for (column, other) in there.iter().enumerate().rev() {
            let here = row * width + column;
            lengths[here] = if one.text == other.text {
                lengths[here + width + 1] + 1
            } else {
                lengths[here + width].max(lengths[here + 1])
            };
        }
    }
    let (mut row, mut column, mut places) = (0, 0, Vec::new());
    while row < wanted.len() && column < there.len() {
        let here = row * width + column;
        if wanted[row].text == there[column].text {
            places.push(column);
            (row, column) = (row + 1, column + 1);
        } else if lengths[here + width] >= lengths[here + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    places
}
