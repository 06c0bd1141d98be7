//! Asking real models.
//!
//! What is asked often goes [by our own means](wire): streamed answers by the protocols of OpenAI, Anthropic and Gemini.
//! genai asks for what is rare: Ollama, servers that cannot stream, names that end in how much a model is to think. It
//! neither retries nor bounds a call: both are done here and in [`super::retry`]. The target is always explicit (no
//! guessing by model name, no environment), and answers stream unless a server cannot.

mod classify;
mod client;
mod convert;
mod stream;
mod wire;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt as _;
use genai::ServiceTarget;
use genai::chat::{ChatOptions, ChatRequest as GenaiRequest};
use muster_shared::settings;
use muster_shared::time::millis;

pub use client::ProviderClient;

use super::chat::{
    ChatAnswer, ChatModel, ChatRequest, Delta, FinishReason, ModelError, ModelErrorKind, ToolCall,
};
use super::target::{ModelProvider, ModelTarget};
use stream::Gathered;
use wire::{Asked, Door, Wishes};

settings! {
    /// Time and size limits of one call.
    #[derive(Copy, PartialEq, Eq)]
    pub struct CallLimits {
        /// From the question to the whole answer.
        #[serde(with = "muster_shared::span")]
        pub call: Duration = Duration::from_secs(120) => span(100, DAY); Fleet Harmless,
        /// From the question to the first sign of an answer.
        #[serde(with = "muster_shared::span")]
        pub first: Duration = Duration::from_secs(60) => internal(),
        /// The longest silence within a streamed answer.
        #[serde(with = "muster_shared::span")]
        pub idle: Duration = Duration::from_secs(60) => internal(),
    }
}

/// A model behind an HTTP provider.
pub struct Provider {
    target: ModelTarget,
    limits: CallLimits,
    client: ProviderClient,
    /// Where it is asked by our own means.
    door: Option<Door>,
    /// Set once the server has shown that it answers whole only.
    unstreamed: AtomicBool,
    /// Set once the server has refused an answer format.
    formatless: AtomicBool,
    /// Set once the server has refused to be told which tools an answer may call.
    choiceless: AtomicBool,
    /// Set once it has refused to be told how much to reason.
    effortless: AtomicBool,
    /// Set once it has refused a sampling temperature.
    untempered: AtomicBool,
}

impl Provider {
    /// A model to be asked with `client`; nothing is connected yet.
    ///
    /// `None` for the offline target, which is no HTTP provider.
    #[must_use]
    pub fn new(target: ModelTarget, limits: CallLimits, client: ProviderClient) -> Option<Self> {
        (target.provider != ModelProvider::Offline).then(|| Self {
            door: Door::of(&target),
            target,
            limits,
            client,
            unstreamed: AtomicBool::new(false),
            formatless: AtomicBool::new(false),
            choiceless: AtomicBool::new(false),
            effortless: AtomicBool::new(false),
            untempered: AtomicBool::new(false),
        })
    }

    async fn ask_within_limits(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        let mut wasted = 0;
        loop {
            let wishes = self.wishes(request);
            let streamed = !self.unstreamed.load(Ordering::Relaxed);
            let failed = match self.ask_once(request, wishes, streamed, on_delta).await {
                Ok(mut answer) => {
                    answer.wasted.calls += wasted;
                    return check(answer, &self.target);
                }
                Err(failed) => failed,
            };
            wasted += 1;
            match failed {
                Failed::NotStreaming if streamed => self.unstreamed.store(true, Ordering::Relaxed),
                Failed::Model(error) if self.gives_up(&error, wishes) => {}
                Failed::Model(error) if streamed && refuses(&error, &["stream"]) => {
                    self.unstreamed.store(true, Ordering::Relaxed);
                }
                Failed::Model(mut error) => {
                    error.calls = wasted;
                    return Err(error);
                }
                Failed::NotStreaming => {
                    return Err(self.error(ModelErrorKind::BadAnswer, "the server sent no answer"));
                }
            }
        }
    }

    /// What of a request the server is asked for: not what it refused before.
    fn wishes(&self, request: &ChatRequest) -> Wishes {
        let is_taken = |refused: &AtomicBool| !refused.load(Ordering::Relaxed);
        Wishes {
            formatted: request.schema.is_some() && is_taken(&self.formatless),
            chosen: request.chooses() && is_taken(&self.choiceless),
            reasoned: request.effort.is_some() && is_taken(&self.effortless),
            tempered: request.temperature.is_some() && is_taken(&self.untempered),
        }
    }

    /// Whether the server refused one of these wishes; if so, it is asked without from now on.
    fn gives_up(&self, error: &ModelError, wishes: Wishes) -> bool {
        let wishes = [
            (wishes.formatted, &FORMAT[..], &self.formatless),
            (wishes.chosen, &CHOICE, &self.choiceless),
            (wishes.reasoned, &EFFORT, &self.effortless),
            (wishes.tempered, &["temperature"], &self.untempered),
        ];
        let refused = wishes.into_iter().find(|(wished, words, _)| *wished && refuses(error, words));
        if let Some((_, _, gone)) = refused {
            gone.store(true, Ordering::Relaxed);
        }
        refused.is_some()
    }

    async fn ask_once(
        &self,
        request: &ChatRequest,
        wishes: Wishes,
        streamed: bool,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, Failed> {
        let unset = |why: String| {
            self.error(ModelErrorKind::Unreachable, format!("the HTTP client cannot be set up: {why}"))
        };
        if let Some(door) = self.door.as_ref().filter(|_| streamed) {
            let client = self.client.http().map_err(unset)?;
            let asked = Asked { client, target: &self.target, limits: &self.limits, request, wishes };
            return taken(door.ask(asked, on_delta).await?);
        }
        let client = self.client.library().map_err(unset)?;
        let service = convert::service_target(&self.target);
        let asked = convert::request(request, &self.target);
        let options = convert::options(request, &self.target, &self.limits, wishes);
        if streamed {
            self.ask_streamed(client, service, asked, options, on_delta).await
        } else {
            self.ask_whole(client, service, asked, options, on_delta).await
        }
    }

    async fn ask_streamed(
        &self,
        client: &genai::Client,
        service: ServiceTarget,
        asked: GenaiRequest,
        options: ChatOptions,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, Failed> {
        let watch = stream::FrameWatch::default();
        let options = options.with_raw_frame_sink(watch.clone());
        let response = client
            .exec_chat_stream(service, asked, Some(&options))
            .await
            .map_err(|error| classify::error(&error, &self.target))?;
        taken(stream::gather(response.stream, &watch, &self.target, on_delta).await?)
    }

    async fn ask_whole(
        &self,
        client: &genai::Client,
        service: ServiceTarget,
        asked: GenaiRequest,
        options: ChatOptions,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, Failed> {
        let answer = match client.exec_chat(service, asked, Some(&options)).await {
            Ok(response) => {
                if let Some(said) = response.captured_raw_body.as_ref().and_then(convert::refusal) {
                    let mut refused = self.error(ModelErrorKind::Refused, said);
                    refused.usage = convert::usage(&response.usage);
                    return Err(refused.into());
                }
                convert::answer(&response, &self.target)
            }
            // Arguments that are no JSON fail the whole call; the captured body still has them.
            Err(genai::Error::ChatResponseGeneration { response_body, .. })
                if self.target.provider == ModelProvider::OpenAi
                    && convert::openai_answer(&response_body, &self.target).is_some() =>
            {
                convert::openai_answer(&response_body, &self.target)
                    .ok_or_else(|| self.error(ModelErrorKind::BadAnswer, "the answer is garbage"))?
            }
            Err(error) => return Err(classify::error(&error, &self.target).into()),
        };
        if let Some(reasoning) = &answer.reasoning {
            on_delta(Delta::Thought(reasoning.clone()));
        }
        if !answer.text.is_empty() {
            on_delta(Delta::Text(answer.text.clone()));
        }
        for (nth, call) in answer.tool_calls.iter().enumerate() {
            on_delta(Delta::ToolCall { nth, arguments: call.raw.clone() });
        }
        Ok(answer)
    }

    fn error(&self, kind: ModelErrorKind, message: impl AsRef<str>) -> ModelError {
        ModelError::new(kind, self.target.name(), self.target.redact(message.as_ref()))
    }
}

#[async_trait]
impl ChatModel for Provider {
    async fn ask(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatAnswer, ModelError> {
        let begun = Instant::now();
        let asked = Box::pin(self.ask_within_limits(request, on_delta));
        // genai adds up the tokens of an Ollama server without a bound: where overflows are checked, huge ones are a panic.
        let asked = AssertUnwindSafe(asked).catch_unwind();
        let mut answer = match tokio::time::timeout(self.limits.call, asked).await {
            Ok(Ok(answered)) => answered?,
            Ok(Err(_panic)) => {
                return Err(self.error(ModelErrorKind::BadAnswer, "the answer is none that can be read"));
            }
            Err(_) => {
                let why = format!("no whole answer within {:?} (the model time limit)", self.limits.call);
                return Err(self.error(ModelErrorKind::Timeout, why));
            }
        };
        answer.millis = millis(begun.elapsed());
        Ok(answer)
    }

    fn describe(&self) -> String {
        self.target.name()
    }
}

fn taken(gathered: Gathered) -> Result<ChatAnswer, Failed> {
    match gathered {
        Gathered::Answer(answer) => Ok(*answer),
        Gathered::NotStreaming => Err(Failed::NotStreaming),
    }
}

/// How one call failed.
enum Failed {
    /// As the error says.
    Model(ModelError),
    /// The server answered a streaming question with something that is no stream.
    NotStreaming,
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

/// A withheld answer is a refusal, and half a call is none: the same question gets it whole, as a rule. An answer with
/// nothing in it is one: whoever asked says what is wrong with it.
fn check(answer: ChatAnswer, target: &ModelTarget) -> Result<ChatAnswer, ModelError> {
    let (kind, message) = match &answer.finish {
        FinishReason::ContentFilter => (ModelErrorKind::Refused, convert::withheld("content filter")),
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_)
            if answer.tool_calls.iter().any(is_torn) =>
        {
            let what = "the answer ended in the middle of a tool call: nothing of it was done";
            (ModelErrorKind::BadAnswer, what.to_owned())
        }
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length | FinishReason::Other(_) => {
            return Ok(answer);
        }
    };
    let mut error = ModelError::new(kind, target.name(), message);
    error.usage = answer.usage;
    error.calls = answer.wasted.calls + 1;
    Err(error)
}

/// Whether the arguments end within a text of theirs.
fn is_torn(call: &ToolCall) -> bool {
    let read = serde_json::from_str::<serde::de::IgnoredAny>(&call.raw);
    read.is_err_and(|error| error.is_eof() && error.to_string().contains("a string"))
}

/// What servers name that know no answer formats.
const FORMAT: [&str; 5] =
    ["response_format", "json_schema", "output_config", "output_format", "responsejsonschema"];
/// What they name that cannot be told which tools an answer may call.
const CHOICE: [&str; 6] = [
    "tool_choice",
    "toolconfig",
    "tool_config",
    "unctioncallingconfig",
    "parallel_tool_calls",
    "parallel_tool_use",
];
/// What they name that cannot be told how much to reason.
const EFFORT: [&str; 3] = ["reasoning", "thinking", "budget_tokens"];

/// Whether a server refuses a request for something that it does not know: it says so in words only.
fn refuses(error: &ModelError, words: &[&str]) -> bool {
    let message = error.message.to_ascii_lowercase();
    error.kind == ModelErrorKind::BadRequest && words.iter().any(|word| message.contains(word))
}
