//! What becomes of processes: they start, die, freeze and wake.

use std::collections::VecDeque;
use std::rc::Rc;

use muster_shared::ids::{Role, Seq};
use muster_shared::wire::ControlMessage;

use crate::agenda::Time;
use crate::faults::{Blow, Fault};
use crate::messages::Life;
use crate::world::{Event, World};

/// How soon a death is noticed.
const NOTICE: Time = 150;
/// How long a silence is not taken for a death.
const SILENCE: Time = 9_000;

impl World {
    pub(crate) fn starts(&mut self, place: usize) {
        let here = &mut self.places[place];
        if here.process.is_some() {
            return;
        }
        here.life += 1;
        here.frozen = None;
        here.follows = false;
        here.followed = Seq(self.broker.log().len() as u64);
        here.process = Some(self.scenario.start(self.seed, place, here.life));
        let who = Life { place, number: here.life };
        self.tell(|world| format!("{} starts", world.name(who)));
        self.turn_of(who, Event::Due, |process, io| process.begin(io));
        self.comes(who);
    }

    pub(crate) fn thaws(&mut self, who: Life) {
        if self.places[who.place].life != who.number {
            return;
        }
        let Some(waiting) = self.places[who.place].frozen.take() else { return };
        self.tell(|world| format!("{} wakes", world.name(who)));
        for event in waiting {
            self.happen(event);
        }
        self.back(who);
    }

    /// Orchestrators learn of an agent that comes, and one that comes learns of all agents there are.
    fn comes(&mut self, who: Life) {
        if self.scenario.is_orchestrator(who.place) {
            for profile in self.registry.values().cloned().collect::<Vec<_>>() {
                self.agenda.enter(self.now, Event::Came { who, profile });
            }
            return;
        }
        let is_told = self.scenario.is_told;
        let Some(profile) = self.scenario.profile(who.place, who.number).filter(|_| is_told) else { return };
        let profile = Rc::new(profile);
        self.registry.insert(profile.agent.clone(), Rc::clone(&profile));
        for owner in self.orchestrators() {
            let at = self.now + self.random.between(1, 200);
            self.agenda.enter(at, Event::Came { who: owner, profile: Rc::clone(&profile) });
        }
    }

    /// One that was silent, and was perhaps taken for dead, enters itself again.
    pub(crate) fn back(&mut self, who: Life) {
        let place = &self.places[who.place];
        let lives = place.life == who.number && place.process.is_some() && place.frozen.is_none();
        if lives && !self.scenario.is_orchestrator(who.place) {
            self.comes(who);
        }
    }

    /// An agent leaves in good order.
    pub(crate) fn leaves(&mut self, who: Life) {
        let Some(agent) = self.scenario.agent(who.place, who.number) else { return };
        self.registry.remove(&agent);
        for owner in self.orchestrators() {
            let at = self.now + self.random.between(1, 200);
            self.agenda.enter(at, Event::Left { who: owner, agent: agent.clone() });
        }
    }

    /// Who orchestrates now.
    fn orchestrators(&self) -> Vec<Life> {
        let places = (0..self.places.len()).filter(|place| self.scenario.is_orchestrator(*place));
        places.map(|place| Life { place, number: self.places[place].life }).collect()
    }

    pub(crate) fn struck(&mut self, blow: Blow) {
        self.tell(|_| format!("struck: {blow:?}"));
        match blow {
            Blow::Crash(place, after) => {
                self.summary.faults.count(Fault::Crash);
                self.crash(place, after);
            }
            Blow::All(after) => {
                self.summary.faults.count(Fault::AllCrash);
                for place in 0..self.places.len() {
                    let apart = self.random.below(500);
                    self.crash(place, after + apart);
                }
                self.stop_broker(after / 2);
            }
            Blow::Freeze(place, span) => {
                let here = &mut self.places[place];
                if here.process.is_some() && here.frozen.is_none() {
                    here.frozen = Some(VecDeque::new());
                    let who = Life { place, number: here.life };
                    self.summary.faults.count(Fault::Freeze);
                    self.agenda.enter(self.now + span, Event::Thaws(who));
                    if span > SILENCE {
                        self.counts_as_dead(place, SILENCE);
                    }
                }
            }
            Blow::Cut(place, span) => {
                self.summary.faults.count(Fault::CutOff);
                self.places[place].cut_until = self.now + span;
                if span > SILENCE {
                    self.places[place].connections += 1;
                    self.counts_as_dead(place, SILENCE);
                    let who = Life { place, number: self.places[place].life };
                    self.agenda.enter(self.now + span + 1, Event::Back(who));
                }
            }
            Blow::Restart(place) => {
                self.summary.faults.count(Fault::Restart);
                let who = Life { place, number: self.places[place].life };
                self.agenda.enter(self.now, Event::Told { who, message: Rc::new(ControlMessage::Shutdown) });
            }
            Blow::Skew(place, skew) => {
                self.summary.faults.count(Fault::ClockJump);
                self.places[place].skew = skew;
            }
            Blow::Role(after) => {
                self.summary.faults.count(Fault::RoleDead);
                for place in 0..self.places.len() {
                    if self.scenario.is_of(place, &Role::Worker) {
                        let apart = self.random.below(2_000);
                        self.crash(place, after + apart);
                    }
                }
            }
            Blow::Broker(after) => {
                self.summary.faults.count(Fault::BrokerRestart);
                self.stop_broker(after);
            }
        }
    }

    /// The server tells orchestrators of an agent's end, or of a silence that is taken for it.
    fn counts_as_dead(&mut self, place: usize, after: Time) {
        let Some(agent) = self.scenario.agent(place, self.places[place].life) else { return };
        self.registry.remove(&agent);
        for who in self.orchestrators() {
            self.agenda.enter(self.now + after, Event::Lost { who, agent: agent.clone() });
        }
    }

    fn crash(&mut self, place: usize, after: Time) {
        if self.places[place].process.is_some() {
            self.counts_as_dead(place, NOTICE);
            self.stalls.died(self.now + after, self.scenario.is_orchestrator(place));
            if self.options.fleets {
                self.broker.disconnected(Life { place, number: self.places[place].life });
            }
        }
        self.places[place].process = None;
        self.places[place].frozen = None;
        self.agenda.enter(self.now + after, Event::Starts(place));
    }

    fn stop_broker(&mut self, after: Time) {
        let forget = self.random.chance(300);
        self.broker.restart(forget);
        self.places.iter_mut().for_each(|place| place.connections += 1);
        if !std::mem::replace(&mut self.broker_down, true) {
            self.agenda.enter(self.now + after, Event::BrokerBack);
        }
    }
}
