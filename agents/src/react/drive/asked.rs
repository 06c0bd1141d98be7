//! Questions of tools about pictures, answered by the model of the task during a call. They use the budget of the task, pass
//! its guards, and are recorded with the step. The model sees nothing else of the task.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Mutex;

use async_trait::async_trait;
use muster_shared::flow::{Hook, ModelCall, Note, Usage};
use muster_shared::sync::lock;
use muster_tools::{PictureAnswer, PictureQuestion, Viewer};
use tokio::sync::{mpsc, oneshot};

use super::super::model::{Aside, ChatClient, ModelClient};
use super::super::resources::TaskResources;
use super::TaskSession;
use super::guard::put;
use crate::guards::{note_of, texts_of};
use crate::model::chat::{ChatMessage, ChatRequest};
use crate::model::picture::ChatPicture;
use crate::tools::look::LOOK;

/// Most questions that wait for their turn.
const MOST_WAITING: usize = 16;

/// A question of a tool, and who waits for its answer.
struct Asked {
    question: PictureQuestion,
    answer: oneshot::Sender<Result<PictureAnswer, String>>,
}

/// Where tools ask.
struct ViewerOfTask(mpsc::Sender<Asked>);

#[async_trait]
impl Viewer for ViewerOfTask {
    async fn look(&self, question: PictureQuestion) -> Result<PictureAnswer, String> {
        let over = || Err("the task is not worked on any more".to_owned());
        let (answer, answered) = oneshot::channel();
        if self.0.send(Asked { question, answer }).await.is_err() {
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
                resources.context.viewer = Some(std::sync::Arc::new(ViewerOfTask(ask)));
                Some(asked)
            }
            ModelClient::Offline(_) => None,
        };
        Self { asked: tokio::sync::Mutex::new(asked), consumed: Mutex::default() }
    }

    fn consumed(&self) -> std::sync::MutexGuard<'_, Consumed> {
        lock(&self.consumed)
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
            let Some(Asked { question, answer }) = asked.recv().await else {
                return std::future::pending().await;
            };
            if answer.is_closed() {
                continue;
            }
            let said = self.ask_for(question, model, resources).await;
            // Whoever asked may be gone by now: it was paid for, and stands in the record.
            let _gone = answer.send(said);
        }
    }

    /// Asks the model for a tool.
    async fn ask_for(
        &self,
        question: PictureQuestion,
        model: &ChatClient,
        resources: &TaskResources,
    ) -> Result<PictureAnswer, String> {
        if !resources.model.sees() {
            return Err(blind(&resources.model.describe()));
        }
        let PictureQuestion { system, text, media_type, data, max_tokens } = question;
        let picture = ChatPicture::read(media_type, data).ok_or("a picture is no base64")?;
        let shown = ChatMessage::user(resources.redactor.redact(&text).into_owned()).showing(vec![picture]);
        let mut request = ChatRequest {
            system: system.into(),
            messages: vec![shown.into()],
            max_tokens: Some(max_tokens),
            ..ChatRequest::default()
        };
        let mut said = self.guard_messages(&request.messages, resources).await;
        if let Some(why) = said.refused() {
            self.questions.consumed().notes.extend(note_of(Hook::BeforeModel, 0, said));
            return Err(format!("the model was not asked: {why}"));
        }
        if let Some(changed) = &said.changed {
            put(&mut request.messages, texts_of(changed));
        }
        // What was asked stands with the call.
        said.changed = None;
        self.questions.consumed().notes.extend(note_of(Hook::BeforeModel, 0, said));
        let mut gate = self.gate.lock().await;
        if gate.is_last(&resources.model.describe(), &request) {
            return Err("what the task may use is almost used up".to_owned());
        }
        self.questions.consumed().is_asking = true;
        let aside = Aside { redactor: &resources.redactor, reuse: resources.reuse.as_ref() };
        let purpose = format!("asked-by:{LOOK}");
        let answered = model.ask_apart(&request, &purpose, aside, &mut gate).await;
        let mut consumed = self.questions.consumed();
        consumed.is_asking = false;
        match answered {
            Ok(call) => {
                let (text, model, cut) = (call.answer.clone(), call.model.clone(), call.cut);
                consumed.calls.push(call);
                Ok(PictureAnswer { text, model, cut })
            }
            Err(error) => {
                consumed.wasted += gate.take();
                tracing::warn!(%error, "what a tool asked the model got no answer");
                Err(format!("the model did not answer: {}", error.kind.name()))
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
