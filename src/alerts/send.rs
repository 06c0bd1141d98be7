//! How somebody is told: a webhook, a command, or the log.

mod command;
pub(crate) mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_web::{SystemResolver, WebSettings};

use super::notice::{Change, Notice};
use super::rule::Severity;
use crate::settings::{AlertSettings, DestinationKind};
use command::CommandReceiver;
use webhook::WebhookReceiver;

/// The destination that is always there.
pub(crate) const LOG: &str = "log";

/// Most characters of what came back that are told.
const MOST_SAID: usize = 200;

/// Who is told.
pub(crate) enum Receiver {
    /// A URL is sent a signed request.
    Webhook(Box<WebhookReceiver>),
    /// A program is started.
    Command(CommandReceiver),
    /// The log of whoever looks after alerts.
    Log,
}

impl Receiver {
    /// Those that settings name, and the log.
    pub(crate) fn all(settings: &AlertSettings, web: &WebSettings) -> BTreeMap<String, Arc<Self>> {
        let named = settings.destinations.iter().filter_map(|(name, to)| {
            let receiver = match to.kind()? {
                DestinationKind::Webhook(url) => {
                    let receiver = WebhookReceiver::new(name, url, to, web, Arc::new(SystemResolver));
                    Self::Webhook(Box::new(receiver))
                }
                DestinationKind::Command(words) => Self::Command(CommandReceiver::new(words, to.timeout)),
            };
            Some((name.clone(), Arc::new(receiver)))
        });
        named.chain([(LOG.to_owned(), Arc::new(Self::Log))]).collect()
    }

    /// Tells it, and gives what came back.
    ///
    /// # Errors
    /// Says why it was not taken. Nothing in that is secret.
    pub(crate) async fn tell(&self, notice: &Notice) -> Result<String, String> {
        match self {
            Self::Webhook(webhook) => webhook.tell(notice).await,
            Self::Command(command) => command.tell(notice).await,
            Self::Log => {
                log(notice);
                Ok("written to the log of this process".to_owned())
            }
        }
    }
}

fn log(notice: &Notice) {
    let line = notice.line();
    match (notice.change, notice.severity) {
        (Change::Resolved | Change::Test, _) | (_, Severity::Info) => {
            tracing::info!(id = notice.id, "{line}")
        }
        (Change::Fired | Change::Repeated, Severity::Warning) => tracing::warn!(id = notice.id, "{line}"),
        (Change::Fired | Change::Repeated, Severity::Critical) => tracing::error!(id = notice.id, "{line}"),
    }
}
