//! Schemas of what programs ask of a task gateway.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{reference, with_definitions};
use crate::wire::codec::Encoding;
use crate::wire::gateway::{
    BeatRequest, FilesRequest, FinishRequest, GatewayRefusal, GatewayVerb, ModelRequest, StepRequest,
    TakeRequest, WaitRequest,
};

/// The schema of a request, which stands by itself (JSON Schema 2020-12).
pub(super) fn of_request(verb: GatewayVerb) -> Value {
    let mut generator =
        SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None).into_generator();
    let schema = inline_of(verb)(&mut generator);
    with_definitions(schema, &mut generator)
}

/// Adds all requests, and how they are refused, to the definitions.
pub(super) fn define(generator: &mut SchemaGenerator) {
    for verb in GatewayVerb::ALL {
        reference_of(verb)(generator);
    }
    reference::<GatewayRefusal>(generator);
}

/// The parts of an AsyncAPI document that are added to.
pub(super) struct Document<'a> {
    pub(super) messages: &'a mut Map<String, Value>,
    pub(super) channels: &'a mut Map<String, Value>,
    pub(super) operations: &'a mut Map<String, Value>,
}

/// Adds the channel of requests to an AsyncAPI document.
pub(super) fn document(generator: &mut SchemaGenerator, document: Document<'_>) {
    let Document { messages, channels, operations } = document;
    let refusal = reference::<GatewayRefusal>(generator);
    for verb in GatewayVerb::ALL {
        let payload = reference_of(verb)(generator);
        let id = format!("gateway_{verb}");
        let message = json!({
            "name": id,
            "contentType": Encoding::Json.content_type(),
            "payload": payload,
        });
        messages.insert(id.clone(), message);
        let channel = json!({
            "address": format!("agent.{{role}}.{verb}"),
            "description": format!(
                "A program asks a task gateway: `{verb}` (NATS request and reply; the body without an envelope, in JSON or MessagePack). \
                 The answer has `error` when it is refused."
            ),
            "messages": { &id: { "$ref": format!("#/components/messages/{id}") } },
            "parameters": { "role": { "description": super::parameter("role") } },
        });
        channels.insert(id.clone(), channel);
        let operation = json!({ "action": "receive", "channel": { "$ref": format!("#/channels/{id}") } });
        operations.insert(format!("receive_{id}"), operation);
    }
    let refused = json!({
        "name": "gateway_refusal",
        "contentType": Encoding::Json.content_type(),
        "payload": { "type": "object", "properties": { "error": refusal }, "required": ["error"] },
    });
    messages.insert("gateway_refusal".to_owned(), refused);
    let answers = json!({
        "address": "_INBOX.{inbox}",
        "description": "What a gateway answers when it refuses a request.",
        "messages": { "gateway_refusal": { "$ref": "#/components/messages/gateway_refusal" } },
        "parameters": { "inbox": { "description": super::parameter("inbox") } },
    });
    channels.insert("gateway_answers".to_owned(), answers);
    let operation = json!({ "action": "send", "channel": { "$ref": "#/channels/gateway_answers" } });
    operations.insert("send_gateway_answers".to_owned(), operation);
}

fn inline_of(verb: GatewayVerb) -> fn(&mut SchemaGenerator) -> Schema {
    match verb {
        GatewayVerb::Take => super::inline::<TakeRequest>,
        GatewayVerb::Step => super::inline::<StepRequest>,
        GatewayVerb::Finish => super::inline::<FinishRequest>,
        GatewayVerb::Wait => super::inline::<WaitRequest>,
        GatewayVerb::Beat => super::inline::<BeatRequest>,
        GatewayVerb::Files => super::inline::<FilesRequest>,
        GatewayVerb::Model => super::inline::<ModelRequest>,
    }
}

fn reference_of(verb: GatewayVerb) -> fn(&mut SchemaGenerator) -> Schema {
    match verb {
        GatewayVerb::Take => reference::<TakeRequest>,
        GatewayVerb::Step => reference::<StepRequest>,
        GatewayVerb::Finish => reference::<FinishRequest>,
        GatewayVerb::Wait => reference::<WaitRequest>,
        GatewayVerb::Beat => reference::<BeatRequest>,
        GatewayVerb::Files => reference::<FilesRequest>,
        GatewayVerb::Model => reference::<ModelRequest>,
    }
}
