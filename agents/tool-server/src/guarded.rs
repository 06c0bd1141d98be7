//! Calls of endpoints over HTTP, behind the guard of the web.

use std::sync::Arc;

use async_trait::async_trait;
use muster_tools::settings::WebSettings;
use muster_web::{EndpointCall, EndpointFailure, Endpoints, Resolver, SystemResolver};

use crate::file::http::{HttpAnswer, HttpCaller, HttpFailure, HttpRequest};

/// Calls endpoints where they may be: at public addresses, each of them judged, and at others only where the tool file or
/// `tool.web.allow_hosts` names the host.
pub struct GuardedCaller {
    endpoints: Endpoints,
}

impl GuardedCaller {
    /// By the settings of the web.
    #[must_use]
    pub fn new(settings: WebSettings) -> Self {
        Self::looking_up(settings, Arc::new(SystemResolver))
    }

    /// The same where names are looked up by this.
    #[must_use]
    pub fn looking_up(settings: WebSettings, resolver: Arc<dyn Resolver>) -> Self {
        Self { endpoints: Endpoints::new(settings, resolver) }
    }
}

#[async_trait]
impl HttpCaller for GuardedCaller {
    async fn call(&self, request: HttpRequest) -> Result<HttpAnswer, HttpFailure> {
        let HttpRequest { method, url, headers, body, most, private } = request;
        let asked = EndpointCall {
            method: method.as_str(),
            url: &url,
            headers: &headers,
            body,
            private: &private,
            most: most as u64,
        };
        let answer = self.endpoints.call(asked).await.map_err(|failure| match failure {
            EndpointFailure::Refused(why) => HttpFailure::Refused(format!(
                "{why}. If it is meant, the tool file has to name the host in `hosts` of [touches]"
            )),
            EndpointFailure::NotSent(why) => HttpFailure::NotSent(why),
            EndpointFailure::Lost(why) => HttpFailure::Lost(why),
        })?;
        let (status, content_type) = (answer.status, answer.content_type);
        Ok(HttpAnswer { status, content_type, body: answer.body, cut: answer.cut })
    }
}
