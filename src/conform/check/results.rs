//! What the agent gave, held against what it promised and against what a result may be.

use muster_shared::contract::Schema;
use muster_shared::flow::{ContractSide, Ending, TaskResult};
use muster_shared::text::counted;

use super::super::Observations;
use super::{Writing, outcome, stored, verdict, worked};
use crate::render::checks::Check;

/// Its own contract, as it stands in its profile.
pub(super) fn contract(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let what = "contract";
    let mend = "give data that fits contract.output of the profile, and end what does not fit contract.input as \
                blocked, with contract violation; --task FILE gives it a task that fits";
    if watch.contract.is_empty() {
        return Check::ok(what, "nothing is promised");
    }
    let mut faults = Vec::new();
    let schema = match watch.contract.output.clone().map(Schema::new).transpose() {
        Ok(schema) => schema,
        Err(reason) => {
            faults.push(format!("contract.output is no JSON Schema: {reason}"));
            None
        }
    };
    let mut held = 0;
    for trial in worked(watch) {
        let named = trial.kind.name();
        for outcome in stored(writings, trial).into_iter().filter_map(outcome) {
            let refused = outcome
                .contract_violation
                .as_ref()
                .is_some_and(|contract_violation| contract_violation.side == ContractSide::Input);
            match (outcome.ending, watch.unfit.is_empty()) {
                (Ending::Done | Ending::DonePartial, false) => {
                    faults.push(format!("{named} was done though {}", watch.unfit.join("; ")));
                }
                (Ending::Blocked, true) if refused => {
                    faults.push(format!("{named} was refused though it fits contract.input"));
                }
                (_, _) => {}
            }
            let Some((schema, result)) = schema.as_ref().zip(outcome.result()) else { continue };
            held += 1;
            let data = result.data.as_deref().unwrap_or(&serde_json::Value::Null);
            faults
                .extend(schema.faults("data", data).into_iter().map(|fault| format!("in {named}, {fault}")));
        }
    }
    if faults.is_empty() && held == 0 && schema.is_some() {
        let why =
            if watch.unfit.is_empty() { "no task gave a result".to_owned() } else { watch.unfit.join("; ") };
        return Check::warn(what, format!("not seen: {why}"), mend);
    }
    verdict(what, faults, format!("{}, as it says", counted(held, "result", "results")), mend)
}

/// What no result may be larger than.
pub(super) fn sizes(watch: &Observations, writings: &[Writing<'_>]) -> Check {
    let mend = "keep data small: what is large belongs into a file, with its name in the result";
    let mut faults = Vec::new();
    for trial in worked(watch) {
        for outcome in stored(writings, trial).into_iter().filter_map(outcome) {
            let data = outcome.result().and_then(|result| result.data.as_deref());
            let bytes = data.map_or(0, |data| data.to_string().len());
            if bytes > TaskResult::MAX_DATA_BYTES {
                let (named, most) = (trial.kind.name(), TaskResult::MAX_DATA_BYTES);
                faults.push(format!("data of {named} has {bytes} bytes, {most} is the most"));
            }
        }
    }
    verdict("sizes", faults, "within the limits".to_owned(), mend)
}
