//! Calls that a person approves: not made before, and made once, whoever goes on with the task.

use muster_shared::flow::{Answered, CallRuling, CallToApprove, CallVerdict, Note, Observation, Wait};

use super::*;
use crate::tools::Uncertain;

/// Sends something, once a person approved it; keeps what it was called with. May never answer its first call.
struct Mails {
    hangs: bool,
    pure: bool,
    called: Mutex<Vec<Value>>,
}

impl Mails {
    fn new() -> Self {
        Self { hangs: false, pure: false, called: Mutex::default() }
    }

    fn called(&self) -> Vec<Value> {
        self.called.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for Mails {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object", "properties": { "to": { "type": "string" } }, "required": ["to"],
            "additionalProperties": false
        });
        let spec = ToolSpec::new("test.mail", "sends a mail", parameters).approved_by_person();
        if self.pure { spec } else { spec.with_side_effects().when_uncertain(Uncertain::Ask) }
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let first = {
            let mut called = self.called.lock().unwrap();
            called.push(arguments);
            called.len() == 1
        };
        if first && self.hangs {
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput::text("sent"))
    }
}

fn to(name: &str) -> Value {
    json!({ "to": name })
}

fn verdict(at: u32, ruling: CallRuling) -> CallVerdict {
    CallVerdict { at, ruling, by: Some("ann".to_owned()), reason: String::new() }
}

/// The next offer of a task that waited, with what was said.
fn going_on(offer: &TaskOffered, step: u32, verdict: CallVerdict) -> TaskOffered {
    let observation = Observation::new(ObservationStatus::Success, verdict.to_string());
    let verdict = Some(Box::new(verdict));
    let answered = Some(Box::new(Answered { step, observation, answer: None, verdict, form: None }));
    TaskOffered { answered, ..next(offer) }
}

/// Where a task that mails, and then says that it did, is worked on.
struct Desk {
    ground: Ground,
    tool: Arc<Mails>,
    model: Arc<Scripted>,
}

impl Desk {
    fn of(tool: Mails, first: impl Fn() -> Result<ChatAnswer, ModelError> + Send + Sync + 'static) -> Self {
        let model = Scripted::new(move |question, _| match question {
            0 => first(),
            _ => submits("it was seen to"),
        });
        Self { ground: Ground::new(), tool: Arc::new(tool), model }
    }

    fn new(tool: Mails) -> Self {
        Self::of(tool, || calls("test.mail", to("ben")))
    }

    fn context(&self) -> AgentContext {
        let tool = Arc::clone(&self.tool);
        self.ground.chat_kit(Role::Worker, &self.model).with_tools([tool as Arc<dyn Tool>])
    }

    /// Works on an offer until a person has to approve a call.
    async fn asks(&self, offer: &TaskOffered) -> CallToApprove {
        self.ground.offer(offer).await;
        let running = self.ground.start(self.context());
        let awaited = self.ground.released(offer).await.wait.unwrap();
        running.stop().await;
        assert_eq!(awaited.step, 1);
        let Wait::Approval(call) = awaited.wait else { panic!("{:?}", awaited.wait) };
        *call
    }

    async fn ends(&self, offer: &TaskOffered) -> Step {
        let outcome = self.ground.done(self.context(), offer).await;
        assert_eq!(conclusion(&outcome), "it was seen to");
        assert_eq!(self.model.asked.load(Ordering::Relaxed), 2, "each answer of the model was paid once");
        self.ground.steps(offer).await.swap_remove(0)
    }
}

fn told(step: &Step) -> &str {
    &step.observation.as_ref().unwrap().content
}

#[test]
fn a_call_is_made_as_the_person_says() {
    let table = [
        (CallRuling::Approved, vec![to("ben")], "sent"),
        (
            CallRuling::Changed(to("cal")),
            vec![to("cal")],
            "approved with other arguments by ann: {\"to\":\"cal\"}",
        ),
        (CallRuling::Refused, vec![], "not approved by ann"),
    ];
    for pure in [false, true] {
        for (ruling, called, says) in table.clone() {
            in_system(async {
                let desk = Desk::new(Mails { pure, ..Mails::new() });
                let one = leaf(Role::Worker);
                let asked = desk.asks(&one).await;
                assert_eq!((asked.at, asked.tool.as_str(), &asked.arguments), (0, "test.mail", &to("ben")));
                assert!(desk.tool.called().is_empty(), "nothing happens before");
                let step = desk.ends(&going_on(&one, 1, verdict(0, ruling))).await;
                assert_eq!(desk.tool.called(), called);
                assert!(told(&step).contains(says), "{}", told(&step));
                assert_eq!(step.action.arguments, to("ben"), "the record keeps what the model said");
                assert!(Note::approval(&step.notes, 0).is_some());
            });
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_asked_about_again() {
    in_system(async {
        let desk = Desk::new(Mails::new());
        let one = leaf(Role::Worker);
        desk.asks(&one).await;
        let two = going_on(&one, 1, verdict(0, CallRuling::Changed(json!({ "whom": "cal" }))));
        let again = desk.asks(&two).await;
        assert!(again.why.contains("cannot be used") && again.why.contains("whom"), "{}", again.why);
        assert_eq!(again.arguments, json!({ "whom": "cal" }), "they can be mended");
        desk.ends(&going_on(&two, 1, verdict(0, CallRuling::Changed(to("cal"))))).await;
        assert_eq!(desk.tool.called(), [to("cal")]);
    });
}

#[test]
fn each_call_of_an_answer_is_asked_about_and_silence_approves_none() {
    in_system(async {
        let both = || {
            let call = |id: &str, name: &str| ToolCall::new(id, "test.mail", to(name));
            let sum = ToolCall::new("c", "calculator", json!({"expression": "1 + 1"}));
            answer("Two letters and a sum.", vec![call("a", "ben"), sum, call("b", "cal")])
        };
        let desk = Desk::of(Mails::new(), both);
        let one = leaf(Role::Worker);
        assert_eq!(desk.asks(&one).await.at, 0);
        let two = going_on(&one, 1, CallVerdict::unanswered(0));
        let second = desk.asks(&two).await;
        assert_eq!((second.at, &second.arguments), (2, &to("cal")));
        let step = desk.ends(&going_on(&two, 1, verdict(2, CallRuling::Approved))).await;
        assert_eq!(desk.tool.called(), [to("cal")]);
        let seen: Vec<&str> = step.observations().map(|seen| seen.content.as_str()).collect();
        assert!(seen[0].contains("nobody answered in time"), "{seen:?}");
        assert_eq!(seen[1..], ["1 + 1 = 2", "sent"]);
    });
}

#[test]
fn a_death_after_the_approval_makes_no_second_call() {
    in_system(async {
        let desk = Desk::new(Mails { hangs: true, ..Mails::new() });
        let one = leaf(Role::Worker);
        desk.asks(&one).await;
        let two = going_on(&one, 1, verdict(0, CallRuling::Approved));
        desk.ground.offer(&two).await;
        let running = desk.ground.start(desk.context());
        until(|| !desk.tool.called().is_empty()).await;
        running.stop().await;
        let outcome = desk.ground.done_by(desk.context(), &two).await;
        assert_eq!(conclusion(&outcome), "it was seen to");
        assert_eq!(
            desk.tool.called(),
            [to("ben")],
            "whether it went out is not known, so it is not sent again"
        );
        let step = desk.ground.steps(&two).await.swap_remove(0);
        assert!(told(&step).contains("look before you do it again"), "{}", told(&step));
    });
}

#[test]
fn a_death_before_the_call_loses_neither_answer_nor_approval() {
    in_system(async {
        let desk = Desk::new(Mails::new());
        let one = leaf(Role::Worker);
        desk.asks(&one).await;
        // The offer with the approval comes to one who dies before anything is done, and again to another.
        let two = going_on(&one, 1, verdict(0, CallRuling::Approved));
        let three = TaskOffered { generation: two.generation.next(), ..two.clone() };
        desk.ends(&three).await;
        assert_eq!(desk.tool.called(), [to("ben")]);
    });
}
