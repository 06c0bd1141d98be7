//! Takes commands from their queue. A command is acknowledged only when what it asks stands in the record, or when
//! it is refused with a reason on record; one that is given out twice does no harm.

use std::sync::Arc;
use std::time::Duration;

use muster_bus::{BusError, RunRecord, TakenCommand};
use muster_shared::flow::Goal;
use muster_shared::flow::goal::MAX_GOAL_BYTES;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{ChainEntry, Inherited, Input, Origin, Request, RequestAction, SignedOrder, apply};
use muster_shared::time::millis;
use muster_shared::wire::Command;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, oneshot};
use uuid::Uuid;

use super::OrchestratorSettings;
use super::admission::{AdmissionDecision, AdmissionRequest};
use super::context::OrchestratorContext;
use super::owners;
use super::registry::Registry;
use super::run_actor::RunMessage;
use super::trials;
use super::turn::{Order, OrderReply};

/// Most lessons of earlier runs with a like goal that a new run is given; 0 for none. More make a prompt longer,
/// and its plan no better.
const MOST_LESSONS: usize = 5;

/// How full the record may be, in percent, before new goals are refused: the last fifth is for the runs that go on.
const RECORD_PERCENT: f64 = 80.0;

/// Most tools that a new run is advised against.
const MOST_ADVICE: usize = 2;

/// Commands that are in hand at once.
const AT_ONCE: usize = 32;

/// Longest wait for one command before asking again.
const POLL: Duration = Duration::from_secs(5);

/// Longest wait for a command to be on record.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often the queue is told that a command is in hand.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// After how long a command is given out again that cannot be dealt with now.
const LATER: Duration = Duration::from_millis(250);

/// After how long a goal is given out again while too many runs are going on.
const CROWDED: Duration = Duration::from_secs(1);

/// How often a command for a run that does not exist is given out before it becomes a dead letter: its goal may
/// be on the way.
const UNKNOWN_TRIES: u64 = 8;

/// How often a goal is offered to an orchestrator of its domain before it is taken here.
const DOMAIN_TRIES: u64 = 3;

/// Below this a command was taken at once, in milliseconds.
const AT_ONCE_MS: u64 = 1_000;

/// How much of a goal that is too long is kept, in bytes.
const KEPT: usize = 200;

/// Takes commands for as long as it is polled.
///
/// # Errors
/// When the queue cannot be joined.
pub(super) async fn take_commands(context: Arc<OrchestratorContext>) -> Result<(), BusError> {
    let queue = context.bus.commands().join().await?;
    let hands = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(hand) = Arc::clone(&hands).acquire_owned().await else { return Ok(()) };
        match queue.take(POLL).await {
            Ok(Some(command)) => {
                let context = Arc::clone(&context);
                context.clone().in_hand.spawn(async move {
                    if let Err(error) = Box::pin(handle(&context, command)).await {
                        tracing::warn!(%error, "a command could not be acknowledged; it will be given out again");
                    }
                    drop(hand);
                });
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "no commands can be taken; trying again");
                tokio::time::sleep(LATER).await;
            }
        }
    }
}

async fn handle(context: &Arc<OrchestratorContext>, taken: TakenCommand) -> Result<(), BusError> {
    let run = taken.command.run();
    if context.is_set_aside(run) {
        return taken.hand_back(CROWDED).await;
    }
    match while_held(&taken, Box::pin(answer_to(context, &taken))).await? {
        OrderReply::Recorded => taken.done().await,
        // Its goal waits for room: the request waits, too.
        OrderReply::NoSuchRun if context.admission.waits(run) => taken.hand_back(CROWDED).await,
        OrderReply::NoSuchRun if taken.delivered >= UNKNOWN_TRIES => {
            taken.reject(&format!("there is no run {run}: see `muster runs`")).await
        }
        OrderReply::Crowded => taken.hand_back(CROWDED).await,
        OrderReply::NoSuchRun | OrderReply::Elsewhere(_) | OrderReply::Later => taken.hand_back(LATER).await,
    }
}

async fn answer_to(context: &Arc<OrchestratorContext>, taken: &TakenCommand) -> Result<OrderReply, BusError> {
    let time_left = taken.time_left(context.now());
    let command = in_the_time_left(taken.identified(), time_left);
    let order = Given { command, signed: taken.signed().cloned().map(Box::new) };
    let elsewhere = owners::elsewhere(context, taken.command.run());
    let answer = match elsewhere.or_else(|| of_its_domain(context, taken)) {
        Some(owner) => OrderReply::Elsewhere(owner),
        None => see_to(context, &order, taken.delivered).await?,
    };
    Ok(with_others(context, answer, &order).await)
}

/// The orchestrator that a new run rather belongs to because of its domain. One that does not take it after a few tries is
/// not waited for.
fn of_its_domain(context: &OrchestratorContext, taken: &TakenCommand) -> Option<AgentId> {
    if let Command::Submit { run, goal } | Command::Attend { run, goal, .. } = &taken.command
        && taken.delivered < DOMAIN_TRIES
        && !context.registry.has(*run)
    {
        context.ownership.better_for(goal.domain.as_deref())
    } else {
        None
    }
}

/// A goal with what is left of its time: that counts from when it was asked, also while no orchestrator was there to take
/// it up. One that has none left becomes a run that ends at once, with the reason on record.
fn in_the_time_left(command: Command, left: Option<Duration>) -> Command {
    match (command, left) {
        (Command::Submit { run, mut goal }, Some(left)) => {
            let left = millis(left);
            goal.deadline_ms = goal.deadline_ms.map(|whole| match whole.saturating_sub(left) {
                // The way here is not worth the mention.
                0..AT_ONCE_MS => whole,
                _ => left,
            });
            Command::Submit { run, goal }
        }
        (command, _) => command,
    }
}

/// Waits for the answer and tells the queue meanwhile that the command is in hand: one whose orchestrator dies is to be
/// given out again soon.
async fn while_held(
    taken: &TakenCommand,
    answer: impl Future<Output = Result<OrderReply, BusError>>,
) -> Result<OrderReply, BusError> {
    tokio::pin!(answer);
    loop {
        match tokio::time::timeout(SIGN_OF_LIFE, &mut answer).await {
            Ok(answer) => return answer,
            Err(_) => {
                if let Err(error) = taken.progress().await {
                    tracing::debug!(%error, "the queue of commands could not be told of progress");
                }
            }
        }
    }
}

/// Hands a command on that another orchestrator should see to, and gives its answer; any other answer as it is.
async fn with_others(context: &OrchestratorContext, answer: OrderReply, order: &Given) -> OrderReply {
    let other = match &answer {
        OrderReply::Elsewhere(owner) => Some(owner.clone()),
        OrderReply::Crowded => context.ownership.sessions().with_room().cloned(),
        OrderReply::Recorded | OrderReply::NoSuchRun | OrderReply::Later => None,
    };
    let Some(other) = other else { return answer };
    match owners::hand_on(context, &other, order).await {
        OrderReply::Later => answer,
        theirs => theirs,
    }
}

/// A command, and who gives it where that is signed.
pub(super) struct Given {
    pub(super) command: Command,
    pub(super) signed: Option<Box<SignedOrder>>,
}

/// Has a command decided here. `delivered` tells how often it was given out.
///
/// # Errors
/// When the bus fails.
pub(super) async fn see_to(
    context: &Arc<OrchestratorContext>,
    Given { command, signed }: &Given,
    delivered: u64,
) -> Result<OrderReply, BusError> {
    let input = match command {
        Command::Submit { goal, .. } if goal.shadow.is_some() => {
            let why =
                "only an orchestrator has tasks done once more as a shadow: ask the goal without `shadow`";
            refusal(context, goal, why.to_owned())
        }
        Command::Submit { run, goal } | Command::Attend { run, goal, .. } => {
            match admit(context, *run, goal, delivered).await? {
                Some(input) => signed_by(input, signed.as_deref()),
                None => return Ok(OrderReply::Crowded),
            }
        }
        Command::Fork { run, from, model } => {
            match fork(context, *run, *from, model.as_deref(), delivered).await? {
                Ok(input) => signed_by(input, signed.as_deref()),
                Err(answer) => return Ok(answer),
            }
        }
        Command::ChildEnded { child, end, .. } => Input::ChildEnded { child: *child, end: end.clone() },
        Command::Request(request) => Input::Request(within_bounds(request)),
    };
    Ok(ask(context, command.run(), input).await)
}

/// What begins a run, with who signed it.
fn signed_by(input: Input, by: Option<&SignedOrder>) -> Input {
    let by = by.cloned().map(Box::new);
    match input {
        Input::Goal { goal, limits, secret, lessons, signed: _ } => {
            Input::Goal { goal, limits, secret, lessons, signed: by }
        }
        Input::Fork { from, state, goal, limits, secret, signed: _ } => {
            Input::Fork { from, state, goal, limits, secret, signed: by }
        }
        other => other,
    }
}

/// How much of a reason is kept, in bytes.
const REASON_KEPT: usize = 2_000;

/// How much is kept of the name of whoever asks, in bytes.
const NAME_KEPT: usize = 256;

/// A request as it goes on record.
fn within_bounds(request: &Request) -> Request {
    let mut request = request.clone();
    request.by.truncate(request.by.floor_char_boundary(NAME_KEPT));
    request.reason.truncate(request.reason.floor_char_boundary(REASON_KEPT));
    request.reason = request.reason.trim().to_owned();
    if let RequestAction::Resume { deadline_ms } = &mut request.action {
        *deadline_ms = within_longest(*deadline_ms);
    }
    request
}

fn within_longest(deadline_ms: Option<u64>) -> Option<u64> {
    deadline_ms.map(|wanted| wanted.min(OrchestratorSettings::longest_deadline_ms()))
}

/// Hands an input to the actor of a run and waits until it is on record.
async fn ask(context: &Arc<OrchestratorContext>, run: RunId, input: Input) -> OrderReply {
    let (answer, answered) = oneshot::channel();
    let actor = Registry::open(context, run);
    if actor.send(RunMessage::Order(Order { input, answer })).timeout(PATIENCE).await.is_err() {
        return OrderReply::Later;
    }
    match tokio::time::timeout(PATIENCE, answered).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => OrderReply::Later,
    }
}

/// The input that a goal becomes; nothing while it has to wait.
async fn admit(
    context: &Arc<OrchestratorContext>,
    run: RunId,
    goal: &Goal,
    delivered: u64,
) -> Result<Option<Input>, BusError> {
    let mut limits = context.settings.limits_for(goal);
    if let Err(wrong) = goal.check() {
        return Ok(Some(refusal(context, goal, wrong.to_string())));
    }
    if let Err(reason) = context.settings.check_policy(goal) {
        return Ok(Some(refusal(context, goal, reason)));
    }
    if context.admission.fullness(&context.bus).await? * 100.0 >= RECORD_PERCENT {
        let reason =
            "the record is almost full: delete finished runs, or raise `bus.record_bytes`, and ask again";
        return Ok(Some(busy(refusal(context, goal, reason.to_owned()))));
    }
    // Who waits for it has a seat already, and would keep it until there is one for this.
    if !context.registry.has(run) && goal.parent.is_none() {
        let going_on = context.registry.len();
        let room_elsewhere = context.ownership.sessions().with_room().is_some();
        let asked = AdmissionRequest { run, going_on, room_elsewhere, delivered, priority: goal.priority };
        let enter = || drop(Registry::open(context, run));
        match context.admission.seat(&context.settings, asked, enter) {
            AdmissionDecision::Free => {}
            AdmissionDecision::Wait => return Ok(None),
            AdmissionDecision::None(reason) => return Ok(Some(busy(refusal(context, goal, reason)))),
        }
    }
    let mut goal = Box::new(goal.clone());
    goal.deadline_ms = within_longest(goal.deadline_ms);
    limits.trials = trials::standing(context, &limits.trials).await;
    let mut lessons = Vec::new();
    if goal.shadow.is_none() {
        lessons = context.lessons.recall(&goal.text, MOST_LESSONS).await;
        lessons.extend(context.track_record.advice(MOST_LESSONS.min(MOST_ADVICE)));
    }
    Ok(Some(Input::Goal { goal, limits, secret: secret(), lessons, signed: None }))
}

/// The input that a fork becomes: what the other run's record holds up to the entry, with the goal asked there.
async fn fork(
    context: &Arc<OrchestratorContext>,
    run: RunId,
    from: Origin,
    model: Option<&str>,
    delivered: u64,
) -> Result<Result<Input, OrderReply>, BusError> {
    let mut before = None;
    let RunRecord { entries, chain } = context.bus.record().read_origin(from.run).await?;
    for entry in entries.iter().filter(|entry| entry.seq <= from.at) {
        if let Err(error) = apply(&mut before, entry) {
            return Err(BusError::Other { what: "a fork".into(), reason: error.to_string() });
        }
    }
    // The fork has a chain of its own, which names the link that it began at.
    let from = Origin { link: last_link(&chain, from.at), ..from };
    let Some(before) = before else { return Ok(Err(OrderReply::NoSuchRun)) };
    // Who watched the other run need not watch this one.
    let mut goal = Goal {
        limits: Some(before.limits.clone()),
        attended: false,
        parent: None,
        trace: None,
        shadow: None,
        ..before.goal.clone()
    };
    if let Some(model) = model {
        goal.model = Some(model.to_owned());
    }
    let Some(state) = Inherited::of(&before) else {
        let reason = format!(
            "run {} had ended at entry {}: fork it at an earlier one; `muster trace` shows them",
            from.run, from.at
        );
        return Ok(Ok(refusal(context, &goal, reason)));
    };
    Ok(match admit(context, run, &goal, delivered).await? {
        None => Err(OrderReply::Crowded),
        Some(Input::Goal { goal, limits, secret, .. }) => {
            let state = Box::new(state);
            Ok(Input::Fork { from, state, goal, limits, secret, signed: None })
        }
        Some(refused) => Ok(refused),
    })
}

/// The hash of the last link up to an entry.
fn last_link(chain: &[ChainEntry], at: Seq) -> Option<muster_shared::run::Digest> {
    chain.iter().rev().find_map(|entry| match entry {
        ChainEntry::Linked { seq, link } => (*seq <= at).then_some(link.hash),
        ChainEntry::Agent(_) => None,
    })
}

fn refusal(context: &OrchestratorContext, goal: &Goal, reason: String) -> Input {
    let limits = context.settings.limits_for(goal);
    let mut goal = Box::new(goal.clone());
    if goal.text.len() > MAX_GOAL_BYTES {
        let end = goal.text.floor_char_boundary(KEPT);
        goal.text.truncate(end);
        goal.text.push('…');
    }
    Input::Refuse { goal, limits, reason, busy: false }
}

/// The refusal of a goal that is in order: there is too much to do.
fn busy(refusal: Input) -> Input {
    match refusal {
        Input::Refuse { goal, limits, reason, .. } => Input::Refuse { goal, limits, reason, busy: true },
        other => other,
    }
}

/// 32 random bytes in hexadecimal.
fn secret() -> String {
    let mut hash = Sha256::new();
    for _ in 0..4 {
        hash.update(Uuid::new_v4().as_bytes());
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_goal_counts_from_when_it_was_asked() {
        let run = RunId::from_uuid(Uuid::from_u128(1));
        let left_of = |deadline_ms, left: Option<u64>| {
            let goal = Box::new(Goal { deadline_ms, ..Goal::new("Why?") });
            match in_the_time_left(Command::Submit { run, goal }, left.map(Duration::from_millis)) {
                Command::Submit { goal, .. } => goal.deadline_ms,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(left_of(Some(60_000), Some(59_900)), Some(60_000), "it was taken at once");
        assert_eq!(left_of(Some(60_000), Some(20_000)), Some(20_000), "nobody was there for 40 s");
        assert_eq!(left_of(Some(60_000), Some(0)), Some(0));
        assert_eq!(left_of(Some(60_000), None), Some(60_000), "whoever sent it does not say");
        assert_eq!(left_of(None, Some(5)), None);
    }

    #[test]
    fn a_request_goes_on_record_with_who_asks_and_no_longer_than_it_may_be() {
        let (run, message, sender) =
            (RunId::from_uuid(Uuid::nil()), Uuid::from_u128(7), AgentId::new("cli", 1));
        let recorded = |request: Request| match Command::Request(request).sent(message, &sender) {
            Command::Request(request) => within_bounds(&request),
            other => panic!("{other:?}"),
        };
        let bare = recorded(Request::new(run, RequestAction::Pause).because("  enough "));
        assert_eq!((bare.id, bare.by.as_str(), bare.reason.as_str()), (message, sender.as_str(), "enough"));
        let said = Request { by: "ann".to_owned(), ..Request::new(run, RequestAction::Pause) };
        let said = recorded(said.with_id(Uuid::from_u128(9)));
        assert_eq!((said.id, said.by.as_str()), (Uuid::from_u128(9), "ann"));
        let resume = RequestAction::Resume { deadline_ms: Some(u64::MAX) };
        let long = Request { by: "ä".repeat(NAME_KEPT), ..Request::new(run, resume) };
        let long = recorded(long.because("ä".repeat(REASON_KEPT)));
        assert_eq!((long.by.len(), long.reason.len()), (NAME_KEPT, REASON_KEPT));
        let longest = OrchestratorSettings::longest_deadline_ms();
        assert_eq!(long.action, RequestAction::Resume { deadline_ms: Some(longest) });
    }
}
