//! Composites as an agent has them: called by an engine, which calls their tools.

use std::sync::Mutex;

use muster_shared::flow::{RolePermission, TaskRights};
use muster_tools::{CallWatch, EngineRules, Permission, ToolQuota, ToolRegistry, ToolStatus, Uncertain};
use serde_json::json;

use super::*;
use crate::Composites;

/// Notes each call with its key, and does what its arguments say.
struct Note {
    spec: ToolSpec,
    log: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Note {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, ctx: &ToolContext, args: Value) -> Result<ToolOutput, ToolFailure> {
        let key = ctx.idempotency_key.clone().unwrap_or_else(|| "-".to_owned());
        self.log.lock().unwrap().push(format!("{} {} {key}", self.spec.name, args["word"]));
        if let Some(millis) = args["sleep"].as_u64() {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        match args["fail"] == true {
            true => Err(ToolFailure::Failed("it broke".to_owned())),
            false => Ok(ToolOutput::text("noted").with_data(args)),
        }
    }
}

struct Desk {
    registry: Arc<ToolRegistry>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    fn new(composites: &[(&str, &str)]) -> Self {
        let (registry, log) = (Arc::new(ToolRegistry::new()), Arc::default());
        let any = json!({ "type": "object" });
        let pure = ToolSpec::new("look", "Looks.", any.clone());
        let lasting = ToolSpec::new("note", "Notes.", any.clone()).with_side_effects();
        let once =
            ToolSpec::new("send", "Sends.", any.clone()).with_side_effects().when_uncertain(Uncertain::Fail);
        let off = ToolSpec::new("shell", "Runs.", any.clone()).until_allowed().needing(Permission::Execute);
        let gated = ToolSpec::new("ask", "Asks.", any).behind(RolePermission::People);
        for spec in [pure, lasting.needing(Permission::WriteWorkspace), once, off, gated] {
            registry.register_own(Arc::new(Note { spec, log: Arc::clone(&log) })).unwrap();
        }
        let read = |(name, text): &(&str, &str)| {
            Composite::parse(&format!("description = \"d\"\n{text}"), name).unwrap()
        };
        Composites::new(composites.iter().map(read).collect()).register(&registry);
        Self { registry, log }
    }

    fn spec(&self, name: &str) -> Option<ToolSpec> {
        self.registry.get(name).map(|tool| tool.spec().clone())
    }

    async fn call(&self, name: &str, rules: EngineRules, ctx: &ToolContext) -> ToolResult {
        ToolEngine::with_rules(Arc::clone(&self.registry), rules).call(name, json!({}), ctx).await
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

fn context() -> ToolContext {
    ToolContext::new("r", "1").granting([Permission::WriteWorkspace]).under_key("k")
}

const TWO: &str = "[[steps]]\nname = \"see\"\ntool = \"look\"\narguments = { word = 1 }\n\
    [[steps]]\nname = \"keep\"\ntool = \"note\"\narguments = { word = \"{{steps.see.data.word}}\" }\n\
    compensate = { tool = \"note\", arguments = { word = \"undone\" } }\n";

#[test]
fn what_a_composite_is_follows_from_its_tools() {
    let look = "[[steps]]\nname = \"a\"\ntool = \"look\"\n";
    let send = "[[steps]]\nname = \"a\"\ntool = \"own.two\"\n[[steps]]\nname = \"b\"\ntool = \"send\"\n";
    let ask = "[[steps]]\nname = \"a\"\ntool = \"ask\"\n";
    let open = "[[steps]]\nname = \"a\"\ntool = \"elsewhere.x\"\n";
    // The one that calls another comes first.
    let desk = Desk::new(&[("over", send), ("two", TWO), ("look", look), ("ask", ask), ("open", open)]);
    let pure = desk.spec("own.look").unwrap();
    assert!(pure.pure && pure.uncertain == Uncertain::Repeat && pure.grants.is_empty());
    let two = desk.spec("own.two").unwrap();
    assert!(!two.pure && two.uncertain == Uncertain::Ask && two.grants.contains(&Permission::WriteWorkspace));
    let over = desk.spec("own.over").unwrap();
    assert_eq!((over.pure, over.uncertain), (false, Uncertain::Fail), "the strictest");
    let inner: Vec<&str> = over.inner.iter().map(String::as_str).collect();
    assert_eq!(inner, ["look", "note", "own.two", "send"], "also by way of others");
    assert_eq!(over.source.to_string(), "file over.composite.toml");
    assert_eq!(desk.spec("own.ask"), None, "what waits for somebody is no step");
    assert_eq!(desk.spec("own.open"), None, "it waits for its tools");
}

#[tokio::test]
async fn its_tools_are_called_under_keys_of_their_own_and_the_same_every_time() {
    let each = "[[steps]]\nname = \"all\"\ntool = \"note\"\nfor_each = [1, 2]\narguments = { word = \"{{item}}\" }\n\
        [[steps]]\nname = \"in\"\ntool = \"own.two\"\nneeds = [\"all\"]\n\
        [[steps]]\nname = \"end\"\ntool = \"note\"\narguments = { fail = true }\nneeds = [\"in\"]\n";
    let desk = Desk::new(&[("each", each), ("two", TWO)]);
    let result = desk.call("own.each", EngineRules::default(), &context()).await;
    assert_eq!(result.status, ToolStatus::Error, "{result:?}");
    let first = desk.log();
    let wanted = ["note 1 k/all/0", "note 2 k/all/1", "look 1 -", "note 1 k/in/keep", "note null k/end"];
    assert_eq!(first, wanted);
    desk.call("own.each", EngineRules::default(), &context()).await;
    assert_eq!(desk.log()[5..], first);
    let desk = Desk::new(&[(
        "two",
        &format!(
            "{TWO}[[steps]]\nname = \"x\"\ntool = \"note\"\nneeds = [\"keep\"]\narguments = {{ fail = true }}"
        ),
    )]);
    let told = desk.call("own.two", EngineRules::default(), &context()).await.content;
    assert_eq!(desk.log().last().unwrap(), "note \"undone\" k/keep!undo", "{told}");
    assert!(told.contains("- keep (note): compensated") && told.contains("- see (look): done"), "{told}");
}

#[tokio::test]
async fn whatever_keeps_one_of_its_tools_from_being_called_keeps_it_from_beginning() {
    let shell = "[[steps]]\nname = \"a\"\ntool = \"note\"\n[[steps]]\nname = \"b\"\ntool = \"shell\"\n";
    let desk = Desk::new(&[("sh", shell), ("two", TWO)]);
    let off = desk.call("own.sh", EngineRules::default(), &context().granting([Permission::Execute])).await;
    assert!(off.status == ToolStatus::Refused && off.content.contains("`shell` is off"), "{off:?}");
    let rights: TaskRights =
        serde_json::from_value(json!([{ "by": "goal", "to": { "tools": ["own.*", "look"] } }])).unwrap();
    let narrow = context().within(Arc::new(rights));
    let denied = desk.call("own.two", EngineRules::default(), &narrow).await;
    assert!(denied.status == ToolStatus::Refused && denied.denied.is_some(), "{denied:?}");
    let ungranted = desk.call("own.two", EngineRules::default(), &ToolContext::new("r", "1")).await;
    assert!(ungranted.content.contains("write_workspace"), "{ungranted:?}");
    assert_eq!(desk.log(), Vec::<String>::new(), "nothing was begun");
    let quota = ToolQuota { per_task: Some(1), ..ToolQuota::default() };
    let rules = EngineRules { quotas: [("note".to_owned(), quota)].into(), ..EngineRules::default() };
    let engine = ToolEngine::with_rules(Arc::clone(&desk.registry), rules);
    assert!(engine.call("own.two", json!({}), &context()).await.is_success());
    let full = engine.call("own.two", json!({}), &context()).await;
    assert!(full.content.contains("was not called"), "{full:?}");
}

/// Refuses notes, changes what is looked up, and withholds what was found.
struct Strict;

#[async_trait]
impl CallWatch for Strict {
    async fn before(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        match tool {
            "note" if arguments["word"] == "withheld" => Err("no notes".to_owned()),
            _ => Ok(json!({ "word": "changed" })),
        }
    }

    async fn after(&self, _: &str, arguments: &Value, result: ToolResult) -> ToolResult {
        assert_eq!(arguments["word"], "changed");
        ToolResult { content: "withheld".to_owned(), data: None, ..result }
    }
}

#[tokio::test]
async fn guards_are_asked_about_its_calls_too() {
    let text = "[[steps]]\nname = \"see\"\ntool = \"look\"\n\
        [[steps]]\nname = \"keep\"\ntool = \"note\"\narguments = { word = \"{{steps.see.content}}\" }\n";
    let desk = Desk::new(&[("two", text)]);
    let watched = ToolContext { watch: Some(Arc::new(Strict)), ..context() };
    let result = desk.call("own.two", EngineRules::default(), &watched).await;
    assert!(result.content.contains("`keep` failed: no notes"), "{result:?}");
    assert_eq!(desk.log(), ["look \"changed\" -"]);
}

#[tokio::test]
async fn what_takes_too_long_is_let_go_of_and_what_was_done_is_undone() {
    let slow = format!(
        "time = \"300ms\"\n{TWO}[[steps]]\nname = \"slow\"\ntool = \"note\"\nneeds = [\"keep\"]\n\
         arguments = {{ sleep = 20_000, word = \"slow\" }}\n"
    );
    let desk = Desk::new(&[("two", &slow)]);
    let result = desk.call("own.two", EngineRules::default(), &context()).await;
    assert_eq!(result.status, ToolStatus::Error, "{result:?}");
    assert!(result.content.contains("its time was up") && result.content.contains("not known"), "{result:?}");
    assert_eq!(desk.log().last().unwrap(), "note \"undone\" k/keep!undo");
}
