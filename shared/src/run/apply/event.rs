//! One event of a decision: `(state, event) -> state`.

use super::super::EVENT_VERSION;
use super::super::event::RunEvent;
use super::super::fork::Inherited;
use super::super::peers::Shared;
use super::super::planning::{GivenUp, Iterated};
use super::super::state::{Phase, QuestionEnd, RunState, RunStatus};
use super::agent::count_usage;
use super::auction;
use super::conflict;
use super::control;
use super::drafts;
use super::error::ApplyError;
use super::groups;
use super::loss::{self, Holder};
use super::plan::{change_plan, derive_parents, grow_plan};
use super::planning;
use super::responses;
use super::task::{self, end_generation, end_without_outcome};
use super::wait;
use crate::flow::{Goal, TaskStatus, Usage};
use crate::ids::{RunId, Seq, TaskId};
use crate::time::Millis;

/// Folds one event of a decision that took `now` for the time.
///
/// # Errors
/// When the event cannot follow what was folded so far.
pub fn apply_event(
    state: &mut Option<RunState>,
    run: RunId,
    event: &RunEvent,
    now: Millis,
) -> Result<(), ApplyError> {
    let Some(state) = state else {
        *state = Some(created(run, event, now)?);
        return Ok(());
    };
    if state.status.is_ended() {
        return Err(ApplyError::RunEnded { run, event: event.name() });
    }
    fold_event(state, event, now)?;
    groups::close_ended(state);
    derive_parents(state);
    Ok(())
}

fn created(run: RunId, event: &RunEvent, now: Millis) -> Result<RunState, ApplyError> {
    let RunEvent::RunCreated { goal, limits, event_version, secret, deadline } = event else {
        return Err(ApplyError::NotCreated(Seq(0)));
    };
    if !(1..=EVENT_VERSION).contains(event_version) {
        return Err(ApplyError::UnknownVersion { run, version: *event_version });
    }
    Ok(RunState {
        id: run,
        status: RunStatus::Created,
        phase: Phase::Planning,
        phase_since: now,
        paused: None,
        requests: std::collections::VecDeque::new(),
        forked: None,
        goal: Goal::clone(goal),
        limits: limits.clone(),
        event_version: *event_version,
        secret: secret.clone(),
        created_at: now,
        ended_at: None,
        deadline: *deadline,
        plan: None,
        expansion: std::collections::BTreeMap::new(),
        groups: std::collections::BTreeMap::new(),
        refused_plans: Vec::new(),
        lessons: Vec::new(),
        tasks: std::collections::BTreeMap::new(),
        reflections: std::collections::BTreeMap::new(),
        wanted: std::collections::BTreeMap::new(),
        refinements: Vec::new(),
        questions: std::collections::BTreeMap::new(),
        children: std::collections::BTreeMap::new(),
        delegated: std::collections::BTreeMap::new(),
        peers: super::super::peers::PeerTalk::default(),
        stale: std::collections::BTreeMap::new(),
        responses: super::super::responses::ResponseHistory::default(),
        conflicts: std::collections::BTreeMap::new(),
        settling: std::collections::BTreeMap::new(),
        planning: super::super::planning::PlanHistory::default(),
        tallies: std::collections::BTreeMap::new(),
        auctions: std::collections::BTreeMap::new(),
        drafts: super::super::drafts::DraftHistory::default(),
        usage: Usage::default(),
        allotted: Vec::new(),
        report: None,
        reason: None,
        folded: Seq(0),
        decided: Seq(0),
        decided_at: now,
        batch: None,
        pending: std::collections::BTreeMap::new(),
        seen: std::collections::BTreeMap::new(),
    })
}

fn fold_event(state: &mut RunState, event: &RunEvent, now: Millis) -> Result<(), ApplyError> {
    let name = event.name();
    match event {
        RunEvent::RunCreated { .. } => return Err(ApplyError::CreatedTwice { run: state.id }),
        RunEvent::RunForked { from, state: inherited } => {
            if !Inherited::fits(state) {
                return Err(ApplyError::WrongPhase { event: name, phase: state.phase });
            }
            inherited.give_to(state, *from);
        }
        RunEvent::LessonsRecalled { lessons } => {
            require_phase(state, &[Phase::Planning], name)?;
            state.lessons.clone_from(lessons);
        }
        RunEvent::PlanRefused { reasons } => {
            if !state.planning.is_replanning() {
                require_phase(state, &[Phase::Planning], name)?;
            }
            state.refused_plans.push(reasons.clone());
        }
        RunEvent::PlanningSkipped { reason } => {
            require_phase(state, &[Phase::Planning], name)?;
            state.planning.skipped = Some(reason.clone());
        }
        RunEvent::PlanDrafted { plan, repairs: _ } => {
            require_phase(state, &[Phase::Planning], name)?;
            planning::drafted(state, plan);
        }
        RunEvent::PlanIterated { lessons, changes } => {
            require_phase(state, &[Phase::Planning], name)?;
            state.planning.iterated = Some(Iterated { lessons: lessons.clone(), changes: changes.clone() });
        }
        RunEvent::PlanAdopted { plan, repairs: _ } => {
            require_phase(state, &[Phase::Planning], name)?;
            state.planning.drafted = None;
            change_plan(state, plan)?;
            control::enter(state, Phase::Executing, now);
        }
        RunEvent::StepsExpanded { step_outcomes, tasks } => {
            require_phase(state, &[Phase::Executing], name)?;
            grow_plan(state, tasks);
            state.expansion.extend(step_outcomes.clone());
        }
        RunEvent::TaskStarted { task, generation, agent, attempt, ack, after_step } => {
            let holder = Holder { task, generation: *generation, agent, attempt: *attempt };
            loss::started(state, name, &holder, ack, *after_step)?;
        }
        RunEvent::TaskOrphaned { task, generation, attempt, agent, reason: _, last_step, beside } => {
            let holder = Holder { task, generation: *generation, agent, attempt: *attempt };
            loss::orphaned(state, name, &holder, (*last_step, *beside), now)?;
        }
        RunEvent::TaskReleased { task, generation, agent, attempt } => {
            let holder = Holder { task, generation: *generation, agent, attempt: *attempt };
            loss::released(state, name, &holder, now)?;
        }
        RunEvent::TaskQuarantined { task, generation, evidence } => {
            loss::count_unanswered(state, task);
            let ended = end_generation(state, name, task, *generation, TaskStatus::Failed, (None, now))?;
            ended.reasons.push(evidence.reason.clone());
            planning::count_end(state, task, false);
        }
        RunEvent::FailureAnswered { task, generation: _, failure, response, model, marked, withheld } => {
            let answer = (*failure, *response);
            let more = (model.as_ref(), marked.as_ref(), withheld.as_ref());
            responses::answered(state, name, task, answer, more)?;
        }
        RunEvent::ErrorBudgetUsedUp { failures: _, asked } => responses::used_up(state, *asked),
        RunEvent::DependencyLeft { task, without, reason } => {
            responses::left(state, name, task, without, reason)?;
        }
        RunEvent::TaskCompleted { task, generation, outcome } => {
            if let TaskId::Leaf(index) = task {
                state.stale.remove(index);
            }
            state.responses.model_failures = 0;
            end_generation(state, name, task, *generation, TaskStatus::Completed, (Some(*outcome), now))?;
            planning::count_end(state, task, true);
        }
        RunEvent::TaskRetried { task, generation, outcome, reason } => {
            let ended = (*outcome, now);
            let task = end_generation(state, name, task, *generation, TaskStatus::Created, ended)?;
            task.failures = task.failures.saturating_add(1);
            task.reasons.push(reason.clone());
        }
        RunEvent::TaskTakenBack { task, generation, agent: _, reason } => {
            task::taken_back(state, name, task, *generation, (reason, now))?;
        }
        RunEvent::TaskFailed { task, generation, outcome, reason } => {
            let ended = (*outcome, now);
            let ended = end_generation(state, name, task, *generation, TaskStatus::Failed, ended)?;
            ended.failures = ended.failures.saturating_add(1);
            ended.reasons.push(reason.clone());
            planning::count_end(state, task, false);
        }
        RunEvent::TaskBlocked { task, reason } => {
            end_without_outcome(state, name, &TaskId::Leaf(task.clone()), TaskStatus::Blocked, reason)?;
        }
        RunEvent::MembersBegun { task, generation, pattern, members } => {
            require_phase(state, &[Phase::Executing], name)?;
            groups::begun(state, name, (task, *generation), (*pattern, members), now)?;
        }
        RunEvent::MembersDiscuss { task, generation, round, views } => {
            groups::discussed(state, name, (task, *generation), (*round, views), now)?;
        }
        RunEvent::ChairCalled { task, generation, chair, views } => {
            groups::chaired(state, name, (task, *generation), (chair, views), now)?;
        }
        RunEvent::MembersSettled { task, generation, verdict } => {
            groups::settled(state, name, (task, *generation), verdict)?;
        }
        RunEvent::TaskAborted { task, reason } => {
            end_without_outcome(state, name, task, TaskStatus::Aborted, reason)?;
        }
        RunEvent::TaskSkipped { task, reason, by_person } => {
            let task = TaskId::Leaf(task.clone());
            end_without_outcome(state, name, &task, TaskStatus::Skipped, reason)?.skipped_by_person =
                *by_person;
        }
        RunEvent::TaskParked { task, generation } => control::park(state, name, task, *generation)?,
        RunEvent::PlanEdited { plan, reason: _ } => {
            require_phase(state, &[Phase::Executing], name)?;
            change_plan(state, plan)?;
        }
        RunEvent::TaskWaits { task, generation, step, wait } => {
            wait::waits(state, name, (task, *generation), (*step, wait), now)?;
        }
        RunEvent::TaskAnswered { task, step, observation, answer } => {
            wait::answered(state, name, task, *step, (observation, answer.as_deref()))?;
        }
        RunEvent::InformationShared { number, from, person, key, to, text } => {
            let (from, person, key) = (from.clone(), person.clone(), key.clone());
            let told = Shared { from, person, key, to: to.clone(), text: text.clone(), at: now };
            wait::shared(state, name, *number, told)?;
        }
        RunEvent::TaskDelegated { task, to, plan } => wait::delegated(state, name, (task, to), plan)?,
        RunEvent::ContextWritten { key, value, version, by } => {
            wait::context_written(state, key, (value, *version, by), now)?;
        }
        RunEvent::HandOverRefused { task, chain: _, agent, reason: _ } => {
            wait::hand_over_refused(state, name, task, agent.as_ref())?;
        }
        RunEvent::DeadlockEnded { task, circle: _, reason: _ } => wait::still_waits(state, name, task)?,
        RunEvent::ChildBegun { task, generation, run, goal } => {
            wait::child_begun(state, name, (task, *generation), (*run, goal), now)?;
        }
        RunEvent::ChildAsked { run } => wait::child_asked(state, *run, now),
        RunEvent::ChildEnded { run, end } => wait::child_ended(state, *run, end),
        RunEvent::QuestionAsked { id, about, question, expires, on_timeout } => {
            wait::asked(state, name, *id, (about, question), (*expires, *on_timeout), now)?;
        }
        RunEvent::QuestionAnswered { reply } => {
            wait::ended(state, name, reply.question, QuestionEnd::Answered(reply.clone()), now)?;
        }
        RunEvent::QuestionPassedOn { id, to, expires } => wait::passed_on(state, name, *id, to, *expires)?,
        RunEvent::QuestionWithdrawn { id, reason } => {
            wait::ended(state, name, *id, QuestionEnd::Withdrawn(reason.clone()), now)?;
        }
        RunEvent::TaskReopened { task, reason } => control::reopen(state, name, task, reason, now)?,
        RunEvent::TaskStale { task, reason } => control::mark_stale(state, name, task, reason)?,
        RunEvent::ConflictFound { id, subject, sides, certain, until } => {
            require_phase(state, &[Phase::Executing], name)?;
            conflict::found(state, name, (*id, subject), (sides, *certain), (*until, now))?;
        }
        RunEvent::ConflictExamined { id, step, tasks } => {
            conflict::examined(state, name, (*id, *step), tasks)?;
        }
        RunEvent::VerificationAdded { id, task, plan } => {
            conflict::verification(state, name, (*id, task), plan)?;
        }
        RunEvent::ConflictResolved { id, end, redone } => {
            conflict::resolved(state, name, *id, (end, redone))?;
        }
        RunEvent::RunPaused { reason } => control::pause(state, name, reason, now)?,
        RunEvent::RunResumed { reason: _, deadline } => control::resume(state, name, *deadline, now)?,
        RunEvent::GoalEdited { task, goal, reason: _ } => {
            if task.is_none() && state.planning.original_goal.is_none() {
                state.planning.original_goal = Some(state.goal.text.clone());
            }
            control::edit(state, name, task.as_ref(), goal, now)?;
        }
        RunEvent::RequestRefused { .. } => {}
        RunEvent::Reflected { task, reflection } => {
            if !state.plan.as_ref().is_some_and(|plan| plan.tasks.contains_key(task)) {
                return Err(ApplyError::UnknownTask { task: TaskId::Leaf(task.clone()), event: name });
            }
            state.reflections.insert(task.clone(), reflection.clone());
        }
        RunEvent::RefinementWanted { number, reason } => {
            require_phase(state, &[Phase::Executing], name)?;
            state.wanted.entry(*number).or_default().push(reason.clone());
        }
        RunEvent::PlanRefined { number: _, changes, refused, plan } => {
            require_phase(state, &[Phase::Executing], name)?;
            change_plan(state, plan)?;
            state.refinements.push((changes.clone(), refused.clone()));
        }
        RunEvent::ReplanWanted { number: _, reason } => {
            require_phase(state, &[Phase::Executing], name)?;
            planning::replan_wanted(state, reason);
        }
        RunEvent::Replanned { number: _, changes, plan } => {
            require_phase(state, &[Phase::Executing], name)?;
            planning::replanned(state, changes, plan)?;
        }
        RunEvent::RunGivenUp { plans, lessons, simpler, report } => {
            require_phase(state, &[Phase::Executing, Phase::Writing], name)?;
            state.report = report.as_deref().cloned();
            state.planning.given_up =
                Some(GivenUp { plans: plans.clone(), lessons: lessons.clone(), simpler: simpler.clone() });
        }
        RunEvent::AuctionOpened { task, number, closes } => {
            require_phase(state, &[Phase::Executing], name)?;
            auction::opened(state, task, *number, *closes, now);
        }
        RunEvent::TaskAwarded { task, number, bids, to, reasons } => {
            auction::awarded(state, task, (*number, bids, to.as_ref(), reasons), now);
        }
        RunEvent::BidHeld { task, agent, promised_ms: _, took_ms: _, kept } => {
            auction::held(state, task, agent, *kept);
        }
        RunEvent::WordsUncovered { by, words } => state.planning.uncovered.push((*by, words.clone())),
        RunEvent::WritingBegan => {
            require_phase(state, &[Phase::Executing], name)?;
            control::enter(state, Phase::Writing, now);
        }
        RunEvent::DraftReviewBegun { number, until } => {
            require_phase(state, &[Phase::Writing], name)?;
            drafts::begun(state, name, *number, *until)?;
        }
        RunEvent::DraftReviewed { number, review, revise } => {
            require_phase(state, &[Phase::Writing], name)?;
            drafts::reviewed(state, name, *number, (review, *revise))?;
        }
        RunEvent::DraftReviewMissed { number, reason } => {
            require_phase(state, &[Phase::Writing], name)?;
            drafts::missed(state, name, *number, reason)?;
        }
        RunEvent::RunCompleted { report } => {
            require_phase(state, &[Phase::Writing], name)?;
            state.report = Some(report.clone());
            end_run(state, RunStatus::Completed, "the run was completed without it", now);
        }
        RunEvent::RunFailed { reason } => {
            state.reason = Some(reason.clone());
            end_run(state, RunStatus::Failed, "the run failed", now);
        }
        RunEvent::RunAborted { why, reason, report } => {
            state.report = report.as_deref().cloned();
            state.reason = Some(reason.clone());
            end_run(state, RunStatus::Aborted(*why), reason, now);
        }
    }
    Ok(())
}

fn require_phase(state: &RunState, allowed: &[Phase], event: &'static str) -> Result<(), ApplyError> {
    if allowed.contains(&state.phase) {
        Ok(())
    } else {
        Err(ApplyError::WrongPhase { event, phase: state.phase })
    }
}

/// Ends the run. What agents still have in hand is cut off, and what they reported counts as used.
fn end_run(state: &mut RunState, status: RunStatus, reason: &str, now: Millis) {
    state.status = status;
    control::enter(state, Phase::Ended, now);
    state.paused = None;
    state.ended_at = Some(now);
    for task in state.tasks.values_mut().filter(|task| task.status.is_in_work()) {
        task.status = TaskStatus::Aborted;
        task.agent = None;
        task.reasons.push(reason.to_owned());
    }
    wait::end_all(state, reason);
    for (key, event) in std::mem::take(&mut state.pending).into_values() {
        count_usage(state, &key, &event);
    }
}
