use std::time::Duration;

use muster_bus::{Bus, BusSettings};
use muster_shared::flow::ObservationStatus;
use muster_shared::ids::{AgentId, Generation, Role, Seq};
use muster_shared::run::AgentKey;
use muster_shared::time::Millis;
use secrecy::SecretString;
use serde_json::json;

use super::*;
use crate::testing::{leaf, step};

const SECRET: &str = "sk-very-secret-1234567890";

fn declaration(tool: &str) -> Arc<Declaration> {
    Arc::new(Declaration::new(&[json!({"name": tool, "parameters": {"type": "object"}})]))
}

fn bus() -> Bus {
    Bus::in_memory(&AgentId::new("worker", 1))
}

async fn until_held(declarations: &DeclarationStore, declaration: &Declaration) {
    let held = async {
        while declarations.how(declaration) != DeclareAs::Name {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), held).await.unwrap();
}

/// A record whose only task made a step whose call declared this.
fn declaring(declared: &Value) -> Vec<Entry> {
    let offer = leaf(Role::Worker);
    let mut made = step(1, "calculator", json!({}), ObservationStatus::Success);
    made.calls[0].parameters = json!({DECLARED: declared});
    let (role, agent) = (Role::Worker, AgentId::new("worker", 1));
    let key = AgentKey { role, agent, task: offer.task, generation: Generation(1) };
    vec![Entry {
        seq: Seq(1),
        at: Millis(1),
        run: offer.run,
        event: RecordEvent::Agent(key, AgentEvent::Step(made)),
    }]
}

#[test]
fn a_declaration_is_what_holds_the_same_tools() {
    let one = declaration("calculator");
    assert!(one.is(&one.by_name()) && one.is(&one.in_place()));
    let other = declaration("corpus_search");
    for declared in [other.by_name(), other.in_place(), json!([]), json!(null), json!({})] {
        assert!(!one.is(&declared), "{declared}");
    }
}

#[tokio::test]
async fn calls_refer_to_what_the_store_holds_and_to_nothing_else() {
    let bus = bus();
    let declarations = DeclarationStore::new(bus.store(), Arc::default());
    let one = declaration("calculator");
    assert_eq!(declarations.how(&one), DeclareAs::Whole);
    declarations.begin(&one);
    assert_eq!(declarations.how(&one), DeclareAs::Whole, "it is not there yet");
    until_held(&declarations, &one).await;
    assert!(bus.store().has(one.by_name().as_str().unwrap()).await.unwrap());
    assert_eq!(declarations.how(&declaration("corpus_search")), DeclareAs::Whole);

    let entries = declaring(&one.by_name());
    let task = leaf(Role::Worker).task;
    let found = Declarations::of(&bus.store(), &entries, Some(&task)).await.unwrap();
    assert_eq!(found.tools(one.by_name().as_str().unwrap()).map(|tools| json!(tools)), Some(one.in_place()));
    let of_another = Declarations::of(&bus.store(), &entries, Some(&TaskId::Plan)).await.unwrap();
    assert!(of_another.0.is_empty());
}

#[tokio::test]
async fn what_cannot_be_put_stays_in_the_steps_and_is_tried_again() {
    let settings = BusSettings { object_limit: 8, ..BusSettings::default() };
    let small = Bus::in_memory_with(&AgentId::new("worker", 1), settings, Arc::default());
    let declarations = DeclarationStore::new(small.store(), Arc::default());
    let one = declaration("calculator");
    declarations.begin(&one);
    let forgotten = async {
        while lock(&declarations.known).contains_key(&one.object) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), forgotten).await.unwrap();
    assert_eq!(declarations.how(&one), DeclareAs::Whole);
}

#[tokio::test]
async fn a_secret_in_a_declaration_never_gets_into_the_store() {
    let bus = bus();
    let redactor = Redactor::new([SecretString::from(SECRET.to_owned())]);
    let declarations = DeclarationStore::new(bus.store(), Arc::new(redactor));
    let (secret, other) = (declaration(SECRET), declaration("calculator"));
    declarations.begin(&secret);
    declarations.begin(&other);
    until_held(&declarations, &other).await;
    assert_eq!(declarations.how(&secret), DeclareAs::Whole);
    assert!(!bus.store().has(&secret.object).await.unwrap());
}

#[tokio::test]
async fn objects_that_are_missing_or_not_what_they_promise_are_left_out() {
    let store = bus().store();
    let forged = "0".repeat(64);
    store.put_named(&forged, "[]".into()).await.unwrap();
    store.put_named("corpus/manifest/x", "[]".into()).await.unwrap();
    let no_tools = store.put("{}".into()).await.unwrap();
    for declared in [forged, "corpus/manifest/x".to_owned(), no_tools, "f".repeat(64)] {
        let entries = declaring(&json!(declared));
        assert!(Declarations::of(&store, &entries, None).await.unwrap().0.is_empty(), "{declared}");
    }
}
