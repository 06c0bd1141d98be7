//! What goals of three sizes need with a model that answers in good faith, counted by `muster eval`.

use muster_support::figures::{Aim, Figure, Measured};
use muster_support::good_model::Temper;
use muster_support::good_model::measure::{Measure, measure as measured};

/// Share of answers with a mistake, in percent, where the model makes any.
const MISTAKES: u8 = 25;

/// A goal of the suite `basics`, and what it is to need at most.
struct Goal {
    name: &'static str,
    mistakes: u8,
    calls: f64,
    tokens: f64,
}

const GOALS: [Goal; 4] = [
    Goal { name: "compare", mistakes: 0, calls: 14.0, tokens: 90_000.0 },
    Goal { name: "files", mistakes: 0, calls: 5.0, tokens: 12_000.0 },
    Goal { name: "percent", mistakes: 0, calls: 2.0, tokens: 4_000.0 },
    Goal { name: "compare", mistakes: MISTAKES, calls: 20.0, tokens: 90_000.0 },
];

pub(crate) fn measure() -> Vec<Figure> {
    GOALS.iter().flat_map(figures).collect()
}

fn figures(goal: &Goal) -> [Figure; 2] {
    let other = std::env::var("MUSTER_BENCHED").ok();
    let results = measured(&Measure {
        program: other.unwrap_or_else(|| env!("CARGO_BIN_EXE_muster").to_owned()),
        server: None,
        suite: "basics".to_owned(),
        arguments: vec!["--only".to_owned(), goal.name.to_owned()],
        temper: Temper { mistakes: goal.mistakes, seed: 1 },
    });
    let row = &results.unwrap().results["rows"][0];
    let with = if goal.mistakes == 0 { String::new() } else { format!(", {} % mistakes", goal.mistakes) };
    let count = |what: &str, field: &str, most: f64| {
        let what = format!("goal {}{with}: {what}", goal.name);
        Figure::new(what, Measured::count(row[field].as_u64().unwrap())).aiming(Aim::AtMost(most))
    };
    [count("model calls", "calls", goal.calls), count("prompt tokens", "prompt_tokens", goal.tokens)]
}
