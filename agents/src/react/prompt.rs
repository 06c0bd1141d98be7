//! What a model is told, step by step. Every request begins with the one before it, byte for byte, so that
//! providers serve the beginning from their cache: nothing that was said is worded anew.

mod reworded;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_shared::flow::{Action, Information, Note, Step, StoredMessage};
use serde_json::Value;

use super::compact::{Detail, ShownStep, compact, shortened, whole};
use super::decide::StepLimits;
use super::declaration::{Declaration, DeclareAs};
use super::history::History;
use super::record::{
    DECLARED, FURTHER, PROMISED, RequestHash, TOOLS, is_stored_as, naming, stored, stored_system,
};
use super::toolset::Toolset;
use crate::model::chat::{ChatMessage, ChatRequest, ReasoningEffort};
use crate::model::kept::Kept;
use told::position;

/// Bytes that are told of an answer which was not taken, however little room there is.
const LEAST_SAID: usize = 200;
/// Messages of a conversation without an older step: the task and one step, with what is said beside it.
const SHORTEST: usize = 4;
/// Stands for an answer with nothing in it: providers refuse an empty turn.
pub(super) const EMPTY: &str = "(empty answer)";

/// How a model is told of actions, and tells of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// The provider's native tool calls.
    Native,
    /// JSON in the text, for models and servers without native calls.
    Text,
}

/// The parts of a prompt that are the same for every step of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// Who the agent is and how it works.
    pub system: String,
    /// What is to be done, and all that is known for it.
    pub task: String,
}

/// How sampling is set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sampling {
    /// See [`ChatRequest::temperature`].
    pub temperature: Option<f64>,
    /// See [`ChatRequest::effort`].
    pub effort: Option<ReasoningEffort>,
    /// See [`ChatRequest::max_tokens`].
    pub max_tokens: Option<u32>,
}

/// The conversation of one task with a model: one request that grows.
#[derive(Debug, Clone)]
pub struct Conversation {
    request: ChatRequest,
    style: CallStyle,
    nonce: String,
    limits: StepLimits,
    /// Hash over the head alone.
    head: RequestHash,
    /// Hash over the head and the messages up to `hashed`.
    hash: RequestHash,
    hashed: usize,
    /// Most bytes of the messages, where the model's context is known.
    room: Option<u64>,
    /// The steps as they are shown, where there is such a bound.
    shown: Vec<ShownStep>,
    /// Where answers begin that were not taken in the step being asked for.
    asked_again: Option<usize>,
    /// The length up to which nothing will be taken back.
    settled: usize,
    /// How many messages, the system prompt included, are known to be in the record already.
    recorded: usize,
    tools: Toolset,
    /// Whether the record does not hold yet how they are declared.
    undeclared: bool,
    /// Whether it does not hold yet what they are called and what is promised.
    unnamed: bool,
    /// The step that is asked for, from 1.
    next_step: u32,
    /// Texts that guards changed, by the hash of what they were.
    reworded: BTreeMap<String, String>,
}

impl Conversation {
    /// The conversation as it stands after the steps of a history.
    #[must_use]
    pub fn resume(
        brief: &Brief,
        toolset: &Toolset,
        history: &History,
        settings: (CallStyle, Sampling, StepLimits),
        nonce: &str,
    ) -> Self {
        let (style, sampling, limits) = settings;
        let (system, tools, mut hash) = match style {
            CallStyle::Native => {
                (brief.system.clone(), toolset.declarations().clone(), toolset.hash().clone())
            }
            CallStyle::Text => {
                let system = format!("{}\n\n{}", brief.system, toolset.in_words());
                (system, Kept::default(), RequestHash::begin(&[]))
            }
        };
        hash.system(&system);
        let request = ChatRequest {
            system: system.into(),
            tools,
            temperature: sampling.temperature,
            effort: sampling.effort,
            max_tokens: sampling.max_tokens,
            one_call: limits.calls_a_step == 1,
            ..ChatRequest::default()
        };
        let (undeclared, unnamed) = (!declares(history, toolset, style), !names(history, toolset));
        let (nonce, tools) = (nonce.to_owned(), toolset.clone());
        let (hashed, settled, recorded) = (0, 0, 0);
        let room = (limits.room > 0).then(|| u64::from(limits.room));
        let mut this = Self {
            request,
            style,
            nonce,
            limits,
            head: hash.clone(),
            hash,
            hashed,
            room,
            shown: Vec::new(),
            asked_again: None,
            settled,
            recorded,
            tools,
            undeclared,
            unnamed,
            next_step: 1,
            reworded: BTreeMap::new(),
        };
        let known = history.steps().iter().flat_map(|step| Note::reworded(&step.notes));
        this.reworded.extend(known.map(|one| (one.of.clone(), one.to.clone())));
        this.push(ChatMessage::user(format!("{}\n\n{}", brief.task, position(1, limits))));
        this.put_in_place(0);
        for step in history.steps() {
            this.show_step(step);
        }
        this.settle();
        this.recorded = this.same_as(history.sent());
        this
    }

    /// The request as it stands in the record, the system prompt first.
    #[must_use]
    pub fn stored(&self) -> Vec<StoredMessage> {
        let system = stored_system(&self.request.system);
        std::iter::once(system).chain(self.request.messages.iter().map(|message| stored(message))).collect()
    }

    /// The request for the next question.
    #[must_use]
    pub const fn request(&self) -> &ChatRequest {
        &self.request
    }

    /// Whether nothing but `submit` may be called in the next answer: there is no other tool, or no step left for one.
    fn ends_now(&self) -> bool {
        let is_last = self.next_step >= self.limits.max_steps;
        self.style == CallStyle::Native && (is_last || self.request.tools.len() == 1)
    }

    /// Adds an answer that was not taken and what the model is told of it. Both are forgotten with the step. Where there is
    /// no room for all such answers, the last one stays, and of that its head.
    pub fn ask_again(&mut self, said: &str, reason: &str) {
        let begins = *self.asked_again.get_or_insert(self.request.messages.len());
        let mut said = if said.trim().is_empty() { EMPTY } else { said };
        if let Some(room) = self.room {
            let more = (said.len() + reason.len()) as u64;
            if self.bytes() + more > room {
                self.request.messages.truncate(begins);
                self.recorded = self.recorded.min(begins + 1);
            }
            let left = room.saturating_sub(self.bytes() + reason.len() as u64);
            let most = usize::try_from(left).unwrap_or(usize::MAX).max(LEAST_SAID);
            said = &said[..said.floor_char_boundary(most)];
        }
        self.push(ChatMessage::assistant(said));
        self.push(ChatMessage::user(reason));
    }

    /// Bytes of the messages.
    fn bytes(&self) -> u64 {
        self.request.messages.iter().map(Kept::bytes).sum()
    }

    /// Two thirds of the room that the messages take; nothing where no step is left that could be shown in short.
    pub(super) fn less_room(&self) -> Option<u32> {
        let can_be = self.shown.iter().rev().skip(1).any(|step| !step.shorter.is_empty());
        let has_older = self.room.is_none() && self.request.messages.len() > SHORTEST;
        let room = u32::try_from(self.bytes() / 3 * 2).unwrap_or(u32::MAX);
        (can_be || has_older || self.asked_again.is_some()).then_some(room.max(1))
    }

    /// How many of the last steps are shown whole; nothing where all are.
    #[must_use]
    pub fn shown_whole(&self) -> Option<usize> {
        let count = whole(&self.shown);
        (count < self.shown.len()).then_some(count)
    }

    /// Whether nothing has been said in this step yet, so that it may be told of the files.
    #[must_use]
    pub fn begins_step(&self) -> bool {
        self.request.messages.len() == self.settled
    }

    /// Tells what other tasks shared, where a step begins. It stays with the step.
    pub fn hear(&mut self, told: &[Information]) {
        self.request.messages.extend(self.in_words(told).map(Kept::from));
    }

    /// Tells of the files there are, where a step begins and after all else. It is forgotten with the step.
    pub fn tell_files(&mut self, files: Option<String>) {
        if let Some(files) = files {
            self.push(ChatMessage::user(files));
        }
    }

    /// Adds a word from us before the question is asked. It is forgotten with the step.
    pub fn urge(&mut self, word: &str) {
        if self.request.messages.last().is_none_or(|last| last.content != word) {
            self.push(ChatMessage::user(word));
        }
    }

    /// Adds a step that ended, in place of the questions within it.
    pub fn step(&mut self, step: &Step) {
        self.request.messages.truncate(self.settled);
        self.recorded = self.recorded.min(self.settled + 1);
        self.asked_again = None;
        self.show_step(step);
        self.settle();
    }

    /// Adds a step, and shows older ones in short where the room has come to its end.
    fn show_step(&mut self, step: &Step) {
        let begins = self.request.messages.len();
        self.push_step(step);
        self.compact(step, begins);
        self.put_in_place(begins.min(self.recorded.saturating_sub(1)));
    }

    fn compact(&mut self, step: &Step, begins: usize) {
        let Some(room) = self.room else { return };
        let messages = self.request.messages.len() - begins;
        let in_short =
            |detail| self.messages_of(&shortened(step, detail)).into_iter().map(Kept::from).collect();
        let shorter = Detail::ALL.into_iter().rev().map(in_short).collect();
        self.shown.push(ShownStep { messages, shorter });
        if let Some(changed) = compact(&mut self.request.messages, &mut self.shown, room) {
            (self.hash, self.hashed) = (self.head.clone(), 0);
            self.recorded = self.recorded.min(changed + 1);
        }
    }

    /// What the record needs of a request that is about to be sent: its hash, how many messages at its head
    /// stand in the record, and those after them. From now on all of them count as recorded. The parameters are
    /// completed by what the hash needs, and by the tools where the record does not hold them yet.
    pub fn keep(&mut self, parameters: &mut Value, how: DeclareAs) -> (String, u32, Vec<StoredMessage>) {
        let mut hash = self.hash.clone();
        for message in &self.request.messages[self.hashed..] {
            hash.chat(message);
        }
        if std::mem::take(&mut self.unnamed) {
            parameters[TOOLS] = self.tools.names_for_record().clone();
            if let Some(further) = self.tools.further_for_record() {
                parameters[FURTHER] = further;
            }
            if let Some(promised) = self.tools.promised() {
                parameters[PROMISED] = promised.clone();
            }
        }
        let hash = hash.hex(parameters);
        if std::mem::take(&mut self.undeclared) {
            parameters[DECLARED] = match (self.declared(), how) {
                (Some(declaration), DeclareAs::Name) => declaration.by_name(),
                (Some(declaration), DeclareAs::Whole) => declaration.in_place(),
                (None, _) => Value::Array(Vec::new()),
            };
        }
        let same = self.recorded;
        let system = (same == 0).then(|| stored_system(&self.request.system));
        let messages =
            self.request.messages.iter().skip(same.saturating_sub(1)).map(|message| stored(message));
        let messages = system.into_iter().chain(messages).collect();
        self.recorded = self.request.messages.len() + 1;
        (hash, u32::try_from(same).unwrap_or(u32::MAX), messages)
    }

    /// What the next call declares that the record does not hold yet.
    #[must_use]
    pub fn to_declare(&self) -> Option<&Arc<Declaration>> {
        self.declared().filter(|_| self.undeclared)
    }

    fn declared(&self) -> Option<&Arc<Declaration>> {
        match self.style {
            CallStyle::Native => Some(self.tools.declaration()),
            CallStyle::Text => None,
        }
    }

    fn settle(&mut self) {
        self.request.only = self.ends_now().then(|| Action::SUBMIT.to_owned());
        self.settled = self.request.messages.len();
        for message in &self.request.messages[self.hashed..] {
            self.hash.chat(message);
        }
        self.hashed = self.settled;
    }

    /// How many messages at the head, the system prompt first, are these.
    fn same_as(&self, sent: &[StoredMessage]) -> usize {
        let Some((system, sent)) = sent.split_first() else { return 0 };
        if *system != stored_system(&self.request.system) {
            return 0;
        }
        1 + self.request.messages.iter().zip(sent).take_while(|(own, sent)| is_stored_as(own, sent)).count()
    }

    fn push(&mut self, message: ChatMessage) {
        self.request.messages.push(message.into());
    }

    fn push_step(&mut self, step: &Step) {
        self.next_step = step.number.saturating_add(1);
        let messages = self.messages_of(step);
        self.request.messages.extend(messages.into_iter().map(Kept::from));
    }
}

/// Whether these tools are those that the last call of a history declared, itself or by the calls before it.
fn declares(history: &History, tools: &Toolset, style: CallStyle) -> bool {
    let calls = history.newest_calls().filter(|call| !call.aside);
    let declared = calls.filter_map(|call| call.parameters.get(DECLARED)).next();
    match style {
        CallStyle::Native => declared.is_some_and(|declared| tools.declaration().is(declared)),
        CallStyle::Text => declared.is_none_or(|declared| declared.as_array().is_some_and(Vec::is_empty)),
    }
}

/// Whether the last call of a history went by the names of these tools and what they promise.
fn names(history: &History, tools: &Toolset) -> bool {
    naming(history.newest_calls()).is_some_and(|call| {
        call.parameters.get(TOOLS) == Some(tools.names_for_record())
            && call.parameters.get(FURTHER) == tools.further_for_record().as_ref()
            && call.parameters.get(PROMISED) == tools.promised()
    })
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
