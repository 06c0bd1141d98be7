//! What a model may do in a task: the tools it was given, and `submit`.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use muster_shared::flow::{Action, PlanTask, RolePermissions};
use muster_shared::plan::tools::{is_same, means, stays};
use serde_json::{Map, Value, json};

use super::declaration::Declaration;
use super::record::{self, RequestHash};
use crate::model::chat::ToolDecl;
use crate::model::kept::Kept;
use crate::tools::ToolSpec;
use crate::tools::nested::BLUEPRINT;

/// The argument that every declared action gets, so that models which call tools natively (and then often
/// write no text) think before they act.
pub const THOUGHT: &str = "thought";

/// One tool as a task sees it.
pub type Ability = Arc<ToolSpec>;

/// Of the tools that a role may use, those that its task names, blueprints if it is done by one, and the ways to a
/// person. A task that names none of them has all.
#[must_use]
pub fn narrowed(usable: Vec<Ability>, task: &PlanTask) -> Vec<Ability> {
    let is_named = |ability: &Ability| task.tools.iter().any(|named| means(named, &ability.name));
    if !usable.iter().any(is_named) {
        return usable;
    }
    let by_blueprint = |ability: &Ability| task.blueprint.is_some() && ability.name == BLUEPRINT;
    let is_left = |ability: &Ability| is_named(ability) || by_blueprint(ability) || stays(&ability.name);
    usable.into_iter().filter(is_left).collect()
}

/// The tools without those that failed the task before. They stay if there is nothing else to work with.
#[must_use]
pub fn without(usable: Vec<Ability>, withheld: &[String]) -> Vec<Ability> {
    let is_withheld =
        |ability: &Ability| !stays(&ability.name) && withheld.iter().any(|name| is_same(name, &ability.name));
    if usable.iter().all(|ability| is_withheld(ability) || stays(&ability.name)) {
        return usable;
    }
    usable.into_iter().filter(|ability| !is_withheld(ability)).collect()
}

/// The tools of a task and the schema by which it ends. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Toolset {
    table: Arc<ToolTable>,
    /// Those that the role may not use, so that it can be told so.
    closed: Vec<Ability>,
}

/// What follows from a set of tools alone. Every answer is read against it, every request declares it.
#[derive(Debug)]
struct ToolTable {
    abilities: Vec<Ability>,
    submit: Value,
    declarations: Kept<Vec<ToolDecl>>,
    /// The declarations for the record.
    declaration: Arc<Declaration>,
    /// The hash of requests that declare them.
    hash: RequestHash,
    /// The names for the record.
    names: Value,
}

/// The tables made last, the newest at the end: the tasks of a role have the same tools again and again.
static KNOWN: Mutex<Vec<Arc<ToolTable>>> = Mutex::new(Vec::new());

/// How many of them are kept. A process has one role, which has some kinds of tasks.
const MOST_KNOWN: usize = 8;

impl ToolTable {
    fn new(abilities: Vec<Ability>, submit: Value) -> Self {
        let declarations = declare(&abilities, &submit);
        let declared = record::declared(&declarations);
        let hash = RequestHash::begin(&declared);
        let names = names(&abilities).map(Value::from).collect();
        let (declarations, declaration) = (declarations.into(), Arc::new(Declaration::new(&declared)));
        Self { abilities, submit, declarations, declaration, hash, names }
    }

    /// The table of these tools, made now unless it is known.
    fn of(abilities: Vec<Ability>, submit: Value) -> Arc<Self> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |table: &Arc<Self>| table.abilities == abilities && table.submit == submit;
        let table = match known.iter().position(is_it) {
            Some(at) => known.remove(at),
            None => Arc::new(Self::new(abilities, submit)),
        };
        if known.len() >= MOST_KNOWN {
            known.remove(0);
        }
        known.push(Arc::clone(&table));
        table
    }
}

impl Toolset {
    /// These tools, sorted by name, and the schema of the arguments of `submit`.
    #[must_use]
    pub fn new(mut abilities: Vec<Ability>, submit: Value) -> Self {
        abilities.sort_by(|one, other| one.name.cmp(&other.name));
        Self { table: ToolTable::of(abilities, submit), closed: Vec::new() }
    }

    /// Without what these gates close. It is not offered any more; who chooses it all the same is told why not.
    #[must_use]
    pub fn behind(self, permissions: RolePermissions) -> Self {
        let is_open = |ability: &Ability| permissions.is_open(ability.permission);
        if self.table.abilities.iter().all(is_open) {
            return Self { closed: Vec::new(), ..self };
        }
        let (abilities, closed) = self.table.abilities.iter().cloned().partition(is_open);
        Self { table: ToolTable::of(abilities, self.table.submit.clone()), closed }
    }

    /// The tool of that name, in its own or its model-facing form.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Ability> {
        let wanted = model_name(name.trim());
        self.table.abilities.iter().chain(&self.closed).find(|ability| is_model_name(&wanted, &ability.name))
    }

    /// The names of the tools, and `submit`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        names(&self.table.abilities).map(str::to_owned).collect()
    }

    /// The same for the record.
    pub(super) fn names_for_record(&self) -> &Value {
        &self.table.names
    }

    /// The data that a user's own role promises, which stands nowhere else in the record.
    pub(super) fn promised(&self) -> Option<&Value> {
        self.table.submit["properties"].get("data")
    }

    /// The name most like `name`, if one is near enough to be meant.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<String> {
        const NEAR: f64 = 0.75;
        let wanted: String = model_name(name).to_lowercase().chars().take(64).collect();
        let likeness = |known: &str| {
            let known = model_name(known);
            let last = known.rsplit('_').next().unwrap_or_default().to_owned();
            strsim::jaro_winkler(&wanted, &known).max(strsim::jaro_winkler(&wanted, &last))
        };
        let scored = self.names().into_iter().map(|known| (likeness(&known), known));
        let best = scored.max_by(|(one, _), (other, _)| one.total_cmp(other));
        best.filter(|(score, _)| *score >= NEAR).map(|(_, known)| known)
    }

    /// The schema of the arguments of `submit`.
    #[must_use]
    pub fn submit_schema(&self) -> &Value {
        &self.table.submit
    }

    /// The declarations for models that call tools natively. The same bytes for every step of a task.
    #[must_use]
    pub fn declarations(&self) -> &Kept<Vec<ToolDecl>> {
        &self.table.declarations
    }

    /// The declarations for the record.
    pub(super) fn declaration(&self) -> &Arc<Declaration> {
        &self.table.declaration
    }

    /// The hash of a request that declares them and has nothing else yet.
    pub(super) fn hash(&self) -> &RequestHash {
        &self.table.hash
    }

    /// The same in words, for models that answer in text.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = String::from(
            "Answer with one JSON object and nothing else:\n\
             {\"thought\": \"why this action\", \"action\": \"name\", \"arguments\": {…}}\n\nActions:\n",
        );
        for ability in &self.table.abilities {
            let _ = writeln!(
                text,
                "- {}: {}\n  arguments: {}",
                ability.name, ability.description, ability.parameters
            );
        }
        let _ = write!(
            text,
            "- {}: ends the task with its result.\n  arguments: {}",
            Action::SUBMIT,
            self.table.submit
        );
        text
    }
}

/// The model-facing form of a tool's name: providers accept no dots.
#[must_use]
pub fn model_name(name: &str) -> String {
    name.replace('.', "_")
}

/// Whether `wanted` is the model-facing form of a tool's name.
fn is_model_name(wanted: &str, name: &str) -> bool {
    let same = |(wanted, own): (u8, u8)| wanted == if own == b'.' { b'_' } else { own };
    wanted.len() == name.len() && wanted.bytes().zip(name.bytes()).all(same)
}

fn names(abilities: &[Ability]) -> impl Iterator<Item = &str> {
    abilities.iter().map(|ability| ability.name.as_str()).chain([Action::SUBMIT])
}

fn declare(abilities: &[Ability], submit: &Value) -> Vec<ToolDecl> {
    let tools = abilities.iter().map(|ability| ToolDecl {
        name: model_name(&ability.name),
        description: ability.description.clone(),
        parameters: with_thought(&ability.parameters),
    });
    let submit = ToolDecl {
        name: Action::SUBMIT.to_owned(),
        description: "Ends the task with its result. Call it when the work is done, or cannot be done."
            .to_owned(),
        parameters: with_thought(submit),
    };
    tools.chain([submit]).collect()
}

/// The schema with a required `thought`, unless it has one of its own.
fn with_thought(schema: &Value) -> Value {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    let properties =
        schema.remove("properties").and_then(|value| value.as_object().cloned()).unwrap_or_default();
    let mut required =
        schema.remove("required").and_then(|value| value.as_array().cloned()).unwrap_or_default();
    let mut all = Map::new();
    if !properties.contains_key(THOUGHT) {
        let description = "What you know, what is missing, and why this action is the next.";
        all.insert(THOUGHT.to_owned(), json!({"type": "string", "description": description}));
        required.insert(0, json!(THOUGHT));
    }
    all.extend(properties);
    schema.insert("properties".to_owned(), Value::Object(all));
    schema.insert("required".to_owned(), Value::Array(required));
    Value::Object(schema)
}

/// Takes out the thought that [`Toolset::declarations`] asked for, leaving the tool's own arguments.
#[must_use]
pub fn take_thought(arguments: &Value) -> (Value, Option<String>) {
    let Value::Object(fields) = arguments else { return (arguments.clone(), None) };
    let thought = fields.get(THOUGHT).and_then(Value::as_str).map(str::to_owned);
    let mut fields = fields.clone();
    fields.retain(|name, _| name != THOUGHT);
    (Value::Object(fields), thought)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use muster_shared::flow::{BlueprintCall, RolePermission};
    use muster_shared::ids::Role;

    use super::*;

    fn ability(name: &str) -> Ability {
        let parameters =
            json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
        Arc::new(ToolSpec::new(name, "does it", parameters))
    }

    #[test]
    fn a_task_sees_the_tools_it_names_and_the_ways_to_a_person() {
        let all = ["calculator", "corpus.read", "corpus.search", "escalate", "request_info"];
        let cases: [(&[&str], &[&str]); 5] = [
            (&[], &all),
            (&["calculator"], &["calculator", "escalate", "request_info"]),
            (&["corpus.*"], &["corpus.read", "corpus.search", "escalate", "request_info"]),
            (&["corpus_search", "workspace.write"], &["corpus.search", "escalate", "request_info"]),
            // Its role has none of these: it does what it can with what it has.
            (&["workspace.write"], &all),
        ];
        for (named, seen) in cases {
            let tools = named.iter().map(|name| (*name).to_owned()).collect();
            let task = PlanTask { tools, ..PlanTask::new("n", "g", Role::Worker) };
            let left = narrowed(all.iter().map(|name| ability(name)).collect(), &task);
            let names: Vec<&str> = left.iter().map(|ability| ability.name.as_str()).collect();
            assert_eq!(names, seen, "{named:?}");
        }
        let task = PlanTask {
            tools: vec!["calculator".to_owned()],
            blueprint: Some(BlueprintCall { name: "weekly".to_owned(), params: BTreeMap::new() }),
            ..PlanTask::new("n", "g", Role::Worker)
        };
        let left = narrowed(vec![ability("calculator"), ability(BLUEPRINT), ability("plan")], &task);
        assert_eq!(left.len(), 2, "what does it stays: {left:?}");
    }

    #[test]
    fn what_failed_a_task_is_withheld_unless_it_is_all_there_is() {
        let all = ["calculator", "corpus.read", "corpus.search", "escalate", "request_info"];
        let cases: [(&[&str], &[&str], &[&str]); 8] = [
            (&all, &[], &all),
            (&all, &["calculator"], &["corpus.read", "corpus.search", "escalate", "request_info"]),
            (&all, &["corpus_search"], &["calculator", "corpus.read", "escalate", "request_info"]),
            (&all, &["*", "corpus.*", "unheard_of"], &all),
            (&all, &["escalate", "request_info"], &all),
            (&all, &["calculator", "corpus.read", "corpus.search"], &all),
            (&["calculator", "escalate"], &["calculator"], &["calculator", "escalate"]),
            (&[], &["calculator"], &[]),
        ];
        for (all, withheld, seen) in cases {
            let withheld: Vec<String> = withheld.iter().map(|name| (*name).to_owned()).collect();
            let left = without(all.iter().map(|name| ability(name)).collect(), &withheld);
            let names: Vec<&str> = left.iter().map(|ability| ability.name.as_str()).collect();
            assert_eq!(names, seen, "{withheld:?}");
        }
    }

    fn toolset() -> Toolset {
        let submit = json!({"type": "object", "properties": {"conclusion": {"type": "string"}}});
        Toolset::new(vec![ability("corpus.search"), ability("calculator")], submit)
    }

    #[test]
    fn the_same_tools_are_declared_once() {
        let (one, other) = (toolset(), toolset());
        assert!(Arc::ptr_eq(&one.table, &other.table));
        assert!(Arc::ptr_eq(&one.table, &one.clone().behind(RolePermissions::OPEN).table));
        let fewer = Toolset::new(vec![ability("calculator")], one.submit_schema().clone());
        assert_eq!(fewer.names(), ["calculator", "submit"]);
        let else_ended = Toolset::new(vec![ability("corpus.search"), ability("calculator")], json!({}));
        assert!(!Arc::ptr_eq(&one.table, &else_ended.table));
        for number in 0..2 * MOST_KNOWN {
            drop(Toolset::new(vec![ability(&format!("tool.{number}"))], json!({})));
        }
        assert!(KNOWN.lock().unwrap().len() <= MOST_KNOWN);
        assert_eq!(toolset().declarations(), one.declarations());
    }

    #[test]
    fn what_is_closed_is_not_declared_and_found_all_the_same() {
        let closed = ToolSpec { permission: RolePermission::Delegate, ..(*ability("delegate")).clone() };
        let permissions = RolePermissions { delegate: false, ..RolePermissions::OPEN };
        let left = Toolset::new(vec![ability("calculator"), Arc::new(closed)], json!({})).behind(permissions);
        assert_eq!(left.names(), ["calculator", "submit"]);
        assert!(left.find("delegate").is_some());
    }

    #[test]
    fn tools_are_found_by_either_name() {
        assert_eq!(toolset().find("corpus_search").unwrap().name, "corpus.search");
        assert_eq!(toolset().find(" corpus.search").unwrap().name, "corpus.search");
        assert!(toolset().find("corpus").is_none());
    }

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        for (asked, meant) in [
            ("corpus_serach", Some("corpus.search")),
            ("search", Some("corpus.search")),
            ("calculate", Some("calculator")),
            ("submitt", Some("submit")),
            ("zzzz", None),
        ] {
            assert_eq!(toolset().nearest(asked).as_deref(), meant, "{asked}");
        }
    }

    #[test]
    fn every_declaration_asks_for_a_thought_first() {
        for declared in toolset().declarations().iter() {
            let properties = declared.parameters["properties"].as_object().unwrap();
            assert!(properties.contains_key(THOUGHT), "{}", declared.name);
            assert_eq!(declared.parameters["required"][0], THOUGHT);
        }
        let (arguments, thought) = take_thought(&json!({"thought": "so", "query": "x"}));
        assert_eq!((arguments, thought.as_deref()), (json!({"query": "x"}), Some("so")));
    }
}
