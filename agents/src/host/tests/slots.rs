//! Several tasks at once, and what is told of them.

use super::*;

#[test]
fn slots_work_at_the_same_time_and_no_more_than_there_are() {
    on_ground(async |ground: Ground| {
        let (now_busy, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let tool = Counts { busy: Arc::clone(&now_busy), most: Arc::clone(&most) };
        let model = Scripted::new(
            |question, _| if question == 0 { calls("test.count", json!({})) } else { submits("ok") },
        );
        let context = ground.chat_kit(Role::Worker, &model).with_tools([Arc::new(tool) as Arc<dyn Tool>]);
        let running = ground.start(context);
        let offers: Vec<_> = (0..24).map(|_| leaf(Role::Worker)).collect();
        for offer in &offers {
            ground.offer(offer).await;
        }
        for offer in &offers {
            assert_eq!(ground.outcome(offer).await.ending, Ending::Done);
        }
        assert_eq!(most.load(Ordering::Relaxed), 8);
        running.stop().await;
    });
}

struct Counts {
    busy: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
}

#[async_trait]
impl Tool for Counts {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("test.count", "counts", json!({"type": "object"}))
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(busy, Ordering::SeqCst);
        // However slowly they come: nobody ends before as many are there as there are to be.
        until(|| self.most.load(Ordering::SeqCst) >= 8).await;
        // Time for one too many to come.
        tokio::time::sleep(Duration::from_millis(60)).await;
        self.busy.fetch_sub(1, Ordering::SeqCst);
        Ok(ToolOutput::text("counted"))
    }
}

#[test]
fn answers_and_status_are_said_live_and_the_agent_is_in_the_registry() {
    on_ground(async |ground: Ground| {
        let offer = leaf(Role::Worker);
        let mut live = ground.bus.live().watch(Some(offer.run)).await.unwrap();
        let model = Scripted::new(|question, _| if question == 0 { compute(1) } else { submits("2") });
        let running = ground.start(ground.chat_kit(Role::Worker, &model));
        ground.offer(&offer).await;
        let (mut said, mut lines) = (String::new(), Vec::new());
        while !lines.iter().any(|line: &String| line.starts_with("ended")) {
            match live.next().await.unwrap().kind {
                LiveKind::Answer { text } => said.push_str(&text),
                LiveKind::Status { text, .. } => lines.push(text),
                LiveKind::Thought { .. } => {}
            }
        }
        assert!(said.contains("I need to know."), "{said}");
        assert_eq!(lines[0], "step 1 of 10: calculator 1 + 1");
        let profiles = ground.bus.registry().list().await.unwrap();
        assert_eq!((profiles.len(), profiles[0].slots, profiles[0].model.as_str()), (1, 8, "test/scripted"));
        running.stop().await;
        assert!(ground.bus.registry().list().await.unwrap().is_empty());
    });
}

#[test]
fn secrets_reach_neither_record_nor_prompt() {
    on_ground(async |ground: Ground| {
        let secret = "sk-proj-abcdefghijklmnopqrstuvwx0123456789ABCDEFGH";
        let model = Scripted::new(move |question, request| {
            let sent = serde_json::to_string(request).unwrap();
            assert!(!sent.contains(secret), "{sent}");
            match question {
                0 => calls("calculator", json!({"expression": format!("1 + 1 # {secret}")})),
                _ => submits(&format!("the key is {secret}")),
            }
        });
        let mut offer = leaf(Role::Worker);
        offer.goal = format!("use {secret}");
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::Done);
        assert!(!serde_json::to_string(&outcome).unwrap().contains(secret));
        assert!(!serde_json::to_string(&ground.steps(&offer).await).unwrap().contains(secret));
    });
}
