//! Passes what a server asks on to whoever called it: each call brings with it whom it may ask.

use std::sync::Arc;

use async_trait::async_trait;
use muster_shared::flow::Form;
use muster_shared::wire::tool_question::{self as wire, CallAnswer, CallQuestion, QuestionTurn};
use muster_tools::Asker;

use crate::callbacks::{
    AskModel, AskPerson, CallPlace, ModelAnswer, ModelQuestion, PersonAnswer, PersonQuestion, Turn, Wanted,
};

/// Whom a call may ask.
#[derive(Clone)]
pub struct Caller(pub Arc<dyn Asker>);

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Caller").field(&self.0.may_ask()).finish()
    }
}

/// Has whoever called answer what a server asks in the middle of the call.
#[derive(Debug, Default)]
pub struct ByCaller;

/// The one call that a question belongs to, and whom it may ask.
///
/// # Errors
/// Why nobody can be asked, in a sentence.
fn caller_of(during: &[CallPlace]) -> Result<(&CallPlace, &Caller), String> {
    let [place] = during else {
        return Err("it cannot be told for which of several calls it is asked".to_owned());
    };
    let caller = place.caller.as_ref().ok_or_else(|| "whoever calls answers nothing".to_owned())?;
    Ok((place, caller))
}

#[async_trait]
impl AskModel for ByCaller {
    async fn ask(&self, question: ModelQuestion) -> Result<ModelAnswer, String> {
        let (place, Caller(asker)) = caller_of(&question.during)?;
        let tool = place.tool.clone();
        let asker = Arc::clone(asker);
        let ModelQuestion { system, turns, max_tokens, temperature, stop, .. } = question;
        let turn = |Turn { by_model, text }: Turn| QuestionTurn { by_model, text, pictures: Vec::new() };
        let asked = wire::ModelQuestion {
            system,
            turns: turns.into_iter().map(turn).collect(),
            max_tokens,
            temperature: temperature.map(f64::from),
            stop,
        };
        match asker.ask(&tool, CallQuestion::Model(asked)).await {
            CallAnswer::Said { text, model, cut } => Ok(ModelAnswer { text, model, cut }),
            CallAnswer::Given { .. } => Err("the answer is none of a model".to_owned()),
            CallAnswer::Decline { why } | CallAnswer::Cancel { why } => Err(why),
        }
    }
}

#[async_trait]
impl AskPerson for ByCaller {
    async fn ask(&self, question: PersonQuestion) -> PersonAnswer {
        let (place, Caller(asker)) = match caller_of(&question.during) {
            Ok(found) => found,
            Err(why) => {
                tracing::info!(server = question.server, why, "a question to a person is declined");
                return PersonAnswer::Decline;
            }
        };
        let form = match question.wants {
            Wanted::Form(schema) => Form::Values(schema),
            Wanted::Visit(url) => Form::Visit(url),
        };
        let asked = wire::PersonQuestion { text: question.message, form };
        let (tool, asker) = (place.tool.clone(), Arc::clone(asker));
        match asker.ask(&tool, CallQuestion::Person(asked)).await {
            CallAnswer::Given { values } => PersonAnswer::Accept(values),
            CallAnswer::Said { .. } | CallAnswer::Decline { .. } => PersonAnswer::Decline,
            CallAnswer::Cancel { .. } => PersonAnswer::Cancel,
        }
    }
}
