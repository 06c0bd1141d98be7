//! Asking by our own means: requests written straight into bytes, each part of them once, and streamed answers read
//! without trees in between. For the protocols of OpenAI, Anthropic and Gemini.

mod anthropic;
mod anthropic_limits;
mod body;
mod gemini;
mod loose;
mod openai;
mod partial;
mod sse;

use std::time::Duration;

use futures::FutureExt as _;
use genai::chat::ReasoningEffort;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use secrecy::ExposeSecret;

pub(super) use self::partial::ANSWER_BYTES;
use self::partial::{Broken, OnDelta, Partial};
use self::sse::{SseEvent, SseFault, SseReader};
use super::convert::NO_KEY;
use super::stream::Gathered;
use super::{CallLimits, classify};
use crate::model::chat::{ChatRequest, ModelError, ModelErrorKind};
use crate::model::kept::WireForm;
use crate::model::target::{ModelProvider, ModelTarget};

/// The longest body of an error that is read, in bytes.
const ERROR_BYTES: usize = 1 << 20;
/// How long the rest of an answer that has ended is waited for, so that its connection can be used again.
const REST: Duration = Duration::from_secs(2);

/// Where and how a target is asked.
#[derive(Debug, Clone)]
pub(super) struct Door {
    form: WireForm,
    /// The target, as the record names it.
    name: String,
    /// The model, as it is named in the request.
    model: String,
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Door {
    /// The door to a target; nothing where the client library asks it.
    ///
    /// That is Ollama, and what the library reads into names: models of Anthropic and Gemini whose names end in how much
    /// they are to think.
    pub(super) fn of(target: &ModelTarget) -> Option<Self> {
        let model = bare(&target.model);
        let form = match target.provider {
            ModelProvider::OpenAi => WireForm::OpenAi,
            ModelProvider::Anthropic if names_effort(model) => return None,
            ModelProvider::Anthropic => WireForm::Anthropic,
            ModelProvider::Gemini if names_effort(model) => return None,
            ModelProvider::Gemini if target.model.contains("gemini-3") => WireForm::Gemini3,
            ModelProvider::Gemini => WireForm::Gemini,
            ModelProvider::Ollama | ModelProvider::Offline => return None,
        };
        let url = url(form, model, &target.endpoint_or_default())?;
        let (name, model, headers) = (target.name(), model.to_owned(), headers(form, target)?);
        Some(Self { form, name, model, url, headers })
    }

    fn body(&self, request: &ChatRequest, wishes: Wishes) -> Vec<u8> {
        match self.form {
            WireForm::OpenAi => {
                let caching = openai::Caching::of(&self.model, self.url.host_str());
                openai::body(request, &self.model, caching, wishes)
            }
            WireForm::Anthropic => {
                let marked = self.url.host_str() == Some(anthropic::OFFICIAL);
                anthropic::body(request, &self.model, marked, wishes)
            }
            WireForm::Gemini | WireForm::Gemini3 => gemini::body(request, self.form, &self.name, wishes),
        }
    }

    /// Asks once for a streamed answer.
    pub(super) async fn ask(&self, asked: Asked<'_>, on_delta: OnDelta<'_>) -> Result<Gathered, ModelError> {
        let Asked { client, target, limits, .. } = asked;
        let mut post = client.post(self.url.clone());
        for (name, value) in &self.headers {
            post = post.header(name, value);
        }
        let sent = post.body(self.body(asked.request, asked.wishes)).send();
        let response = tokio::time::timeout(limits.first.min(limits.call), sent).await;
        let response = response.map_err(|_| silence("it sends no response", target))?;
        let mut response = response.map_err(|error| classify::transport(&error, target))?;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = error_body(&mut response, limits.idle).await;
            return Err(classify::status(status, &headers, &body, target));
        }
        let hearing = Hearing { form: self.form, target, partial: Partial::default(), on_delta };
        let gathered = hearing.listen(&mut response, limits.idle).await;
        if gathered.is_ok() {
            read_rest(response);
        }
        gathered
    }
}

/// One question, and by what means it is asked.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) client: &'a reqwest::Client,
    pub(super) target: &'a ModelTarget,
    pub(super) limits: &'a CallLimits,
    pub(super) request: &'a ChatRequest,
    /// What of it the server is asked for.
    pub(super) wishes: Wishes,
}

/// What servers may know or not: a request goes without what this one refused before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wishes {
    /// The format of the answer.
    pub(super) formatted: bool,
    /// Which tool is called, and how many.
    pub(super) chosen: bool,
    /// How much the model reasons.
    pub(super) reasoned: bool,
    /// The sampling temperature.
    pub(super) tempered: bool,
}

/// The name without a namespace (`provider::model`).
fn bare(model: &str) -> &str {
    model.split_once("::").map_or(model, |(_, model)| model)
}

/// Whether a name ends in how much the model is to think.
fn names_effort(model: &str) -> bool {
    let last = model.rsplit('-').next().unwrap_or_default();
    ReasoningEffort::from_model_name(model).0.is_some() || ReasoningEffort::from_keyword(last).is_some()
}

fn url(form: WireForm, model: &str, endpoint: &str) -> Option<Url> {
    match form {
        WireForm::OpenAi => {
            // Some servers want a query with every request.
            let base = Url::parse(endpoint).ok()?;
            let mut url = base.join("chat/completions").ok()?;
            url.set_query(base.query());
            Some(url)
        }
        WireForm::Anthropic => Url::parse(&format!("{endpoint}messages")).ok(),
        WireForm::Gemini | WireForm::Gemini3 => {
            Url::parse(&format!("{endpoint}models/{model}:streamGenerateContent?alt=sse")).ok()
        }
    }
}

fn headers(form: WireForm, target: &ModelTarget) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let key = target.key.as_ref().map_or(NO_KEY, ExposeSecret::expose_secret);
    let secret = |value: &str| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    let mut headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    match form {
        WireForm::OpenAi => headers.push((AUTHORIZATION, secret(&format!("Bearer {key}"))?)),
        WireForm::Anthropic => {
            headers.push((HeaderName::from_static("x-api-key"), secret(key)?));
            let version = HeaderValue::from_static(anthropic::VERSION);
            headers.push((HeaderName::from_static("anthropic-version"), version));
        }
        WireForm::Gemini | WireForm::Gemini3 => {
            headers.push((HeaderName::from_static("x-goog-api-key"), secret(key)?));
        }
    }
    Some(headers)
}

fn silence(what: &str, target: &ModelTarget) -> ModelError {
    ModelError::new(ModelErrorKind::Timeout, target.name(), format!("the server has fallen silent: {what}"))
}

/// The body of an error, as far as it comes.
async fn error_body(response: &mut reqwest::Response, idle: Duration) -> String {
    let mut body = Vec::new();
    while let Ok(Ok(Some(piece))) = tokio::time::timeout(idle, response.chunk()).await {
        body.extend_from_slice(&piece);
        if body.len() > ERROR_BYTES {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// Reads what follows the end of an answer, which is little: a connection is used again only when nothing is left in it.
fn read_rest(mut response: reqwest::Response) {
    // Mostly it is there already.
    let is_read = response.chunk().now_or_never().is_some_and(|read| !matches!(read, Ok(Some(_))));
    if !is_read {
        tokio::spawn(tokio::time::timeout(
            REST,
            async move { while let Ok(Some(_)) = response.chunk().await {} },
        ));
    }
}

/// An answer that is being listened to.
struct Hearing<'a> {
    form: WireForm,
    target: &'a ModelTarget,
    partial: Partial,
    on_delta: OnDelta<'a>,
}

impl Hearing<'_> {
    async fn listen(
        mut self,
        response: &mut reqwest::Response,
        idle: Duration,
    ) -> Result<Gathered, ModelError> {
        let mut reader = SseReader::default();
        loop {
            let piece = tokio::time::timeout(idle, response.chunk()).await;
            let piece = piece.map_err(|_| silence("nothing more of the answer comes", self.target))?;
            let piece = piece.map_err(|error| classify::transport(&error, self.target))?;
            let goes_on = match &piece {
                Some(piece) => reader.take(piece, &mut |event| self.hear(&event)),
                None => reader.end(&mut |event| self.hear(&event)),
            };
            let goes_on = goes_on.map_err(|stopped| self.error(stopped))?;
            if !goes_on || piece.is_none() {
                let is_stream = reader.with_data > 0 || reader.events == 0;
                return self.partial.conclude(self.form, is_stream, self.target);
            }
        }
    }

    /// Reads an event; whether more is to be heard.
    fn hear(&mut self, event: &SseEvent<'_>) -> Result<bool, Stopped> {
        let on_delta = &mut *self.on_delta;
        match self.form {
            WireForm::OpenAi => openai::hear(event, &mut self.partial, on_delta)?,
            WireForm::Anthropic => anthropic::hear(event, &mut self.partial, on_delta)?,
            WireForm::Gemini | WireForm::Gemini3 => gemini::hear(event, &mut self.partial, on_delta)?,
        }
        match self.partial.bytes() > ANSWER_BYTES {
            true => Err(Stopped::TooLong),
            false => Ok(!self.partial.ended),
        }
    }

    fn error(&self, stopped: Stopped) -> ModelError {
        // A question that was blocked has no answer that could be read.
        if let Some(withheld) = self.partial.withheld(self.target) {
            return withheld;
        }
        let garbage = match stopped {
            Stopped::Broken(Broken::Reported(body)) => return classify::reported(&body, self.target),
            Stopped::Broken(Broken::Garbage(why)) => why,
            Stopped::Unreadable(fault) => fault.in_words().to_owned(),
            Stopped::TooLong => format!("the answer is longer than {ANSWER_BYTES} bytes"),
        };
        ModelError::new(ModelErrorKind::BadAnswer, self.target.name(), self.target.redact(&garbage))
    }
}

/// Why an answer is not read on.
enum Stopped {
    Broken(Broken),
    Unreadable(SseFault),
    TooLong,
}

impl From<Broken> for Stopped {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<SseFault> for Stopped {
    fn from(fault: SseFault) -> Self {
        Self::Unreadable(fault)
    }
}

#[cfg(test)]
mod tests;
