//! When an orchestrator has come to rest, and gives back what its start and its runs used.

/// What was seen of its runs.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Looks in a row at which there was none.
    looks: u64,
}

/// What is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    Nothing,
    /// What is free.
    Free,
    /// What comes again from the program's file, too.
    Program,
}

impl Rest {
    /// What is given back at this look, at which there are so many runs; with `long` looks a rest is a long one.
    pub(super) fn look(&mut self, runs: usize, long: u64) -> Given {
        self.looks = if runs == 0 { self.looks.saturating_add(1) } else { 0 };
        match self.looks {
            0 => Given::Nothing,
            1 => Given::Free,
            looks if looks == long => Given::Program,
            _ => Given::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_given_back_once_after_the_start_and_after_the_last_of_its_runs() {
        use Given::{Free, Nothing, Program};
        let mut rest = Rest::default();
        assert_eq!(
            [0, 0, 2, 1, 0, 0, 0, 0, 1, 0].map(|runs| rest.look(runs, 3)),
            [Free, Nothing, Nothing, Nothing, Free, Nothing, Program, Nothing, Nothing, Free]
        );
    }
}
