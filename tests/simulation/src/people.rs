//! What people do while runs go on: they answer questions, some of them twice, and fork runs.

use std::rc::Rc;

use muster_shared::flow::{About, Goal};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::event::QuestionAsked;
use muster_shared::run::{
    Entry, Inherited, Input, Origin, RecordEvent, Request, RequestAction, RunEvent, RunState,
};
use uuid::Uuid;

use crate::folds;
use crate::goals;
use crate::messages::{Item, Line, Order};
use crate::products;
use crate::random::Random;
use crate::teams;
use crate::world::{Event, World};

impl World {
    /// Has people answer what was just asked, each when they see fit.
    pub(crate) fn asked(&mut self, batch: &[Rc<Entry>]) {
        for entry in batch {
            let RecordEvent::Decided(decided) = &entry.event else { continue };
            for event in &decided.events {
                let RunEvent::QuestionAsked(QuestionAsked { id, about, question, .. }) = event else {
                    continue;
                };
                let Some((after, text)) = products::reply(self.seed, entry.run, *id) else { continue };
                let opinion = match about {
                    About::Conflict(_) => teams::opinion(self.seed, entry.run, question),
                    _ => None,
                };
                let text = opinion.as_deref().unwrap_or(text);
                // Who is asked about a plan over and over says yes in the end.
                let text = if *about == About::Plan && id.0 > 4 { "approve" } else { text };
                let times = if self.random.chance(200) { 2 } else { 1 };
                for _ in 0..times {
                    let id_of = Uuid::from_u128(u128::from(self.random.next()) << 64);
                    let answer = RequestAction::Answer { question: *id, text: text.to_owned() };
                    // Some have a plan of their own.
                    let edits = Random::of(self.seed, &format!("{}/edits {id}", entry.run)).chance(400);
                    let answer = if *about == About::Plan && text == "approve" && edits {
                        RequestAction::Approve {
                            question: None,
                            arguments: None,
                            plan: Some(Box::new(goals::brought())),
                        }
                    } else if *about == About::Plan && text.contains(' ') {
                        RequestAction::Reject { question: Some(*id) }
                    } else {
                        answer
                    };
                    let request = Request::new(entry.run, answer).because(text).with_id(id_of);
                    let request = Request { by: "somebody".into(), ..request };
                    let order = Rc::new(Order::Control(Input::Request(request)));
                    let at = self.now + after + self.random.below(500);
                    self.agenda.enter(at, Event::Ordered(entry.run, order));
                }
            }
        }
    }

    /// Forks a run as it stood at some entry, if it stood.
    pub(crate) fn forked(&mut self, from: RunId, run: RunId) {
        self.forks_left = self.forks_left.saturating_sub(1);
        let entries: Vec<Rc<Entry>> =
            self.broker.log().iter().filter(|entry| entry.run == from).cloned().collect();
        let cut = usize::try_from(self.random.below(entries.len() as u64 + 1)).unwrap_or(0);
        let entries = &entries[..cut];
        let Ok(Some(before)) = folds::whole(entries) else { return };
        let (Some(state), Some(last)) = (Inherited::of(&before), entries.last()) else { return };
        let RunState { limits, goal, .. } = before;
        let goal = Box::new(Goal { limits: Some(limits.clone()), parent: None, ..goal });
        let (state, from) = (Box::new(state), Origin::new(from, Seq(last.seq.0)));
        let secret = "cd".repeat(32);
        let fork = Input::Fork { from, state, goal, limits, secret, signed: None };
        self.tell(|_| format!("somebody forks {} at {} as {}", from.run.short(), from.at, run.short()));
        self.scenario.runs.push(run);
        self.broker.put(Line::Commands, Item::Command(run, Rc::new(Order::Control(fork))), self.now);
        self.after_broker();
    }
}
