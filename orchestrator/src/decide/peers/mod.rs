//! What tasks ask of their peers (F8). Help becomes a task of its own; everything else is answered at once, from the run
//! and from what agents say of themselves, without a model. The asker was put down and goes on with the answer: whoever
//! dies in between, it is asked once and answered once.

pub(super) mod context;
mod help;
mod share;
mod values;

use muster_shared::flow::{Observation, ObservationStatus, PeerAnswer, PeerRequest};
use muster_shared::ids::{AgentId, Queue, Role, TaskId, TaskIndex};
use muster_shared::plan::matching;
use muster_shared::run::RunState;

use super::builder::DecisionBuilder;
use super::delegate::{self, Refusal};
use super::{survey, waits};

pub(super) use help::{enforce, expires, given};
pub(super) use share::tell_again;
pub(super) use values::set;

/// What is said in place of what is left out of an answer.
const CUT: &str = "\n(More is left out: ask for single tasks.)";

/// An answer in words and for programs.
struct FoundAnswer {
    words: String,
    answer: PeerAnswer,
}

/// Sees to a request of a task that waits for its answer. What cannot be done is answered with the reason.
pub(super) fn begin(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    request: &PeerRequest,
    agent: Option<AgentId>,
) {
    let Some(run) = decision.open() else { return };
    let asker = match task.as_leaf() {
        Some(asker) => within_limits(run, request).map(|()| asker),
        None => Err("only a task of the plan can ask its peers".to_owned()),
    };
    let found = match asker {
        Ok(asker) => see_to(decision, asker, request, agent.as_ref()),
        Err(why) => Err(why.into()),
    };
    match found {
        Ok(Some(found)) => give(decision, task, found),
        // Somebody works on it.
        Ok(None) => {}
        Err(refusal) => {
            delegate::place_anew(decision, task, agent, &refusal);
            let why = refusal.why;
            waits::refuse(decision, task, &format!("The {} is refused: {why}.", request.name()));
        }
    }
}

fn within_limits(run: &RunState, request: &PeerRequest) -> Result<(), String> {
    let limits = &run.limits.peers;
    if run.peers.requests > limits.max_requests {
        return Err(format!("this run has asked its peers {} times, which is the most", limits.max_requests));
    }
    let bytes = request.bytes();
    if bytes > most_bytes(run) {
        return Err(format!("it has {bytes} bytes, {} is the most: say it shorter", limits.max_bytes));
    }
    Ok(())
}

fn see_to(
    decision: &mut DecisionBuilder<'_>,
    asker: &TaskIndex,
    request: &PeerRequest,
    agent: Option<&AgentId>,
) -> Result<Option<FoundAnswer>, Refusal> {
    match request {
        PeerRequest::HelpRequest(wanted) => help::ask(decision, asker, wanted, agent).map(|()| None),
        PeerRequest::InformationShare(told) => Ok(Some(share::share(decision, asker, told)?)),
        PeerRequest::ContextRequest(wanted) => {
            let Some(run) = decision.open() else { return Ok(None) };
            Ok(Some(context::find(run, wanted)?))
        }
        PeerRequest::ContextWrite(wanted) => Ok(Some(values::write(decision, (asker, agent), wanted)?)),
        PeerRequest::ContextRead(wanted) => {
            let Some(run) = decision.open() else { return Ok(None) };
            Ok(Some(values::read(run, asker, wanted)))
        }
        PeerRequest::CapabilityQuery(query) => {
            let specialists = decision.specialists();
            let roles = survey::leaf_roles(decision.capacity(), specialists);
            let peers = matching::capable(&query.needs, &roles, specialists);
            let mut words = in_words(&query.needs, &peers);
            if peers.is_empty() {
                let online: Vec<Role> = decision.capacity().keys().filter_map(Queue::role).cloned().collect();
                let advertised = matching::advertised(&online, specialists).join("\n- ");
                words.push_str(&format!(" These capabilities are advertised:\n- {advertised}"));
            }
            Ok(Some(FoundAnswer { words, answer: PeerAnswer::CapabilityFound { peers } }))
        }
    }
}

fn in_words(needs: &[String], peers: &[muster_shared::flow::Capable]) -> String {
    if peers.is_empty() {
        return format!(
            "No agent that a task can ask advertises {}. A worker does what needs no special skill.",
            needs.join(", ")
        );
    }
    let line = |peer: &muster_shared::flow::Capable| {
        let can = if peer.can.is_empty() { String::new() } else { format!(" (can {})", peer.can.join(", ")) };
        format!("- {}{can}: {}", peer.role, peer.description)
    };
    format!("These can be asked by their role:\n{}", peers.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Gives an answer, cut to its limit.
fn give(decision: &mut DecisionBuilder<'_>, task: &TaskId, found: FoundAnswer) {
    let Some(most) = decision.open().map(most_bytes) else { return };
    let FoundAnswer { words, answer } = found;
    let truncated = words.len() > most;
    let content =
        if truncated { format!("{}{CUT}", &words[..words.floor_char_boundary(most)]) } else { words };
    let observation =
        Observation { status: ObservationStatus::Success, content, millis: 0, truncated, cached: None };
    waits::answer_with(decision, task, observation, Some(Box::new(answer)));
}

fn most_bytes(run: &RunState) -> usize {
    usize::try_from(run.limits.peers.max_bytes).unwrap_or(usize::MAX)
}

/// The tasks that somebody names by their indices or names.
fn named(run: &RunState, names: &[String]) -> Result<Vec<TaskIndex>, String> {
    let plan = run.plan.as_ref().ok_or("there is no plan")?;
    let find = |name: &String| {
        let wanted = name.trim();
        let by_index = wanted.parse::<TaskIndex>().ok();
        if let Some(index) = by_index.as_ref().filter(|index| plan.tasks.contains_key(*index)) {
            return Ok(index.clone());
        }
        let mut by_name = plan.tasks.iter().filter(|(_, task)| task.name.eq_ignore_ascii_case(wanted));
        match (by_name.next(), by_name.next(), by_index) {
            (Some((index, _)), None, _) => Ok(index.clone()),
            (Some(_), Some(_), _) => {
                Err(format!("several tasks are called {wanted:?}: name it by its index"))
            }
            (None, _, Some(index)) => Err(muster_shared::plan::unknown_task(plan, &index)),
            (None, _, None) => {
                let all: Vec<String> =
                    plan.tasks.iter().map(|(index, task)| format!("{index} ({})", task.name)).collect();
                Err(format!("there is no task {wanted:?}: there are {}", all.join(", ")))
            }
        }
    };
    names.iter().map(find).collect()
}
