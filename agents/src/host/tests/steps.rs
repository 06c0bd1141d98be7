//! Steps of a task: what is recorded of them, and what answers and tools make of them.

use super::*;

#[test]
fn a_leaf_of_three_tool_steps_makes_five_entries() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, _| if question < 3 { compute(question) } else { submits("4") });
        let (offer, outcome) = ground.does(&model).await;
        use EventKind::{Outcome, Started, Step};
        assert_eq!(ground.kinds(&offer).await, [Started, Step, Step, Step, Outcome]);
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "4"));
        assert_eq!(
            (outcome.usage.model_calls, outcome.usage.tool_calls, outcome.usage.input_tokens),
            (4, 3, 400)
        );
        assert_eq!(outcome.steps.len(), 4);
        assert_eq!(outcome.steps[0].action, "calculator 0 + 1");
        let steps = ground.steps(&offer).await;
        assert!(steps[0].observation.as_ref().unwrap().content.contains('1'));
        assert_eq!(steps[1].calls[0].same_messages, 2, "the prompt is kept as what was added");
        assert_eq!(outcome.last_step.unwrap().number, 4);
        assert!(ground.bus.tasks().waiting().await.unwrap().values().all(|count| *count == 0));
    });
}

#[test]
fn a_single_answer_makes_two_entries() {
    on_ground(async |ground: Ground| {
        let document = "Here you are:\n{\"goal\": \"g\", \"tasks\": [{\"name\": \"a\", \"goal\": \"b\"}]}";
        let model = Scripted::new(|_, _| answer(document, Vec::new()));
        let plan = offer(TaskId::Plan, Role::Planner, planning());
        let outcome = ground.done(ground.chat_kit(Role::Planner, &model), &plan).await;
        assert_eq!(ground.kinds(&plan).await, [EventKind::Started, EventKind::Outcome]);
        assert!(matches!(outcome.product, Some(Product::Plan(draft)) if draft.tasks.len() == 1));
    });
}

#[test]
fn offline_rules_go_through_the_same_loop() {
    on_ground(async |ground: Ground| {
        let write = writing(&["all of it"]);
        let write = offer(TaskId::Write, Role::Writer, write);
        let outcome =
            ground.done(ground.context(Role::Writer, ModelClient::Offline(OfflineModel)), &write).await;
        assert_eq!(ground.kinds(&write).await, [EventKind::Started, EventKind::Outcome]);
        assert!(matches!(outcome.product, Some(Product::Report(report)) if report.offline));
        assert_eq!(outcome.usage.model_calls, 0);
        assert!(!outcome.last_step.unwrap().thought.text.is_empty());
    });
}

#[test]
fn what_goes_wrong_becomes_an_observation_and_work_goes_on() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, _| match question {
            0 => calls("calculater", json!({})),
            1 | 2 => compute(7),
            3 => calls("calculator", json!({"formula": 1})),
            4 => calls("test.panic", json!({})),
            _ => submits("done after all"),
        });
        let offer = leaf(Role::Worker);
        let context = ground.chat_kit(Role::Worker, &model).with_tools([Arc::new(Panics) as Arc<dyn Tool>]);
        let outcome = ground.done(context, &offer).await;
        assert_eq!(outcome.ending, Ending::Done);
        let seen: Vec<_> =
            ground.steps(&offer).await.into_iter().map(|step| step.observation.unwrap()).collect();
        use ObservationStatus::{Error, Refused, Success};
        assert_eq!(
            seen.iter().map(|seen| seen.status).collect::<Vec<_>>(),
            [Refused, Success, Refused, Refused, Error]
        );
        assert!(seen[0].content.contains("Did you mean `calculator`?"), "{}", seen[0].content);
        assert!(seen[2].content.contains("step 2"), "{}", seen[2].content);
        assert!(seen[4].content.contains("broke"), "{}", seen[4].content);
    });
}

struct Panics;

#[async_trait]
impl Tool for Panics {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("test.panic", "panics", json!({"type": "object"}))
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        panic!("a fault of the tool")
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_asked_again_in_the_same_step() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, request| match question {
            0 => answer("Well, let me see.", Vec::new()),
            _ => {
                let told = &request.messages.last().unwrap().content;
                assert!(told.contains("not taken") && told.contains("only text"), "{told}");
                submits("read")
            }
        });
        let (offer, outcome) = ground.does(&model).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "read"));
        assert_eq!(ground.kinds(&offer).await, [EventKind::Started, EventKind::Outcome]);
        let calls = outcome.last_step.unwrap().calls;
        assert_eq!((calls.len(), calls[1].same_messages, calls[1].messages.len()), (2, 2, 2));
    });
}

#[test]
fn a_server_without_native_calls_is_asked_in_text() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, request| {
            if !request.tools.is_empty() {
                return Err(ModelError::new(
                    ModelErrorKind::BadRequest,
                    "test/scripted",
                    "tools are not supported",
                ));
            }
            assert!(request.system.contains("\"action\""), "{}", request.system);
            match question {
                0 => answer(
                    "{\"thought\": \"t\", \"action\": \"calculator\", \"arguments\": {\"expression\": \"2*3\"}}",
                    Vec::new(),
                ),
                _ => answer(
                    "{\"thought\": \"t\", \"action\": \"submit\", \"arguments\": {\"ending\": \"done\", \"conclusion\": \"6\"}}",
                    Vec::new(),
                ),
            }
        });
        let (_, outcome) = ground.does(&model).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "6"));
    });
}

#[test]
fn own_time_per_step_is_small_and_does_not_grow() {
    in_system(async {
        const STEPS: u32 = 500;
        let ground = Ground::new();
        let model =
            Scripted::new(|question, _| if question < 499 { compute(question) } else { submits("long") });
        let mut offer = leaf(Role::Worker);
        offer.limits.max_steps = STEPS;
        offer.deadline = muster_bus::now().after(Duration::from_secs(60));
        let mut context = ground.chat_kit(Role::Worker, &model);
        context.limit_steps(STEPS);
        let outcome = ground.done(context, &offer).await;
        assert_eq!(outcome.ending, Ending::Done, "{}", outcome.reason);
        let entries = ground.bus.record().read(&filter(&offer), Seq(0)).await.unwrap();
        let at: Vec<u64> = entries.iter().map(|entry| entry.at.0).collect();
        let span = |from: usize, to: usize| {
            Duration::from_millis(at[to] - at[from]) / u32::try_from(to - from).unwrap()
        };
        let (early, late) = (span(1, 101), span(399, 499));
        assert!(
            late < early * 4 + Duration::from_millis(1),
            "step 1 to 100: {early:?} each, 400 to 500: {late:?}"
        );
        assert!(early < Duration::from_millis(10), "{early:?}");
    });
}

#[test]
fn what_a_provider_marked_a_call_with_is_recorded_and_sent_back() {
    on_ground(async |ground: Ground| {
        let sent_back = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sent_back);
        let model = Scripted::new(move |question, request: &ChatRequest| {
            let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
            *seen.lock().unwrap() =
                calls.map(|call| (call.signer.clone(), call.signatures.clone())).collect::<Vec<_>>();
            let mut computed = compute(question)?;
            match question {
                0 => computed.tool_calls[0].signatures = vec!["mark".to_owned()],
                1 => computed.tool_calls[0].signatures = vec!["x".repeat(40_000)],
                2 => {}
                _ => return submits("4"),
            }
            Ok(computed)
        });
        let (offer, _) = ground.does(&model).await;
        let recorded: Vec<_> =
            ground.steps(&offer).await.into_iter().map(|step| step.calls[0].signatures.clone()).collect();
        assert_eq!(recorded, [vec!["mark".to_owned()], Vec::new(), Vec::new()], "one is too long to be kept");
        let marked = (Some("test/scripted".to_owned()), vec!["mark".to_owned()]);
        assert_eq!(*sent_back.lock().unwrap(), [marked, (None, Vec::new()), (None, Vec::new())]);
    });
}

#[test]
fn all_calls_of_an_answer_are_one_step() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, request| match question {
            0 => {
                let sum =
                    |expression: &str| ToolCall::new("c", "calculator", json!({"expression": expression}));
                let wrong = ToolCall::new("c", "calculater", json!({}));
                answer("Both sums at once.", vec![sum("1 + 1"), sum("2 + 3"), wrong])
            }
            1 => {
                let [.., choice, one, two, three] = request.messages.as_slice() else {
                    panic!("{request:?}")
                };
                assert_eq!(choice.tool_calls.len(), 3, "{choice:?}");
                let ids = [one, two, three].map(|told| told.tool_call_id.clone().unwrap());
                assert_eq!(ids, ["step-1", "step-1-2", "step-1-3"]);
                assert!(one.content.contains("= 2") && two.content.contains("= 5"), "{one:?} {two:?}");
                assert!(three.content.contains("Did you mean `calculator`?"), "{three:?}");
                assert!(three.content.ends_with("Step 2 of 10."), "{three:?}");
                submits("2 and 5")
            }
            other => panic!("asked {other} times"),
        });
        let (offer, outcome) = ground.does(&model).await;
        assert_eq!(ground.kinds(&offer).await, [EventKind::Started, EventKind::Step, EventKind::Outcome]);
        assert_eq!((outcome.usage.model_calls, outcome.usage.tool_calls, outcome.usage.steps), (2, 2, 2));
        assert_eq!(outcome.steps[0].action, "calculator 1 + 1; calculator 2 + 3; calculater");
    });
}

#[test]
fn text_that_says_what_came_out_is_the_result() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, _| match question {
            0 => compute(3),
            _ => answer("3 + 1 is 4.", Vec::new()),
        });
        let (_, outcome) = ground.does(&model).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "3 + 1 is 4."));
        assert_eq!(outcome.usage.model_calls, 3, "short text is requested once more");
    });
}

#[test]
fn a_tool_that_is_not_declared_is_found_and_called() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, request| match question {
            0 => {
                let declared: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
                assert!(declared.contains(&"find_tool") && !declared.contains(&"validate"), "{declared:?}");
                calls("find_tool", json!({"what": "check an assertion"}))
            }
            1 => {
                let told = &request.messages.last().unwrap().content;
                assert!(told.contains("- validate:"), "{told}");
                calls("use_tool", json!({"tool": "validate", "arguments": {"assertion": "12 * 3 = 36"}}))
            }
            2 => {
                let [.., choice, told] = request.messages.as_slice() else { panic!("{request:?}") };
                assert_eq!(choice.tool_calls[0].name, "use_tool");
                assert!(told.content.contains("36"), "{told:?}");
                submits("it holds")
            }
            other => panic!("asked {other} times"),
        });
        let (offer, outcome) = ground.does(&model).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "it holds"));
        assert_eq!(ground.steps(&offer).await[1].action.name, "validate");
    });
}
