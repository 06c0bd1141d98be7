//! Tasks that are done with nothing else in hand: agents died of them, or of what they did beside them.

use std::sync::atomic::AtomicBool;

use super::*;

/// Says whether two of its calls were ever under way at once, and which of them was the one that is to be alone.
struct Watches {
    busy: AtomicU32,
    shared: AtomicBool,
}

#[async_trait]
impl Tool for Watches {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object", "properties": { "alone": { "type": "boolean" } } });
        ToolSpec::new("test.watch", "watches", parameters)
    }

    async fn call(&self, _: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let alone = arguments["alone"] == json!(true);
        let before = self.busy.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(if alone { 300 } else { 100 })).await;
        let after = self.busy.fetch_sub(1, Ordering::SeqCst);
        if alone && (before > 0 || after > 1) {
            self.shared.store(true, Ordering::SeqCst);
        }
        Ok(ToolOutput::text("seen"))
    }
}

#[test]
fn a_suspect_is_done_while_nothing_else_is_in_hand() {
    on_ground(async |ground: Ground| {
        let watch = Arc::new(Watches { busy: AtomicU32::new(0), shared: AtomicBool::new(false) });
        let model = Scripted::new(|question, request| {
            let suspect = serde_json::to_string(request).unwrap().contains("the suspect");
            if question == 0 { calls("test.watch", json!({ "alone": suspect })) } else { submits("ok") }
        });
        let tool: Arc<dyn Tool> = watch.clone();
        let running = ground.start(ground.chat_kit(Role::Worker, &model).with_tools([tool]));
        let mut offers: Vec<TaskOffered> = (0..9).map(|_| leaf(Role::Worker)).collect();
        offers[4].alone = true;
        offers[4].goal = "the suspect".into();
        for offer in &offers {
            ground.offer(offer).await;
        }
        for offer in &offers {
            assert_eq!(ground.outcome(offer).await.ending, Ending::Done);
        }
        running.stop().await;
        assert!(!watch.shared.load(Ordering::SeqCst), "something was in hand beside the suspect");
    });
}

#[test]
fn an_agent_that_stops_gives_a_suspect_back_that_waits() {
    on_ground(async |ground: Ground| {
        let slow = Scripted::slow(Duration::from_secs(60), |_, _| submits("never"));
        let running = ground.start(ground.chat_kit(Role::Worker, &slow));
        let (first, mut suspect) = (leaf(Role::Worker), leaf(Role::Worker));
        suspect.alone = true;
        ground.offer(&first).await;
        until(|| slow.asked.load(Ordering::Relaxed) > 0).await;
        ground.offer(&suspect).await;
        while !ground.bus.tasks().waiting().await.unwrap().values().all(|waiting| *waiting == 0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.stop().await;
        assert_eq!(ground.kinds(&suspect).await, [], "it was not begun");
        let quick = Scripted::new(|_, _| submits("by another"));
        let outcome = ground.done_by(ground.chat_kit(Role::Worker, &quick), &suspect).await;
        assert_eq!(conclusion(&outcome), "by another");
    });
}
