//! `muster tap`: one line for each message that passes.

use muster_bus::subject::Subject;
use muster_shared::flow::{Awaited, PeerAnswer, Wait};
use muster_shared::ids::AgentId;
use muster_shared::run::event::{InformationShared, TaskAnswered};
use muster_shared::run::{Decided, Request, RequestAction, RunEvent};
use muster_shared::time::Millis;
use muster_shared::wire::ask::Ask;
use muster_shared::wire::{Body, Command, ControlMessage, Envelope, LiveKind, OwnerAnswer, OwnerMessage};

use super::paint::Paint;
use super::{doing, figures};

/// Most characters of a line's text.
const BRIEF: usize = 140;

/// A message in one line: when, who, what kind, which run and task, and what it says in brief.
pub(crate) fn line(at: Millis, subject: &str, content: &Result<Envelope, String>, paint: Paint) -> String {
    let clock = paint.dim(&figures::clock(at));
    match content {
        Ok(envelope) => {
            let kind = kind(&envelope.body);
            let run = envelope.run.map_or_else(String::new, |run| run.short());
            let task = envelope.task.as_ref().map_or_else(String::new, ToString::to_string);
            let who = paint.bold(&format!("{:<22}", sender(subject, envelope)));
            let about = format!("{run:<12} {task:<12}");
            format!("{clock} {who} {kind:<12} {about} {}", figures::one_line(&says(&envelope.body), BRIEF))
                .trim_end()
                .to_owned()
        }
        Err(reason) => {
            let reason = figures::one_line(reason, BRIEF);
            format!("{clock} {} {}: {reason}", paint.bad("unreadable"), figures::one_line(subject, 120))
        }
    }
}

/// Who sent a message. A program that does not say so in the envelope says it by the subject.
pub(crate) fn sender(subject: &str, envelope: &Envelope) -> String {
    let named = match Subject::parse(subject) {
        Ok(Subject::Event(_, key, _)) => Some(key.agent),
        Ok(
            Subject::Heartbeat(_, agent)
            | Subject::Live(_, _, agent, _)
            | Subject::Bid(_, agent, ..)
            | Subject::Queues(_, agent),
        ) => Some(agent),
        _ => None,
    };
    match named.filter(|_| envelope.sender == AgentId::anonymous()) {
        Some(agent) => agent.to_string(),
        None => envelope.sender.to_string(),
    }
}

/// Where a process runs, as far as it says.
fn place(pid: u32, host: &str) -> String {
    let pid = if pid == 0 { String::new() } else { format!(" (pid {pid})") };
    let host = if host.is_empty() { String::new() } else { format!(" on {host}") };
    format!("{host}{pid}")
}

/// What kind of message it is.
pub(crate) fn kind(body: &Body) -> String {
    match serde_json::to_value(body.kind()) {
        Ok(serde_json::Value::String(kind)) => kind,
        _ => "?".to_owned(),
    }
}

/// An event by its name. What peers tell and answer each other is told with it.
fn event(event: &RunEvent) -> String {
    match event {
        RunEvent::TaskAnswered(TaskAnswered { task, observation, answer: Some(answer), .. }) => {
            let what = match **answer {
                PeerAnswer::HelpGiven { .. } => "help given",
                PeerAnswer::InformationShared { .. } => "information shared",
                PeerAnswer::ContextGiven { .. } => "context given",
                PeerAnswer::CapabilityFound { .. } => "capability found",
                PeerAnswer::ContextWritten { .. } => "context written",
                PeerAnswer::ContextFound { .. } => "context found",
            };
            format!("{what} to {task}: {}", observation.content)
        }
        RunEvent::InformationShared(InformationShared { from, person, text, .. }) => {
            let from = from.as_ref().map_or_else(|| person.clone(), ToString::to_string);
            format!("{} from {from}: {text}", event.name())
        }
        // Whatever else happens is told by the trace.
        other => other.name().to_owned(),
    }
}

fn owners(message: &OwnerMessage) -> String {
    match message {
        OwnerMessage::Order { command, signed: _ } => format!("{} handed on", command.name()),
        OwnerMessage::Answer { answer: OwnerAnswer::Recorded } => "recorded".to_owned(),
        OwnerMessage::Answer { answer: OwnerAnswer::NoSuchRun } => "no such run".to_owned(),
        OwnerMessage::Answer { answer: OwnerAnswer::Later } => "not now".to_owned(),
        OwnerMessage::Due { run } => format!("it is time to look at run {}", run.short()),
    }
}

fn request(Request { reason, action, .. }: &Request) -> String {
    match action {
        RequestAction::Skip { task } | RequestAction::Redo { task } => {
            format!("{} {task}: {reason}", action.name())
        }
        RequestAction::Edit { task: Some(task), goal } => format!("edit {task}: {goal}"),
        RequestAction::Edit { task: None, goal } => format!("edit: {goal}"),
        RequestAction::Approve { arguments: Some(arguments), .. } => {
            format!("approve with {arguments}: {reason}")
        }
        RequestAction::Approve { plan: Some(_), .. } => format!("approve with an edited plan: {reason}"),
        RequestAction::Answer { question, text } => format!("answer {question}: {text}"),
        RequestAction::SetContext { key, value, .. } => format!("context.{key} = {value}"),
        _ => format!("{}: {reason}", action.name()),
    }
}

/// A decision: what follows from it, and what it offers.
fn decided(decided: &Decided) -> String {
    let events = decided.events.iter().map(event);
    let offers = match (&decided.offer, decided.offers) {
        (Some(offer), _) => Some(format!("offers it to {} (generation {})", offer.queue, offer.generation)),
        (None, 0) => None,
        (None, n) => Some(figures::plural(n.into(), "offer")),
    };
    figures::list(events.chain(offers))
}

fn command(command: &Command) -> String {
    match command {
        Command::Submit { goal, .. } => format!("submit: {}", goal.text),
        Command::Attend { goal, .. } => format!("submit for a task: {}", goal.text),
        Command::ChildEnded { child, .. } => format!("{} has ended", child.short()),
        Command::Fork { from, .. } => format!("fork of {} at {}", from.run.short(), from.at),
        Command::Request(asked) => request(asked),
    }
}

fn control(message: &ControlMessage) -> String {
    match message {
        ControlMessage::CancelRun { run, reason } => {
            format!("cancel run {}: {reason}", run.short())
        }
        ControlMessage::CancelTask { task, reason, .. } => format!("cancel {task}: {reason}"),
        ControlMessage::ParkRun { run, reason } => {
            format!("park run {}: {reason}", run.short())
        }
        ControlMessage::ParkTask { task, reason, .. } => format!("park {task}: {reason}"),
        ControlMessage::Inform { task, information, .. } if information.is_empty() => {
            format!("progress for {task}")
        }
        ControlMessage::Inform { task, information, .. } => {
            let told = information.iter().map(|one| format!("from {}: {}", one.teller(), one.text));
            format!("information for {task}: {}", told.collect::<Vec<_>>().join("; "))
        }
        ControlMessage::Shutdown => "shut down".to_owned(),
        ControlMessage::Owners(message) => owners(message),
    }
}

fn says(body: &Body) -> String {
    match body {
        Body::Decided(decided) => self::decided(decided),
        Body::Offered(offer) => format!("to {} (generation {})", offer.queue, offer.generation),
        Body::Started(started) => {
            let attempt = match started.attempt.0 {
                0 => "started".to_owned(),
                attempt => format!("attempt {attempt}"),
            };
            format!("{attempt}{}", place(started.pid, &started.host))
        }
        Body::ToolStarted(tool) => format!("step {} calls {}", tool.step.number, doing::called(&tool.step)),
        Body::Step(step) => {
            let acts = step.acts().map(|(action, _)| format!("{} {}", action.name, action.arguments));
            let acts: Vec<String> = acts.collect();
            format!("step {}: {} — {}", step.number, acts.join("; "), step.thought.text)
        }
        Body::Released(released) => match released.wait.as_deref() {
            Some(Awaited { wait: Wait::Peer(request), .. }) => request.in_words(),
            _ => released.reason.clone(),
        },
        Body::Outcome(outcome) => format!("{:?} {}", outcome.ending, outcome.reason),
        Body::Command(asked) => command(asked),
        Body::Control(message) => control(message),
        Body::Heartbeat(beat) => format!("{}/{} busy", beat.busy, beat.slots),
        Body::Profile(profile) => format!("{}{}", profile.role, place(profile.pid, &profile.host)),
        Body::Ask(Ask::Submit { goal, .. }) => format!("submit, to be answered: {}", goal.text),
        Body::Accepted(accepted) => {
            let queued = if accepted.queued { ", which stays queued for now" } else { "" };
            format!("accepted as run {}{queued}", accepted.run.short())
        }
        Body::Error(refused) => refused.reason.clone(),
        Body::Live(live) => match &live.kind {
            LiveKind::Thought { text } => format!("step {} thinks: {text}", live.step),
            LiveKind::Answer { text } => format!("step {} answers: {text}", live.step),
            LiveKind::Status { text, .. } => format!("step {}: {text}", live.step),
        },
        Body::Call(call) => format!("who does {} ({})? bids for {} ms", call.task, call.name, call.window_ms),
        Body::Bid(bid) => format!(
            "bids for {}: {} ms, ${:.4}, {} % sure",
            bid.task,
            bid.millis,
            bid.cost_micros as f64 / 1e6,
            bid.confidence
        ),
        Body::Stored(stored) => {
            format!("{:?} of {} in the object store", stored.kind, figures::bytes(stored.bytes))
        }
    }
}
