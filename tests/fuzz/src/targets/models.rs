//! What servers of models send, and what names of models say.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use muster_agents::model::chat::{ChatMessage, ChatModel as _, ChatRequest, ToolDecl, ignore_deltas};
use muster_agents::model::provider::{CallLimits, Provider, ProviderClient};
use muster_agents::model::target::{ModelProvider, ModelTarget, TargetSettings};
use secrecy::SecretString;
use serde_json::json;

use super::documents::wait;
use super::{ensure, text_of};
use crate::{Seen, Shape, Target};

/// Bodies of responses: the first line says whose protocol it is and which status it has.
pub(super) const STREAMS: Target = Target::new("model_streams", Shape::Text, stream).with_words(&[
    "data: ",
    "data: [DONE]\n\n",
    "event: ",
    "\n\n",
    ": ping\n\n",
    "openai 200\n",
    "anthropic 200\n",
    "gemini 200\n",
    "ollama 200\n",
    "openai 429\n",
    "openai 500\n",
    "\"choices\"",
    "\"delta\"",
    "\"content\"",
    "\"tool_calls\"",
    "\"index\"",
    "\"function\"",
    "\"arguments\"",
    "\"finish_reason\"",
    "\"usage\"",
    "\"prompt_tokens\"",
    "\"error\"",
    "\"message\"",
    "\"content_block_delta\"",
    "\"partial_json\"",
    "\"candidates\"",
    "\"parts\"",
    "\"functionCall\"",
    "\"thought\"",
    "-1",
    "18446744073709551616",
    "1e999",
    "\"\\ud800\"",
]);

/// The body that the server gives next, and its status.
static NEXT: Mutex<(u16, Vec<u8>)> = Mutex::new((200, Vec::new()));

static SERVER: LazyLock<Result<SocketAddr, String>> =
    LazyLock::new(|| serve().map_err(|error| error.to_string()));

fn serve() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

/// Answers each request of a connection.
fn answer(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line)? > 2 {
            let lower = line.to_ascii_lowercase();
            if let Some(said) = lower.strip_prefix("content-length:") {
                length = said.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
        let (status, body) = NEXT.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        writer.write_all(&[head.as_bytes(), &body].concat())?;
    }
}

fn stream(input: &[u8]) -> Result<Seen, String> {
    let address = SERVER.as_ref().map_err(Clone::clone)?;
    let end = input.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let first = text_of(&input[..end]).into_owned();
    let mut said = first.split_whitespace();
    let provider = match said.next() {
        Some("anthropic") => ModelProvider::Anthropic,
        Some("gemini") => ModelProvider::Gemini,
        Some("ollama") => ModelProvider::Ollama,
        Some(_) | None => ModelProvider::OpenAi,
    };
    let status = said
        .next()
        .and_then(|said| said.parse().ok())
        .filter(|status| (200..600).contains(status))
        .unwrap_or(200);
    *NEXT.lock().unwrap_or_else(PoisonError::into_inner) = (status, input[end..].to_vec());
    let endpoint = format!("http://{address}/v1/").parse().map_err(|_| "no address")?;
    let key = Some(SecretString::from("sk-very-secret-key"));
    let target = ModelTarget { provider, model: "m".into(), endpoint: Some(endpoint), key };
    let limits = CallLimits { call: Duration::from_secs(5), ..CallLimits::default() };
    wait(async {
        let asked = Provider::new(target, limits, client()).ok_or("no provider")?;
        match asked.ask(&REQUEST, &mut ignore_deltas).await {
            Ok(answer) => {
                let written = serde_json::to_vec(&answer).map_err(|error| error.to_string())?;
                let again: muster_agents::model::chat::ChatAnswer =
                    serde_json::from_slice(&written).map_err(|error| format!("not read again: {error}"))?;
                ensure(again == answer, || "read again it is another".to_owned())?;
                Ok(Seen::Read)
            }
            Err(error) => {
                let said = error.to_string();
                ensure(!said.contains("sk-very-secret-key"), || "an error shows the key".to_owned())?;
                Ok(Seen::at_door(said.replace(&address.to_string(), "server")))
            }
        }
    })
}

thread_local! {
    static CLIENT: ProviderClient = ProviderClient::default();
}

/// Connections stay with the thread whose runtime drives them.
fn client() -> ProviderClient {
    CLIENT.with(Clone::clone)
}

static REQUEST: LazyLock<ChatRequest> = LazyLock::new(|| {
    let parameters = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    let tools = vec![ToolDecl { name: "search".into(), description: String::new(), parameters }];
    let messages = vec![ChatMessage::user("go on").into()];
    ChatRequest { system: "Be brief.".into(), messages, tools: tools.into(), ..ChatRequest::default() }
});

/// Names of models, as settings and variables have them.
pub(super) const NAMES: Target = Target::new("model_names", Shape::Text, |input| {
    let text = text_of(input);
    let (spec, endpoint) = text.split_once('\n').unwrap_or((&text, ""));
    let endpoint = Some(endpoint.to_owned()).filter(|endpoint| !endpoint.is_empty());
    let settings = TargetSettings { spec: Some(spec.to_owned()), endpoint, ..TargetSettings::default() };
    let resolve = |settings: &TargetSettings| {
        let key = |name: &str| name.ends_with("KEY").then(|| "sk-key".to_owned());
        ModelTarget::resolve(settings, &key, &|_| Err("none".to_owned()))
    };
    match resolve(&settings) {
        Ok(target) => {
            let named = TargetSettings { spec: Some(target.name()), ..settings };
            let again = resolve(&named).map_err(|error| format!("its name is not read: {error}"))?;
            ensure(again.provider == target.provider && again.model == target.model, || {
                format!("by its name {:?} it is {:?}", target.name(), again.name())
            })?;
            let shown = target.endpoint_or_default();
            ensure(
                !shown.contains('#') && (shown.is_empty() || shown.ends_with('/') || shown.contains('?')),
                || format!("an endpoint without its slash: {shown:?}"),
            )?;
            Ok(Seen::Read)
        }
        Err(error) => Ok(Seen::at_door(error)),
    }
})
.with_words(&["claude-", "http://", "https://", "@", "127.0.0.1:1", "?", "#", "::"]);
