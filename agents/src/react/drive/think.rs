//! Thinking: the model is asked until its answer can be used.

use std::time::Instant;

use muster_shared::flow::Information;

use super::super::decide::{NextStep, decide};
use super::super::files::with_news;
use super::super::interrupt::unless_handed_over;
use super::super::model::{Asking, Heard, ModelClient, offline_answer};
use super::super::opening::opening;
use super::super::prompt::{CallStyle, Conversation};
use super::super::resources::TaskResources;
use super::{Clock, Failure, TaskSession, Toolbox};
use crate::model::chat::{ModelError, ModelErrorKind};
use crate::roles::data_by_rule;

/// How often a request that is too long is asked again with less of the older steps.
const MOST_SHORTENED: u32 = 3;

impl Toolbox {
    /// Leaves the next request two thirds of the room that the last one took, where it has anything that can be shown in
    /// short: the conversation is worded anew by that.
    fn shorten(&mut self) -> bool {
        let Some(room) = self.conversation.as_ref().and_then(Conversation::less_room) else { return false };
        self.resources.limits.room = room;
        self.conversation = None;
        true
    }
}

/// Why a question got no answer.
enum Unanswered {
    /// The model failed.
    Failed(ModelError),
    /// A guard refused it; why.
    Refused(String),
}

impl From<ModelError> for Unanswered {
    fn from(error: ModelError) -> Self {
        Self::Failed(error)
    }
}

impl From<String> for Unanswered {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

impl TaskSession<'_> {
    /// Asks until an answer can be used or the limit of asking is reached.
    pub(super) async fn think(
        &mut self,
        toolbox: &mut Toolbox,
        clock: &mut Clock,
    ) -> Result<NextStep, Failure> {
        if let Some(next) = opening(&self.history, &toolbox.resources.case(self.offer)) {
            return Ok(next);
        }
        let mut asked = 0;
        loop {
            asked += 1;
            let handing_over = self.handing_over.clone();
            let heard = unless_handed_over(handing_over, self.ask(toolbox, clock)).await??;
            self.pending.extend(heard.call);
            let next = decide(&self.history, &heard.answer, asked, &toolbox.resources.case(self.offer));
            match (next, &mut toolbox.conversation) {
                (NextStep::AskAgain { reason, notes }, Some(conversation)) => {
                    self.remark(notes);
                    conversation.ask_again(&heard.verbatim, &reason);
                }
                (NextStep::AskAgain { .. }, None) if asked < toolbox.resources.limits.max_asks => {}
                (next, _) => return Ok(next),
            }
        }
    }

    async fn ask(&mut self, toolbox: &mut Toolbox, clock: &mut Clock) -> Result<Heard, Failure> {
        let begun = Instant::now();
        let mut heard = self.ask_untimed(toolbox).await;
        for _ in 0..MOST_SHORTENED {
            match &heard {
                Err(Unanswered::Failed(error))
                    if error.kind == ModelErrorKind::ContextTooLong && toolbox.shorten() =>
                {
                    tracing::warn!(%error, "its context is shorter than is known: older steps are shown in short");
                    heard = self.ask_untimed(toolbox).await;
                }
                _ => break,
            }
        }
        clock.outside += begun.elapsed();
        heard.map_err(|unanswered| match unanswered {
            Unanswered::Failed(error) => {
                self.wasted += self.gate.get_mut().take();
                Failure::Model(error)
            }
            Unanswered::Refused(why) => Failure::Guarded(why),
        })
    }

    async fn ask_untimed(&mut self, toolbox: &mut Toolbox) -> Result<Heard, Unanswered> {
        let resources = &toolbox.resources;
        let model = match &resources.model {
            ModelClient::Offline(rules) => {
                let mut heard = offline_answer(*rules, self.offer, &self.history);
                if let Some(contract) = &resources.rules.contract {
                    heard.answer.complete(|result| data_by_rule(contract, result));
                }
                return Ok(heard);
            }
            ModelClient::Chat(model) => model,
        };
        let asking = Asking {
            template: &resources.template,
            toolset: &resources.toolset,
            redactor: &resources.redactor,
            limits: resources.limits,
            declarations: &resources.declarations,
            reuse: resources.reuse.as_ref(),
        };
        let conversation = toolbox
            .conversation
            .get_or_insert_with(|| resources.converse(self.offer, &self.history, model.style()));
        if conversation.begins_step() {
            let redacted = |mut one: Information| {
                one.text = resources.redactor.redact(&one.text).into_owned();
                one
            };
            self.told.extend(self.mailbox.take(self.history.steps()).into_iter().map(redacted));
            conversation.hear(&self.told);
            let news =
                self.mailbox.progress().map(|progress| resources.redactor.redact(&progress).into_owned());
            let files = resources.files(self.offer).await;
            conversation.tell_files(with_news(files, news.as_deref(), self.offer));
        }
        self.guard_question(conversation, resources).await?;
        match model.ask(conversation, &asking, self.gate.get_mut(), &mut self.progress).await {
            Err(error) if model.gives_up_native(&error) => {
                tracing::info!(model = %error.target, "no native tool calls; asking in text");
                *conversation = resources.converse(self.offer, &self.history, CallStyle::Text);
                conversation.hear(&self.told);
                self.guard_question(conversation, resources).await?;
                Ok(model.ask(conversation, &asking, self.gate.get_mut(), &mut self.progress).await?)
            }
            heard => Ok(heard?),
        }
    }

    pub(super) fn converse(&self, resources: &TaskResources) -> Option<Conversation> {
        match &resources.model {
            ModelClient::Chat(model) => Some(resources.converse(self.offer, &self.history, model.style())),
            ModelClient::Offline(_) => None,
        }
    }
}
