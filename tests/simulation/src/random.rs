//! Numbers that a seed decides about.

/// A stream of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream that depends on the seed and a text, and on nothing that was drawn before.
    pub(crate) fn of(seed: u64, text: &str) -> Self {
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut random = Self(seed ^ hash);
        random.next();
        random
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 when that is 0.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        let drawn = self.next();
        if end == 0 { 0 } else { drawn % end }
    }

    /// A number from `least` to `most`.
    pub(crate) const fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True so many times of a thousand.
    pub(crate) const fn chance(&mut self, of_thousand: u64) -> bool {
        self.below(1000) < of_thousand
    }

    /// One of several; nothing when there is none.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let at = self.below(of.len() as u64);
        of.get(usize::try_from(at).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_others_give_others() {
        let draw = |mut random: Random| [random.next(), random.below(10), random.between(3, 4)];
        assert_eq!(draw(Random::of(7, "a")), draw(Random::of(7, "a")));
        assert_ne!(draw(Random::of(7, "a")), draw(Random::of(8, "a")));
        assert_ne!(draw(Random::of(7, "a")), draw(Random::of(7, "b")));
    }
}
