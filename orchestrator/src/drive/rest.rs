//! When an orchestrator has come to rest, and gives back what its start and its runs used.

/// What was seen of its runs.
#[derive(Debug, Default)]
pub(super) struct Rest {
    is_given_back: bool,
}

impl Rest {
    /// Whether a rest begins with this look, at which there are so many runs.
    pub(super) fn begins(&mut self, runs: usize) -> bool {
        let was_given_back = std::mem::replace(&mut self.is_given_back, runs == 0);
        runs == 0 && !was_given_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_begins_once_after_the_start_and_after_the_last_of_its_runs() {
        let mut rest = Rest::default();
        assert_eq!(
            [0, 0, 2, 1, 0, 0, 1, 0].map(|runs| rest.begins(runs)),
            [true, false, false, false, true, false, false, true]
        );
    }
}
