//! How messages travel between processes and the broker, and what is lost on the way.

use std::rc::Rc;

use muster_shared::ids::Seq;
use muster_shared::run::{Entry, RecordEvent};
use muster_shared::wire::ControlMessage;

use crate::agenda::Time;
use crate::faults::{Fault, Weather};
use crate::messages::{Answer, Life, Request};
use crate::world::{Event, World};

impl World {
    /// How long a message takes, unless it is lost.
    pub(crate) fn travels(&mut self, lost: Fault) -> Option<Time> {
        if !self.is_rough() {
            return Some(self.random.between(1, 3));
        }
        if self.random.chance(self.weather.lost) {
            self.summary.faults.count(lost);
            return None;
        }
        if self.random.chance(self.weather.late) {
            self.summary.faults.count(Fault::Late);
            return Some(self.random.between(20, 9_000));
        }
        Some(self.random.between(1, 3))
    }

    pub(crate) fn sends(&mut self, from: Life, call: u64, request: Request, limit: Time) {
        if !request.is_routine() {
            self.tell(|world| format!("{} {}", world.name(from), request.brief()));
        }
        self.open.insert(call);
        self.agenda.enter(self.now + limit, Event::Answered { to: from, call, answer: None });
        if self.is_rough() && request.writes() && self.random.chance(self.weather.struck) {
            self.summary.faults.count(Fault::StruckWhileWriting);
            let at = self.now + self.random.below(6);
            let blow = Weather::strike(&mut self.random, from.place);
            self.agenda.enter(at, Event::Struck(blow));
        }
        if self.places[from.place].cut_until > self.now {
            return;
        }
        if self.is_rough() && self.random.chance(self.weather.doubled) {
            self.summary.faults.count(Fault::Doubled);
            let at = self.now + self.random.between(1, 4_000);
            self.agenda.enter(at, Event::Arrives { from, call, request: request.clone() });
        }
        if let Some(after) = self.travels(Fault::RequestLost) {
            self.agenda.enter(self.now + after, Event::Arrives { from, call, request });
        }
    }

    pub(crate) fn arrives(&mut self, from: Life, call: u64, request: Request) {
        if self.broker_down {
            return;
        }
        let handled = self.broker.handle(from, call, request, self.now);
        if !handled.appended.is_empty() {
            self.appended(&handled.appended);
            self.forge_after(&handled.appended);
        }
        if let Some(message) = handled.control {
            self.spread(&Rc::new(message));
        }
        if let Some(answer) = handled.answer {
            self.answers(from, call, answer);
        }
        self.after_broker();
    }

    pub(crate) fn appended(&mut self, batch: &[Rc<Entry>]) {
        self.checks.appended(batch, self.now);
        self.asked(batch);
        let signals = batch.iter().any(|entry| is_signal(entry));
        for place in (0..self.places.len()).filter(|_| signals) {
            if self.scenario.is_orchestrator(place) && self.places[place].process.is_some() {
                self.follow_soon(place);
            }
        }
    }

    pub(crate) fn follow_soon(&mut self, place: usize) {
        if std::mem::replace(&mut self.places[place].follows, true) {
            return;
        }
        let after = self.travels(Fault::Late).unwrap_or(2_000);
        let who = Life { place, number: self.places[place].life };
        self.agenda.enter(self.now + after, Event::Follows { who });
    }

    /// A follower misses nothing and hears nothing twice, however late it is.
    pub(crate) fn follows(&mut self, who: Life) {
        let place = &mut self.places[who.place];
        if place.life != who.number {
            return;
        }
        if place.cut_until > self.now || self.broker_down {
            self.agenda.enter(self.now + 1_000, Event::Follows { who });
            return;
        }
        if place.frozen.is_some() {
            return self.turn_of(who, Event::Follows { who }, |_, _| {});
        }
        place.follows = false;
        let from = usize::try_from(place.followed.0).unwrap_or(0).min(self.broker.log().len());
        let new: Vec<Rc<Entry>> =
            self.broker.log()[from..].iter().filter(|entry| is_of_agent(entry)).cloned().collect();
        place.followed = Seq(self.broker.log().len() as u64);
        self.turn_of(who, Event::Follows { who }, |process, io| process.follow(&new, io));
    }

    pub(crate) fn spread(&mut self, message: &Rc<ControlMessage>) {
        for place in 0..self.places.len() {
            if self.scenario.is_orchestrator(place) || self.places[place].cut_until > self.now {
                continue;
            }
            if let Some(after) = self.travels(Fault::ControlLost) {
                let who = Life { place, number: self.places[place].life };
                self.agenda.enter(self.now + after, Event::Told { who, message: Rc::clone(message) });
            }
        }
    }

    pub(crate) fn answers(&mut self, to: Life, call: u64, answer: Answer) {
        if self.places[to.place].cut_until > self.now {
            return;
        }
        if let Some(after) = self.travels(Fault::AnswerLost) {
            self.agenda.enter(self.now + after, Event::Answered { to, call, answer: Some(answer) });
        }
    }

    pub(crate) fn answered(&mut self, to: Life, call: u64, answer: Option<Answer>) {
        if self.places[to.place].frozen.is_some() {
            return self.turn_of(to, Event::Answered { to, call, answer }, |_, _| {});
        }
        if !self.open.remove(&call) || self.places[to.place].life != to.number {
            return;
        }
        if let Some(Answer::Appended { first, last, .. }) = answer {
            self.checks.acknowledged(self.broker.log(), first, last);
        }
        if let Some(answer) = answer.as_ref().filter(|answer| !answer.is_routine()) {
            self.tell(|world| format!("{} hears {}", world.name(to), answer.brief()));
        }
        self.turn_of(to, Event::Due, |process, io| process.heard(call, answer, io));
    }

    /// Gives out what is due, and looks again when time brings something about.
    pub(crate) fn after_broker(&mut self) {
        if self.broker_down {
            return;
        }
        for (waiting, taken) in self.broker.give_out(self.now) {
            self.answers(waiting.who, waiting.call, Answer::Taken(taken));
        }
        if let Some(next) = self.broker.next().filter(|next| self.due.is_none_or(|due| *next < due)) {
            let next = next.max(self.now + 1);
            self.due = Some(next);
            self.agenda.enter(next, Event::Due);
        }
    }
}

/// What orchestrators wait for.
/// What orchestrators hear of: signals, and all else that agents write for the hash chain.
fn is_of_agent(entry: &Entry) -> bool {
    match &entry.event {
        RecordEvent::Agent(..) => true,
        RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
    }
}

pub(crate) fn is_signal(entry: &Entry) -> bool {
    match &entry.event {
        RecordEvent::Agent(_, event) => event.kind().is_decided_upon(),
        RecordEvent::Decided(_) | RecordEvent::Offered(_) => false,
    }
}
