//! What tools ask the model in the middle of their calls: put to the task's own model, within the task's budget, shown to its
//! guards, and recorded with the step. The model is shown nothing of the task.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use muster_shared::flow::{Hook, ModelCall, Note, Usage};
use muster_shared::wire::tool_question::{
    CallAnswer, CallQuestion, ModelQuestion, QuestionKind, QuestionPicture, QuestionTurn,
};
use muster_tools::Asker;
use tokio::sync::{mpsc, oneshot};

use super::super::model::{Aside, ChatClient, ModelClient};
use super::super::resources::TaskResources;
use super::TaskSession;
use super::guard::put;
use crate::guards::{note_of, texts_of};
use crate::model::chat::{ChatMessage, ChatRequest};
use crate::model::kept::Kept;
use crate::model::picture::ChatPicture;

/// Most questions that wait for their turn.
const MOST_WAITING: usize = 16;
/// What the name of a question's purpose in the record begins with; the tool follows.
const PURPOSE: &str = "asked-by:";

/// A question of a tool, and who waits for its answer.
struct Asked {
    tool: String,
    question: CallQuestion,
    answer: oneshot::Sender<CallAnswer>,
}

/// Where tools ask.
struct AskerOfTask(mpsc::Sender<Asked>);

#[async_trait]
impl Asker for AskerOfTask {
    fn may_ask(&self) -> Vec<QuestionKind> {
        vec![QuestionKind::Model]
    }

    async fn ask(&self, tool: &str, question: CallQuestion) -> CallAnswer {
        let over = || CallAnswer::cancelled("the task is not worked on any more");
        let (answer, answered) = oneshot::channel();
        let asked = Asked { tool: tool.to_owned(), question, answer };
        if self.0.send(asked).await.is_err() {
            return over();
        }
        answered.await.unwrap_or_else(|_| over())
    }
}

/// What tools asked since it was last taken.
#[derive(Default)]
pub(super) struct Consumed {
    /// The calls, as they stand in the record.
    pub(super) calls: Vec<ModelCall>,
    /// What guards said of the questions.
    pub(super) notes: Vec<Note>,
    /// What calls used that gave no answer.
    pub(super) wasted: Usage,
    /// Whether a call is under way.
    is_asking: bool,
}

impl Consumed {
    /// All that was used.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = self.wasted;
        for call in &self.calls {
            usage += call.usage;
        }
        usage
    }
}

/// The questions of a task's tools.
#[derive(Default)]
pub(super) struct Questions {
    asked: tokio::sync::Mutex<Option<mpsc::Receiver<Asked>>>,
    consumed: Mutex<Consumed>,
}

impl Questions {
    /// Has the tools of a task ask here from now on, where there is a model to be asked.
    pub(super) fn open(resources: &mut TaskResources) -> Self {
        let asked = match resources.model {
            ModelClient::Chat(_) => {
                let (ask, asked) = mpsc::channel(MOST_WAITING);
                resources.context.asker = Some(std::sync::Arc::new(AskerOfTask(ask)));
                Some(asked)
            }
            ModelClient::Offline(_) => None,
        };
        Self { asked: tokio::sync::Mutex::new(asked), consumed: Mutex::default() }
    }

    fn consumed(&self) -> std::sync::MutexGuard<'_, Consumed> {
        self.consumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was asked since this was last called.
    pub(super) fn take(&self) -> Consumed {
        std::mem::take(&mut *self.consumed())
    }
}

impl TaskSession<'_> {
    /// Does something in which tools are called, and has the model answer what they ask meanwhile.
    pub(super) async fn answering<T>(&self, resources: &TaskResources, acting: impl Future<Output = T>) -> T {
        let done = tokio::select! {
            biased;
            done = acting => done,
            never = self.answer_tools(resources) => match never {},
        };
        let cut_off = std::mem::take(&mut self.questions.consumed().is_asking);
        if cut_off {
            // The tool did not wait for its answer. What it used is counted all the same.
            let used = self.gate.lock().await.close();
            self.questions.consumed().wasted += used;
        }
        done
    }

    async fn answer_tools(&self, resources: &TaskResources) -> Infallible {
        let mut asked = self.questions.asked.lock().await;
        let (Some(asked), ModelClient::Chat(model)) = (asked.as_mut(), &resources.model) else {
            return std::future::pending().await;
        };
        loop {
            let Some(Asked { tool, question, answer }) = asked.recv().await else {
                return std::future::pending().await;
            };
            if answer.is_closed() {
                continue;
            }
            let said = match (question.fault(), question) {
                (Some(fault), _) => CallAnswer::declined(fault),
                (None, CallQuestion::Model(question)) => {
                    self.ask_for(&tool, question, model, resources).await
                }
                // Calls that ask people are put down by whoever makes them.
                (None, CallQuestion::Person(_)) => CallAnswer::declined("people are not asked here"),
            };
            // Whoever asked may be gone by now: it was paid for, and stands in the record.
            let _gone = answer.send(said);
        }
    }

    /// Asks the model for a tool.
    async fn ask_for(
        &self,
        tool: &str,
        question: ModelQuestion,
        model: &ChatClient,
        resources: &TaskResources,
    ) -> CallAnswer {
        if question.shows_pictures() && !resources.model.sees() {
            return CallAnswer::declined(blind(&resources.model.describe()));
        }
        let redacted = |text: &str| resources.redactor.redact(text).into_owned();
        let Some(mut request) = request_of(question, redacted) else {
            return CallAnswer::declined("a picture is no base64");
        };
        let mut said = self.guard_messages(&request.messages, resources).await;
        if let Some(why) = said.refused() {
            self.questions.consumed().notes.extend(note_of(Hook::BeforeModel, 0, said));
            return CallAnswer::declined(format!("the model was not asked: {why}"));
        }
        if let Some(changed) = &said.changed {
            put(&mut request.messages, texts_of(changed));
        }
        // What was asked stands with the call.
        said.changed = None;
        self.questions.consumed().notes.extend(note_of(Hook::BeforeModel, 0, said));
        let mut gate = self.gate.lock().await;
        if gate.is_last(&resources.model.describe(), &request) {
            return CallAnswer::declined("what the task may use is almost used up");
        }
        self.questions.consumed().is_asking = true;
        let aside = Aside { redactor: &resources.redactor, reuse: resources.reuse.as_ref() };
        let purpose = format!("{PURPOSE}{tool}");
        let answered = model.ask_apart(&request, &purpose, aside, &mut gate).await;
        let mut consumed = self.questions.consumed();
        consumed.is_asking = false;
        match answered {
            Ok(call) => {
                let (text, model, cut) = (call.answer.clone(), call.model.clone(), call.cut);
                consumed.calls.push(call);
                CallAnswer::Said { text, model, cut }
            }
            Err(error) => {
                consumed.wasted += gate.take();
                tracing::warn!(%error, tool, "what a tool asked the model got no answer");
                CallAnswer::declined(format!("the model did not answer: {}", error.kind.name()))
            }
        }
    }

    /// Counts what tools asked with the step being taken.
    pub(super) fn count_questions(&mut self) {
        let Consumed { calls, notes, wasted, .. } = self.questions.take();
        self.pending.extend(calls);
        self.notes.extend(notes);
        self.wasted += wasted;
    }
}

/// What is said of a model that sees nothing, as far as is known.
fn blind(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model);
    format!(
        "{model} is not known to see pictures; `sees = true` in [agent.capabilities.\"{name}\"] says that it does"
    )
}

/// The question of a tool as it is put to a model, without secrets in its texts; none where a picture cannot be read.
fn request_of(question: ModelQuestion, redacted: impl Fn(&str) -> String) -> Option<ChatRequest> {
    let ModelQuestion { system, turns, max_tokens, temperature, stop } = question;
    let picture = |QuestionPicture { media_type, data }| ChatPicture::read(media_type, data);
    let message = |QuestionTurn { by_model, text, pictures }: QuestionTurn| -> Option<Kept<ChatMessage>> {
        let text = redacted(&text);
        let pictures = pictures.into_iter().map(picture).collect::<Option<Vec<_>>>()?;
        let said = if by_model { ChatMessage::assistant(text) } else { ChatMessage::user(text) };
        Some(said.showing(pictures).into())
    };
    Some(ChatRequest {
        system: redacted(&system.unwrap_or_default()).into(),
        messages: turns.into_iter().map(message).collect::<Option<_>>()?,
        temperature,
        max_tokens: Some(max_tokens),
        stop,
        ..ChatRequest::default()
    })
}
