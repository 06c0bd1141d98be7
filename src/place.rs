//! What stands in a run within a run: the tasks on the way there, and then its own name, with `/` between them.
//!
//! `1-2/1-1` is the task 1-1 of the run that task 1-2 waits for. The run itself is called `last/1-2` where `last` is the
//! run that it is within.

use std::fmt::{self, Display};
use std::str::FromStr;

use muster_shared::ids::TaskIndex;

/// Deeper than runs can stand within runs.
const MOST_LEVELS: usize = 20;

/// Something of a run, or of a run within it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place<T> {
    /// The tasks whose runs are gone through, from the outside in.
    within: Vec<TaskIndex>,
    /// What is meant there.
    pub(crate) at: T,
}

impl<T> Place<T> {
    /// Something of the run itself.
    pub(crate) const fn of(at: T) -> Self {
        Self { within: Vec::new(), at }
    }

    /// How the run is called that it is in, seen from this one.
    pub(crate) fn run(&self, run: &str) -> String {
        let within = self.within.iter().map(|task| format!("/{task}"));
        format!("{run}{}", within.collect::<String>())
    }
}

/// Name of the run that a place is in; `run` itself if there is no place.
pub(crate) fn run_of<T>(place: Option<&Place<T>>, run: &str) -> String {
    place.map_or_else(|| run.to_owned(), |place| place.run(run))
}

impl<T: FromStr<Err: Display>> FromStr for Place<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (within, at) = match text.rsplit_once('/') {
            Some((within, at)) => (tasks(within)?, at),
            None => (Vec::new(), text),
        };
        Ok(Self { within, at: at.parse().map_err(|error: T::Err| error.to_string())? })
    }
}

impl<T: Display> Display for Place<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for task in &self.within {
            write!(f, "{task}/")?;
        }
        self.at.fmt(f)
    }
}

/// Tasks with `/` between them.
pub(crate) fn tasks(text: &str) -> Result<Vec<TaskIndex>, String> {
    let tasks: Result<Vec<TaskIndex>, String> = text
        .split('/')
        .map(|task| {
            task.parse().map_err(|_| format!("{task:?} is no task: a task is called 1, 1-2 or the like"))
        })
        .collect();
    let tasks = tasks?;
    if tasks.len() > MOST_LEVELS {
        return Err(format!("that is {} levels deep; runs are never that deep within runs", tasks.len()));
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for (text, run) in [("1-2", "last"), ("1-2/1-1", "last/1-2"), ("1/2-1/3", "last/1/2-1")] {
            let place: Place<TaskIndex> = text.parse().unwrap();
            assert_eq!((place.to_string().as_str(), place.run("last").as_str()), (text, run));
        }
        let deep = "1/".repeat(50) + "1";
        for wrong in ["", "/", "1-2/", "/1-1", "1-2//1", "a/1", "1/b", deep.as_str()] {
            assert!(wrong.parse::<Place<TaskIndex>>().is_err(), "{wrong}");
        }
    }
}
