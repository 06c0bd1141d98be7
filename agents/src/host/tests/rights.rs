//! What a task has no right to: refused by whoever carries a call out, recorded, and nothing happens.

use std::sync::atomic::AtomicBool;

use muster_corpus::{Corpus, CorpusOptions};
use muster_shared::flow::{CorpusRef, Grantor, Note, Refusal, Rights, TaskRights};

use super::*;
use crate::host::corpora::BusBlobs;

fn narrowed(offer: TaskOffered, to: Value) -> TaskOffered {
    let to: Rights = serde_json::from_value(to).unwrap();
    TaskOffered { rights: TaskRights::default().narrowed_by(Grantor::Goal, &to), ..offer }
}

fn denied(step: &Step) -> Vec<&Refusal> {
    Note::denied(&step.notes).map(|(_, refusal)| refusal).collect()
}

fn thinks(thought: &str, tool: &str, arguments: Value) -> Result<ChatAnswer, ModelError> {
    answer(thought, vec![ToolCall::new("c", tool, arguments)])
}

struct Marks(Arc<AtomicBool>);

#[async_trait]
impl Tool for Marks {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("test.mark", "leaves a mark", json!({"type": "object"})).with_side_effects()
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        self.0.store(true, Ordering::SeqCst);
        Ok(ToolOutput::text("marked"))
    }
}

#[test]
fn a_call_without_a_right_is_told_recorded_and_not_done() {
    on_ground(async |ground: Ground| {
        let told = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&told);
        let model = Scripted::new(move |question, request| {
            if question == 0 {
                *seen.lock().unwrap() = request.tools.iter().map(|tool| tool.name.clone()).collect();
            }
            match question {
                0 => thinks("I leave a mark.", "test_mark", json!({})),
                1 => thinks("Then a file.", "workspace_write", json!({"path": "a.md", "text": "hello"})),
                2 => thinks(
                    "A person knows.",
                    "escalate",
                    json!({"trigger": "ambiguity", "question": "which?"}),
                ),
                3 => compute(1),
                _ => submits("done without"),
            }
        });
        let offer = narrowed(
            leaf(Role::Worker),
            json!({"tools": ["*", "!test.*"], "write_files": false, "people": false}),
        );
        let marked = Arc::new(AtomicBool::new(false));
        let tool: Arc<dyn Tool> = Arc::new(Marks(Arc::clone(&marked)));
        let context = ground.chat_kit(Role::Worker, &model).with_tools([tool]);
        let outcome = ground.done(context, &offer).await;
        assert_eq!((outcome.ending, conclusion(&outcome)), (Ending::Done, "done without"));
        assert!(!marked.load(Ordering::SeqCst), "nothing was done");
        let told = told.lock().unwrap().clone();
        let has = |tool: &str| told.iter().any(|name| name == tool);
        assert!(has("calculator") && !has("test_mark") && !has("workspace_write"), "{told:?}");
        let steps = ground.steps(&offer).await;
        let kinds = ground.kinds(&offer).await;
        assert!(!kinds.contains(&EventKind::Tool), "nothing was announced: {kinds:?}");
        let said = [
            "test.mark: this task may not call it (goal: all tools but test.*)",
            "write a file: this task may write no files (goal: no)",
            "ask a person: this task may ask nobody (goal: no)",
        ];
        for (step, said) in steps.iter().zip(said) {
            let seen = step.observation.as_ref().unwrap();
            assert_eq!(seen.status, ObservationStatus::Refused);
            assert!(seen.content.contains(said), "{}", seen.content);
            assert_eq!(denied(step)[0].to_string(), said);
        }
        assert_eq!(steps[3].observation.as_ref().unwrap().status, ObservationStatus::Success);
        assert!(ground.bus.files().list(offer.run).await.unwrap().files.is_empty());
    });
}

#[test]
fn several_calls_of_an_answer_are_each_looked_at_where_they_are_carried_out() {
    on_ground(async |ground: Ground| {
        let model = Scripted::new(|question, _| match question {
            0 => answer(
                "I need both.",
                vec![
                    ToolCall::new("a", "calculator", json!({"expression": "1 + 1"})),
                    ToolCall::new("b", "workspace_list", json!({})),
                ],
            ),
            _ => submits("2"),
        });
        let offer = narrowed(leaf(Role::Worker), json!({"tools": ["calculator"]}));
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::Done);
        let steps = ground.steps(&offer).await;
        assert_eq!(steps[0].observation.as_ref().unwrap().status, ObservationStatus::Success);
        let other = steps[0].more[0].observation.as_ref().unwrap();
        assert_eq!(other.status, ObservationStatus::Refused, "{other:?}");
        let noted: Vec<usize> = Note::denied(&steps[0].notes).map(|(at, _)| at).collect();
        assert_eq!(noted, [1]);
    });
}

#[test]
fn documents_without_a_right_are_not_there() {
    on_ground(async |ground: Ground| {
        let docs = ground.folder.path().join("docs");
        for (path, text) in [
            ("open/guide.md", "# Guide\n\nThe harbour has nine ships.\n"),
            ("closed/plan.md", "# Plan\n\nThe harbour key is swordfish.\n"),
        ] {
            std::fs::create_dir_all(docs.join(path).parent().unwrap()).unwrap();
            std::fs::write(docs.join(path), text).unwrap();
        }
        let options = CorpusOptions::new(ground.folder.path().join("asker"), vec![docs]);
        let opened = Corpus::open_or_build(options, &BusBlobs(ground.bus.store())).await.unwrap();
        let id = opened.corpus.id().as_str().to_owned();
        let corpus = CorpusRef { id, files: 2, bytes: 80, outline: String::new() };
        let model = Scripted::new(|question, _| match question {
            0 => calls("corpus_search", json!({"query": "harbour key swordfish"})),
            1 => calls("corpus_search", json!({"query": "sword.*", "kind": "regex"})),
            2 => calls("corpus_search", json!({"query": "harbour", "path": "closed"})),
            3 => calls("corpus_read", json!({"path": "closed/plan.md"})),
            4 => calls("corpus_read", json!({"path": "open/plan.md"})),
            5 => calls("search", json!({"query": "harbour key"})),
            6 => calls("validate", json!({"assertion": "The harbour key is swordfish."})),
            7 => calls("corpus_read", json!({"path": "open/guide.md"})),
            _ => submits("nine"),
        });
        let offer = narrowed(
            TaskOffered { corpus: Some(corpus), ..leaf(Role::Worker) },
            json!({"documents": ["*", "!closed"]}),
        );
        let outcome = ground.done(ground.chat_kit(Role::Worker, &model), &offer).await;
        assert_eq!(outcome.ending, Ending::Done, "{}", outcome.reason);
        let steps = ground.steps(&offer).await;
        for step in &steps {
            let seen = &step.observation.as_ref().unwrap().content;
            let own = step.action.arguments.to_string();
            let leaks = |word: &str| seen.contains(word) && !own.contains(word);
            assert!(!leaks("swordfish") && !leaks("closed/plan.md"), "{own}: {seen}");
        }
        assert!(steps[0].observation.as_ref().unwrap().content.contains("nine ships"));
        assert_eq!(denied(&steps[3])[0].wanted, "read closed/plan.md");
        assert!(steps[7].observation.as_ref().unwrap().content.contains("nine ships"));
    });
}
