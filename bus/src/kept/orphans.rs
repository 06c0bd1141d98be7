//! Objects that belonged to a run which is not there: of goals that nobody took up, and of imports and removals that were cut
//! short.

use std::collections::BTreeSet;
use std::time::Duration;

use muster_shared::ids::RunId;

use super::Kept;
use crate::bus::now;
use crate::error::BusError;
use crate::record::Record;
use crate::store::{ListedObject, Store};

/// A goal may wait so long for an orchestrator, and its files with it.
const WAITS: Duration = Duration::from_secs(7 * 24 * 3600);

/// What objects of a run are called, up to the run.
const OF_RUNS: [&str; 4] = ["file/", "result/", "snap/", "kept/"];

impl Kept {
    /// Objects of runs of which there is neither a record nor a note, and that were written a week ago or earlier.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn orphans(&self) -> Result<Vec<ListedObject>, BusError> {
        let record = Record::new(&self.core);
        let mut known: BTreeSet<RunId> = record.runs().await?.into_iter().collect();
        known.extend(record.fragments().await?);
        known.extend(self.all().await?.into_keys());
        let listed = Store::new(&self.core).list("").await?;
        let is_orphan = |object: &ListedObject| {
            let of_none = run_of(&object.name).is_some_and(|run| !known.contains(&run));
            of_none && now().since(object.at) > WAITS
        };
        Ok(listed.into_iter().filter(is_orphan).collect())
    }
}

/// The run whose object this is, by its name.
fn run_of(name: &str) -> Option<RunId> {
    let rest = OF_RUNS.iter().find_map(|of| name.strip_prefix(of))?;
    let (run, object) = rest.split_once('/')?;
    run.parse().ok().filter(|_| !object.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_of_runs_can_be_orphans() {
        let run = RunId::from_uuid(uuid::Uuid::from_u128(7));
        for of in OF_RUNS {
            assert_eq!(run_of(&format!("{of}{run}/x")), Some(run));
        }
        for name in [
            format!("file/{run}"),
            format!("corpus/{run}/x"),
            "file/x/y".to_owned(),
            run.to_string(),
            "ab".repeat(32),
        ] {
            assert_eq!(run_of(&name), None, "{name}");
        }
    }
}
