//! `muster compare`: what a trial tries beside the usual, two runs, or two kinds of runs, with intervals.

use std::collections::BTreeSet;

use muster_bus::Bus;
use muster_shared::flow::Arm;
use muster_shared::ids::RunId;
use muster_shared::run::RunState;

use super::{runs, select};
use crate::app::App;
use crate::args::CompareArgs;
use crate::compare::samples::{Sample, of_run, of_tasks, of_trial};
use crate::compare::{Comparison, Side, compare};
use crate::exit::{Exit, Failure, usage};
use crate::render::figures;
use crate::{output, render};

/// Compares two sides.
pub(super) async fn perform(app: &App, args: &CompareArgs) -> Result<Exit, Failure> {
    let (comparison, left_out) = select::reading(app, async |bus| compared(bus, args).await).await?;
    output::json_or_line(args.json, || &comparison, || render::compare::page(&comparison))?;
    runs::tell_left_out(&left_out);
    Ok(Exit::Completed)
}

type LeftOut = Vec<(RunId, String)>;

async fn compared(bus: &Bus, args: &CompareArgs) -> Result<(Comparison, LeftOut), Failure> {
    match &args.what[..] {
        [trial] => of_a_trial(bus, args, trial).await,
        [first, second] => match (Filter::read(first)?, Filter::read(second)?) {
            (Some(one), Some(other)) => {
                let newest = newest(bus, args).await?;
                let first = Side { name: first.clone(), samples: one.of(&newest.runs) };
                let second = Side { name: second.clone(), samples: other.of(&newest.runs) };
                Ok((compare("runs", &first, &second), newest.left_out))
            }
            (None, None) => {
                let (one, other) = (tasks(bus, first).await?, tasks(bus, second).await?);
                Ok((compare("tasks", &one, &other), Vec::new()))
            }
            (Some(_), None) | (None, Some(_)) => {
                Err(usage!("a run cannot be compared with a filter of runs")
                    .help("give two runs, or two filters such as model=openai/a model=openai/b"))
            }
        },
        _ => Err(usage!("give a trial, two runs, or two filters of runs")),
    }
}

async fn newest(bus: &Bus, args: &CompareArgs) -> Result<runs::Newest, Failure> {
    runs::newest(bus, args.limit as usize).await
}

/// The tasks of a run.
async fn tasks(bus: &Bus, wanted: &str) -> Result<Side, Failure> {
    let run = select::run(bus, wanted).await?;
    let entries = select::entries(bus, run).await?;
    let state = select::fold(run, &entries)?;
    Ok(Side { name: format!("run {}", run.short()), samples: of_tasks(&state, &entries) })
}

/// Both sides of a trial. A run counts as a shadow only if the run whose task it does asked for it.
async fn of_a_trial(bus: &Bus, args: &CompareArgs, trial: &str) -> Result<(Comparison, LeftOut), Failure> {
    let newest = newest(bus, args).await?;
    let asked: BTreeSet<RunId> =
        newest.runs.iter().flat_map(|run| run.trials.shadows.values()).map(|shadow| shadow.run).collect();
    let counts = |run: &&RunState| run.goal.shadow.is_none() || asked.contains(&run.id);
    let samples = newest.runs.iter().filter(counts).flat_map(|run| of_trial(run, trial));
    let (mut usual, mut tried) = (Vec::new(), Vec::new());
    for (arm, sample) in samples {
        match arm {
            Arm::Control => usual.push(sample),
            Arm::Canary | Arm::Shadow => tried.push(sample),
        }
    }
    if usual.is_empty() && tried.is_empty() {
        let shown = figures::one_line(trial, 48);
        let why = format!("no task of the newest {} runs took part in a trial {shown}", newest.runs.len());
        return Err(
            Failure::usage(why).help("`muster trials` lists trials; to compare two runs, name both of them")
        );
    }
    let first = Side { name: "the usual".to_owned(), samples: usual };
    let second = Side { name: trial.to_owned(), samples: tried };
    Ok((compare("tasks", &first, &second), newest.left_out))
}

/// Which runs are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Filter {
    Model(String),
    Goal(String),
    By(String),
}

impl Filter {
    /// A filter as it is written; nothing where it is none.
    fn read(text: &str) -> Result<Option<Self>, Failure> {
        let Some((key, value)) = text.split_once('=') else { return Ok(None) };
        let value = value.to_owned();
        match key {
            "model" => Ok(Some(Self::Model(value))),
            "goal" => Ok(Some(Self::Goal(value.to_lowercase()))),
            "by" => Ok(Some(Self::By(value))),
            _ => Err(usage!("{text:?} is no filter of runs")
                .help("write model=PROVIDER/MODEL, goal=WORDS or by=NAME")),
        }
    }

    fn takes(&self, run: &RunState) -> bool {
        match self {
            Self::Model(model) => run.goal.model.as_deref() == Some(model),
            Self::Goal(words) => run.goal.text.to_lowercase().contains(words),
            Self::By(name) => run.goal.asked_by == *name,
        }
    }

    /// The runs that are meant, as far as they have ended. Shadows are no runs that anybody asked.
    fn of(&self, runs: &[RunState]) -> Vec<Sample> {
        let meant = runs.iter().filter(|run| run.goal.shadow.is_none() && self.takes(run));
        meant.filter_map(of_run).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_told_from_runs() {
        assert_eq!(Filter::read("last").unwrap(), None);
        assert_eq!(Filter::read("model=openai/a=b").unwrap(), Some(Filter::Model("openai/a=b".to_owned())));
        assert_eq!(Filter::read("goal=Why").unwrap(), Some(Filter::Goal("why".to_owned())));
        assert!(Filter::read("colour=red").is_err());
    }
}
