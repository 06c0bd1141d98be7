//! Help: a question to another agent. It becomes a task beside the asker's, so that its steps, its fence and its
//! takeover are those of any task; the rules about work that is handed over hold for it.

use muster_shared::flow::{
    HelpRequest, Observation, ObservationStatus, Peer, PeerAnswer, PeerRequest, TaskDraft, TaskStatus, Wait,
};
use muster_shared::ids::{AgentId, Role, TaskId, TaskIndex};
use muster_shared::plan::matching;
use muster_shared::run::event::TaskSkipped;
use muster_shared::run::{RunState, Waiting};
use muster_shared::time::Millis;

use super::super::builder::DecisionBuilder;
use super::super::delegate::Refusal;
use super::super::{control, delegate, guards, survey, waits};

/// Longest part of a question that names its task, in characters.
const NAME: usize = 60;

/// Asks: the plan has a task more, for whose end the asker waits.
pub(super) fn ask(
    decision: &mut DecisionBuilder<'_>,
    asker: &TaskIndex,
    wanted: &HelpRequest,
    agent: Option<&AgentId>,
) -> Result<(), Refusal> {
    let question = wanted.question.trim();
    if question.is_empty() {
        return Err("nothing is asked".into());
    }
    let role = role_of(decision, &wanted.to)?;
    let short: String = question.chars().take(NAME).collect();
    let why = match wanted.why.trim() {
        "" => String::new(),
        why => format!("\n\nWhy task {asker} asks: {why}"),
    };
    let part = TaskDraft {
        name: format!("help {asker}: {}", short.lines().next().unwrap_or_default()),
        goal: format!("{question}{why}"),
        role: Some(role.to_string()),
        expected_output: "An answer to the question, and what it rests on.".to_owned(),
        ..TaskDraft::default()
    };
    let Some(run) = decision.open() else { return Ok(()) };
    let event = delegate::add(decision, run, asker, &part)?;
    if !guards::hold_hand_over(decision, &asker.to_task_id(), &part, agent.cloned()) {
        decision.emit(event);
    }
    Ok(())
}

/// The role that is asked: of those that can take tasks in this fleet.
fn role_of(decision: &mut DecisionBuilder<'_>, to: &Peer) -> Result<Role, String> {
    let specialists = decision.specialists();
    let roles = survey::leaf_roles(decision.capacity(), specialists);
    let list = || roles.iter().map(Role::to_string).collect::<Vec<_>>().join(", ");
    let known = |name: &str| {
        let role = name.trim().to_lowercase().parse::<Role>().ok().filter(|role| roles.contains(role));
        role.ok_or_else(|| {
            format!("there is no {:?} to be asked in this fleet: there are {}", name.trim(), list())
        })
    };
    match to {
        Peer::Role(name) => known(name),
        Peer::Agent(name) => known(name.rsplit_once('-').map_or(name, |(role, _)| role)),
        Peer::Capability(name) => {
            let able = matching::capable(std::slice::from_ref(name), &roles, specialists);
            let best = able.into_iter().next().map(|peer| peer.role);
            best.ok_or_else(|| {
                format!("nobody in this fleet says that they can do {:?}: there are {}", name.trim(), list())
            })
        }
    }
}

/// Whether a task waits for help, and when its time is up.
pub(in crate::decide) fn expires(run: &RunState, waiting: &Waiting) -> Option<Millis> {
    let Wait::Peer(request) = &waiting.wait else { return None };
    if matches!(**request, PeerRequest::HelpRequest(_)) {
        let within = std::time::Duration::from_millis(run.limits.peers.help_within_ms);
        waiting.for_task.as_ref().map(|_| waiting.since.after(within))
    } else {
        None
    }
}

/// Lets tasks go on without help that did not come in time. What was to give it is left out.
pub(in crate::decide) fn enforce(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open().filter(|run| run.control.paused.is_none()) else { return };
    let late = run.tasks.iter().filter_map(|(task, state)| {
        let waiting = state.waiting.as_ref()?;
        let is_late = expires(run, waiting).is_some_and(|at| at <= now);
        is_late.then(|| Some((task.clone(), waiting.for_task.clone()?)))?
    });
    let late: Vec<(TaskId, TaskIndex)> = late.collect();
    for (task, part) in late {
        let content =
            format!("No help came in time from task {part}. Do it in another way, or go on without it.");
        let status = ObservationStatus::Timeout;
        waits::answer(decision, &task, Observation::new(status, content));
        leave_out(decision, &part);
    }
}

fn leave_out(decision: &mut DecisionBuilder<'_>, part: &TaskIndex) {
    let reason = "its help did not come in time";
    let Some(run) = decision.open() else { return };
    let statuses = run.statuses();
    let open = |leaf: &&TaskIndex| !statuses.get(*leaf).copied().unwrap_or(TaskStatus::Created).is_ended();
    let leaves: Vec<TaskIndex> =
        run.plan.iter().flat_map(|plan| plan.leaves_of(part)).filter(open).cloned().collect();
    for leaf in leaves {
        control::interrupt(decision, &leaf.to_task_id(), reason);
        decision.emit(TaskSkipped { task: leaf, reason: reason.to_owned(), by_person: false });
    }
}

/// The answer for programs, when what came of a task is help.
pub(in crate::decide) fn given(
    run: &RunState,
    wait: &Wait,
    part: &TaskIndex,
    status: ObservationStatus,
) -> Option<Box<PeerAnswer>> {
    let (Wait::Peer(_), ObservationStatus::Success) = (wait, status) else { return None };
    let role = run.plan_task(part)?.role.clone();
    Some(Box::new(PeerAnswer::HelpGiven { role, task: part.clone() }))
}
