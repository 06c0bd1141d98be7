//! Models as settings name them: made out, and for `muster doctor` reached.

mod trial;

use std::collections::BTreeMap;
use std::time::Duration;

use muster_agents::model::target::{ModelProvider, ModelTarget, TargetError, TargetSettings};
use muster_shared::ids::Role;
use muster_shared::wire::Profile;
use reqwest::StatusCode;
use secrecy::ExposeSecret;

use crate::app::App;
use crate::exit::Failure;
use crate::render::checks::{Check, CheckResult};
use crate::render::figures;
use crate::secrets;

pub(super) use self::trial::models;

/// Longest wait for a provider's list of models.
const LIMIT: Duration = Duration::from_secs(5);

/// Most of a list of models that is read, in bytes.
const MAX_LIST: usize = 4 * 1024 * 1024;

/// Refuses a model whose name cannot be made out. A missing key is no reason: the fleet may have it.
pub(crate) fn check(app: &App, model: &str) -> Result<(), Failure> {
    match resolve(app, Some(model)) {
        Err(error @ TargetError::UnknownModel { .. }) => Err(Failure::usage(error)),
        _ => Ok(()),
    }
}

/// Whether a goal is worked on without a language model, as far as it can be told here: by this model, else by the one
/// of the settings.
pub(super) fn is_offline(app: &App, model: Option<&str>) -> bool {
    let spec = model.or(app.settings().agent.model.as_deref());
    resolve(app, spec).is_ok_and(|target| target.provider == ModelProvider::Offline)
}

/// The lines of `muster doctor` about models: one for each that some role uses, by the agents that are online, else by the
/// settings here.
pub(super) async fn checks(app: &App, agents: &[Profile]) -> Vec<Check> {
    let mut by_model: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
    for role in Role::BUILT_IN {
        let name = role.to_string();
        let online = agents.iter().find(|agent| agent.role == name && !agent.model.is_empty());
        let reported = online.map(|agent| agent.model.split(", then ").next().unwrap_or_default());
        by_model.entry(reported.or(app.settings().agent.model_of(&role))).or_default().push(name);
    }
    let mut checks = Vec::new();
    for (spec, roles) in by_model {
        let what = if roles.len() == Role::BUILT_IN.len() {
            "model".to_owned()
        } else {
            format!("model ({})", roles.join(", "))
        };
        if let Some(missing) = spec.and_then(|spec| spec.strip_prefix("none (")) {
            let remedy =
                "set agent.model or its key where the fleet starts, then `muster down` and `muster up`";
            checks.push(Check::fail(&what, missing.trim_end_matches(')'), remedy));
            continue;
        }
        let mut check = match resolve(app, spec) {
            Ok(target) => reach(&what, &target).await,
            Err(error) => Check::fail(
                &what,
                error.to_string(),
                "mend agent.model, the key or the address; `--model offline` needs none",
            ),
        };
        // The fleet that is up may have another key, address and network than this shell.
        if !agents.is_empty() && check.verdict == CheckResult::Fail {
            check.verdict = CheckResult::Warn;
            check.found = format!("{} (agents); from this shell: {}", spec.unwrap_or_default(), check.found);
        }
        checks.push(check);
    }
    checks
}

/// The model that a name means.
///
/// # Errors
/// When it cannot be made out, or its key is not there.
pub(crate) fn resolve(app: &App, spec: Option<&str>) -> Result<ModelTarget, TargetError> {
    let agent = &app.settings().agent;
    let settings = TargetSettings {
        spec: spec.map(str::to_owned),
        endpoint: agent.endpoint.clone(),
        key_file: agent.key_file.clone(),
    };
    ModelTarget::resolve(&settings, &|name| std::env::var(name).ok(), &secrets::read)
}

async fn reach(what: &str, target: &ModelTarget) -> Check {
    if target.provider == ModelProvider::Offline {
        return Check::ok(what, "offline: rules over your documents, no language model and no key");
    }
    match list(target).await {
        // Whoever serves a model need not list it: what it serves is seen when it is asked.
        Ok(ModelList::None) => Check::ok(what, format!("{target}: the server does not list its models")),
        Ok(ModelList::Listed(models))
            if models.contains(&format!("{}\"", target.model)) || models.contains(&target.model) =>
        {
            Check::ok(what, target.to_string())
        }
        Ok(ModelList::Listed(_)) => Check::warn(
            what,
            format!("{target} answers, but does not list this model"),
            "check the model's name against the provider's list",
        ),
        Err(reason) => Check::fail(what, format!("{target}: {}", target.redact(&reason)), mend(target)),
    }
}

fn mend(target: &ModelTarget) -> String {
    let keys = target.provider.key_variables().join(" or ");
    let addresses = target.provider.endpoint_variables().join(" or ");
    match (keys.is_empty(), addresses.is_empty()) {
        (false, false) => format!("check the key ({keys}), the address ({addresses}) and the network"),
        (true, false) => format!("start the server, or set its address ({addresses})"),
        (_, true) => "check the key and the network".to_owned(),
    }
}

/// What a server says of the models that it has.
enum ModelList {
    /// Its list, as it came.
    Listed(String),
    /// It answers, but has no such list.
    None,
}

/// The provider's list of models.
async fn list(target: &ModelTarget) -> Result<ModelList, String> {
    let mut response = request(target)?.send().await.map_err(|e| deepest(&e))?;
    match response.status() {
        status if status.is_success() => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err("the key is refused".to_owned()),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            return Ok(ModelList::None);
        }
        status => return Err(format!("its list of models answers {status}")),
    }
    let mut text = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|e| deepest(&e))? {
        text.extend_from_slice(&part);
        if text.len() > MAX_LIST {
            return Err(format!("its list of models is longer than {}", figures::bytes(MAX_LIST as u64)));
        }
    }
    Ok(ModelList::Listed(String::from_utf8_lossy(&text).into_owned()))
}

/// The request for the list of models.
fn request(target: &ModelTarget) -> Result<reqwest::RequestBuilder, String> {
    let client = reqwest::Client::builder().timeout(LIMIT).build().map_err(|e| e.to_string())?;
    let base = target.endpoint_or_default();
    let path = match target.provider {
        ModelProvider::Ollama => "api/tags",
        _ => "models",
    };
    let request = client.get(format!("{base}{path}"));
    let Some(key) = &target.key else { return Ok(request) };
    let key = key.expose_secret();
    Ok(match target.provider {
        ModelProvider::Anthropic => {
            request.header("x-api-key", key).header("anthropic-version", "2023-06-01")
        }
        ModelProvider::Gemini => request.header("x-goog-api-key", key),
        ModelProvider::OpenAi | ModelProvider::Ollama | ModelProvider::Offline => request.bearer_auth(key),
    })
}

/// The innermost reason: outer ones only repeat the address.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::render::checks::CheckResult;

    /// What is said of a server that answers the request for its models like this.
    async fn said_of(answer: &'static str) -> Check {
        // As the program does when it starts.
        let _installed_already = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _asked = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let target = ModelTarget {
            provider: ModelProvider::OpenAi,
            model: "small".to_owned(),
            endpoint: Some(format!("http://{address}/v1/").parse().unwrap()),
            key: None,
        };
        let check = reach("model", &target).await;
        serving.await.unwrap();
        check
    }

    #[tokio::test]
    async fn a_server_need_not_list_its_models() {
        for answer in [
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            "HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        ] {
            let check = said_of(answer).await;
            assert_eq!(check.verdict, CheckResult::Ok, "{check:?}");
            assert!(check.found.contains("the server does not list its models"), "{check:?}");
        }
    }

    #[tokio::test]
    async fn a_server_that_lists_others_or_fails_is_told() {
        for (answer, verdict, told) in [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n[\"large\"]",
                CheckResult::Warn,
                "does not list this model",
            ),
            (
                "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                CheckResult::Fail,
                "its list of models answers 503",
            ),
            (
                "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                CheckResult::Fail,
                "the key is refused",
            ),
        ] {
            let check = said_of(answer).await;
            assert_eq!(check.verdict, verdict, "{check:?}");
            assert!(check.found.contains(told), "{check:?}");
        }
    }
}
