//! A run that decides over and over though nothing comes of it is set aside: a fault must cost one run some time, and
//! not the others their orchestrator. Pure.

use std::time::Duration;

/// Most doublings of the pause.
const MOST_DOUBLINGS: u32 = 6;

/// What a turn came to, as far as that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Took {
    /// Whether anything came in that was not there before: more than the word that there may be room.
    pub news: bool,
    /// Whether anything was written.
    pub wrote: bool,
}

/// How often a run decided in vain.
#[derive(Debug, Default)]
pub(super) struct Pace {
    in_vain: u32,
    pauses: u32,
}

impl Pace {
    /// Takes note of a turn. Returns for how long the run is set aside, when it was one of more than `most` in a row of
    /// which nothing came: `pause`, and twice as long every further time until something is written.
    pub(super) fn took(&mut self, took: Took, most: u32, pause: Duration) -> Option<Duration> {
        if took.wrote {
            *self = Self::default();
        }
        if took.wrote || took.news {
            self.in_vain = 0;
            return None;
        }
        self.in_vain = self.in_vain.saturating_add(1).min(most.saturating_add(1));
        if self.in_vain <= most {
            return None;
        }
        let pause = pause.saturating_mul(2u32.pow(self.pauses.min(MOST_DOUBLINGS)));
        self.pauses = self.pauses.saturating_add(1);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const VAIN: Took = Took { news: false, wrote: false };
    const NEWS: Took = Took { news: true, wrote: false };
    const WROTE: Took = Took { news: false, wrote: true };

    /// What comes of so many turns.
    fn after(pace: &mut Pace, turns: u32, took: Took) -> Vec<Duration> {
        (0..turns).filter_map(|_| pace.took(took, 3, SECOND)).collect()
    }

    #[test]
    fn whoever_decides_in_vain_too_often_is_set_aside_for_longer_each_time() {
        let mut pace = Pace::default();
        assert!(after(&mut pace, 3, VAIN).is_empty());
        assert_eq!(after(&mut pace, 3, VAIN), [SECOND, SECOND * 2, SECOND * 4], "one look each time");
        assert_eq!(after(&mut pace, 100, VAIN).last(), Some(&(SECOND * 64)), "the pause is bounded");
    }

    #[test]
    fn what_comes_in_is_always_looked_at() {
        let mut pace = Pace::default();
        assert_eq!(after(&mut pace, 4, VAIN), [SECOND]);
        assert!(after(&mut pace, 100, NEWS).is_empty());
        assert!(after(&mut pace, 3, VAIN).is_empty());
        assert_eq!(after(&mut pace, 1, VAIN), [SECOND * 2], "it still came to nothing");
        assert!(after(&mut pace, 1, WROTE).is_empty());
        assert_eq!(after(&mut pace, 4, VAIN), [SECOND], "it went on since");
    }
}
