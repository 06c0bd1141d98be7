use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_tools::{EngineRules, ToolPatterns, ToolQuota, ToolRegistry};
use serde_json::json;

use super::super::Permission;
use super::*;

/// A tool by its specification, which says what it was given to work with.
struct Plain(ToolSpec);

#[async_trait]
impl Tool for Plain {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    async fn call(&self, ctx: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
        let granted: Vec<&str> = ctx.grants.iter().map(|granted| granted.as_str()).collect();
        let key = ctx.idempotency_key.clone().unwrap_or_default();
        Ok(ToolOutput::text(format!("{granted:?} files {} key {key}", ctx.workspace.is_some())))
    }
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "Does it.", json!({ "type": "object" }))
}

fn engine(rules: EngineRules) -> ToolEngine {
    let registry = ToolRegistry::new();
    let all = [
        spec("sum"),
        spec("shell").until_allowed().needing(Permission::Execute).with_side_effects(),
        spec("python").until_allowed().needing(Permission::Execute).needing(Permission::WriteWorkspace),
        spec("corpus.search").needing(Permission::ReadDocuments),
        spec("share_info").behind(RolePermission::Peers),
        spec("own.note").from_source(ToolSource::Server("own".to_owned())),
        spec("lent-worker.sum").from_source(ToolSource::Agent("lent-worker".to_owned())),
    ];
    for one in all {
        registry.register(Arc::new(Plain(one))).unwrap();
    }
    ToolEngine::with_rules(Arc::new(registry), rules)
}

fn allowing(allow: &[&str]) -> EngineRules {
    let allow = ToolPatterns::new(allow.iter().map(|&name| name.to_owned()).collect());
    EngineRules { allow, ..EngineRules::default() }
}

fn lent(
    engine: &ToolEngine,
    lends: &[&str],
    role_has: &str,
    permissions: RolePermissions,
) -> Vec<Arc<dyn Tool>> {
    let bus = Bus::in_memory(&"researcher-1".parse().unwrap());
    let lends: Vec<String> = lends.iter().map(|&name| name.to_owned()).collect();
    let may_use = |name: &str| means(role_has, name);
    lent_tools(engine, &bus, &LenderRules { lends: &lends, may_use: &may_use, permissions })
}

fn names(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    tools.iter().map(|tool| tool.spec().name).collect()
}

#[test]
fn an_agent_lends_what_it_may_use_itself_and_what_can_be_of_use_to_others() {
    let open = RolePermissions::OPEN;
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a str, RolePermissions, &'a [&'a str]);
    let table: [Case<'_>; 6] = [
        (&["*"], &["*"], "*", open, &["python", "shell", "sum"]),
        (&["*"], &[], "*", open, &["sum"]),
        (&["*"], &["*"], "s*", open, &["shell", "sum"]),
        (&["shell", "own.*", "lent-*"], &["*"], "*", open, &["shell"]),
        (&[], &["*"], "*", open, &[]),
        (&["*"], &["*"], "*", RolePermissions { tools: false, ..open }, &[]),
    ];
    for (lends, allow, role_has, permissions, wanted) in table {
        let tools = lent(&engine(allowing(allow)), lends, role_has, permissions);
        assert_eq!(names(&tools), wanted, "{lends:?} {allow:?} {role_has}");
    }
}

/// What a lender's server gives a call to work with.
fn context(rights: &Value) -> ToolContext {
    let rights: Rights = serde_json::from_value(rights.clone()).unwrap();
    ToolContext::new("018f0000-0000-7000-8000-000000000001", "1")
        .under_key("r/1/1/2")
        .granting(Permission::ALL)
        .within(Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &rights)))
}

#[tokio::test]
async fn a_call_has_no_more_than_the_tool_needs_and_no_more_than_its_task_may_use() {
    let tools = lent(&engine(allowing(&["*"])), &["*"], "*", RolePermissions::OPEN);
    let called = async |at: usize, rights: Value| tools[at].call(&context(&rights), json!({})).await;
    let open = json!({});
    let words = |name: &str| format!("{name} key r/1/1/2");
    assert_eq!(
        called(0, open.clone()).await.unwrap().content,
        words("[\"read_workspace\", \"write_workspace\", \"execute\"] files true")
    );
    assert_eq!(called(1, open.clone()).await.unwrap().content, words("[\"execute\"] files false"));
    assert_eq!(called(2, open).await.unwrap().content, words("[] files false"));
    let denied = called(1, json!({ "tools": ["!shell"] })).await;
    assert!(matches!(&denied, Err(ToolFailure::Refused(why)) if why.contains("shell")), "{denied:?}");
}

#[tokio::test]
async fn quotas_are_those_of_the_lender() {
    let quota = ToolQuota { per_task: Some(1), ..ToolQuota::default() };
    let rules = EngineRules { quotas: [("sum".to_owned(), quota)].into(), ..EngineRules::default() };
    let engine = engine(rules);
    let tools = lent(&engine, &["sum"], "*", RolePermissions::OPEN);
    assert!(tools[0].call(&context(&json!({})), json!({})).await.is_ok());
    let again = tools[0].call(&context(&json!({})), json!({})).await;
    assert!(matches!(&again, Err(ToolFailure::Refused(why)) if why.contains("1")), "{again:?}");
}
