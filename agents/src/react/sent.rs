//! What was sent to a model, put together again from the record (W9). Pure: the record holds every request as its
//! difference to the one before, so nobody has to be asked and nothing is rendered anew.

use std::collections::BTreeMap;

use muster_shared::flow::{ModelCall, Step, StoredMessage, TemplateRef};
use muster_shared::ids::{AgentId, Generation, Seq, TaskId};
use muster_shared::run::{AgentEvent, AgentKey, Entry, RecordEvent};
use serde::Serialize;
use serde_json::Value;

use super::declaration::Declarations;
use super::record::{DECLARED, FURTHER, PROMISED, TOOLS, hash_of_record};

/// One request as it was sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SentRequest {
    /// Where it stands in the record.
    pub seq: Seq,
    /// Who sent it.
    pub agent: AgentId,
    /// The generation of the task.
    pub generation: Generation,
    /// The step that it was sent for.
    pub step: u32,
    /// Which call of that step it was, from 1.
    pub call: usize,
    /// How many calls the step took.
    pub calls: usize,
    /// The model that answered.
    pub model: String,
    /// The template's name, version and hash.
    pub template: TemplateRef,
    /// Whether it was asked apart from the conversation.
    pub aside: bool,
    /// The parameters, without the tools' declarations.
    pub parameters: Value,
    /// The tools as they were declared to the model; nothing when the record names them only, or when the object that
    /// holds them is not in the store.
    pub tools: Vec<Value>,
    /// The object that holds the tools, where the record refers to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_object: Option<String>,
    /// How many messages at its head are those of the request before it.
    pub same_messages: usize,
    /// All messages, the system prompt first.
    pub messages: Vec<StoredMessage>,
    /// The hash that the record gives for it.
    pub request_hash: String,
    /// Whether that is the hash of what stands here.
    pub check: Check,
    /// The answer, word for word.
    pub answer: String,
}

/// Whether what is shown is what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The hash in the record is the hash of what is shown.
    Matches,
    /// It is another.
    Differs,
    /// The object that holds the tools is not in the store, or is not what its name promises.
    ToolsMissing,
}

/// Every request of a task, in the order of the record. Declarations that the record refers to are looked up.
#[must_use]
pub fn requests(entries: &[Entry], task: &TaskId, declarations: &Declarations) -> Vec<SentRequest> {
    let mut tellers: BTreeMap<Generation, ConversationLog<'_>> = BTreeMap::new();
    let mut sent: BTreeMap<(Generation, u32), Vec<SentRequest>> = BTreeMap::new();
    for entry in entries {
        let RecordEvent::Agent(key, event) = &entry.event else { continue };
        if key.task != *task {
            continue;
        }
        // A generation that goes on from others begins with what they had sent.
        if !tellers.contains_key(&key.generation) {
            let before = tellers.range(..key.generation).next_back().map(|(_, teller)| teller.clone());
            let begin = || ConversationLog::new(declarations);
            tellers.insert(key.generation, before.unwrap_or_else(begin));
        }
        let Some(teller) = tellers.get_mut(&key.generation) else { continue };
        let (step, lasts) = match event {
            // Announced only: whoever finishes the step records its calls once more.
            AgentEvent::ToolStarted(begun) => (&begun.step, false),
            AgentEvent::Step(step) => (step, true),
            AgentEvent::Outcome(outcome) => match outcome.last_step.as_deref() {
                Some(step) => (step, true),
                None => continue,
            },
            _ => continue,
        };
        let requests =
            if lasts { teller.tell(entry.seq, key, step) } else { teller.clone().tell(entry.seq, key, step) };
        sent.insert((key.generation, step.number), requests);
    }
    sent.into_values().flatten().collect()
}

/// Which of the requests is meant: of the newest generation that sent any unless one is named, of its last step and of
/// that step's last call unless these are.
#[must_use]
pub fn choose(
    sent: &[SentRequest],
    generation: Option<Generation>,
    step: Option<u32>,
    call: Option<usize>,
) -> Option<usize> {
    let newest = sent.iter().map(|sent| sent.generation).max()?;
    let generation = generation.unwrap_or_else(|| match step {
        // A generation that goes on from others has not all the steps.
        Some(step) => {
            sent.iter().filter(|sent| sent.step == step).map(|sent| sent.generation).max().unwrap_or(newest)
        }
        None => newest,
    });
    let fits = |sent: &SentRequest| {
        sent.generation == generation
            && step.is_none_or(|step| sent.step == step)
            && call.map_or(!sent.aside, |call| sent.call == call)
    };
    sent.iter().rposition(fits)
}

/// The last request of the conversation that was sent for a step before this one.
#[must_use]
pub fn before(sent: &[SentRequest], at: usize) -> Option<&SentRequest> {
    let this = sent.get(at)?;
    sent[..at].iter().rev().find(|other| other.step < this.step && !other.aside)
}

/// What is known of one conversation up to some place.
#[derive(Debug, Clone)]
struct ConversationLog<'a> {
    declarations: &'a Declarations,
    messages: Vec<StoredMessage>,
    declared: Declared,
    /// The parameters that name tools and promise: they go for later calls too.
    named: Vec<(&'static str, Value)>,
}

/// The tools of a conversation, as far as they are known.
#[derive(Debug, Clone, Default)]
struct Declared {
    /// The object that holds them, where the record refers to one.
    object: Option<String>,
    /// Nothing when that object is not at hand.
    tools: Option<Vec<Value>>,
}

/// One call as it stands in the record.
struct ConsultRequest<'a> {
    seq: Seq,
    key: &'a AgentKey,
    step: &'a Step,
    /// Which call of the step it is, from 1.
    number: usize,
    call: &'a ModelCall,
}

impl<'a> ConversationLog<'a> {
    fn new(declarations: &'a Declarations) -> Self {
        let (messages, declared, named) = (Vec::new(), Declared::default(), Vec::new());
        Self { declarations, messages, declared, named }
    }

    /// What a call declares; nothing when the tools are those of the call before.
    fn declared(&self, call: &ModelCall) -> Option<Declared> {
        match call.parameters.get(DECLARED)? {
            Value::Array(tools) => Some(Declared { object: None, tools: Some(tools.clone()) }),
            Value::String(object) => {
                let tools = self.declarations.tools(object).map(<[Value]>::to_vec);
                Some(Declared { object: Some(object.clone()), tools })
            }
            _ => None,
        }
    }

    /// Completes the parameters of a call by what an earlier one said for it too.
    fn complete(&mut self, parameters: &mut Value) {
        let Some(fields) = parameters.as_object_mut() else { return };
        if fields.contains_key(TOOLS) {
            let said = [TOOLS, FURTHER, PROMISED].map(|name| Some((name, fields.get(name)?.clone())));
            self.named = said.into_iter().flatten().collect();
        } else {
            fields.extend(self.named.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        }
    }

    fn tell(&mut self, seq: Seq, key: &AgentKey, step: &Step) -> Vec<SentRequest> {
        let calls = (1..).zip(&step.calls);
        calls.map(|(number, call)| self.tell_call(&ConsultRequest { seq, key, step, number, call })).collect()
    }

    fn tell_call(&mut self, asked: &ConsultRequest<'_>) -> SentRequest {
        let ConsultRequest { seq, key, step, number, call } = *asked;
        let declared = self.declared(call);
        let same = usize::try_from(call.same_messages).unwrap_or(usize::MAX);
        let (declared, messages, same) = if call.aside {
            (declared.unwrap_or_default(), call.messages.clone(), 0)
        } else {
            if let Some(declared) = declared {
                self.declared = declared;
            }
            self.messages.truncate(same);
            let same = self.messages.len();
            self.messages.extend(call.messages.iter().cloned());
            (self.declared.clone(), self.messages.clone(), same)
        };
        let mut parameters = call.parameters.clone();
        if let Some(fields) = parameters.as_object_mut() {
            fields.remove(DECLARED);
        }
        let check = match &declared {
            Declared { object: Some(_), tools: None } => Check::ToolsMissing,
            Declared { tools, .. } => {
                let tools = tools.as_deref().unwrap_or_default();
                let is_it = hash_of_record(tools, &messages, &parameters) == call.request_hash;
                if is_it { Check::Matches } else { Check::Differs }
            }
        };
        if !call.aside {
            self.complete(&mut parameters);
        }
        SentRequest {
            seq,
            agent: key.agent.clone(),
            generation: key.generation,
            step: step.number,
            call: number,
            calls: step.calls.len(),
            model: call.model.clone(),
            template: call.template.clone(),
            aside: call.aside,
            parameters,
            tools: declared.tools.unwrap_or_default(),
            tools_object: declared.object,
            same_messages: same,
            messages,
            request_hash: call.request_hash.clone(),
            check,
            answer: call.answer.clone(),
        }
    }
}

#[cfg(test)]
#[path = "sent_tests.rs"]
mod tests;
