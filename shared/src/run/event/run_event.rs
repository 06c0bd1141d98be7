//! What follows from a decision: the changes of a run's state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Checked, Evidence, FailedPlan, StopReason};
use crate::blueprint::StepOutcome;
use crate::conflict::Side;
use crate::flow::{
    About, Bid, ConflictStep, ContextAuthor, DraftReview, FailureKind, Goal, GroupVerdict, Observation,
    OnTimeout, Pattern, PeerAnswer, Plan, PlanTask, Question, Reflection, RefusedOperation, Reply, Report,
    Response, RunLimits, View, Wait,
};
use crate::ids::{AgentId, Attempt, Generation, QuestionId, RunId, Seq, TaskId, TaskIndex};
use crate::run::ChildEnd;
use crate::run::conflicts::{ConflictEnd, Settling};
use crate::run::fork::{Inherited, Origin};
use crate::time::Millis;

/// A change of the run's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "the large one begins a run and comes once in it")]
pub enum RunEvent {
    /// The run exists. Always the first event.
    RunCreated {
        /// The goal.
        goal: Box<Goal>,
        /// Limits in force.
        limits: RunLimits,
        /// The version of the events of this run.
        event_version: u32,
        /// The run's secret, in hexadecimal.
        secret: String,
        /// When it must be finished.
        deadline: Millis,
    },
    /// The run goes on from where another one stood. Comes with its creation only.
    RunForked {
        /// Where that was.
        from: Origin,
        /// What was taken over.
        state: Box<Inherited>,
    },
    /// Earlier runs with a like goal taught something. Comes with the run's creation only.
    LessonsRecalled {
        /// The lessons, those of the likest goals first.
        lessons: Vec<String>,
    },
    /// The planner's plan was refused.
    PlanRefused {
        /// Why, one line each.
        reasons: Vec<String>,
    },
    /// No planner is asked: the goal is small, the person brought a plan, or wants none.
    PlanningSkipped {
        /// Why.
        reason: String,
    },
    /// The planner's plan is in order, and is to be improved from lessons of earlier runs before it is carried out.
    PlanDrafted {
        /// The plan.
        plan: Plan,
        /// What was repaired in the draft, one line each.
        repairs: Vec<String>,
    },
    /// The plan was improved from lessons of earlier runs.
    PlanIterated {
        /// The lessons.
        lessons: Vec<String>,
        /// What was changed, one line each; empty when nothing had to be.
        changes: Vec<String>,
    },
    /// There is a plan.
    PlanAdopted {
        /// The plan.
        plan: Plan,
        /// What was repaired in the draft, one line each.
        repairs: Vec<String>,
    },
    /// It was decided of steps of the run's blueprint what becomes of them, and the plan grew by their tasks.
    StepsExpanded {
        /// What became of each step.
        step_outcomes: BTreeMap<String, StepOutcome>,
        /// The tasks that came with it.
        tasks: BTreeMap<TaskIndex, PlanTask>,
    },
    /// An agent started a task.
    TaskStarted {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// The agent.
        agent: AgentId,
        /// Which try.
        attempt: Attempt,
        /// Where the queue's acknowledgement goes, to hand the task on when the agent dies.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        ack: String,
        /// The last step of the tries before it; work goes on after it.
        #[serde(default, skip_serializing_if = "is_zero")]
        after_step: u32,
    },
    /// The agent that had a task was lost. The task goes to another within the same generation.
    TaskOrphaned {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Which try was lost.
        attempt: Attempt,
        /// The agent.
        agent: AgentId,
        /// How the loss is known.
        reason: String,
        /// The last step known to be in the record.
        #[serde(default, skip_serializing_if = "is_zero")]
        last_step: u32,
        /// How many other tasks the agent had in hand.
        #[serde(default, skip_serializing_if = "is_zero")]
        beside: u32,
    },
    /// The agent that had a task handed it over in good order.
    TaskReleased {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// The agent.
        agent: AgentId,
        /// Which try.
        attempt: Attempt,
    },
    /// A task that agents kept dying of is given to nobody any more: it failed for good.
    TaskQuarantined {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// What speaks against it.
        evidence: Evidence,
    },
    /// How a failed try of a task is answered. What follows from it comes next.
    FailureAnswered {
        /// The task.
        task: TaskId,
        /// The generation that failed.
        generation: Generation,
        /// What kind of failure it was.
        failure: FailureKind,
        /// What is done about it.
        response: Response,
        /// The model that tries it next, if another does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What is to be said of the part that there is, if that is taken for the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        marked: Option<String>,
        /// The tool that failed, if it is tried without that one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        withheld: Option<String>,
    },
    /// The run had as many failures as it may have.
    ErrorBudgetUsedUp {
        /// How many.
        failures: u32,
        /// Whether a person is asked whether to go on. Else nothing more is begun, and the report is written.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asked: bool,
    },
    /// A task does not wait any longer for what another is to give.
    DependencyLeft {
        /// The task.
        task: TaskIndex,
        /// The one that kept it waiting.
        without: TaskIndex,
        /// Why.
        reason: String,
    },
    /// A task ended well.
    TaskCompleted {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Where its outcome stands.
        outcome: Seq,
    },
    /// A try of a task failed; it will be offered again.
    TaskRetried {
        /// The task.
        task: TaskId,
        /// The generation that failed.
        generation: Generation,
        /// Where its outcome stands, if there is one.
        outcome: Option<Seq>,
        /// Why.
        reason: String,
    },
    /// Whoever had a task wrote nothing about it for too long. It is offered to another, which goes on after the last
    /// step.
    TaskTakenBack {
        /// The task.
        task: TaskId,
        /// The generation that ends with this.
        generation: Generation,
        /// The agent that fell silent.
        agent: AgentId,
        /// Why, in a sentence.
        reason: String,
    },
    /// A task failed for good.
    TaskFailed {
        /// The task.
        task: TaskId,
        /// Its generation.
        generation: Generation,
        /// Where its outcome stands, if there is one.
        outcome: Option<Seq>,
        /// Why.
        reason: String,
    },
    /// A task cannot start because one it needs gave nothing.
    TaskBlocked {
        /// The task.
        task: TaskIndex,
        /// Why.
        reason: String,
    },
    /// Several members do a task, each as a task of its own.
    MembersBegun {
        /// The task.
        task: TaskIndex,
        /// Its generation.
        generation: Generation,
        /// How it is given out.
        pattern: Pattern,
        /// The members.
        members: Vec<TaskIndex>,
    },
    /// The members of a task are to think again, knowing what the others found.
    MembersDiscuss {
        /// The task.
        task: TaskIndex,
        /// Its generation.
        generation: Generation,
        /// Which round, from 1.
        round: u8,
        /// What each of them found so far.
        views: Vec<View>,
    },
    /// One more member of a committee reads what the others found, and gives the verdict.
    ChairCalled {
        /// The task.
        task: TaskIndex,
        /// Its generation.
        generation: Generation,
        /// The chair.
        chair: TaskIndex,
        /// What the members found.
        views: Vec<View>,
    },
    /// A task that members did ended with the result of one of them.
    MembersSettled {
        /// The task.
        task: TaskIndex,
        /// Its generation.
        generation: Generation,
        /// Which result counts, what decided, and who sees it differently.
        verdict: GroupVerdict,
    },
    /// A task was cut off.
    TaskAborted {
        /// The task.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// A task was left out by decision.
    TaskSkipped {
        /// The task.
        task: TaskIndex,
        /// Why.
        reason: String,
        /// Whether a person said so. By rule it is left out for want of something.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_person: bool,
    },
    /// A task was put down where it stands, to be offered again: the next generation goes on from there.
    TaskParked {
        /// The task.
        task: TaskId,
        /// The generation that was put down.
        generation: Generation,
    },
    /// A person gave the plan as it is to be.
    PlanEdited {
        /// The plan.
        plan: Plan,
        /// Who changed it, and why.
        reason: String,
    },
    /// A task was put down until what it waits for is there.
    TaskWaits {
        /// The task.
        task: TaskId,
        /// The generation that was put down.
        generation: Generation,
        /// The step that is begun.
        step: u32,
        /// What is waited for.
        wait: Wait,
    },
    /// What a task waited for is there: its next generation goes on with it.
    TaskAnswered {
        /// The task.
        task: TaskId,
        /// The step that was begun.
        step: u32,
        /// Its observation.
        observation: Observation,
        /// The same for programs, when peers were asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<PeerAnswer>>,
    },
    /// A task, or a person by a value, told others something.
    InformationShared {
        /// Its number in the run, from 1.
        number: u32,
        /// The task that tells it; nothing when a person does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<TaskIndex>,
        /// The person who tells it; empty when a task does.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        person: String,
        /// The value of the shared context that it tells: what was told of that one before is told no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The tasks that are told.
        to: Vec<TaskIndex>,
        /// What it says.
        text: String,
    },
    /// A task handed over part of its work: the plan has a task more, and the one that asked for it waits for its end.
    TaskDelegated {
        /// The task that waits.
        task: TaskIndex,
        /// The task that was added.
        to: TaskIndex,
        /// The plan as it stands now.
        plan: Plan,
    },
    /// A value of the shared context was written.
    ContextWritten {
        /// Its key.
        key: String,
        /// What it is.
        value: Value,
        /// Its version, from 1.
        version: u32,
        /// Who wrote it.
        by: ContextAuthor,
    },
    /// Handing work over would have gone in a circle, or too far. The task goes on by itself, with another agent if there
    /// is one.
    HandOverRefused {
        /// The task that wanted to hand work over.
        task: TaskIndex,
        /// How the work came to it: whoever handed it over first comes first, the task itself last.
        chain: Vec<TaskIndex>,
        /// Who worked on the task, and should rather not have it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// Why, with the chain in words.
        reason: String,
    },
    /// Tasks waited for each other, or for what cannot come. One of them goes on without.
    DeadlockEnded {
        /// The task that goes on.
        task: TaskId,
        /// Who waits for whom, in order: the last one for the first. Empty where they do not wait in a circle.
        circle: Vec<TaskIndex>,
        /// Why it cannot come.
        reason: String,
    },
    /// A run was begun for a task that waits for its end.
    ChildBegun {
        /// The task.
        task: TaskId,
        /// Its generation that asked for it.
        generation: Generation,
        /// The run.
        run: RunId,
        /// Its goal.
        goal: Box<Goal>,
    },
    /// Nothing was heard of a child for long: word of it is asked for.
    ChildAsked {
        /// The run.
        run: RunId,
    },
    /// A run that was begun for a task ended.
    ChildEnded {
        /// The run.
        run: RunId,
        /// How.
        end: Box<ChildEnd>,
    },
    /// Somebody is asked.
    QuestionAsked {
        /// The question's number in this run.
        id: QuestionId,
        /// What its answer is for.
        about: About,
        /// The question.
        question: Question,
        /// When the time for the answer is up.
        expires: Millis,
        /// What follows then.
        on_timeout: OnTimeout,
    },
    /// A question was answered, or its time is up and its default is taken.
    QuestionAnswered {
        /// The answer.
        reply: Reply,
    },
    /// Nobody answered in time: somebody else is asked.
    QuestionPassedOn {
        /// The question.
        id: QuestionId,
        /// Who is asked now.
        to: String,
        /// When the time for the answer is up.
        expires: Millis,
    },
    /// Nobody needs the answer any more.
    QuestionWithdrawn {
        /// The question.
        id: QuestionId,
        /// Why.
        reason: String,
    },
    /// A task that was begun, or had ended, is to be done again from its beginning.
    TaskReopened {
        /// The task.
        task: TaskId,
        /// Why; whoever does it is told.
        reason: String,
    },
    /// What a task gave was made from a result that has changed since. It stays, and the report says so.
    TaskStale {
        /// The task.
        task: TaskIndex,
        /// What changed.
        reason: String,
    },
    /// Results contradict each other, or another one takes part where they do.
    ConflictFound {
        /// Which conflict of the run, from 1; that of an open one when another result takes part in it.
        id: u32,
        /// What they are about.
        subject: String,
        /// Who claims what of it.
        sides: Vec<Side>,
        /// Whether a rule says that they contradict each other; else a model has to compare them first.
        certain: bool,
        /// When the time to settle it is up.
        until: Millis,
    },
    /// Somebody is asked about a conflict: the sides for their methods, or a judge.
    ConflictExamined {
        /// The conflict.
        id: u32,
        /// The step of the policy; nothing when it is to be found out whether there is a contradiction at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<ConflictStep>,
        /// The small tasks that ask, by their number in the run; none when nobody can be asked.
        #[serde(
            default,
            skip_serializing_if = "BTreeMap::is_empty",
            deserialize_with = "crate::number_keys::read"
        )]
        tasks: BTreeMap<u32, Settling>,
    },
    /// The plan has a task more, which finds out what holds.
    VerificationAdded {
        /// The conflict.
        id: u32,
        /// The task.
        task: TaskIndex,
        /// The plan as it stands now.
        plan: Plan,
    },
    /// A conflict ended: settled, or not, or it is none any more.
    ConflictResolved {
        /// The conflict.
        id: u32,
        /// How.
        end: ConflictEnd,
        /// The tasks that are done again because they lost.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redone: Vec<TaskIndex>,
    },
    /// Nothing is offered until the run is resumed.
    RunPaused {
        /// Who asked for it, and why.
        reason: String,
    },
    /// The run goes on.
    RunResumed {
        /// Who asked for it, and why.
        reason: String,
        /// When it must be finished, if that changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Millis>,
    },
    /// A goal was changed.
    GoalEdited {
        /// The task whose goal it is; the run's own when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskIndex>,
        /// The goal as it stands now.
        goal: String,
        /// Who changed it, and why.
        reason: String,
    },
    /// What somebody asked of the run cannot be done. Nothing else changes.
    RequestRefused {
        /// The request.
        id: Uuid,
        /// Why, and what to do.
        reason: String,
    },
    /// What was learnt from a task.
    Reflected {
        /// The task.
        task: TaskIndex,
        /// What was learnt.
        reflection: Reflection,
    },
    /// Somebody asks for a change of plan. Wishes are collected until the refinement is offered.
    RefinementWanted {
        /// Which refinement of the run, from 1.
        number: u32,
        /// Who asks, and why.
        reason: String,
    },
    /// The plan was changed.
    PlanRefined {
        /// Which refinement of the run, from 1.
        number: u32,
        /// What was changed, one line each.
        changes: Vec<String>,
        /// What was refused.
        refused: Vec<RefusedOperation>,
        /// The plan as it stands now.
        plan: Plan,
    },
    /// What is left is to be planned anew. Nothing new is begun until it is; more reasons may follow.
    ReplanWanted {
        /// Which new plan of the run, from 1.
        number: u32,
        /// Why.
        reason: String,
    },
    /// What was left is planned anew. What has ended stays as it is.
    Replanned {
        /// Which new plan of the run, from 1.
        number: u32,
        /// What was changed, one line each.
        changes: Vec<String>,
        /// The plan as it stands now.
        plan: Plan,
    },
    /// The plans of the run failed, and there will be no other. The run fails with the next event.
    RunGivenUp {
        /// The plans that failed, in order.
        plans: Vec<FailedPlan>,
        /// What was learnt.
        lessons: Vec<String>,
        /// A simpler goal.
        simpler: String,
        /// What there was to report. Put together by rule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<Report>>,
    },
    /// The plan, or the report, was held against the person's own words, and does not speak of all of them.
    WordsUncovered {
        /// What was checked.
        by: Checked,
        /// The parts of the goal that it does not speak of, in the person's words.
        words: Vec<String>,
    },
    /// Agents are asked to bid for a task.
    AuctionOpened {
        /// The task.
        task: TaskIndex,
        /// Which auction of it: the generation that it is for.
        number: u32,
        /// When it is over, with or without bids.
        closes: Millis,
    },
    /// The auction of a task is over.
    TaskAwarded {
        /// The task.
        task: TaskIndex,
        /// Which auction of it.
        number: u32,
        /// The bids that came in time.
        bids: Vec<Bid>,
        /// Whose bid won; nobody's when the task is given out as any other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<AgentId>,
        /// Why, one line for each bid.
        reasons: Vec<String>,
    },
    /// It shows whether an agent held its bid.
    BidHeld {
        /// The task.
        task: TaskIndex,
        /// The agent.
        agent: AgentId,
        /// What it had promised, in milliseconds.
        promised_ms: u64,
        /// What it took, in milliseconds.
        took_ms: u64,
        /// Whether that is within what bids may be overrun by.
        kept: bool,
    },
    /// The report is being written.
    WritingBegan,
    /// The report is written, and a reviewer reads this draft before it is delivered.
    DraftReviewBegun {
        /// Which review of the run, from 1.
        number: u32,
        /// Until when the reviewer is waited for.
        until: Millis,
    },
    /// A reviewer has read the draft.
    DraftReviewed {
        /// Which review of the run, from 1.
        number: u32,
        /// What it says.
        review: DraftReview,
        /// Whether the report is written again; else it is delivered as it is.
        revise: bool,
    },
    /// The review of the draft did not take place, or nothing came of it. The draft is delivered.
    DraftReviewMissed {
        /// Which review of the run, from 1.
        number: u32,
        /// Why.
        reason: String,
    },
    /// The run ended well.
    RunCompleted {
        /// The answer.
        report: Report,
    },
    /// The run failed.
    RunFailed {
        /// Why, and what to do.
        reason: String,
    },
    /// The run was stopped.
    RunAborted {
        /// What stopped it.
        why: StopReason,
        /// In words.
        reason: String,
        /// What there was to report when it was stopped. Put together by rule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<Report>>,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
