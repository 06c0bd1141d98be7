//! A scripted good model: it answers each request in good faith, from nothing but what the request shows.
//!
//! It decides by the tools and the schema of `submit` what it is asked to be, looks up what the goal asks for with the
//! tools that are offered, cites what it saw as `path:line` with the words that stand there, computes with the
//! calculator, and writes the files that were asked for. A set share of its answers has a mistake as real models make
//! them, by a seed. It knows no goal and no check beforehand, and no wording of a prompt. Told of tools in words, it
//! writes its actions as JSON; [`weak`] is the same as a small model does it.

mod answers;
mod facts;
mod fault;
pub mod gullible;
mod leaf;
pub mod measure;
mod request;
mod result;
mod small;
mod tools;
pub mod weak;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

pub use fault::Mistake;

use crate::model_server::{CapturedRequest, Reply, Script};
use fault::Dice;
use request::{Role, Seen};

/// How the model is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Temper {
    /// Share of the answers that have a mistake, in percent.
    pub mistakes: u8,
    /// What the mistakes follow from.
    pub seed: u64,
}

/// The model, and what it has answered so far.
#[derive(Clone)]
pub struct GoodModel {
    temper: Temper,
    told: Arc<Mutex<Told>>,
}

/// What was answered so far.
#[derive(Debug, Default)]
struct Told {
    /// Mistakes by kind.
    made: BTreeMap<Mistake, usize>,
    /// Which mistakes were made in which conversation: each is made once.
    once: BTreeSet<(String, Mistake)>,
    /// Conversations by what they are about; the same goal asked again is another throw of the dice.
    conversations: BTreeMap<String, Vec<String>>,
}

impl GoodModel {
    /// A model of this temper.
    #[must_use]
    pub fn new(temper: Temper) -> Self {
        Self { temper, told: Arc::default() }
    }

    /// The script of a server that answers as this model does.
    #[must_use]
    pub fn script(&self) -> Script {
        let model = self.clone();
        Script::answering(move |request| model.answer(request))
    }

    /// The mistakes made so far, by kind.
    #[must_use]
    pub fn made(&self) -> BTreeMap<Mistake, usize> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).made.clone()
    }

    /// The answer to one request.
    #[must_use]
    pub fn answer(&self, request: &CapturedRequest) -> Reply {
        let seen = Seen::of(request);
        let answer = in_good_faith(&seen);
        let answer = match self.mistake(&seen, &answer) {
            Some((mistake, at)) => fault::spoilt(mistake, at, &seen, answer),
            None => answer,
        };
        let written = answer.bytes();
        let reply = answer.reply(&seen);
        reply.with_usage(tokens(request.body.to_string().len()), tokens(written), 0)
    }

    /// The mistake that this answer has, if it is to have one and can, and a number for where.
    fn mistake(&self, seen: &Seen, answer: &answers::Answer) -> Option<(Mistake, usize)> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let about = seen.about();
        let known = told.conversations.entry(about.clone()).or_default();
        let nth = known.iter().position(|nonce| *nonce == seen.nonce).unwrap_or_else(|| {
            known.push(seen.nonce.clone());
            known.len() - 1
        });
        let mut dice = Dice::of(self.temper.seed, &format!("{about} {nth} {}", seen.turns));
        if dice.throw(100) >= u64::from(self.temper.mistakes) {
            return None;
        }
        let conversation = format!("{about} {nth}");
        let mut possible: Vec<Mistake> = Mistake::ALL
            .into_iter()
            .filter(|mistake| mistake.fits(seen, answer))
            .filter(|mistake| !told.once.contains(&(conversation.clone(), *mistake)))
            .collect();
        // What is cited is what models get wrong most often, where they cite at all.
        if possible.iter().any(|mistake| mistake.is_of_citation()) && dice.throw(3) > 0 {
            possible.retain(|mistake| mistake.is_of_citation());
        }
        let which = dice.throw(possible.len().max(1) as u64);
        let chosen = *possible.get(usize::try_from(which).ok()?)?;
        told.once.insert((conversation, chosen));
        *told.made.entry(chosen).or_default() += 1;
        Some((chosen, usize::try_from(dice.throw(1_000)).unwrap_or(0)))
    }
}

/// What a model answers that makes no mistake.
fn in_good_faith(seen: &Seen) -> answers::Answer {
    if let Some(answer) = small::answer(seen) {
        return answer;
    }
    match seen.role() {
        Role::Planner => answers::plan(seen),
        Role::Refiner => answers::refinement(seen),
        Role::Reviewer => answers::review(seen),
        Role::Writer => answers::report(seen),
        Role::Reflector => answers::reflection(seen),
        Role::Leaf => leaf::step(seen),
        Role::Aside => answers::aside(seen),
    }
}

/// Tokens by a plain rule: four bytes each.
fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
