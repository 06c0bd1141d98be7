//! What a model may do in a task: the tools it was given, and `submit`.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use muster_shared::flow::{Action, PlanTask, RolePermissions, TaskRights, Use};
use muster_shared::plan::tools::{is_same, means, stays};
use muster_shared::sync::lock;
use serde_json::Value;

use super::declaration::Declaration;
use super::further;
use super::record::{self, RequestHash};
use crate::model::chat::ToolDecl;
use crate::model::kept::Kept;
use crate::tools::ToolSpec;
use crate::tools::documents::{READ, SEARCH};
use crate::tools::look::LOOK;
use crate::tools::nested::BLUEPRINT;

/// The argument in which a model may say why it acts, beside those of the tool.
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
    // Who may read documents may look at those that are pictures: plans do not know that there are any.
    let reads = task.tools.iter().any(|named| means(named, READ) || means(named, SEARCH));
    let is_beside = |ability: &Ability| by_blueprint(ability) || (reads && ability.name == LOOK);
    let is_left = |ability: &Ability| is_named(ability) || is_beside(ability) || stays(&ability.name);
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
        let mut known = lock(&KNOWN);
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
            declared.extend(further::ways().iter().cloned());
        }
        Self { further, ..Self::new(declared, submit) }
    }

    /// Without what these gates close. It is not offered any more; who chooses it all the same is told why not.
    #[must_use]
    pub fn behind(self, permissions: RolePermissions) -> Self {
        self.with_open(|ability| permissions.is_open(ability.permission))
    }

    /// Without what the task has no right to. It is not offered; who chooses it all the same is told who took it away.
    #[must_use]
    pub fn within(self, rights: &TaskRights) -> Self {
        if rights.is_open() {
            return self;
        }
        let may = |tool: &String| rights.allow_all(&Use::of_tool(tool)).is_ok();
        self.with_open(|ability| may(&ability.name) && ability.inner.iter().all(may))
    }

    fn with_open(self, is_open: impl Fn(&Ability) -> bool) -> Self {
        let (further, shut): (Vec<_>, Vec<_>) = self.further.into_iter().partition(&is_open);
        let closed = self.closed.into_iter().chain(shut);
        if self.table.abilities.iter().all(&is_open) {
            return Self { further, closed: closed.collect(), table: self.table };
        }
        let (abilities, shut): (Vec<_>, Vec<_>) = self.table.abilities.iter().cloned().partition(&is_open);
        let closed = closed.chain(shut).collect();
        Self { table: ToolTable::of(abilities, self.table.submit.clone()), further, closed }
    }

    /// The same with these tools beside, which it is not offered and may not use.
    #[must_use]
    pub fn and_closed(mut self, closed: impl IntoIterator<Item = Ability>) -> Self {
        self.closed.extend(closed);
        self
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
        further::told_of(&self.further, words)
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
            let _ = writeln!(text, "{}", described(ability));
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

/// A tool in words: its name, what it does, and its arguments.
pub(super) fn described(ability: &ToolSpec) -> String {
    let (name, what, arguments) = (model_name(&ability.name), &ability.description, &ability.parameters);
    format!("- {name}: {what}\n  arguments: {arguments}")
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
#[path = "toolset_tests.rs"]
mod tests;
