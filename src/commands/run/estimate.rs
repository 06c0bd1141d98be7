//! What a run will use, said before it begins: by what like runs of the record used, else by its size. A range, and no
//! promise.

use std::time::Duration;

use muster_bus::Bus;
use muster_shared::flow::{Goal, ModelVerification, Planning, ReflectionLevel, RunLimits, Usage, Writing};
use muster_shared::run::{RunState, RunStatus};
use muster_shared::time::millis;

use crate::commands::runs;
use crate::render::figures;

/// Most past runs that are read.
const READ: usize = 12;
/// Past runs that say enough.
const ENOUGH: usize = 3;
/// Longest time that is spent on it.
const LIMIT: Duration = Duration::from_millis(500);
/// Bytes of a goal that is small.
const SMALL_GOAL: usize = 200;

/// What a run used, or is expected to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Used {
    calls: u64,
    tokens: u64,
    cost_micros: u64,
    millis: u64,
}

/// An estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Estimate {
    least: Used,
    most: Used,
    /// How many runs it goes by; a guess by size where none.
    runs: usize,
}

impl Estimate {
    /// In a line.
    pub(super) fn in_words(&self) -> String {
        let Self { least, most, runs } = self;
        let range = |of: fn(&Used) -> u64, word: fn(u64) -> String| {
            let (least, most) = (word(of(least)), word(of(most)));
            if least == most { least } else { format!("{least} to {most}") }
        };
        let mut text = format!(
            "{} model calls, {} tokens",
            range(|used| used.calls, figures::count),
            range(|used| used.tokens, figures::count)
        );
        if *runs == 0 {
            return format!("{text} (a guess by its size: the record has too few like runs)");
        }
        if most.cost_micros > 0 {
            text += &format!(", {}", range(|used| used.cost_micros, figures::dollars));
        }
        format!("{text}, {} (as the last {runs} like it took)", range(|used| used.millis, figures::millis))
    }
}

/// What a run of this goal within these limits is expected to use; nothing in time where the record cannot be read soon.
pub(super) async fn estimate(bus: &Bus, goal: &Goal, limits: &RunLimits) -> Estimate {
    let past = tokio::time::timeout(LIMIT, runs::newest(bus, READ)).await;
    let past = past.ok().and_then(Result::ok).unwrap_or_default();
    let kind = Kind::of(goal, limits);
    let is_like = |run: &&RunState| {
        run.status == RunStatus::Completed
            && run.used().calls() > 0
            && run.goal.parent.is_none()
            && Kind::of(&run.goal, &run.limits) == kind
    };
    let like: Vec<Used> = past.runs.iter().filter(is_like).map(used).collect();
    by_runs(&like).unwrap_or_else(|| by_size(goal))
}

/// What makes runs alike: documents or none, the same model, a goal of like length, and the same effort. The record has
/// no effort by name, but the limits that it gives.
#[derive(Debug, PartialEq, Eq)]
struct Kind<'a> {
    model: Option<&'a str>,
    has_documents: bool,
    is_small: bool,
    planning: Planning,
    reflection: ReflectionLevel,
    writer: Writing,
    verification: ModelVerification,
    iterate_plans: bool,
}

impl<'a> Kind<'a> {
    fn of(goal: &'a Goal, limits: &RunLimits) -> Self {
        Self {
            model: goal.model.as_deref(),
            has_documents: goal.corpus.is_some(),
            is_small: goal.text.len() <= SMALL_GOAL,
            planning: goal.planning.unwrap_or(limits.planning),
            reflection: limits.reflection,
            writer: limits.writer,
            verification: limits.verification,
            iterate_plans: limits.iterate_plans,
        }
    }
}

fn used(run: &RunState) -> Used {
    let usage: Usage = run.used();
    let took = run.ended_at.unwrap_or(run.created_at).since(run.created_at);
    Used {
        calls: usage.calls(),
        tokens: usage.tokens(),
        cost_micros: usage.cost_micros,
        millis: millis(took),
    }
}

fn by_runs(runs: &[Used]) -> Option<Estimate> {
    if runs.len() < ENOUGH {
        return None;
    }
    let ends = |of: fn(&Used) -> u64| {
        let values = || runs.iter().map(of);
        (values().min().unwrap_or(0), values().max().unwrap_or(0))
    };
    let (calls, tokens) = (ends(|one| one.calls), ends(|one| one.tokens));
    let (cost, millis) = (ends(|one| one.cost_micros), ends(|one| one.millis));
    Some(Estimate {
        least: Used { calls: calls.0, tokens: tokens.0, cost_micros: cost.0, millis: millis.0 },
        most: Used { calls: calls.1, tokens: tokens.1, cost_micros: cost.1, millis: millis.1 },
        runs: runs.len(),
    })
}

/// By what is known before anything was done: whether there is a plan, and whether there are documents.
fn by_size(goal: &Goal) -> Estimate {
    let has_documents = goal.corpus.is_some();
    let is_small = !has_documents && goal.text.len() <= SMALL_GOAL;
    let is_single =
        goal.planning == Some(Planning::Never) || (is_small && goal.planning != Some(Planning::Always));
    let (least, most) = match (is_single, has_documents) {
        (true, false) => (2, 8),
        (true, true) => (3, 15),
        (false, _) => (5, 40),
    };
    // What a request brings along, without and with passages of documents in it.
    let each = if has_documents { (3_000, 6_000) } else { (2_000, 4_000) };
    let of = |calls: u64, tokens: u64| Used { calls, tokens: calls * tokens, cost_micros: 0, millis: 0 };
    Estimate { least: of(least, each.0), most: of(most, each.1), runs: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Inputs, load};

    #[test]
    fn like_runs_say_more_than_the_size_of_a_goal() {
        let used = |calls, millis| Used { calls, tokens: calls * 1000, cost_micros: calls * 100, millis };
        assert_eq!(by_runs(&[used(3, 1000), used(5, 2000)]), None, "two are not enough");
        let estimate = by_runs(&[used(3, 9000), used(5, 2000), used(4, 3000)]).unwrap();
        assert_eq!(
            estimate.in_words(),
            "3 to 5 model calls, 3.0k to 5.0k tokens, $0.0003 to $0.0005, 2.0s to 9.0s (as the last 3 like it took)"
        );
    }

    #[test]
    fn runs_of_another_effort_are_not_alike() {
        let limits_of = |effort: &str| {
            let flags = vec![(crate::settings::EFFORT.to_owned(), effort.to_owned(), "--effort".to_owned())];
            let folder = tempfile::tempdir().unwrap();
            let inputs = Inputs { folder: folder.path().to_owned(), flags, ..Inputs::default() };
            load(&inputs).unwrap().settings.limits
        };
        let goal = Goal::new("What is 2 plus 2?");
        let limits = ["quick", "standard", "thorough"].map(limits_of);
        for (at, one) in limits.iter().enumerate() {
            for (other_at, other) in limits.iter().enumerate() {
                assert_eq!(Kind::of(&goal, one) == Kind::of(&goal, other), at == other_at);
            }
        }
        let [quick, standard, _] = &limits;
        let never = Goal { planning: Some(Planning::Never), ..goal.clone() };
        assert_ne!(Kind::of(&never, standard), Kind::of(&goal, standard));
        assert_eq!(Kind::of(&never, quick), Kind::of(&goal, quick), "quick plans nothing anyway");
        let more_steps = RunLimits { max_steps: quick.max_steps + 1, ..quick.clone() };
        assert_eq!(Kind::of(&goal, &more_steps), Kind::of(&goal, quick), "another limit is no other effort");
    }

    #[test]
    fn a_guess_says_that_it_is_one() {
        let small = by_size(&Goal::new("What is 2 plus 2?")).in_words();
        assert!(small.starts_with("2 to 8 model calls") && small.contains("a guess"), "{small}");
        let long = by_size(&Goal::new("x".repeat(500)));
        assert_eq!((long.least.calls, long.most.calls), (5, 40));
        let single = Goal { planning: Some(Planning::Never), ..Goal::new("x".repeat(500)) };
        assert_eq!(by_size(&single).most.calls, 8);
    }
}
