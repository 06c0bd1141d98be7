//! `http_request`: calls of services that a setting names.

mod admit;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use muster_shared::text::one_line;
use muster_tools::{Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec, Uncertain};
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use self::admit::{Admitted, Services};
use crate::browse::Web;
use crate::content::{self, Kind};
use crate::failure::{WebFailure, shown};
use crate::fetch::text_of;
use crate::secret::{self, Named};
use crate::transfer::{Answer, AnswerLimits, Beyond, Bodies, NoAnswer, Question, exchange};
use muster_tools::settings::HttpSettings;

/// The header by which a service can tell a repetition.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Most headers of an answer that are shown, and the longest of them, in characters.
const MOST_SHOWN: usize = 30;
const LONGEST_SHOWN: usize = 200;

/// Largest body that is sent, in bytes.
const LARGEST_BODY: usize = 1024 * 1024;

/// Calls services.
pub(crate) struct HttpRequest {
    web: Arc<Web>,
    settings: HttpSettings,
    services: OnceLock<Result<Services, String>>,
}

impl HttpRequest {
    pub(crate) fn new(web: Arc<Web>, settings: HttpSettings) -> Self {
        Self { web, settings, services: OnceLock::new() }
    }

    fn services(&self) -> Result<&Services, WebFailure> {
        let read = || Services::new(&self.settings);
        self.services.get_or_init(read).as_ref().map_err(|wrong| WebFailure::Setting(wrong.clone()))
    }
}

#[async_trait]
impl Tool for HttpRequest {
    fn spec(&self) -> ToolSpec {
        let hosts = self.settings.hosts.join(", ");
        ToolSpec::with_properties(
            "http_request",
            format!("Calls a service by HTTP. Only these hosts: {hosts}. Keys that they need are added by themselves."),
            json!({
                    "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], "default": "GET"},
                    "url": {"type": "string", "minLength": 1, "maxLength": 4096},
                    "headers": {
                        "type": "object", "maxProperties": 20,
                        "additionalProperties": {"type": "string", "maxLength": 1000}
                    },
                    "body": {"type": "string", "maxLength": LARGEST_BODY}
                }), &["url"],
        )
        .needing(Permission::Network)
        .until_allowed()
        .with_side_effects()
        .when_uncertain(Uncertain::Ask)
        .with_timeout(self.web.settings.total + std::time::Duration::from_secs(5))
    }

    async fn call(&self, ctx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let admitted = self.services()?.admit(self.web.guard()?, &ctx.rights, text_of(&arguments, "url"))?;
        let method = Method::from_bytes(arguments["method"].as_str().unwrap_or("GET").as_bytes())
            .map_err(|_| ToolFailure::InvalidArguments("There is no such method.".to_owned()))?;
        let mut headers = admitted.headers(&arguments["headers"])?;
        if let (Some(key), false) = (&ctx.idempotency_key, method.is_safe()) {
            let key = HeaderValue::from_str(key);
            headers.insert(
                IDEMPOTENCY_KEY,
                key.map_err(|_| ToolFailure::Failed("The call has no usable name.".to_owned()))?,
            );
        }
        let body = arguments["body"].as_str().map(|body| bytes::Bytes::copy_from_slice(body.as_bytes()));
        if body.as_ref().is_some_and(|body| body.len() > LARGEST_BODY) {
            return Err(ToolFailure::InvalidArguments(format!(
                "The body is larger than {LARGEST_BODY} bytes."
            )));
        }
        let url = admitted.at.url.clone();
        let answer = self.send(&admitted, Question { method: method.clone(), url, headers, body }).await;
        match answer {
            Ok(answer) => Ok(self.told(&admitted, &answer)),
            Err(why) => Err(failed(&admitted.at.host, &method, why)),
        }
    }
}

impl HttpRequest {
    async fn send(&self, admitted: &Admitted<'_>, question: Question) -> Result<Answer, NoAnswer> {
        let client = self.web.clients.of(admitted.at.reach).map_err(NoAnswer::NotConnected)?;
        let limits = AnswerLimits {
            max_bytes: self.web.settings.max_bytes,
            bodies: Bodies::All,
            beyond: Beyond::Refused,
        };
        let sent = async {
            let _turn = self.web.pace.turn(&admitted.at.host).await;
            // A redirect is shown and not followed: it would take keys and effects elsewhere.
            exchange(client, question, limits).await
        };
        tokio::time::timeout(self.web.settings.total, sent).await.unwrap_or(Err(NoAnswer::TimedOut))
    }

    fn told(&self, admitted: &Admitted<'_>, answer: &Answer) -> ToolOutput {
        let secrets = &admitted.secrets;
        let media_type = answer.headers.get("content-type").and_then(|said| said.to_str().ok());
        let text = match content::kind_of(media_type, &answer.body) {
            Kind::Other if !answer.body.is_empty() => {
                format!("({} bytes that are no text)", answer.body.len())
            }
            kind @ (Kind::Html | Kind::Text | Kind::Other) => {
                content::decode(&answer.body, media_type, kind).0
            }
        };
        let text = secret::redacted(&text, secrets);
        let most = usize::try_from(crate::SHOWN_BYTES).unwrap_or(usize::MAX);
        let slice = content::slice(&text, 0, most);
        let mut words =
            format!("{} answers with status {}.\n", shown(admitted.at.url.as_str()), answer.status);
        for (name, value) in answer.headers.iter().take(MOST_SHOWN) {
            let value = secret::redacted(&String::from_utf8_lossy(value.as_bytes()), secrets);
            words.push_str(&format!("{name}: {}\n", one_line(&value, LONGEST_SHOWN)));
        }
        words.push('\n');
        words.push_str(slice.text);
        if slice.to < text.len() {
            words.push_str(&format!(
                "\n[bytes 0 to {} of {}; ask the service for less to see the rest]",
                slice.to,
                text.len()
            ));
        }
        let words = secret::redacted(&words, secrets);
        ToolOutput::text(words).with_data(json!({ "status": answer.status, "bytes": answer.body.len() }))
    }
}

/// What is said of a call without an answer. Whether it took effect is known only where nothing was sent.
fn failed(host: &str, method: &Method, why: NoAnswer) -> ToolFailure {
    let is_unsent =
        matches!(why, NoAnswer::Refused(_) | NoAnswer::NotConnected(_) | NoAnswer::Certificate(_));
    if !is_unsent && !method.is_safe() {
        return ToolFailure::Failed(format!(
            "{host}: {why}. The {method} may have taken effect or not: look before you do it again."
        ));
    }
    WebFailure::NoAnswer { host: host.to_owned(), why }.into()
}

/// The tool, where settings name a host.
pub(crate) fn tool(web: &Arc<Web>, settings: HttpSettings) -> Option<Arc<dyn Tool>> {
    (!settings.hosts.is_empty())
        .then(|| Arc::new(HttpRequest::new(Arc::clone(web), settings)) as Arc<dyn Tool>)
}

/// Makes a secret that is to be taken out of texts.
fn named(name: &str, secret: secrecy::SecretString) -> Named {
    Named { name: name.to_owned(), secret }
}
