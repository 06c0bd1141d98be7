//! How an orchestrator drives one run: it reads the record, decides, writes, and carries out what follows; when
//! others wrote first it reads again, and when nobody knows whether a write landed, it looks.

use std::collections::BTreeMap;
use std::rc::Rc;

use muster_orchestrator::decide::Effect;
use muster_shared::flow::{Bid, CallForProposals, TaskOffered};
use muster_shared::ids::{RunId, TaskId};
use muster_shared::run::{Decided, Input, Request as Asked};
use muster_shared::time::Millis;
use muster_shared::wire::{Command, ControlMessage};
use uuid::Uuid;

use crate::Sabotage;
use crate::agenda::Time;
use crate::io::{Io, Note};
use crate::messages::{Answer, Line, Order, Request};
use crate::owner::{Call, FIRST_WAIT, Owner};
use crate::turn::{Draft, RunLog, RunMessage, Ticket, Turn};

/// How often a decision is made anew because somebody else wrote first.
const MOST_TRIES: u32 = 5;
/// After how long a command is given out again that cannot be dealt with now.
const LATER: Time = 250;
/// How often in a row a run may decide in vain: what woke it may have gone to another when it has its turn.
const MOST_IN_VAIN: u32 = 8;
/// Longest time after which a bid comes in.
const BIDDING: Time = 300;
/// How often a command for a run that does not exist is given out before it is dropped.
const UNKNOWN_TRIES: u32 = 8;

/// One run that is driven here.
#[derive(Default)]
pub(crate) struct Driver {
    pub(crate) run_log: Option<RunLog>,
    pub(crate) inbox: Vec<RunMessage>,
    pub(crate) stage: Stage,
    /// The call that the stage waits for.
    pub(crate) awaited: u64,
    failures: u32,
    pub(crate) alarm: Option<u64>,
    /// How often in a row it decided in vain: nothing new had come, and nothing was written.
    in_vain: u32,
}

#[derive(Default)]
pub(crate) enum Stage {
    #[default]
    Idle,
    Reading(Turn, bool),
    Writing(Turn, Box<(Draft, Decided, Vec<TaskOffered>)>),
    LookingBack(Turn, Box<(Draft, Uuid)>),
    Pausing,
}

impl Owner {
    pub(crate) fn begin_turn(&mut self, run: RunId, io: &mut Io<'_>) {
        let holds = self.holds(io.time);
        let Some(driver) = self.runs.get_mut(&run) else { return };
        if !matches!(driver.stage, Stage::Idle) {
            return;
        }
        driver.alarm = None;
        let turn = Turn::sort(std::mem::take(&mut driver.inbox));
        if holds { self.open_book(run, turn, io) } else { self.close(run, &turn, io) }
    }

    fn open_book(&mut self, run: RunId, mut turn: Turn, io: &mut Io<'_>) {
        let Some(driver) = self.runs.get_mut(&run) else { return };
        let run_log = driver.run_log.take().filter(|_| !turn.reload);
        match run_log {
            Some(mut run_log) => {
                turn.agents = std::mem::take(&mut run_log.deferred);
                driver.run_log = Some(run_log);
                self.take_in_and_decide(run, turn, io);
            }
            // The fence tells if the run is there already.
            None if turn.begins_run() => {
                driver.run_log = Some(RunLog::default());
                turn.agents = RunLog::default().left_over();
                self.take_in_and_decide(run, turn, io);
            }
            None => self.read(run, turn, false, io),
        }
    }

    /// Asks for what the turn of a run goes on with.
    fn ask(&mut self, run: RunId, request: Request, io: &mut Io<'_>) {
        let call = self.call(Call::Turn(run), request, io);
        if let Some(driver) = self.runs.get_mut(&run) {
            driver.awaited = call;
        }
    }

    fn read(&mut self, run: RunId, turn: Turn, again: bool, io: &mut Io<'_>) {
        let Some(driver) = self.runs.get_mut(&run) else { return };
        driver.stage = Stage::Reading(turn, again);
        self.ask(run, Request::ReadRun(run), io);
    }

    fn take_in_and_decide(&mut self, run: RunId, mut turn: Turn, io: &mut Io<'_>) {
        let Some(run_log) = self.runs.get_mut(&run).and_then(|driver| driver.run_log.as_mut()) else {
            return;
        };
        for entry in std::mem::take(&mut turn.signals) {
            turn.agents.extend(run_log.take_in(&entry));
        }
        self.decide(run, turn, io);
    }

    fn decide(&mut self, run: RunId, mut turn: Turn, io: &mut Io<'_>) {
        turn.tries += 1;
        if turn.tries > MOST_TRIES {
            return self.retry(run, &turn, io);
        }
        let holds = self.holds(io.time);
        io.note(Note::Decides(run));
        let Some(driver) = self.runs.get_mut(&run) else { return };
        let Some(run_log) = driver.run_log.as_mut() else { return };
        let again = io.is_sabotaged(Sabotage::GoalsDecidedTwice) && turn.begins_run();
        let state = run_log.run.as_ref().filter(|_| !again);
        let draft = match Draft::make(&self.fleet, run, state, turn.inputs(), io.clock, io.sabotage) {
            Ok((mut draft, woken)) => {
                let woken = woken.into_iter().map(|run| (run, RunMessage::Wake(Input::Capacity)));
                let looking = self.fleet.may_look_again().into_iter().map(|run| (run, RunMessage::Look));
                self.woken.extend(woken.chain(looking));
                // So that the broker takes it.
                draft.after = run_log.run.as_ref().map_or(draft.after, |run| run.decided);
                draft
            }
            Err(error) => {
                io.note(Note::Refused(error.to_string()));
                return self.retry(run, &turn, io);
            }
        };
        if draft.can_wait() {
            let of_agent = |input: &&Input| matches!(input, Input::Agent { .. } | Input::Unreadable { .. });
            let agents = draft.inputs.iter().filter(of_agent);
            run_log.deferred = agents.cloned().collect();
            driver.in_vain = if turn.news { 0 } else { driver.in_vain + 1 };
            if driver.in_vain > MOST_IN_VAIN {
                let wanted: Vec<String> = draft.decision.wanted.keys().map(ToString::to_string).collect();
                driver.stage = Stage::Pausing;
                return io.note(Note::Circles(run, wanted.join(", ")));
            }
            return self.end_turn(run, &turn, &draft, io);
        }
        driver.in_vain = 0;
        if !holds {
            return self.close(run, &turn, io);
        }
        let batch = Uuid::from_u128(u128::from(io.random.next()) << 64 | u128::from(io.random.next()));
        let (mut decided, offers) = draft.entry(batch, self.me.clone());
        if io.is_sabotaged(Sabotage::InputsUntold) {
            decided.inputs.retain(|input| !matches!(input, Input::Agent { .. }));
        }
        let (sent, with) = (Box::new(decided.clone()), offers.clone());
        let after = draft.after;
        driver.stage = Stage::Writing(turn, Box::new((draft, decided, offers)));
        self.ask(run, Request::Decide { run, after, decided: sent, offers: with }, io);
        self.tell_woken(io);
    }

    /// The next part of a turn, now that an answer is there.
    pub(crate) fn go_on(&mut self, run: RunId, answer: Option<Answer>, io: &mut Io<'_>) {
        let Some(driver) = self.runs.get_mut(&run) else { return };
        match (std::mem::take(&mut driver.stage), answer) {
            (Stage::Reading(turn, _), Some(Answer::Record { elsewhere: true, .. })) => {
                self.close(run, &turn, io)
            }
            (Stage::Reading(mut turn, again), Some(Answer::Record { entries, .. })) => {
                match RunLog::read(&entries) {
                    Ok(run_log) => {
                        turn.agents = run_log.left_over();
                        driver.run_log = Some(run_log);
                        if again {
                            self.decide(run, turn, io)
                        } else {
                            self.take_in_and_decide(run, turn, io)
                        }
                    }
                    Err(error) => {
                        io.note(Note::Refused(error.to_string()));
                        self.retry(run, &turn, io);
                    }
                }
            }
            (Stage::Writing(turn, written), Some(Answer::Appended { first, .. })) => {
                let (draft, decided, offers) = *written;
                let wrote = driver.run_log.as_mut().map(|run_log| run_log.wrote(run, first, decided, offers));
                if let Some(Err(error)) = wrote {
                    io.note(Note::Refused(error.to_string()));
                    return self.retry(run, &turn, io);
                }
                self.perform(run, &draft, io);
                self.end_turn(run, &turn, &draft, io);
            }
            (Stage::Writing(turn, _), Some(_)) => self.read(run, turn, true, io),
            // Nobody knows whether it landed.
            (Stage::Writing(turn, written), None) => {
                let (draft, decided, _) = *written;
                driver.stage = Stage::LookingBack(turn, Box::new((draft, decided.batch)));
                self.ask(run, Request::ReadRun(run), io);
            }
            (Stage::LookingBack(mut turn, sent), Some(Answer::Record { entries, .. })) => {
                let Ok(mut run_log) = RunLog::read(&entries) else { return self.retry(run, &turn, io) };
                let (draft, batch) = *sent;
                let landed =
                    run_log.run.as_ref().and_then(|run| run.batch).is_some_and(|(last, _)| last == batch);
                if landed {
                    run_log.deferred = run_log.left_over();
                    driver.run_log = Some(run_log);
                    self.perform(run, &draft, io);
                    self.end_turn(run, &turn, &draft, io);
                } else {
                    turn.agents = run_log.left_over();
                    driver.run_log = Some(run_log);
                    self.decide(run, turn, io);
                }
            }
            (Stage::Reading(turn, _) | Stage::LookingBack(turn, _), _) => {
                self.retry(run, &turn, io);
            }
            (stage @ (Stage::Idle | Stage::Pausing), _) => driver.stage = stage,
        }
    }

    /// A lost lease stops all effects.
    fn perform(&mut self, run: RunId, draft: &Draft, io: &mut Io<'_>) {
        if !self.holds(io.time) {
            return;
        }
        for effect in &draft.decision.effects {
            match effect {
                // Dead letters are for people.
                Effect::BuryEntry { .. } => {}
                Effect::CallForProposals { call, .. } => self.call_for_bids(call, io),
                Effect::SetTimer { at } => drop(io.ask(Request::SetTimer(run, *at))),
                Effect::ClearTimer => drop(io.ask(Request::ClearTimer(run))),
                Effect::CancelTask { task, generation, reason, .. } => {
                    let (task, generation, reason) = (task.clone(), *generation, reason.clone());
                    let message = ControlMessage::CancelTask { run, task, generation, reason };
                    io.ask(Request::Control(message));
                }
                Effect::ParkTask { task, generation, reason, .. } => {
                    let (task, generation, reason) = (task.clone(), *generation, reason.clone());
                    let message = ControlMessage::ParkTask { run, task, generation, reason };
                    io.ask(Request::Control(message));
                }
                Effect::ParkRun { reason } => {
                    let message = ControlMessage::ParkRun { run, reason: reason.clone() };
                    io.ask(Request::Control(message));
                }
                Effect::HandOn { task, ack } => {
                    if let Some((line, item)) = place_in_queue(draft, task, ack) {
                        io.ask(Request::Back { line, item, after: 0 });
                    }
                }
                Effect::Withdraw { task, ack } => {
                    if let Some((line, item)) = place_in_queue(draft, task, ack) {
                        io.ask(Request::Done { line, item });
                    }
                }
                Effect::Command { command } => {
                    if let Some(order) = order(command) {
                        io.ask(Request::Command(command.run(), Rc::new(order)));
                    }
                }
                // Dead letters and values are for people; what is told to whoever is at work comes with the next offer.
                Effect::Inform { .. }
                | Effect::ShowContext { .. }
                | Effect::Bury { .. }
                | Effect::KeepLessons { .. }
                | Effect::KeepTrackRecord { .. } => {}
                Effect::CancelRun { reason } => {
                    let message = ControlMessage::CancelRun { run, reason: reason.clone() };
                    io.ask(Request::Control(message));
                }
            }
        }
    }

    fn end_turn(&mut self, run: RunId, turn: &Turn, draft: &Draft, io: &mut Io<'_>) {
        let Some(driver) = self.runs.get_mut(&run) else { return };
        driver.stage = Stage::Idle;
        driver.failures = 0;
        let state = driver.run_log.as_ref().and_then(|run_log| run_log.run.as_ref());
        let (exists, over) = (state.is_some(), state.is_none_or(|run| run.status.is_ended()));
        let (wake, more) = (draft.wake(), draft.decision.more);
        for ticket in &turn.tickets {
            answer(ticket, exists, io);
        }
        if over {
            self.forget(run, io);
        } else {
            self.rest(run, wake, more, io);
        }
        self.tell_woken(io);
    }

    /// Some of those that are there bid, and sometimes nobody; whoever takes nothing that is offered to it by name bids
    /// like any other.
    fn call_for_bids(&mut self, call: &CallForProposals, io: &mut Io<'_>) {
        let role = call.role.to_string();
        let mut bids = Vec::new();
        let nobody = io.random.chance(100);
        for agent in self.agents.iter().filter(|(_, of)| **of == role).map(|(agent, _)| agent) {
            if nobody || !io.random.chance(600) {
                continue;
            }
            bids.push(Bid {
                agent: agent.clone(),
                run: call.run,
                task: call.task.clone(),
                number: call.number,
                millis: io.random.between(100, 5_000),
                cost_micros: 0,
                confidence: 90,
                note: String::new(),
            });
        }
        let Some(task) = call.task.leaf().cloned() else { return };
        let (number, track_records) = (call.number, BTreeMap::new());
        let bids = Input::Bids { task, number, bids, track_records };
        let after = io.random.between(1, BIDDING);
        self.wake(Call::Bids(call.run, Box::new(bids)), after, io);
    }

    /// Goes on at once if there is something to do, else sets an alarm.
    fn rest(&mut self, run: RunId, wake: Option<Millis>, more: bool, io: &mut Io<'_>) {
        let Some(driver) = self.runs.get_mut(&run) else { return };
        if more {
            driver.inbox.push(RunMessage::Wake(Input::Capacity));
        }
        if !driver.inbox.is_empty() {
            return self.begin_turn(run, io);
        }
        if let Some(at) = wake {
            let after = Time::try_from(at.since(io.clock).as_millis()).unwrap_or(Time::MAX / 2);
            let token = self.wake(Call::Alarm(run), after, io);
            if let Some(driver) = self.runs.get_mut(&run) {
                driver.alarm = Some(token);
            }
        }
    }

    /// The bus failed for now: the record is read again in a while.
    fn retry(&mut self, run: RunId, turn: &Turn, io: &mut Io<'_>) {
        later(turn, io);
        let Some(driver) = self.runs.get_mut(&run) else { return };
        driver.run_log = None;
        driver.stage = Stage::Pausing;
        driver.failures += 1;
        let after = FIRST_WAIT << driver.failures.saturating_sub(1).min(5);
        self.wake(Call::Pause(run), after, io);
    }

    /// Somebody else owns the run.
    fn close(&mut self, run: RunId, turn: &Turn, io: &mut Io<'_>) {
        later(turn, io);
        self.forget(run, io);
    }

    fn forget(&mut self, run: RunId, io: &mut Io<'_>) {
        let inbox = self.runs.remove(&run).map(|driver| driver.inbox).unwrap_or_default();
        later(&Turn::sort(inbox), io);
        let woken = self.fleet.forget(run);
        self.note_woken(woken);
        self.tell_woken(io);
    }
}

/// What a run asks of another.
fn order(command: &Command) -> Option<Order> {
    let request = |id: Option<Uuid>, reason: &str| Asked {
        id: id.unwrap_or_default(),
        by: "a run".to_owned(),
        reason: reason.to_owned(),
    };
    let input = match command {
        Command::Attend { goal, .. } => return Some(Order::Submit((**goal).clone())),
        Command::ChildEnded { child, end, .. } => Input::ChildEnded { child: *child, end: end.clone() },
        Command::Cancel { reason, id, .. } => {
            Input::Cancel { reason: reason.clone(), by: "a run".to_owned(), id: *id }
        }
        Command::Pause { reason, id, .. } => Input::Pause { request: request(*id, reason) },
        Command::Resume { reason, deadline_ms, id, .. } => {
            Input::Resume { request: request(*id, reason), deadline_ms: *deadline_ms }
        }
        // No run asks these of another.
        Command::Submit { .. }
        | Command::Fork { .. }
        | Command::Skip { .. }
        | Command::Redo { .. }
        | Command::Edit { .. }
        | Command::Approve { .. }
        | Command::Reject { .. }
        | Command::Answer { .. }
        | Command::SetContext { .. } => return None,
    };
    Some(Order::Control(input))
}

/// Where a try of a task stands in its queue: its acknowledgement begins with the item.
fn place_in_queue(draft: &Draft, task: &TaskId, ack: &str) -> Option<(Line, u64)> {
    let queue = draft.decision.after.as_ref()?.tasks.get(task)?.queue.clone()?;
    let (item, _) = ack.split_once('.')?;
    Some((Line::Tasks(queue), item.parse().ok()?))
}

fn later(turn: &Turn, io: &mut Io<'_>) {
    for ticket in &turn.tickets {
        io.ask(Request::Back { line: Line::Commands, item: ticket.item, after: LATER });
    }
}

fn answer(ticket: &Ticket, exists: bool, io: &mut Io<'_>) {
    let (line, item) = (Line::Commands, ticket.item);
    io.ask(if exists || ticket.delivered >= UNKNOWN_TRIES {
        Request::Done { line, item }
    } else {
        Request::Back { line, item, after: LATER }
    });
}
