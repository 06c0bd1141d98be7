use std::sync::{Arc, Mutex};

use muster_corpus::{
    Corpus, CorpusOptions, ExtractFailure, Extracted, ExtractedDocument, Extractor, MemoryBlobs,
};
use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_tools::Viewer;

use super::*;
use crate::tools::{ToolEngine, ToolSettings, ToolStatus, standard_registry};

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x01";

/// Says of each picture that it is one.
struct Headers;

impl Extractor for Headers {
    fn version(&self) -> String {
        String::new()
    }

    fn takes(&self, path: &str, _beginning: &[u8]) -> bool {
        path.ends_with(".png")
    }

    fn extract(&self, _path: &str, _bytes: Vec<u8>) -> Result<Extracted, ExtractFailure> {
        let text = "[picture: PNG, 2 x 1]".to_owned();
        let documents = vec![ExtractedDocument { text, ..ExtractedDocument::default() }];
        Ok(Extracted { documents, left_out: Vec::new() })
    }
}

/// Answers with what it was made with, and keeps what it was asked.
struct Scripted(Result<PictureAnswer, String>, Mutex<Vec<PictureQuestion>>);

#[async_trait]
impl Viewer for Scripted {
    async fn look(&self, question: PictureQuestion) -> Result<PictureAnswer, String> {
        self.1.lock().unwrap().push(question);
        self.0.clone()
    }
}

async fn documents(folder: &std::path::Path, files: &[&str]) -> Corpus {
    let docs = folder.join("docs");
    std::fs::create_dir_all(&docs).unwrap();
    for name in files {
        let bytes = if name.ends_with(".png") { PICTURE } else { b"A text.\n" };
        std::fs::write(docs.join(name), bytes).unwrap();
    }
    let mut options = CorpusOptions::new(folder.join("cache"), vec![docs]);
    options.extractor = Some(Arc::new(Headers));
    Corpus::open_or_build(options, &MemoryBlobs::default()).await.unwrap().corpus
}

#[tokio::test]
async fn what_a_model_sees_is_told_as_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = documents(folder.path(), &["chart.png", "notes.md"]).await;
    let engine = ToolEngine::new(Arc::new(standard_registry(&ToolSettings::default()).unwrap()));
    let said =
        |text: &str, cut| Ok(PictureAnswer { text: text.to_owned(), model: "house/eye".to_owned(), cut });
    let context = |answer| {
        let viewer = Arc::new(Scripted(answer, Mutex::default()));
        let mut context = ToolContext::new("run", "1").with_corpus(corpus.clone());
        context.viewer = Some(Arc::clone(&viewer) as Arc<dyn Viewer>);
        (context, viewer)
    };
    let (ctx, viewer) = context(said("Two bars: 3 and 7.", false));
    let args = json!({ "path": "chart.png", "question": "How high are the bars?" });
    let seen = engine.call(LOOK, args, &ctx).await;
    assert_eq!(seen.status, ToolStatus::Success, "{seen:?}");
    assert_eq!(seen.content, "chart.png:1, as the model house/eye says it sees it:\nTwo bars: 3 and 7.");
    let asked = viewer.1.lock().unwrap().pop().unwrap();
    assert!(
        asked
            .text
            .starts_with("How high are the bars?\n\nThe picture is the document chart.png: [picture: PNG")
    );
    assert_eq!((asked.media_type.as_str(), asked.data), ("image/png", STANDARD.encode(PICTURE)));

    for (answer, path, status, told) in [
        (said("Half of", true), "./chart.png", ToolStatus::Success, "[cut: ask for less at once]"),
        (said(" ", false), "chart.png", ToolStatus::Error, "says nothing of"),
        (
            Err("house/mole sees nothing".to_owned()),
            "chart.png",
            ToolStatus::Error,
            "house/mole sees nothing",
        ),
        (said("x", false), "notes.md", ToolStatus::Refused, "`notes.md` is no picture; read it as text"),
        (said("x", false), "chart.gif", ToolStatus::Refused, "did you mean `chart.png`?"),
    ] {
        let (ctx, viewer) = context(answer);
        let result = engine.call(LOOK, json!({ "path": path }), &ctx).await;
        assert_eq!(result.status, status, "{path}: {result:?}");
        assert!(result.content.contains(told), "{path}: {}", result.content);
        let was_asked = !viewer.1.lock().unwrap().is_empty();
        assert_eq!(was_asked, status != ToolStatus::Refused, "{path}");
    }
}

#[tokio::test]
async fn where_nobody_can_look_a_sentence_says_so() {
    let engine = ToolEngine::new(Arc::new(standard_registry(&ToolSettings::default()).unwrap()));
    let call = async |corpus: Option<Corpus>| {
        let mut ctx = ToolContext::new("run", "1").granting([Permission::ReadDocuments]);
        ctx.corpus = corpus;
        engine.call(LOOK, json!({ "path": "chart.png" }), &ctx).await.content
    };
    let [pictures, texts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let seen = documents(pictures.path(), &["chart.png", "notes.md"]).await;
    assert!(call(None).await.contains("no documents were given"));
    assert!(
        call(Some(documents(texts.path(), &["notes.md"]).await))
            .await
            .contains("no document of this goal is a picture")
    );
    assert!(call(Some(seen.clone())).await.contains("no model can look at pictures here"));
    let rights: Rights = serde_json::from_value(json!({ "documents": ["notes.md"] })).unwrap();
    let within = seen.within(&Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &rights)));
    assert!(
        call(Some(within)).await.contains("no document of this goal is a picture"),
        "those that it may read"
    );
}
