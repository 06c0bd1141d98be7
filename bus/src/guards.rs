//! Guards: asked on `guard.<name>` by NATS request and reply, in JSON. Any process of any language answers; of several with
//! one name, one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use muster_shared::flow::{
    GuardFailure, GuardReply, GuardRequest, GuardRule, GuardVerdict, Guarded, Hook, Ruling,
};
use muster_shared::ids::RunId;
use muster_shared::wire::{Encoding, decode, encode};
use serde_json::{Value, json};

use crate::backend::{Headers, INBOX, Incoming, Message};
use crate::bus::Core;
use crate::error::BusError;
use crate::seal::{CONTENT_TYPE, encoding_of};
use crate::subject::guard_requests;

/// Pause before a guard is asked again that nobody is: one that is started anew is back within a moment.
const AGAIN: Duration = Duration::from_millis(50);

/// By this name guards are told that somebody only looks whether they are there.
const PROBED: &str = "doctor";

/// How long somebody who only looks waits for an answer, in milliseconds.
const MOST_PROBE_MS: u64 = 1_000;

/// Largest verdict that is read, in bytes.
const MOST_REPLY: usize = 1024 * 1024;

/// The door to guards.
#[derive(Clone)]
pub struct GuardDoor {
    pub(crate) core: Arc<Core>,
}

/// What guards are asked about, and in which run.
#[derive(Debug, Clone)]
pub struct GuardedThing {
    /// At which hook.
    pub hook: Hook,
    /// The run.
    pub run: RunId,
    /// The task, where it is about one.
    pub task: Option<String>,
    /// The role of who asks.
    pub role: String,
    /// What it is about, by the hook.
    pub payload: Value,
}

impl GuardDoor {
    /// Asks these guards, one after the other, until one refuses: each is shown what those before it made of it. `fits` says
    /// what is wrong with something that is to stand in the place of the payload.
    pub async fn ask_all(
        &self,
        rules: impl IntoIterator<Item = &GuardRule> + Send,
        mut thing: GuardedThing,
        fits: &(dyn Fn(&Value) -> Result<(), String> + Sync),
    ) -> Guarded {
        let mut said = Guarded::default();
        for rule in rules {
            let asked = self.ask(rule, &thing).await.map(|reply| whole(reply, &thing.payload));
            let (mut verdict, mut changed) = GuardVerdict::of(rule, asked, fits);
            verdict.reason = self.core.redactor.redact(&verdict.reason).into_owned();
            if let Some(changed) = &mut changed {
                self.core.redactor.redact_value(changed);
                thing.payload = changed.clone();
            }
            if verdict.failed {
                tracing::warn!(run = %thing.run, hook = thing.hook.as_str(), "{}", verdict.reason);
            }
            said.push(verdict, changed);
            if said.refusal().is_some() {
                break;
            }
        }
        said
    }

    /// Asks a guard about nothing in particular, to see whether it is there and answers.
    ///
    /// # Errors
    /// Why there is no verdict.
    pub async fn probe(&self, rule: &GuardRule) -> Result<(), GuardFailure> {
        let hook = rule.hooks.first().copied().unwrap_or(Hook::BeforeTool);
        let payload = match hook {
            Hook::BeforePlan => json!({ "plan": { "tasks": [] } }),
            Hook::BeforeModel => json!({ "messages": [] }),
            Hook::BeforeTool => json!({ "tool": PROBED, "arguments": {} }),
            Hook::AfterObservation => {
                json!({ "tool": PROBED, "arguments": {}, "status": "success", "content": "" })
            }
            Hook::BeforeReport => json!({ "report": { "title": "", "body": "" } }),
        };
        let (run, role) = (RunId::from_uuid(uuid::Uuid::nil()), PROBED.to_owned());
        let rule = GuardRule { timeout_ms: rule.timeout_ms.min(MOST_PROBE_MS), ..rule.clone() };
        self.ask(&rule, &GuardedThing { hook, run, task: None, role, payload }).await.map(drop)
    }

    async fn ask(&self, rule: &GuardRule, thing: &GuardedThing) -> Result<GuardReply, GuardFailure> {
        let mut payload = thing.payload.clone();
        self.core.redactor.redact_value(&mut payload);
        let (agent, role, task) = (self.core.who.to_string(), thing.role.clone(), thing.task.clone());
        let request = GuardRequest { hook: thing.hook, run: thing.run, task, agent, role, payload };
        let not_asked = |why: String| GuardFailure::NotAsked(why);
        let value = serde_json::to_value(&request).map_err(|error| not_asked(error.to_string()))?;
        let bytes = encode(&value, Encoding::Json).map_err(|error| not_asked(error.to_string()))?;
        let message = self.request(rule, bytes).await?;
        read(&message)
    }

    /// The answer of a guard. One that nobody is right now is waited for: it may be starting.
    async fn request(&self, rule: &GuardRule, bytes: Vec<u8>) -> Result<Message, GuardFailure> {
        let (begun, whole) = (Instant::now(), Duration::from_millis(rule.timeout_ms));
        let payload = bytes::Bytes::from(bytes);
        loop {
            let mut headers = Headers::default();
            headers.add(CONTENT_TYPE, Encoding::Json.content_type());
            let message = Message { subject: guard_requests(&rule.name), headers, payload: payload.clone() };
            let left = whole.saturating_sub(begun.elapsed());
            match self.core.backend.request(message, left).await {
                Ok(answer) => return Ok(answer),
                Err(BusError::TimedOut { .. }) => return Err(GuardFailure::Hung),
                Err(error @ (BusError::TooLarge { .. } | BusError::Denied { .. })) => {
                    return Err(GuardFailure::NotAsked(error.to_string()));
                }
                Err(_) if begun.elapsed() + AGAIN >= whole => return Err(GuardFailure::Gone),
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }

    /// Requests to the guard of this name from now on, each given to one of all who serve it.
    ///
    /// # Errors
    /// When the bus fails.
    pub async fn serve(&self, name: &str) -> Result<BoxStream<'static, OpenRequest>, BusError> {
        let requests = self.core.backend.serve(&guard_requests(name), name).await?;
        let core = Arc::clone(&self.core);
        let opened = move |incoming| std::future::ready(OpenRequest::read(&core, incoming));
        Ok(requests.filter_map(opened).boxed())
    }
}

/// A verdict that changes something, with what it leaves as it was.
fn whole(reply: GuardReply, was: &Value) -> GuardReply {
    let payload = reply.payload.map(|changed| match (was, changed) {
        (Value::Object(was), Value::Object(changed)) => {
            Value::Object(was.clone().into_iter().chain(changed).collect())
        }
        (_, changed) => changed,
    });
    GuardReply { payload, ..reply }
}

/// A verdict as a program gives it.
fn read(message: &Message) -> Result<GuardReply, GuardFailure> {
    let bytes = message.payload.len();
    if bytes > MOST_REPLY {
        return Err(GuardFailure::Garbage(format!("it has {bytes} bytes, {MOST_REPLY} is the most")));
    }
    // Whoever writes JSON need not say so.
    let encoding = match message.headers.get(CONTENT_TYPE) {
        Some(_) => encoding_of(message),
        None => Encoding::Json,
    };
    let value: Value =
        decode(&message.payload, encoding).map_err(|error| GuardFailure::Garbage(error.to_string()))?;
    serde_json::from_value(value).map_err(|error| GuardFailure::Garbage(error.to_string()))
}

/// A request that waits for the verdict of a guard.
pub struct OpenRequest {
    core: Arc<Core>,
    reply: String,
    encoding: Encoding,
    /// Since when it is looked at.
    since: Instant,
    /// What is asked, or what is wrong with it.
    pub asked: Result<GuardRequest, String>,
}

impl OpenRequest {
    /// Nothing where an answer would do harm.
    fn read(core: &Arc<Core>, Incoming { message, reply }: Incoming) -> Option<Self> {
        let reply = reply.filter(|reply| reply.starts_with(INBOX))?;
        let encoding = encoding_of(&message);
        let asked = decode::<Value>(&message.payload, encoding).map_err(|error| error.to_string());
        let asked = asked.and_then(|value| serde_json::from_value(value).map_err(|error| error.to_string()));
        Some(Self { core: Arc::clone(core), reply, encoding, since: Instant::now(), asked })
    }

    /// Answers it.
    ///
    /// # Errors
    /// When the answer is too large, or the bus fails.
    pub async fn answer(&self, verdict: &GuardReply) -> Result<(), BusError> {
        let value = serde_json::to_value(verdict)?;
        let payload = encode(&value, self.encoding)?.into();
        let mut headers = Headers::default();
        headers.add(CONTENT_TYPE, self.encoding.content_type());
        self.core.backend.publish(Message { subject: self.reply.clone(), headers, payload }).await?;
        self.note(verdict.verdict);
        Ok(())
    }

    /// Tells whoever looks on of a verdict. Whoever only looks whether a guard is there asks for none.
    fn note(&self, verdict: Ruling) {
        let Ok(request) = &self.asked else { return };
        if let Some(observer) = self.core.observer.as_ref().filter(|_| request.role != PROBED) {
            observer.judged(request.hook, verdict, self.since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use muster_shared::flow::OnFailure;
    use muster_shared::ids::{Role, Seq};
    use muster_shared::run::{AgentEvent, AgentKey};
    use muster_shared::wire::TraceContext;
    use muster_shared::wire::tool_server::ServedStatus;

    use super::*;
    use crate::bus::Bus;
    use crate::observer::{DecisionSeen, Observer, RunProgress};

    /// Notes the verdicts that it is told of.
    #[derive(Default)]
    struct Notes(Mutex<Vec<(Hook, Ruling)>>);

    impl Observer for Notes {
        fn decided(&self, _: RunId, _: Seq, _: &DecisionSeen) {}
        fn progressed(&self, _: RunId, _: RunProgress) {}
        fn left(&self, _: RunId) {}
        fn address(&self) -> String {
            String::new()
        }
        fn reported(&self, _: RunId, _: &AgentKey, _: &AgentEvent, _: Option<&TraceContext>) {}
        fn judged(&self, hook: Hook, verdict: Ruling, _: Duration) {
            self.0.lock().unwrap().push((hook, verdict));
        }
        fn served(&self, _: &str, _: ServedStatus, _: Duration) {}
    }

    fn rule(name: &str, on_failure: OnFailure) -> GuardRule {
        let (hooks, tools, roles) = (Hook::ALL.to_vec(), Vec::new(), Vec::new());
        GuardRule { name: name.to_owned(), hooks, on_failure, timeout_ms: 200, tools, roles }
    }

    fn thing() -> GuardedThing {
        let run: RunId = "0190a1b2c3d4700080000000000000aa".parse().unwrap();
        let (task, role) = (Some("1".to_owned()), Role::Worker.to_string());
        GuardedThing { hook: Hook::BeforeTool, run, task, role, payload: json!({ "n": 1 }) }
    }

    /// A program that is a guard: it answers with these bytes, as they are, or not at all.
    async fn program(bus: &Bus, name: &str, answer: Option<&'static [u8]>) {
        let backend = Arc::clone(&bus.core.backend);
        let mut requests = backend.serve(&guard_requests(name), name).await.unwrap();
        tokio::spawn(async move {
            while let Some(Incoming { reply, .. }) = requests.next().await {
                let (Some(subject), Some(answer)) = (reply, answer) else { continue };
                let (headers, payload) = (Headers::default(), bytes::Bytes::from_static(answer));
                backend.publish(Message { subject, headers, payload }).await.unwrap();
            }
        });
    }

    #[tokio::test]
    async fn guards_are_asked_in_turn_and_see_what_became_of_it() {
        let bus = Bus::in_memory(&"worker-1".parse().unwrap());
        program(&bus, "adds", Some(br#"{"verdict": "change", "reason": "more", "payload": {"m": 2}}"#)).await;
        let mut requests = bus.guards().serve("looks").await.unwrap();
        tokio::spawn(async move {
            while let Some(asked) = requests.next().await {
                let saw = asked.asked.as_ref().unwrap().payload.clone();
                asked.answer(&GuardReply::refuse(format!("saw {saw}"))).await.unwrap();
            }
        });
        let rules = [
            rule("adds", OnFailure::Refuse),
            rule("looks", OnFailure::Refuse),
            rule("gone", OnFailure::Refuse),
        ];
        let said = bus.guards().ask_all(&rules, thing(), &|_| Ok(())).await;
        assert_eq!(
            said.to_string(),
            "changed by guard adds: more; refused by guard looks: saw {\"n\":1,\"m\":2}",
            "nobody is asked after a refusal"
        );
        let said = bus.guards().ask_all(&rules[..1], thing(), &|_| Err("it is too odd".to_owned())).await;
        assert!(said.to_string().contains("it is too odd") && said.refusal().is_some(), "{said}");
    }

    #[tokio::test]
    async fn whoever_gives_no_verdict_is_told_of_and_its_setting_decides() {
        let bus = Bus::in_memory(&"worker-1".parse().unwrap());
        program(&bus, "hangs", None).await;
        program(&bus, "raves", Some(b"well, \xff maybe")).await;
        program(&bus, "deep", Some(br#"{"verdict": "perhaps"}"#)).await;
        let table = [
            ("gone", "no process serves the subject guard.gone"),
            ("hangs", "did not answer within 200 ms"),
            ("raves", "what is no verdict"),
            ("deep", "perhaps"),
        ];
        for (name, words) in table {
            for (on_failure, wanted) in
                [(OnFailure::Refuse, Ruling::Refuse), (OnFailure::Allow, Ruling::Allow)]
            {
                let said = bus.guards().ask_all(&[rule(name, on_failure)], thing(), &|_| Ok(())).await;
                let [verdict] = &said.verdicts[..] else { unreachable!("{said:?}") };
                assert_eq!((verdict.verdict, verdict.failed), (wanted, true), "{verdict}");
                assert!(verdict.reason.contains(words), "{verdict}");
            }
        }
    }

    #[tokio::test]
    async fn it_can_be_seen_whether_a_guard_is_there() {
        let bus = Bus::in_memory(&"worker-1".parse().unwrap());
        program(&bus, "here", Some(br#"{"verdict": "allow"}"#)).await;
        assert_eq!(bus.guards().probe(&rule("here", OnFailure::Refuse)).await, Ok(()));
        assert_eq!(bus.guards().probe(&rule("gone", OnFailure::Refuse)).await, Err(GuardFailure::Gone));
    }

    #[tokio::test]
    async fn whoever_looks_on_is_told_of_verdicts_and_not_of_looks() {
        let bus = Bus::in_memory(&"worker-1".parse().unwrap());
        let notes = Arc::new(Notes::default());
        let observer: Arc<dyn Observer> = notes.clone();
        let mut requests = bus.observed_by(Some(observer)).guards().serve("looks").await.unwrap();
        tokio::spawn(async move {
            while let Some(asked) = requests.next().await {
                asked.answer(&GuardReply::refuse("no".to_owned())).await.unwrap();
            }
        });
        let rule = rule("looks", OnFailure::Refuse);
        assert_eq!(bus.guards().probe(&rule).await, Ok(()));
        for _ in 0..2 {
            let said = bus.guards().ask_all([&rule], thing(), &|_| Ok(())).await;
            assert!(said.refusal().is_some(), "{said}");
        }
        // The last of them is told of as soon as it is sent.
        let told = notes.0.lock().unwrap().len();
        assert!((1..=2).contains(&told), "{told}");
        assert!(notes.0.lock().unwrap().iter().all(|one| *one == (Hook::BeforeTool, Ruling::Refuse)));
    }

    #[tokio::test]
    async fn a_guard_that_is_just_starting_is_waited_for() {
        let bus = Bus::in_memory(&"worker-1".parse().unwrap());
        let late = bus.clone();
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN * 2).await;
            program(&late, "late", Some(br#"{"verdict": "allow"}"#)).await;
        });
        let patient = GuardRule { timeout_ms: 10_000, ..rule("late", OnFailure::Refuse) };
        let said = bus.guards().ask_all(&[patient], thing(), &|_| Ok(())).await;
        assert_eq!((said.allowed, said.verdicts.len()), (1, 0), "{said}");
    }
}
