//! Alert thresholds and the webhook that receives alerts.

use std::path::PathBuf;
use std::time::Duration;

use muster_shared::setting::Secret;
use muster_shared::settings;
use secrecy::SecretString;

settings! {
    /// Alerts on failing tools, slow steps, and waiting questions, posted to one webhook (docs/alerts.md).
    pub(crate) struct AlertSettings {
        /// URL that receives alerts as JSON, set by MUSTER_ALERTS_WEBHOOK. Without a URL, no alerts are evaluated.
        pub(crate) webhook: Option<Secret> = None => secret(); Fleet Trust,
        /// File with the URL.
        pub(crate) webhook_file: Option<PathBuf> = None => text().example("\"/run/secrets/muster-webhook\""); Fleet Trust,
        /// Share of a tool's calls that may fail within 10 minutes; tools with fewer than 5 calls are ignored.
        pub(crate) max_tool_failure_rate: f64 = 0.2 => real(0.0, 1.0); Fleet Trust,
        /// Mean time of a role's steps within 10 minutes; roles with fewer than 3 steps are ignored.
        #[serde(with = "muster_shared::span")]
        pub(crate) max_step_duration: Duration = Duration::from_secs(30) => span(100, HOUR); Fleet Trust,
        /// Time that a question may wait for its answer.
        #[serde(with = "muster_shared::span")]
        pub(crate) max_question_wait: Duration = Duration::from_secs(300) => span(100, 30 * DAY); Fleet Trust,
    }
}

impl AlertSettings {
    /// URL of the webhook, if one is set.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn url(&self) -> Result<Option<SecretString>, String> {
        match (&self.webhook, &self.webhook_file) {
            (Some(url), _) => Ok(Some((**url).clone())),
            (None, Some(file)) => {
                let path = file.display().to_string();
                let read = crate::secrets::read(&path).map_err(|why| format!("file {path} {why}"))?;
                Ok(Some(read.into()))
            }
            (None, None) => Ok(None),
        }
    }
}
