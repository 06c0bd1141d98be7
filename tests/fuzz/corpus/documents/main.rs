file: main.rs
//! Making a finding small.

use std::time::{Duration, Instant};

/// Longest time that is spent on it.
const MOST: Duration = Duration::from_secs(10);

/// The smallest input, of those that leave pieces of this one out, for which it still `fails`.
pub fn minimise(input: &[u8], mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let begun = Instant::now();
    let mut least = input.to_vec();
    let mut piece = least.len().div_ceil(2);
    while piece > 0 {
        let (mut at, mut shorter) = (0, false);
        while at < least.len() {
            if begun.elapsed() > MOST {
                return least;
            }
            let mut tried = least.clone();
            tried.drain(at..(at + piece).min(least.len()));
            if fails(&tried) {
                least = tried;
                shorter = true;
            } else {
                at += piece;
            }
        }
        piece = if piece == 1 && shorter { 1 } else { piece / 2 };
    }
    least
}

#[cfg(test)]
mod tests {
    use super::minimise;

    #[test]
    fn only_what_matters_is_left() {
        let input = b"a lot of words, then the BAD one, and more words after it";
        let is_bad = |tried: &[