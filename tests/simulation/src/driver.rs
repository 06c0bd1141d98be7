//! How an orchestrator drives one run: it carries out what the run's driver and its turns ask for.

use std::collections::BTreeMap;
use std::rc::Rc;

use muster_orchestrator::decide::Effect;
use muster_orchestrator::turn::{self, DriverRules, Next, RunLog, Turn, TurnEnd, TurnRules};
use muster_shared::flow::{Bid, CallForProposals, GuardFailure, GuardReply, GuardVerdict, Guarded, Product};
use muster_shared::ids::{Queue, RunId};
use muster_shared::run::{Input, Request as Asked};
use muster_shared::wire::{Command, ControlMessage};
use serde_json::json;

use crate::Sabotage;
use crate::agenda::Time;
use crate::io::{Io, Note};
use crate::job::ms;
use crate::messages::{Answer, Line, Order, Request};
use crate::owner::{Call, Owner};
use crate::turn::{
    Inbox, Need, RunAction, RunDriver, RunMessage, Ticket, Waiting, answered, begins_run, known, request,
    view,
};

/// What a guard makes of a product: as little as it can.
fn changed_by_guard(product: &Product) -> GuardReply {
    let payload = match product {
        Product::Plan(plan) => json!({ "plan": plan }),
        Product::Refinement(operations) => json!({ "refinement": operations }),
        Product::Reflection(reflection) => json!({ "refinement": reflection.operations }),
        Product::Report(report) => json!({ "report": report }),
        Product::Result(_) | Product::DraftReview(_) => json!({}),
    };
    GuardReply::change("in its own words".to_owned(), payload)
}

/// After how long a command is given out again that cannot be dealt with now.
const LATER: Time = 250;
/// How often in a row a run may decide in vain: what woke it may have gone to another when it has its turn.
const MOST_IN_VAIN: u32 = 8;
/// Longest time after which a bid comes in.
const BIDDING: Time = 300;
/// How often a command for a run that does not exist is given out before it is dropped.
const UNKNOWN_TRIES: u32 = 8;
/// Most inputs that are put off.
const MOST_DEFERRED: usize = 256;

/// What holds for all runs.
const RULES: DriverRules =
    DriverRules { max_turns_in_vain: MOST_IN_VAIN, pause_in_vain: std::time::Duration::from_secs(1) };

/// One run that is driven here.
pub(crate) struct Driven {
    pub(crate) driver: RunDriver,
    /// The turn that goes on.
    turn: Option<Waiting>,
    /// The call that the turn waits for.
    pub(crate) awaited: u64,
    pub(crate) alarm: Option<(u64, turn::Alarm)>,
    /// What ends the wait after a failure.
    pub(crate) wait: Option<u64>,
    /// What ends the pause of a run that is set aside.
    pub(crate) aside: Option<u64>,
}

impl Driven {
    pub(crate) fn new() -> Self {
        Self { driver: RunDriver::new(RULES), turn: None, awaited: 0, alarm: None, wait: None, aside: None }
    }
}

impl Owner {
    /// Carries out what the driver of a run says.
    pub(crate) fn act(&mut self, run: RunId, actions: Vec<RunAction>, io: &mut Io<'_>) {
        for action in actions {
            let Some(driven) = self.runs.get_mut(&run) else { return };
            match action {
                RunAction::Begin { log, inbox } => self.begin_turn(run, log.map(|log| *log), inbox, io),
                RunAction::SetAlarm(alarm) => {
                    let token = self.wake(Call::Alarm(run), ms(alarm.at().since(io.clock)), io);
                    if let Some(driven) = self.runs.get_mut(&run) {
                        driven.alarm = Some((token, alarm));
                    }
                }
                RunAction::Wait(time) => {
                    let token = self.wake(Call::Pause(run), ms(time), io);
                    if let Some(driven) = self.runs.get_mut(&run) {
                        driven.wait = Some(token);
                    }
                }
                RunAction::StepAside(pause) => {
                    io.note(Note::Circles(run));
                    let woken = self.fleet.step_back(run);
                    self.note_woken(woken);
                    let token = self.wake(Call::Aside(run), ms(pause), io);
                    if let Some(driven) = self.runs.get_mut(&run) {
                        driven.aside = Some(token);
                    }
                }
                RunAction::EndPause => driven.aside = None,
                RunAction::LeaveAlone(reason) => io.note(Note::Refused(reason)),
                RunAction::Stop => self.forget(run, io),
            }
        }
    }

    fn begin_turn(&mut self, run: RunId, log: Option<RunLog>, mut inbox: Inbox, io: &mut Io<'_>) {
        io.note(Note::Decides(run));
        let epoch = self.epoch(io.time);
        let (tickets, begins) = (std::mem::take(&mut inbox.waiting), begins_run(&inbox.commands));
        let rules = TurnRules { by: self.me.clone(), max_deferred: MOST_DEFERRED, snapshot_every: 0 };
        let next = Turn::begin(run, rules, log, inbox, &view(&self.fleet, epoch.is_some(), io));
        if let Some(driven) = self.runs.get_mut(&run) {
            (driven.alarm, driven.wait) = (None, None);
        }
        self.take_steps(run, Waiting { next, tickets, begins, epoch, elsewhere: false }, io);
    }

    /// The next part of a turn, now that an answer is there.
    pub(crate) fn go_on(&mut self, run: RunId, answer: Option<Answer>, io: &mut Io<'_>) {
        let Some(mut turn) = self.runs.get_mut(&run).and_then(|driven| driven.turn.take()) else { return };
        let holds = self.holds(turn.epoch, io.time);
        turn.elsewhere = matches!(answer, Some(Answer::Record { elsewhere: true, .. }));
        turn.next = answered(turn.next, answer, &view(&self.fleet, holds, io));
        self.take_steps(run, turn, io);
    }

    /// Goes on with a turn until it waits for an answer, or is over.
    fn take_steps(&mut self, run: RunId, turn: Waiting, io: &mut Io<'_>) {
        let Waiting { mut next, tickets, begins, epoch, elsewhere } = turn;
        loop {
            // A goal that is submitted again is decided upon as if nothing stood in the record.
            let forgets = begins && io.is_sabotaged(Sabotage::GoalsDecidedTwice);
            if let Some(request) =
                request(run, &next, io).filter(|_| !(forgets && matches!(next, Next::Read(_))))
            {
                let call = self.call(Call::Turn(run), request, io);
                if let Some(driven) = self.runs.get_mut(&run) {
                    driven.awaited = call;
                    driven.turn = Some(Waiting { next, tickets, begins, epoch, elsewhere: false });
                }
                return self.tell_woken(io);
            }
            let holds = self.holds(epoch, io.time);
            next = match next {
                Next::Done(end) => return self.end_turn(run, *end, tickets, io),
                need => self.take_step(run, need, (holds, elsewhere), io),
            };
        }
    }

    /// A step for which nobody is asked.
    fn take_step(
        &mut self,
        run: RunId,
        need: Need,
        (holds, elsewhere): (bool, bool),
        io: &mut Io<'_>,
    ) -> Need {
        match need {
            Next::Read(step) => step.read(Ok(RunLog::default()), &view(&self.fleet, holds, io)),
            Next::Claim(step) => match step.author.clone().filter(|_| elsewhere) {
                Some((author, _)) => step.is_left_to(author),
                None => step.is_ours(&view(&self.fleet, holds, io)),
            },
            Next::FindAgents(step) => step.found(Ok(known(&self.agents)), &view(&self.fleet, holds, io)),
            Next::Tell(step) => {
                self.woken.extend(step.woken.iter().map(|run| (*run, RunMessage::Wake(Input::Capacity))));
                self.woken.extend(step.look.iter().map(|run| (*run, RunMessage::Look)));
                step.told(&view(&self.fleet, holds, io))
            }
            Next::Perform(step) => {
                self.perform(run, &step.effect, io);
                step.performed(&view(&self.fleet, holds, io))
            }
            need @ (Next::LastStep(_) | Next::LastWord(_) | Next::Append(_) | Next::Done(_)) => need,
        }
    }

    fn end_turn(&mut self, run: RunId, end: TurnEnd, tickets: Vec<Ticket>, io: &mut Io<'_>) {
        for ticket in tickets {
            answer(&ticket, &end.answer, io);
        }
        let Some(driven) = self.runs.get_mut(&run) else { return };
        let actions = driven.driver.ended(end);
        self.act(run, actions, io);
        self.tell_woken(io);
    }

    fn perform(&mut self, run: RunId, effect: &Effect, io: &mut Io<'_>) {
        match effect {
            // Dead letters are for people.
            Effect::BuryEntry { .. } => {}
            Effect::CallForProposals { call, .. } => self.call_for_bids(call, io),
            asking @ Effect::AskGuards { .. } => self.ask_guards(run, asking, io),
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
            Effect::HandOn { queue, ack, .. } => {
                if let Some((line, item)) = place_in_queue(queue, ack) {
                    io.ask(Request::Back { line, item, after: 0 });
                }
            }
            Effect::HandOnUnstarted { task, queue } => {
                let (line, task) = (Line::Tasks(queue.clone()), task.clone());
                io.ask(Request::GiveOutAgain { line, run, task });
            }
            Effect::Withdraw { queue, ack, .. } => {
                if let Some((line, item)) = place_in_queue(queue, ack) {
                    io.ask(Request::Done { line, item });
                }
            }
            Effect::WithdrawOffers => {
                io.ask(Request::WithdrawAll { run });
            }
            Effect::Command { command } | Effect::AskShadow { command, .. } => {
                if let Some(order) = order(command) {
                    io.ask(Request::Command(command.run(), Rc::new(order)));
                }
            }
            // Dead letters and values are for people; what is told to whoever is at work comes with the next offer.
            Effect::Inform { .. }
            | Effect::Bury { .. }
            | Effect::KeepLessons { .. }
            | Effect::SettleShadow { .. }
            | Effect::CountTrials { .. }
            | Effect::WithdrawTrial { .. }
            | Effect::KeepTrackRecord { .. } => {}
            Effect::CancelRun { reason } => {
                let message = ControlMessage::CancelRun { run, reason: reason.clone() };
                io.ask(Request::Control(message));
            }
        }
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

    /// A guard allows most things, changes some, refuses some, and sometimes nobody brings what it said.
    fn ask_guards(&mut self, run: RunId, asking: &Effect, io: &mut Io<'_>) {
        let Effect::AskGuards { number, outcome, product, rules, .. } = asking else { return };
        let (number, outcome) = (*number, *outcome);
        if io.random.chance(100) {
            return;
        }
        let mut said = Guarded::default();
        for rule in rules {
            let reply = match io.random.below(10) {
                0..=5 => Ok(GuardReply::allow()),
                6 | 7 => Ok(changed_by_guard(product)),
                8 => Ok(GuardReply::refuse("it is refused".to_owned())),
                _ => Err(GuardFailure::Hung),
            };
            let (verdict, made) = GuardVerdict::of(rule, reply, |_| Ok(()));
            said.push(verdict, made);
            if said.refusal().is_some() {
                break;
            }
        }
        let after = io.random.between(1, BIDDING);
        self.wake(Call::Bids(run, Box::new(Input::GuardsSaid { number, outcome, said })), after, io);
    }

    fn forget(&mut self, run: RunId, io: &mut Io<'_>) {
        let Some(Driven { driver, turn, .. }) = self.runs.remove(&run) else { return };
        let in_hand = turn.map(|turn| turn.tickets).unwrap_or_default();
        for ticket in in_hand.into_iter().chain(driver.into_waiting()) {
            answer(&ticket, &turn::OrderReply::Later, io);
        }
        let woken = self.fleet.forget(run);
        self.note_woken(woken);
        self.tell_woken(io);
    }
}

/// What a run asks of another.
fn order(command: &Command) -> Option<Order> {
    let input = match command {
        Command::Attend { goal, .. } => return Some(Order::Submit((**goal).clone())),
        Command::ChildEnded { child, end, .. } => Input::ChildEnded { child: *child, end: end.clone() },
        Command::Request(request) => Input::Request(Asked { by: "a run".to_owned(), ..request.clone() }),
        // No run asks these of another.
        Command::Submit { .. } | Command::Fork { .. } => return None,
    };
    Some(Order::Control(input))
}

/// Where a try of a task stands in its queue: its acknowledgement names the item.
fn place_in_queue(queue: &Queue, ack: &str) -> Option<(Line, u64)> {
    let own = ack.strip_prefix(&format!("$JS.ACK.TASKS.{queue}."))?;
    let (item, _) = own.split_once('.')?;
    Some((Line::Tasks(queue.clone()), item.parse().ok()?))
}

fn answer(ticket: &Ticket, answer: &turn::OrderReply, io: &mut Io<'_>) {
    let (line, item) = (Line::Commands, ticket.item);
    let is_done = match answer {
        turn::OrderReply::Recorded => true,
        turn::OrderReply::NoSuchRun => ticket.delivered >= UNKNOWN_TRIES,
        turn::OrderReply::Elsewhere(_) | turn::OrderReply::Crowded | turn::OrderReply::Later => false,
    };
    io.ask(if is_done { Request::Done { line, item } } else { Request::Back { line, item, after: LATER } });
}
