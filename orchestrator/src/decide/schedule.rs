//! What is offered, and when: everything that is due, in order, as far as the queues have room.

use std::time::Duration;

use muster_shared::flow::{
    CorpusRef, Placement, ReflectionLevel, RunLimits, TaskOffered, TaskRights, TaskStatus, Work,
};
use muster_shared::ids::{Attempt, Generation, Queue, Role, TaskId, TaskIndex};
use muster_shared::run::{Phase, RunState, TaskState};
use muster_shared::time::Millis;

use super::builder::DecisionBuilder;
use super::effect::Effect;
use super::loss;
use super::nonce::nonce;
use super::place::{place, role_named};
use super::trials::{self, TrialPart, shadow};
use super::{
    auction, budget, conflicts, deadline, delegate, draft_review, groups, missing_roles, replan, review,
    rights, survey, work,
};

/// Most offers in one decision: a batch of the record holds 500 messages, and the rest follows at once.
const MOST_OFFERS: usize = 200;

/// Up to here, offers are made by one decision after the other: each is then one message with its decision, and the
/// first of them does not wait for the last. More go as one batch, which costs the server about as much as ten
/// messages by themselves.
const MOST_SINGLY: usize = 10;

/// How often the time is doubled at most that an offer may lie in the queue of a role.
const MOST_DOUBLINGS: u32 = 3;

/// How many times as long an offer may lie whose agent first has to end what else it has in hand.
const ALONE: u32 = 12;

/// Offers what is due, then once more what seems to be lost. Nothing is offered by the decision that creates the run:
/// it tells the run's secret, and agents read the decisions that make offers; and nothing while the run is paused.
///
/// Where the fleet is asked for room, it is found out first what would be offered: nothing is decided meanwhile.
pub(super) fn offer_what_is_due(decision: &mut DecisionBuilder<'_>, is_new: bool) {
    if decision.situation().placing.lends() {
        decision.begin_to_look();
        offer_what_has_room(decision, is_new);
        decision.borrow_room();
    }
    offer_what_has_room(decision, is_new);
}

fn offer_what_has_room(decision: &mut DecisionBuilder<'_>, is_new: bool) {
    let now = decision.now();
    let may = |run: &&RunState| run.control.paused.is_none() && !deadline::takes_nothing_up(run, now);
    let Some(run) = decision.open().filter(may) else { return };
    if !is_new {
        let due = due(run);
        groups::begin(decision, &due, queue);
    }
    let Some(run) = decision.open() else { return };
    let (shared, due): (Vec<TaskId>, Vec<TaskId>) =
        due(run).into_iter().partition(|task| groups::is_for_members(run, task));
    if is_new {
        // Members begin with the next decision, which has to follow at once though nothing is offered now.
        let queues: Vec<Queue> = shared.iter().filter_map(|task| role(run, task)).map(Queue::Role).collect();
        queues.into_iter().for_each(|queue| decision.postpone(queue));
    }
    decision.limit_offers(most_offers(due.len(), is_new));
    for task in due {
        offer(decision, &task);
    }
    let held = decision.open().filter(|run| refinement_waits(run, now)).map(held_back);
    for task in held.unwrap_or_default() {
        offer(decision, &task);
    }
    offer_lost_again(decision);
}

/// How many of the offers that are due one decision makes.
const fn most_offers(due: usize, is_new: bool) -> usize {
    if is_new {
        0
    } else if due <= MOST_SINGLY {
        1
    } else {
        MOST_OFFERS
    }
}

/// What is to be offered as soon as its queue has room, in order. Reflections come first, since what was learnt
/// reaches the tasks after them; leaves follow depth first. What the budget does not allow is not due.
pub(super) fn due(run: &RunState) -> Vec<TaskId> {
    if run.is_held() {
        return Vec::new();
    }
    if review::is_rejected(run) {
        let change = survey::open_refinement(run).map(TaskId::Refine);
        return change.map(|task| unoffered(run, task)).unwrap_or_default();
    }
    match run.phase {
        Phase::Planning => unoffered(run, TaskId::Plan),
        Phase::Executing => {
            let reflections = survey::unreflected(run).into_iter().map(TaskId::Reflect);
            // What members have begun comes before what nobody has.
            let members = groups::ready_members(run).cloned();
            let leaves = members.chain(survey::ready_leaves(run).0).map(TaskId::Leaf);
            let settling = conflicts::to_settle(run).into_iter();
            let due = reflections.chain(settling).chain(leaves).filter(|task| budget::affords(run, task));
            let due: Vec<TaskId> = due.collect();
            if run.planning.is_replanning() {
                let is_next = due.is_empty() && !survey::anything_in_work(run) && !replan::is_used_up(run);
                return if is_next { unoffered(run, TaskId::Plan) } else { due };
            }
            match survey::open_refinement(run) {
                Some(number) if due.is_empty() && !work_feeds_refinement(run) => {
                    unoffered(run, TaskId::Refine(number))
                }
                Some(_) | None => due,
            }
        }
        Phase::Writing => {
            let review = run.drafts.open().map(|(number, _)| TaskId::DraftReview(number));
            unoffered(run, review.unwrap_or(TaskId::Write))
        }
        Phase::Ended => Vec::new(),
    }
}

/// When an offer that nobody started should be looked at again; nothing when none waits.
#[must_use]
pub fn next_review(run: &RunState) -> Option<Millis> {
    if run.control.paused.is_some() {
        return None;
    }
    let lost = run.tasks.values().filter_map(|state| lost_at(run, state));
    let held = survey::open_refinement(run).and_then(|_| held_until(run));
    let held = held.filter(|_| !held_back(run).is_empty());
    lost.chain(auction::next_end(run)).chain(missing_roles::next_look(run)).chain(held).min()
}

/// The leaves that a wanted refinement holds back, as far as they can be paid for.
pub(super) fn held_back(run: &RunState) -> Vec<TaskId> {
    if run.is_held() || run.phase != Phase::Executing || review::is_rejected(run) {
        return Vec::new();
    }
    let held = survey::ready_leaves(run).1.into_iter().map(TaskId::Leaf);
    held.filter(|task| budget::affords(run, task)).collect()
}

/// When the first reflection that a wanted refinement waits for has held leaves back for long enough.
fn held_until(run: &RunState) -> Option<Millis> {
    let reflections = run.tasks.iter().filter(|(task, _)| matches!(task, TaskId::Reflect(_)));
    reflections.filter_map(|(_, state)| reflected_by(run, state)).min()
}

/// How long an open reflection holds leaves back: as long as an agent may take to start it. One that was lost before takes
/// longer.
fn reflected_by(run: &RunState, state: &TaskState) -> Option<Millis> {
    let within = Duration::from_millis(run.limits.start_within_ms);
    let within = if state.generation > Generation(1) { Duration::ZERO } else { within };
    Some(state.offered_at.filter(|_| state.status.is_in_work())?.after(within))
}

/// Whether the refinement that is wanted waits for agents. Only one that is about to start, or in work, holds leaves back.
fn refinement_waits(run: &RunState, now: Millis) -> bool {
    let Some(task) = survey::open_refinement(run).map(TaskId::Refine) else { return false };
    let lies = |state: &TaskState| lost_at(run, state).is_some_and(|at| at <= now);
    if let Some(state) = run.tasks.get(&task).filter(|state| state.status.is_in_work()) {
        return lies(state);
    }
    let keeps_it = |(task, state): (&TaskId, &TaskState)| match task {
        TaskId::Leaf(_) => survey::is_offered(state),
        TaskId::Reflect(_) => reflected_by(run, state).is_some_and(|at| at <= now),
        TaskId::Plan | TaskId::Refine(_) | TaskId::Settle(_) | TaskId::Write | TaskId::DraftReview(_) => {
            false
        }
    };
    run.tasks.iter().any(keeps_it) || !due(run).is_empty()
}

/// A refinement waits for what is in work, so that it hears of everything that asks for it.
fn work_feeds_refinement(run: &RunState) -> bool {
    run.tasks.iter().any(|(task, state)| task.leaf().is_some() && survey::is_offered(state))
}

/// This task, if it was not offered yet and can be paid for.
fn unoffered(run: &RunState, task: TaskId) -> Vec<TaskId> {
    if survey::is_unoffered(run, &task) && budget::affords(run, &task) { vec![task] } else { Vec::new() }
}

fn offer(decision: &mut DecisionBuilder<'_>, task: &TaskId) {
    let Some(role) = decision.open().and_then(|run| role(run, task)) else { return };
    let part = decision.open().and_then(|run| trials::part(run, task));
    let tried = part.as_ref().and_then(|part| trials::place(decision, part));
    if let Some(queue) = tried {
        let target = OfferTarget { queue, placement: None, named_role: None };
        return make_offer(decision, task, target, part);
    }
    if auction::holds_back(decision, task, &role) {
        return;
    }
    if let Some(place) = find_place(decision, task, role) {
        make_offer(decision, task, place, part.filter(TrialPart::goes_with_the_usual));
    }
}

/// Where an offer goes, and why if the fleet says.
struct OfferTarget {
    queue: Queue,
    placement: Option<Placement>,
    /// The role to which the task was handed over, instead of the planned one.
    named_role: Option<Role>,
}

/// Where an offer of the task can go now. When it has to wait for room, that is noted.
fn find_place(decision: &mut DecisionBuilder<'_>, task: &TaskId, role: Role) -> Option<OfferTarget> {
    let named_role = role_named(decision, task, &role);
    let role = named_role.clone().unwrap_or(role);
    let placement = place(decision, task, &role);
    let usual = Queue::Role(role);
    let queue = placement.as_ref().map_or_else(|| usual.clone(), |placement| placement.to.clone());
    // What goes to the same agent once more takes no more of its slots than it does already.
    let lies_there = |state: &TaskState| state.status.is_in_work() && state.queue.as_ref() == Some(&queue);
    if !decision.task(task).is_some_and(lies_there) {
        decision.give(&queue);
    }
    if decision.room(&queue) == 0 {
        if let Some(placement) = placement {
            decision.held_back(placement, &usual);
        }
        decision.want(queue);
        return None;
    }
    if decision.is_full() {
        decision.postpone(queue);
        return None;
    }
    Some(OfferTarget { queue, placement, named_role })
}

fn make_offer(
    decision: &mut DecisionBuilder<'_>,
    task: &TaskId,
    OfferTarget { queue, placement, named_role }: OfferTarget,
    part: Option<TrialPart>,
) {
    let Some(run) = decision.open() else { return };
    let specialists = match task {
        TaskId::Plan | TaskId::Refine(_) => decision.specialists(),
        TaskId::Reflect(_) if run.limits.reflection == ReflectionLevel::WhenNeeded => decision.specialists(),
        TaskId::Leaf(_) | TaskId::Reflect(_) | TaskId::Settle(_) | TaskId::Write | TaskId::DraftReview(_) => {
            &[]
        }
    };
    let Some(run) = decision.open() else { return };
    let work = work::work(run, task, decision.capacity(), specialists);
    let Some(mut work) = work else { return };
    // The agent takes prompt and result rules from the role in the offer.
    if let (Work::Execute { task, .. }, Some(role)) = (&mut work, named_role) {
        task.role = role;
    }
    let state = run.tasks.get(task);
    let heard = task.as_leaf().zip(run.plan.as_ref());
    let heard = heard.map(|(leaf, plan)| run.peers.heard_by(plan, &leaf.planned(), Millis(0)));
    let generation = state.map_or(Generation(0), |state| state.generation).next();
    // Nobody goes on from what another role wrote: only agents of one role have a say in what the role was given.
    let tried_by = state.and_then(|state| trials::queue_by_trial(state, run));
    let continues = state.and_then(goes_on_from).filter(|_| tried_by.is_none_or(|tried| *tried == queue));
    let Some(budget) = budget::allot(run, task) else { return };
    let (rights, deadline) = (rights::of(run, task), until(run, task, decision.now()));
    let tried_model = part.as_ref().and_then(|part| part.model.clone());
    let offer = TaskOffered {
        run: run.id,
        task: task.clone(),
        generation,
        queue,
        work,
        goal: goal_told(run, task),
        role_name: run.goal.role_name.clone(),
        conversation: run.goal.conversation.clone(),
        corpus: corpus_told(run, task, &rights),
        model: tried_model.or_else(|| state?.answers.model.clone()).or_else(|| model(run, task)),
        limits: limits_told(run, task),
        budget,
        rights,
        deadline,
        continues,
        answered: state.and_then(|state| state.answered.clone()),
        heard: heard.unwrap_or_default(),
        may_ask_peers: task.leaf().is_some_and(|leaf| !leaf.is_member()),
        chain: handed_over_by(run, task),
        withheld: state.map(|state| state.answers.withheld.iter().cloned().collect()).unwrap_or_default(),
        alone: state.is_some_and(|state| state.is_suspect(&run.limits)),
        background: run.goal.parent.as_ref().and_then(|parent| parent.background.clone()),
        trace: super::traced::below(run),
        trial: part.as_ref().map(|part| Box::new(part.mark.clone())),
        // What goes on has the same fences: prompts that are in the record stay as they are.
        nonce: nonce(&run.secret, task, continues.unwrap_or(generation)),
        encoding: run.goal.encoding,
    };
    if let Some(placement) = placement {
        decision.placed(placement);
    }
    let offer = trials::as_offered(decision, offer);
    if let Some(part) = part {
        shadow::ask(decision, &part, &offer);
    }
    decision.offer(offer);
}

/// Until when a task has time.
fn until(run: &RunState, task: &TaskId, now: Millis) -> Millis {
    let deadline = deadline::of_offer(run, now);
    draft_review::until(run, task).map_or(deadline, |until| deadline.min(until))
}

/// The documents of a run; what there are is told to those who plan or look into them, as far as they may.
fn corpus_told(run: &RunState, task: &TaskId, rights: &TaskRights) -> Option<CorpusRef> {
    let mut corpus = rights::readable(run.goal.corpus.clone()?, rights);
    if matches!(task, TaskId::Reflect(_) | TaskId::Refine(_) | TaskId::Write | TaskId::DraftReview(_)) {
        corpus.outline = String::new();
    }
    Some(corpus)
}

/// The tasks by way of which a task was handed over.
fn handed_over_by(run: &RunState, task: &TaskId) -> Vec<TaskIndex> {
    let leaf = task.leaf();
    leaf.map(|leaf| delegate::chain(run, &leaf.planned())).unwrap_or_default()
}

/// The limits as whoever does the task is told them.
fn limits_told(run: &RunState, task: &TaskId) -> RunLimits {
    let mut limits = if *task == TaskId::Plan { run.limits.for_planners() } else { run.limits.clone() };
    // What is tried is none of an agent's business.
    limits.trials.clear();
    limits
}

/// The first of the generations whose steps the next one goes on from. An offer that only seemed lost may have been
/// taken in the meantime: what was done by it counts.
pub(super) fn goes_on_from(task: &TaskState) -> Option<Generation> {
    let only_seems_lost = (task.status == TaskStatus::Queued).then_some(task.generation);
    task.continues.or(only_seems_lost)
}

/// The goal as whoever does the task is told it.
fn goal_told(run: &RunState, task: &TaskId) -> String {
    let text = &run.goal.text;
    if let (Some(filled), TaskId::Write | TaskId::DraftReview(_)) = (&run.goal.blueprint, task) {
        filled.goal_of_report(text)
    } else {
        text.clone()
    }
}

/// The model to use instead of the agent's own setting.
fn model(run: &RunState, task: &TaskId) -> Option<String> {
    let of_member = task.as_leaf().and_then(|index| groups::model(run, index));
    of_member.or_else(|| run.goal.model.clone())
}

/// The role that a task is for; nothing for a leaf that is not in the plan.
pub(super) fn role(run: &RunState, task: &TaskId) -> Option<Role> {
    match task {
        TaskId::Plan => Some(Role::Planner),
        TaskId::Leaf(index) => Some(run.plan_task(&index.planned())?.role.clone()),
        TaskId::Reflect(_) | TaskId::DraftReview(_) => Some(Role::Reflector),
        TaskId::Refine(_) => Some(Role::Refiner),
        TaskId::Settle(number) => Some(run.conflicts.settling.get(number)?.task.role.clone()),
        TaskId::Write => Some(Role::Writer),
    }
}

/// The queue that a task waits in unless the fleet says otherwise.
fn queue(run: &RunState, task: &TaskId) -> Option<Queue> {
    role(run, task).map(Queue::Role)
}

/// An offer that nobody started although its queue has room for more is made again, and one to an agent that is gone
/// at once; whoever holds the old one finds its generation closed. What was begun goes on from its last step.
fn offer_lost_again(decision: &mut DecisionBuilder<'_>) {
    let now = decision.now();
    let Some(run) = decision.open() else { return };
    let is_lost = |state: &TaskState| {
        lost_at(run, state).is_some_and(|at| at <= now)
            || is_left_behind(decision, state)
            || state.is_to_be_alone(&run.limits)
    };
    let lost = run.tasks.iter().filter(|(_, state)| is_lost(state));
    let lost: Vec<(TaskId, Generation)> =
        lost.map(|(task, state)| (task.clone(), state.generation)).collect();
    for (task, generation) in lost {
        let affordable = decision.open().filter(|run| budget::affords(run, &task));
        let Some(role) = affordable.and_then(|run| role(run, &task)) else { continue };
        let Some(place) = find_place(decision, &task, role) else { continue };
        if decision.task(&task).is_some_and(|state| state.attempt == Attempt(0)) {
            auction::broken(decision, &task);
        }
        let reason = "it was offered again".to_owned();
        decision.effect(Effect::CancelTask { task: task.clone(), generation, agent: None, reason });
        withdraw_if_begun(decision, &task);
        let part = decision.open().and_then(|run| trials::part(run, &task));
        make_offer(decision, &task, place, part.filter(TrialPart::goes_with_the_usual));
    }
}

/// What was begun and handed on may be in the hands of a process that is frozen, or its queue was never told of it.
fn withdraw_if_begun(decision: &mut DecisionBuilder<'_>, task: &TaskId) {
    let state = decision.task(task);
    let begun = state.filter(|state| state.attempt > Attempt(0));
    if let Some((queue, ack)) = begun.and_then(loss::place_in_queue) {
        decision.effect(Effect::Withdraw { task: task.clone(), queue, ack });
    }
}

/// Whether an offer waits for one agent, and that one is gone.
fn is_left_behind(decision: &DecisionBuilder<'_>, state: &TaskState) -> bool {
    let waits_for = state.queue.as_ref().filter(|queue| matches!(queue, Queue::Agent(_)));
    let waits_for = waits_for.or_else(|| trials::queue_by_trial(state, decision.open()?));
    state.status == TaskStatus::Queued
        && waits_for.is_some_and(|queue| !decision.capacity().contains_key(queue))
}

/// When an offer that nobody starts counts as lost, be it the first time that it waits or after it was handed on. For a
/// queue that only seems free it doubles with each generation. An offer to one agent is not waited for longer, nor less: a
/// server that is killed is back within seconds, and what is made again at the moment it is taken may be paid for twice.
fn lost_at(run: &RunState, state: &TaskState) -> Option<Millis> {
    if state.status != TaskStatus::Queued {
        return None;
    }
    let within = Duration::from_millis(run.limits.start_within_ms);
    let is_addressed = matches!(state.queue, Some(Queue::Agent(_)));
    let times = match (state.alone, is_addressed) {
        (true, _) => ALONE,
        (false, true) => 1,
        (false, false) => 2u32.pow(state.generation.0.saturating_sub(1).min(MOST_DOUBLINGS)),
    };
    Some(state.offered_at?.after(within.saturating_mul(times)))
}
