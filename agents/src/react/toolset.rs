//! What a model may do in a task: the tools it was given, and `submit`.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use muster_shared::flow::{Action, PlanTask, RolePermissions};
use muster_shared::plan::tools::{is_same, means, stays};
use serde_json::{Value, json};

use super::declaration::Declaration;
use super::record::{self, RequestHash};
use crate::model::chat::ToolDecl;
use crate::model::kept::Kept;
use crate::tools::ToolSpec;
use crate::tools::nested::BLUEPRINT;

/// The argument in which a model may say why it acts, beside those of the tool.
pub const THOUGHT: &str = "thought";

/// The tool that tells of tools that are not declared, where there are any.
pub const FIND_TOOL: &str = "find_tool";
/// The tool by which they are called.
pub const USE_TOOL: &str = "use_tool";

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
    /// Further ones, which are told of when they are asked for.
    further: Vec<Ability>,
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
        Self { table: ToolTable::of(abilities, submit), further: Vec::new(), closed: Vec::new() }
    }

    /// The same where only the tools of `base` are declared, and the others are found by asking.
    #[must_use]
    pub fn with_base(abilities: Vec<Ability>, base: &[&str], submit: Value) -> Self {
        let (mut declared, mut further): (Vec<_>, Vec<_>) =
            abilities.into_iter().partition(|ability| base.contains(&ability.name.as_str()));
        further.sort_by(|one, other| one.name.cmp(&other.name));
        if !further.is_empty() {
            declared.extend(ways_to_further());
        }
        Self { further, ..Self::new(declared, submit) }
    }

    /// Without what these gates close. It is not offered any more; who chooses it all the same is told why not.
    #[must_use]
    pub fn behind(self, permissions: RolePermissions) -> Self {
        let is_open = |ability: &Ability| permissions.is_open(ability.permission);
        let (further, mut closed): (Vec<_>, Vec<_>) = self.further.into_iter().partition(is_open);
        if self.table.abilities.iter().all(is_open) {
            return Self { further, closed, ..self };
        }
        let (abilities, shut): (Vec<_>, Vec<_>) = self.table.abilities.iter().cloned().partition(is_open);
        closed.extend(shut);
        Self { table: ToolTable::of(abilities, self.table.submit.clone()), further, closed }
    }

    /// The tool of that name, in its own or its model-facing form.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Ability> {
        let wanted = model_name(name.trim());
        let all = self.table.abilities.iter().chain(&self.further).chain(&self.closed);
        all.into_iter().find(|ability| is_model_name(&wanted, &ability.name))
    }

    /// Whether a tool may be used and is not declared.
    #[must_use]
    pub fn is_further(&self, name: &str) -> bool {
        self.further.iter().any(|ability| is_model_name(&model_name(name), &ability.name))
    }

    /// The tools that are not declared, those first whose name and description have most of these words; all of them in
    /// brief where none does.
    #[must_use]
    pub fn told_of(&self, words: &str) -> String {
        let words: Vec<String> = words
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.len() > 2)
            .map(str::to_lowercase)
            .collect();
        let share = |ability: &Ability| {
            let text = format!("{} {}", ability.name, ability.description).to_lowercase();
            words.iter().filter(|word| text.contains(word.as_str())).count()
        };
        let mut found: Vec<(usize, &Ability)> =
            self.further.iter().map(|ability| (share(ability), ability)).collect();
        found.retain(|(share, _)| *share > 0);
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        if found.is_empty() {
            let brief = self.further.iter().map(|ability| {
                format!("- {}: {}", model_name(&ability.name), first_sentence(&ability.description))
            });
            let brief: Vec<String> = brief.collect();
            return format!("None fits these words. There are:\n{}", brief.join("\n"));
        }
        let told = found.into_iter().take(MOST_TOLD).map(|(_, ability)| {
            format!(
                "- {}: {}\n  arguments: {}",
                model_name(&ability.name),
                ability.description,
                ability.parameters
            )
        });
        let told: Vec<String> = told.collect();
        format!("Call them by `{USE_TOOL}`:\n{}", told.join("\n"))
    }

    /// The names of the tools that are not declared, for the record; nothing where there are none.
    pub(super) fn further_for_record(&self) -> Option<Value> {
        let names = self.further.iter().map(|ability| Value::from(ability.name.as_str()));
        (!self.further.is_empty()).then(|| names.collect())
    }

    /// The same with these tools beside, which are not declared.
    #[must_use]
    pub fn and_further(mut self, further: Vec<Ability>) -> Self {
        self.further = further;
        self
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
        let further = self.further.iter().map(|ability| ability.name.clone());
        let scored = self.names().into_iter().chain(further).map(|known| (likeness(&known), known));
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
                model_name(&ability.name),
                ability.description,
                ability.parameters
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
        parameters: ability.parameters.clone(),
    });
    let submit = ToolDecl {
        name: Action::SUBMIT.to_owned(),
        description: "Ends the task with its result. Call it when the work is done, or cannot be done."
            .to_owned(),
        parameters: submit.clone(),
    };
    tools.chain([submit]).collect()
}

/// Most tools that are told of in full at once.
const MOST_TOLD: usize = 4;

/// How tools that are not declared are found and called.
fn ways_to_further() -> [Ability; 2] {
    let find = json!({
        "type": "object",
        "properties": {"what": {"type": "string", "description": "what it is to do, in a few words"}},
        "required": ["what"]
    });
    let call = json!({
        "type": "object",
        "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["tool", "arguments"]
    });
    let spec = |name: &str, what: &str, parameters| Arc::new(ToolSpec::new(name, what, parameters));
    [
        spec(
            FIND_TOOL,
            "Tells of further tools: to hand a part over, ask other agents, share values, compare, transform.",
            find,
        ),
        spec(USE_TOOL, "Calls a tool that find_tool told of.", call),
    ]
}

/// The tool of this name, if it is one by which others are found or called.
#[must_use]
pub fn way_to_further(name: &str) -> Option<Ability> {
    ways_to_further().into_iter().find(|way| way.name == name)
}

/// The tool and the arguments of a call by way of [`USE_TOOL`].
#[must_use]
pub fn used_tool(name: &str, arguments: &Value) -> Option<(String, Value)> {
    if model_name(name.trim()) != USE_TOOL {
        return None;
    }
    let tool = arguments["tool"].as_str()?.to_owned();
    let given = arguments.get("arguments").cloned().unwrap_or_else(|| json!({}));
    Some((tool, given))
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(['.', ':']).next().unwrap_or(text).trim_end_matches([':', '.'])
}

/// Takes out the thought among the arguments, leaving the tool's own arguments.
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
    fn a_thought_among_the_arguments_is_taken_out() {
        let (arguments, thought) = take_thought(&json!({"thought": "so", "query": "x"}));
        assert_eq!((arguments, thought.as_deref()), (json!({"query": "x"}), Some("so")));
    }

    #[test]
    fn tools_beside_the_base_are_found_by_asking() {
        let described = |name: &str, what: &str| {
            Arc::new(ToolSpec::new(name, what, json!({"type": "object", "properties": {}})))
        };
        let all = || {
            vec![
                described("calculator", "Computes."),
                described("delegate", "Hands a part over to another agent."),
                described("ask_peer", "Asks another agent a question."),
            ]
        };
        let toolset = Toolset::with_base(all(), &["calculator"], json!({}));
        assert_eq!(toolset.names(), ["calculator", FIND_TOOL, USE_TOOL, "submit"]);
        assert!(toolset.is_further("delegate") && toolset.find("ask_peer").is_some());
        let told = toolset.told_of("hand over a part");
        assert!(
            told.contains("- delegate:") && told.contains("arguments:") && !told.contains("ask_peer"),
            "{told}"
        );
        let none = toolset.told_of("fly");
        assert!(none.contains("- ask_peer: Asks") && none.contains("- delegate: Hands"), "{none}");
        // Where all tools are of the base, nothing is to be found.
        let whole = Toolset::with_base(all(), &["calculator", "delegate", "ask_peer"], json!({}));
        assert_eq!(whole.names(), ["ask_peer", "calculator", "delegate", "submit"]);
        let closed = RolePermissions { delegate: false, ..RolePermissions::OPEN };
        let shut = |ability: &Ability| match ability.name.as_str() {
            "delegate" => Arc::new(ToolSpec { permission: RolePermission::Delegate, ..(**ability).clone() }),
            _ => Arc::clone(ability),
        };
        let closed =
            Toolset::with_base(all().iter().map(shut).collect(), &["calculator"], json!({})).behind(closed);
        assert!(!closed.is_further("delegate") && closed.find("delegate").is_some());
        assert!(!closed.told_of("hand over a part").contains("delegate"));
        let call = json!({"tool": "delegate", "arguments": {"goal": "g"}});
        assert_eq!(used_tool(USE_TOOL, &call), Some(("delegate".to_owned(), json!({"goal": "g"}))));
        assert_eq!(used_tool("calculator", &call), None);
    }
}
