//! The tools that an agent has. Tools may be added at any time; none is ever changed or replaced.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use jsonschema::{Draft, Validator};
use muster_shared::text::{beginning, nearest_name};
use serde_json::Value;

use super::spec::{MAX_NAME, Tool, ToolSpec, model_name};

/// Most tools that one registry holds.
pub const MAX_TOOLS: usize = 1_000;

/// Why a tool could not be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// A tool of that name, or one that models would see under the same name, is there already.
    #[error(
        "a tool named `{name}` is registered already (as `{existing}`); choose another name or namespace"
    )]
    Duplicate {
        /// The refused name.
        name: String,
        /// The name of the tool that is there.
        existing: String,
    },
    /// The name does not follow the rule.
    #[error(
        "`{0}` is no name for a tool: use `namespace.name` of letters, digits, `_` and `-`, at most 64 characters"
    )]
    BadName(String),
    /// The schema of the parameters is not a usable JSON Schema of an object.
    #[error("the parameters of `{name}` are not a usable JSON Schema: {reason}")]
    BadSchema {
        /// The tool.
        name: String,
        /// What is wrong with the schema.
        reason: String,
    },
    /// There are too many tools.
    #[error("no more than {MAX_TOOLS} tools can be registered")]
    Full,
}

/// A tool as registered: its specification frozen. The schema of a tool of ours is compiled when it is first called: most
/// agents never call most of them, and a compiled schema brings half a megabyte of the schema of schemas along.
pub struct Registered {
    spec: Arc<ToolSpec>,
    validator: OnceLock<Result<Validator, String>>,
    tool: Arc<dyn Tool>,
    /// Whether it is one of ours, which does not block its thread.
    own: bool,
}

impl Registered {
    /// The specification as it was on registration.
    #[must_use]
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// The tool itself.
    #[must_use]
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Whether it is one of ours, which does not block its thread.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.own
    }

    /// What is wrong with these arguments: one line per failing path, none when they fit.
    #[must_use]
    pub fn complaints(&self, args: &Value) -> Vec<String> {
        const MOST: usize = 5;
        let validator = match self.validator() {
            Ok(validator) => validator,
            Err(reason) => return vec![format!("its parameters are not a usable JSON Schema: {reason}")],
        };
        validator
            .iter_errors(args)
            .take(MOST)
            .map(|error| {
                let path = error.instance_path().to_string();
                let place = if path.is_empty() { "(the arguments)" } else { &path };
                format!("{place}: {}", beginning(&error.to_string(), 300))
            })
            .collect()
    }

    /// What judges arguments.
    pub fn validator(&self) -> Result<&Validator, &String> {
        self.validator.get_or_init(|| own_validator(&self.spec.parameters)).as_ref()
    }
}

/// The registered tools by name. Shared freely between threads.
#[derive(Default)]
pub struct ToolRegistry {
    /// By model-facing name, so that `a.b` and `a_b` cannot both exist.
    tools: RwLock<BTreeMap<String, Arc<Registered>>>,
}

impl ToolRegistry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool for good. It may be anybody's: each of its calls has a thread of its own, which it may block.
    ///
    /// # Errors
    /// When its name is taken or malformed, its schema cannot be used, or there are too many tools.
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        let spec = tool.spec();
        check_name(&spec.name)?;
        let validator = compile(&spec)?;
        self.add(Registered {
            spec: Arc::new(spec),
            validator: OnceLock::from(Ok(validator)),
            tool,
            own: false,
        })
    }

    /// Adds a tool of ours, whose schema is known to be sound, and which does not block its thread.
    ///
    /// # Errors
    /// When its name is taken or malformed, or there are too many tools.
    pub fn register_own(&self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        let spec = tool.spec();
        check_name(&spec.name)?;
        self.add(Registered { spec: Arc::new(spec), validator: OnceLock::new(), tool, own: true })
    }

    fn add(&self, registered: Registered) -> Result<(), RegistryError> {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let (name, key) = (registered.spec.name.clone(), registered.spec.model_name());
        if let Some(existing) = tools.get(&key) {
            return Err(RegistryError::Duplicate { name, existing: existing.spec.name.clone() });
        }
        if tools.len() >= MAX_TOOLS {
            return Err(RegistryError::Full);
        }
        tools.insert(key, Arc::new(registered));
        Ok(())
    }

    /// The tool of that name, in its own or its model-facing form.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Registered>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).get(&model_name(name)).cloned()
    }

    /// The specification of the tool of that name, in its own or its model-facing form.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<ToolSpec>> {
        self.get(name).map(|registered| Arc::clone(&registered.spec))
    }

    /// The specifications of all tools, by name.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<ToolSpec>> {
        self.tools
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .map(|registered| Arc::clone(&registered.spec))
            .collect()
    }

    /// The registered name most like `name`, if any is near enough to be meant.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<String> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        nearest_name(name, tools.values().map(|registered| registered.spec.name.as_str())).map(str::to_owned)
    }
}

fn check_name(name: &str) -> Result<(), RegistryError> {
    let fine = name.len() <= MAX_NAME
        && name.split('.').all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        });
    if fine { Ok(()) } else { Err(RegistryError::BadName(beginning(name, MAX_NAME))) }
}

fn compile(spec: &ToolSpec) -> Result<Validator, RegistryError> {
    let bad = |reason: String| RegistryError::BadSchema { name: spec.name.clone(), reason };
    if spec.parameters["type"].as_str() != Some("object") {
        return Err(bad("its `type` must be \"object\"".to_owned()));
    }
    jsonschema::validator_for(&spec.parameters).map_err(|error| bad(error.to_string()))
}

/// Of a schema of ours. All of them say the same in this draft, whose own schema is a small one.
fn own_validator(parameters: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().with_draft(Draft::Draft7).should_validate_formats(false);
    options.build(parameters).map_err(|error| error.to_string())
}

/// Whether a schema of arguments that somebody wrote can be used for a tool that is registered as one of ours.
///
/// # Errors
/// Says what is wrong with it.
pub fn sound_schema(parameters: &Value) -> Result<(), String> {
    own_validator(parameters).map(|_| ())
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crate::spec::{ToolContext, ToolFailure, ToolOutput};

    struct Named(&'static str, Value);

    #[async_trait]
    impl Tool for Named {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new(self.0, "A tool for tests.", self.1.clone())
        }

        async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolFailure> {
            Ok(ToolOutput::text(self.0))
        }
    }

    fn register(registry: &ToolRegistry, name: &'static str) -> Result<(), RegistryError> {
        registry.register(Arc::new(Named(name, json!({"type": "object"}))))
    }

    #[test]
    fn a_name_can_be_taken_once_in_whatever_form() {
        let registry = ToolRegistry::new();
        register(&registry, "corpus.search").unwrap();
        for again in ["corpus.search", "corpus_search"] {
            assert_eq!(
                register(&registry, again),
                Err(RegistryError::Duplicate {
                    name: again.to_owned(),
                    existing: "corpus.search".to_owned()
                })
            );
        }
        assert_eq!(registry.list().len(), 1);
        assert_eq!(registry.get("corpus_search").unwrap().spec().name, "corpus.search");
    }

    #[test]
    fn malformed_names_are_refused() {
        let registry = ToolRegistry::new();
        let long: &'static str = Box::leak("x".repeat(65).into_boxed_str());
        for name in ["", ".", "a..b", "a.", "a b", "söme", "a/b", long] {
            assert!(matches!(register(&registry, name), Err(RegistryError::BadName(_))), "{name}");
        }
    }

    #[test]
    fn unusable_schemas_are_refused() {
        let registry = ToolRegistry::new();
        for schema in
            [json!({}), json!({"type": "string"}), json!({"type": "object", "properties": 7}), json!(null)]
        {
            let refused = registry.register(Arc::new(Named("a.b", schema.clone())));
            assert!(matches!(refused, Err(RegistryError::BadSchema { .. })), "{schema}");
        }
    }

    #[test]
    fn the_nearest_name_is_found_when_one_is_near() {
        let registry = ToolRegistry::new();
        for name in ["corpus.search", "corpus.read", "calculator", "workspace.write"] {
            register(&registry, name).unwrap();
        }
        for (asked, meant) in [
            ("corpus.serach", Some("corpus.search")),
            ("search", Some("corpus.search")),
            ("Calculator", Some("calculator")),
            ("calculate", Some("calculator")),
            ("workspace_write", Some("workspace.write")),
            ("zzz", None),
        ] {
            assert_eq!(registry.nearest(asked).as_deref(), meant, "{asked}");
        }
    }
}
