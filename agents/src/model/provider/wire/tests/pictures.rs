//! Pictures in the words of each provider.

use super::*;
use crate::model::picture::ChatPicture;

/// `bytes` in base64.
const DATA: &str = "Ynl0ZXM=";

fn asked() -> ChatRequest {
    let picture = |media_type: &str| ChatPicture::read(media_type.to_owned(), DATA.to_owned()).unwrap();
    let shown = ChatMessage::user("What is it?").showing(vec![picture("image/png"), picture("image/webp")]);
    request("Look.", [ChatMessage::user("First."), ChatMessage::assistant("Well?"), shown])
}

fn body(provider: ModelProvider, endpoint: &str, request: &ChatRequest) -> Value {
    let door = Door::of(&target(provider, "house-model", endpoint)).unwrap();
    serde_json::from_slice(&door.body(request, ALL)).unwrap()
}

const HERE: &str = "http://127.0.0.1:9/v1/";

#[test]
fn openai_is_shown_them_as_urls() {
    let messages = &body(ModelProvider::OpenAi, HERE, &asked())["messages"];
    let golden = json!([
        {"role": "system", "content": "Look."},
        {"role": "user", "content": "First."},
        {"role": "assistant", "content": "Well?"},
        {"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,Ynl0ZXM="}},
            {"type": "image_url", "image_url": {"url": "data:image/webp;base64,Ynl0ZXM="}},
            {"type": "text", "text": "What is it?"},
        ]},
    ]);
    assert_eq!(messages, &golden);
}

#[test]
fn anthropic_is_shown_them_as_sources() {
    let source = |media_type: &str| json!({"type": "base64", "media_type": media_type, "data": DATA});
    let golden = json!([
        {"role": "user", "content": "First."},
        {"role": "assistant", "content": "Well?"},
        {"role": "user", "content": [
            {"type": "image", "source": source("image/png")},
            {"type": "image", "source": source("image/webp")},
            {"type": "text", "text": "What is it?"},
        ]},
    ]);
    assert_eq!(body(ModelProvider::Anthropic, HERE, &asked())["messages"], golden);
    // Where beginnings are marked, the picture is not lost.
    let with_tools = ChatRequest { tools: tools().into(), ..asked() };
    let marked = body(ModelProvider::Anthropic, "https://api.anthropic.com/v1/", &with_tools);
    assert_eq!(marked["messages"], golden);
}

#[test]
fn gemini_is_shown_them_inline() {
    let golden = json!([
        {"role": "user", "parts": [{"text": "First."}]},
        {"role": "model", "parts": [{"text": "Well?"}]},
        {"role": "user", "parts": [
            {"inlineData": {"mimeType": "image/png", "data": DATA}},
            {"inlineData": {"mimeType": "image/webp", "data": DATA}},
            {"text": "What is it?"},
        ]},
    ]);
    assert_eq!(body(ModelProvider::Gemini, HERE, &asked())["contents"], golden);
}

#[tokio::test]
async fn the_library_shows_them_to_others() {
    let server = ModelServer::start(Script::new().otherwise(Reply::text("ok"))).unwrap();
    let ollama = target(ModelProvider::Ollama, "llava", &format!("{}/", server.url()));
    let asker = Provider::new(ollama, CallLimits::default(), ProviderClient::default()).unwrap();
    let _ = asker.ask(&asked(), &mut ignore_deltas).await;
    let log = server.log();
    let messages = &log.first().unwrap().request.body["messages"];
    let shown = json!({"role": "user", "content": "What is it?", "images": [DATA, DATA]});
    assert_eq!(messages.as_array().unwrap().last().unwrap(), &shown, "{messages}");
}

#[test]
fn they_are_estimated_by_their_number_and_not_by_their_bytes() {
    let large = ChatPicture::read("image/png".to_owned(), "A".repeat(400_000)).unwrap();
    let of = |message: ChatMessage| request("", [message]).bytes();
    let (plain, shown) = (of(ChatMessage::user("a")), of(ChatMessage::user("a").showing(vec![large])));
    assert_eq!((plain, shown), (1, 6_401));
}
