//! An orchestrator: takes commands, follows what agents write, owns runs by lease, and drives each of them
//! one turn after the other.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use muster_orchestrator::Capacity;
use muster_orchestrator::turn::{Hashed, Order as TurnOrder};
use muster_shared::flow::RunLimits;
use muster_shared::ids::{AgentId, RunId, Seq};
use muster_shared::run::{Entry, Input};
use muster_shared::wire::{ControlMessage, Profile};

use crate::Sabotage;
use crate::agenda::Time;
use crate::broker::{LEASE, covered};
use crate::driver::Driven;
use crate::io::Io;
use crate::messages::{Answer, Item, Line, Order, Request, Taken};
use crate::network::is_signal;
use crate::process::Process;
use crate::turn::{RunAction, RunMessage, Ticket};

/// Wait after a failure, the first of several.
pub(crate) const FIRST_WAIT: Time = 200;
/// Longest wait for a command before asking again.
const POLL: Time = 20_000;

/// One orchestrator. How it drives a run is in `driver`.
pub(crate) struct Owner {
    pub(crate) me: AgentId,
    pub(crate) fleet: Capacity,
    /// The agents that are there, as far as it was told.
    pub(crate) agents: BTreeMap<AgentId, String>,
    /// Runs that are to be told something as soon as the turn in hand is at a rest.
    pub(crate) woken: VecDeque<(RunId, RunMessage)>,
    limits: RunLimits,
    pub(crate) runs: BTreeMap<RunId, Driven>,
    lease_until: Time,
    /// Which of its leases this is.
    leases: u64,
    calls: BTreeMap<u64, Call>,
}

/// What a call or an alarm is for.
pub(crate) enum Call {
    Turn(RunId),
    Pause(RunId),
    Alarm(RunId),
    Aside(RunId),
    Renew {
        sent: Time,
    },
    Beat,
    Sweep,
    Orphans,
    Take(Line),
    /// An auction is over, or guards have said something.
    Bids(RunId, Box<Input>),
}

impl Owner {
    pub(crate) fn new(me: AgentId, limits: RunLimits) -> Self {
        Self {
            me,
            fleet: Capacity::default(),
            agents: BTreeMap::new(),
            woken: VecDeque::new(),
            limits,
            runs: BTreeMap::new(),
            lease_until: 0,
            leases: 0,
            calls: BTreeMap::new(),
        }
    }

    pub(crate) fn call(&mut self, what: Call, request: Request, io: &mut Io<'_>) -> u64 {
        let call = io.ask(request);
        self.calls.insert(call, what);
        call
    }

    pub(crate) fn wake(&mut self, what: Call, after: Time, io: &mut Io<'_>) -> u64 {
        let token = io.wake(after);
        self.calls.insert(token, what);
        token
    }

    fn take(&mut self, line: Line, io: &mut Io<'_>) {
        self.call(Call::Take(line.clone()), Request::Take { lines: vec![line], wait: POLL }, io);
    }

    fn took(&mut self, line: Line, taken: Taken, io: &mut Io<'_>) {
        let Taken { item, body, delivered, since: _ } = taken;
        match body {
            Item::Command(run, order) => {
                let input = match &*order {
                    Order::Submit(goal) => Input::Goal {
                        goal: Box::new(goal.clone()),
                        limits: goal.limits.clone().unwrap_or_else(|| self.limits.clone()),
                        secret: "ab".repeat(32),
                        lessons: Vec::new(),
                        signed: None,
                    },
                    Order::Control(input) => input.clone(),
                };
                self.tell(
                    run,
                    RunMessage::Order(TurnOrder { input, answer: Ticket { item, delivered } }),
                    io,
                );
            }
            Item::Task(_) => {}
        }
        self.take(line, io);
    }

    /// Hands something to the driver of a run, started if there is none.
    pub(crate) fn tell(&mut self, run: RunId, messages: RunMessage, io: &mut Io<'_>) {
        let actions = self.runs.entry(run).or_insert_with(Driven::new).driver.receive(messages);
        self.act(run, actions, io);
    }

    /// Tells the driver of a run something, if it is driven here.
    fn driven(&mut self, run: RunId, io: &mut Io<'_>, tell: impl FnOnce(&mut Driven) -> Vec<RunAction>) {
        if let Some(driven) = self.runs.get_mut(&run) {
            let actions = tell(driven);
            self.act(run, actions, io);
        }
    }

    /// These runs can go on; others may find another agent than the one that they wait for.
    pub(crate) fn note_woken(&mut self, woken: Vec<RunId>) {
        self.woken.extend(woken.into_iter().map(|run| (run, RunMessage::Wake(Input::Capacity))));
        self.woken.extend(self.fleet.may_look_again().into_iter().map(|run| (run, RunMessage::Look)));
    }

    /// Tells the runs that were woken, now that no turn is in the middle of anything.
    pub(crate) fn tell_woken(&mut self, io: &mut Io<'_>) {
        while let Some((run, messages)) = self.woken.pop_front() {
            if self.runs.contains_key(&run) {
                self.tell(run, messages, io);
            }
        }
    }

    /// Whether this process's lease holds: without it, nothing is written and nothing is done.
    pub(crate) fn holds(&self, epoch: Option<Seq>, now: Time) -> bool {
        epoch.is_some() && self.epoch(now) == epoch
    }

    /// Names the lease that holds now.
    pub(crate) fn epoch(&self, now: Time) -> Option<Seq> {
        (self.lease_until > now).then_some(Seq(self.leases))
    }

    fn renew(&mut self, io: &mut Io<'_>) {
        self.call(Call::Renew { sent: io.time }, Request::Renew, io);
    }

    fn renewed(&mut self, sent: Time, answer: Option<&Answer>, io: &mut Io<'_>) {
        let held = self.epoch(io.time).is_some();
        self.leases += u64::from(!held);
        if answer.is_some() {
            self.lease_until = self.lease_until.max(sent + LEASE);
            self.wake(Call::Beat, LEASE / 3, io);
        } else {
            self.wake(Call::Beat, FIRST_WAIT, io);
        }
        // Others may have had the runs meanwhile.
        if !held {
            let runs: Vec<RunId> = self.runs.keys().copied().collect();
            for run in runs {
                self.tell(run, RunMessage::Reload, io);
            }
        }
    }

    fn adopt(&mut self, orphans: Vec<RunId>, io: &mut Io<'_>) {
        for run in orphans {
            if !self.runs.contains_key(&run) {
                self.tell(run, RunMessage::Wake(Input::Capacity), io);
            }
        }
    }
}

impl Process for Owner {
    fn begin(&mut self, io: &mut Io<'_>) {
        self.renew(io);
        self.take(Line::Commands, io);
        self.wake(Call::Sweep, 100, io);
    }

    fn heard(&mut self, call: u64, answer: Option<Answer>, io: &mut Io<'_>) {
        match (self.calls.remove(&call), answer) {
            (Some(Call::Turn(run)), answer) => {
                if self.runs.get(&run).is_some_and(|driven| driven.awaited == call) {
                    self.go_on(run, answer, io);
                }
            }
            (Some(Call::Renew { sent }), answer) => self.renewed(sent, answer.as_ref(), io),
            (Some(Call::Take(line)), Some(Answer::Taken(taken))) => self.took(line, taken, io),
            (Some(Call::Take(line)), _) => self.take(line, io),
            (Some(Call::Orphans), orphans) => {
                if let Some(Answer::Runs(orphans)) = orphans {
                    self.adopt(orphans, io);
                }
                self.wake(Call::Sweep, LEASE / 2, io);
            }
            (
                Some(
                    Call::Pause(_)
                    | Call::Alarm(_)
                    | Call::Aside(_)
                    | Call::Beat
                    | Call::Sweep
                    | Call::Bids(..),
                )
                | None,
                _,
            ) => {}
        }
    }

    fn woke(&mut self, token: u64, io: &mut Io<'_>) {
        match self.calls.remove(&token) {
            Some(Call::Pause(run)) => self.driven(run, io, |driven| match driven.wait {
                Some(awaited) if awaited == token => driven.driver.waited(),
                Some(_) | None => Vec::new(),
            }),
            Some(Call::Alarm(run)) => self.driven(run, io, |driven| match driven.alarm {
                Some((awaited, alarm)) if awaited == token => {
                    driven.alarm = None;
                    driven.driver.rang(alarm)
                }
                Some(_) | None => Vec::new(),
            }),
            Some(Call::Aside(run)) => self.driven(run, io, |driven| match driven.aside {
                Some(awaited) if awaited == token => driven.driver.pause_is_over(),
                Some(_) | None => Vec::new(),
            }),
            Some(Call::Bids(run, bids)) if self.runs.contains_key(&run) => {
                self.tell(run, RunMessage::Wake(*bids), io);
            }
            Some(Call::Beat) => self.renew(io),
            Some(Call::Sweep) => drop(self.call(Call::Orphans, Request::Orphans, io)),
            _ => {}
        }
    }

    fn told(&mut self, message: &ControlMessage, io: &mut Io<'_>) {
        if matches!(message, ControlMessage::Shutdown) {
            io.ask(Request::GiveUp);
            io.exit();
        }
    }

    fn came(&mut self, profile: &Profile, io: &mut Io<'_>) {
        self.agents.insert(profile.agent.clone(), profile.role.clone());
        let woken = self.fleet.joined(profile);
        self.note_woken(woken);
        self.tell_woken(io);
    }

    fn left(&mut self, agent: &AgentId, io: &mut Io<'_>) {
        self.agents.remove(agent);
        let woken = self.fleet.left(agent.clone());
        self.note_woken(woken);
        self.tell_woken(io);
    }

    fn lost(&mut self, agent: &AgentId, io: &mut Io<'_>) {
        let elsewhere = self.fleet.in_hand(agent);
        self.left(agent, io);
        for run in self.runs.keys().copied().collect::<Vec<RunId>>() {
            let (agent, reason) = (agent.clone(), "its connection ended".to_owned());
            let lost = Input::AgentLost { agent, reason, steps: BTreeMap::new(), elsewhere };
            self.tell(run, RunMessage::Wake(lost), io);
        }
    }

    fn follow(&mut self, entries: &[Rc<Entry>], io: &mut Io<'_>) {
        for entry in entries {
            if !self.runs.contains_key(&entry.run) {
                continue;
            }
            let is_signal = is_signal(entry);
            // Steps are heard for the hash chain alone.
            if is_signal || !io.is_sabotaged(Sabotage::StepsUncovered) {
                let hashed = Hashed { entry: covered(entry.seq), missed: 0 };
                self.tell(entry.run, RunMessage::Covered(hashed), io);
            }
            if is_signal {
                self.tell(entry.run, RunMessage::Signal(Rc::clone(entry)), io);
            }
        }
    }
}
