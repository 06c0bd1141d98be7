//! What one page wants to be told, and what it is told. Pure.

use axum::response::sse;
use muster_bus::Tapped;
use muster_shared::ids::RunId;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::redaction::redacted_json;
use crate::render;

/// Most events that wait to be sent to one page. One that is slower begins anew: it is told everything again.
pub(crate) const MOST_WAITING: usize = 256;

/// Something that a page is told. Cheap to clone: it is made once for all pages.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// What it is about.
    pub(crate) name: &'static str,
    /// JSON on one line.
    pub(crate) data: std::sync::Arc<str>,
}

impl Told {
    /// Something, as JSON.
    pub(crate) fn new(name: &'static str, data: &Value) -> Self {
        Self { name, data: redacted_json(data.to_string(), serde_json::to_string).into() }
    }

    /// As it is sent.
    pub(crate) fn event(&self) -> sse::Event {
        sse::Event::default().event(self.name).data(&*self.data)
    }
}

/// A page that is kept up to date.
pub(crate) struct Watcher {
    /// The run that it shows in full.
    pub(crate) run: Option<RunId>,
    /// What of the traffic it shows.
    pub(crate) tap: Option<TapFilter>,
    /// Where it is told.
    pub(crate) tells: mpsc::Sender<Told>,
}

impl Watcher {
    /// Tells it something. `false` when it is gone, or does not keep up.
    pub(crate) fn tell(&self, told: &Told) -> bool {
        self.tells.try_send(told.clone()).is_ok()
    }
}

/// What of the traffic is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TapFilter {
    /// Of this run alone.
    pub(crate) run: Option<RunId>,
    /// Sent by processes of this role alone.
    pub(crate) role: String,
    /// Of this kind alone, such as `step`.
    pub(crate) kind: String,
    /// With this in it, whatever its case.
    pub(crate) text: String,
    /// This message, what it answers or follows from, and what follows from it.
    pub(crate) correlation: Option<Uuid>,
}

/// A message that passed, with its JSON, which is made once for all who look.
pub(crate) struct Line {
    role: String,
    kind: String,
    run: Option<RunId>,
    ids: [Option<Uuid>; 2],
    lower: String,
    pub(crate) value: Value,
}

impl Line {
    /// Of a message.
    pub(crate) fn of(tapped: &Tapped) -> Self {
        let value = in_json(tapped);
        let lower = value.to_string().to_lowercase();
        match &tapped.content {
            Ok(envelope) => {
                let sender = render::tap::sender(&tapped.subject, envelope);
                let role = sender.rsplit_once('-').map_or(sender.as_str(), |(role, _)| role).to_owned();
                let ids = [Some(envelope.id), envelope.correlation];
                Self { role, kind: render::tap::kind(&envelope.body), run: envelope.run, ids, lower, value }
            }
            Err(_) => {
                let kind = "unreadable".to_owned();
                Self { role: String::new(), kind, run: None, ids: [None, None], lower, value }
            }
        }
    }
}

/// A message as `muster tap --json` prints it.
pub(crate) fn in_json(tapped: &Tapped) -> Value {
    crate::commands::tap::message(tapped)
}

impl TapFilter {
    /// Whether it shows a message.
    pub(crate) fn shows(&self, line: &Line) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted.eq_ignore_ascii_case(found);
        self.run.is_none_or(|run| line.run == Some(run))
            && is(&self.role, &line.role)
            && is(&self.kind, &line.kind)
            && (self.text.is_empty() || line.lower.contains(&self.text.to_lowercase()))
            && self.correlation.is_none_or(|wanted| line.ids.contains(&Some(wanted)))
    }
}

/// The lines that passed since it was told last, as a page is told.
pub(crate) fn tapped(lines: &[&Value], rate: u64, dropped: u64) -> Value {
    json!({ "lines": lines, "rate": rate, "dropped": dropped })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(role: &str, kind: &str, text: &str) -> Line {
        let ids = [Some(Uuid::from_u128(1)), Some(Uuid::from_u128(2))];
        let value = json!({ "text": text });
        Line {
            role: role.into(),
            kind: kind.into(),
            run: None,
            ids,
            lower: value.to_string().to_lowercase(),
            value,
        }
    }

    #[test]
    fn traffic_is_filtered_by_all_that_is_asked() {
        let line = line("worker", "step", "Counts the <b>Words</b>");
        let shows = |filter: TapFilter| filter.shows(&line);
        assert!(shows(TapFilter::default()));
        assert!(shows(TapFilter {
            role: "Worker".into(),
            kind: "step".into(),
            text: "words".into(),
            ..TapFilter::default()
        }));
        assert!(!shows(TapFilter { role: "planner".into(), ..TapFilter::default() }));
        assert!(!shows(TapFilter { kind: "outcome".into(), ..TapFilter::default() }));
        assert!(!shows(TapFilter { text: "letters".into(), ..TapFilter::default() }));
        assert!(!shows(TapFilter { run: Some(RunId::from_uuid(Uuid::nil())), ..TapFilter::default() }));
        for (id, is) in [(1, true), (2, true), (3, false)] {
            let correlation = Some(Uuid::from_u128(id));
            assert_eq!(shows(TapFilter { correlation, ..TapFilter::default() }), is, "{id}");
        }
    }

    #[test]
    fn whoever_does_not_keep_up_is_let_go() {
        let (tells, mut told) = mpsc::channel(2);
        let watcher = Watcher { run: None, tap: None, tells };
        let one = Told::new("ping", &json!({}));
        assert!(watcher.tell(&one) && watcher.tell(&one) && !watcher.tell(&one));
        assert_eq!(told.try_recv().unwrap().name, "ping");
        drop(told);
        assert!(!watcher.tell(&one));
    }
}
