//! Whoever may ask one thing and hear the answer: an invitation, and a machine that joined. Without streams and queues.

use std::sync::Arc;
use std::time::Duration;

use async_nats::RequestErrorKind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::ids::AgentId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connect::{Caller, client, speaker};
use super::link::Link;
use super::pinned::Pinned;
use crate::bus::first_error;
use crate::credentials::Fingerprint;
use crate::credentials::rights::inbox;
use crate::error::BusError;
use crate::hosts::{Asking, nudges, read_answer};
use crate::settings::BusSettings;

/// Letters in a line of a certificate's text.
const LINE: usize = 64;

/// A connection of somebody who joins, or has joined.
pub struct Asker {
    client: async_nats::Client,
    link: Arc<Link>,
    who: AgentId,
    pinned: Option<Arc<Pinned>>,
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").field("who", &self.who).finish_non_exhaustive()
    }
}

/// What came of asking.
#[derive(Debug)]
pub enum Reply<T> {
    /// The answer.
    Answered(T),
    /// Nobody is there who answers.
    Nobody,
    /// No answer came, or the connection is gone for now.
    Silence,
}

impl Asker {
    /// Connects by the credentials of the settings, to a server whose certificate is signed by this authority, or by one that
    /// the settings name.
    ///
    /// # Errors
    /// [`BusError::Unreachable`], [`BusError::Unauthorized`] and [`BusError::Settings`].
    pub async fn connect(settings: &BusSettings, authority: Option<Fingerprint>) -> Result<Self, BusError> {
        let url = settings.url.clone().unwrap_or_default();
        let (who, _) = speaker(settings, &AgentId::anonymous())?;
        let (link, pinned) = (Link::new(&url, settings), authority.map(Pinned::new));
        let caller = Caller { settings, url: &url, inbox: inbox(&who), pinned: pinned.as_ref() };
        let client = client(&caller, who.as_str(), &link).await.map_err(|error| match error {
            BusError::Tls { url, .. } if pinned.as_ref().is_some_and(|pinned| pinned.is_another()) => {
                let reason = "another authority vouches for it than the one that is meant".to_owned();
                BusError::Tls { url, reason }
            }
            other => other,
        })?;
        Ok(Self { client, link, who, pinned })
    }

    /// In whose name it speaks.
    #[must_use]
    pub const fn who(&self) -> &AgentId {
        &self.who
    }

    /// The certificate of the fleet's own authority, as text (PEM), where the connection went by its fingerprint.
    #[must_use]
    pub fn authority(&self) -> Option<String> {
        let der = self.pinned.as_ref()?.certificate()?;
        let body = STANDARD.encode(der);
        let lines: Vec<&str> =
            body.as_bytes().chunks(LINE).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        Some(format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n")))
    }

    /// Asks to be let in, or for credentials of a process.
    ///
    /// # Errors
    /// [`BusError::Unauthorized`] and [`BusError::Denied`] once the connection is of no use any more; [`BusError::Codec`] for
    /// an answer that cannot be read.
    pub async fn ask<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        asking: &Asking,
        question: &Q,
        patience: Duration,
    ) -> Result<Reply<A>, BusError> {
        self.link.check()?;
        let payload = serde_json::to_vec(question)?;
        let call = self.client.request(asking.subject(), payload.into());
        let answered = tokio::select! {
            answered = tokio::time::timeout(patience, call) => answered,
            error = self.failed() => return Err(error),
        };
        match answered {
            Ok(Ok(message)) => {
                let answer = read_answer(&message.payload);
                answer.map(Reply::Answered).map_err(|reason| BusError::Codec { reason })
            }
            Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => Ok(Reply::Nobody),
            Ok(Err(_)) | Err(_) => self.link.check().map(|()| Reply::Silence),
        }
    }

    /// Whenever the fleet's keys have changed, from now on.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn nudges(&self) -> Result<BoxStream<'static, ()>, BusError> {
        let nudges = self.client.subscribe(nudges(&self.who)).await;
        let nudges = nudges
            .map_err(|error| BusError::Other { what: "a subscription".into(), reason: error.to_string() })?;
        Ok(nudges.map(|_| ()).boxed())
    }

    /// Waits until the connection is of no use any more, and says why.
    pub async fn failed(&self) -> BusError {
        first_error(self.link.fatal()).await
    }
}
