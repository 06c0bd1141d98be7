//! The engine: calls a tool under rules and gives a result whatever the tool does.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use muster_shared::flow::{Refusal, Use, Wait};
use muster_shared::text::beginning;
use serde_json::{Map, Value};
use tokio::task::JoinError;

use super::{
    patterns::ToolPatterns,
    registry::{Registered, ToolRegistry},
    spec::{ToolContext, ToolFailure, ToolOutput, ToolResult, ToolSpec, ToolStatus},
};

/// Limits that hold for every tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLimits {
    /// Longest observation, in bytes; the rest is cut and the cut is marked.
    pub max_content: usize,
    /// Largest structured form, in bytes of JSON; a larger one is dropped.
    pub max_data: usize,
    /// Largest arguments, in bytes of JSON.
    pub max_arguments: usize,
    /// Upper bound on the time limit that a tool may ask for.
    pub max_timeout: Duration,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            max_content: 32 * 1024,
            max_data: 64 * 1024,
            max_arguments: 1024 * 1024 + 64 * 1024,
            max_timeout: Duration::from_secs(600),
        }
    }
}

/// What holds for the tools of one engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineRules {
    /// Limits of every tool.
    pub limits: EngineLimits,
    /// Of the tools that are off until allowed, those that are allowed.
    pub allow: ToolPatterns,
}

/// Runs tools. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ToolEngine {
    registry: Arc<ToolRegistry>,
    rules: Arc<EngineRules>,
}

/// How a call ended before it is cut to size.
struct Ending {
    status: ToolStatus,
    content: String,
    data: Option<Value>,
    transient: bool,
    wait: Option<Box<Wait>>,
    denied: Option<Box<Refusal>>,
}

impl ToolEngine {
    /// An engine over a registry with the default rules: nothing is allowed that is off until it is allowed.
    #[must_use]
    pub fn new(registry: Arc<ToolRegistry>) -> Self {
        Self::with_rules(registry, EngineRules::default())
    }

    /// An engine with rules of its own.
    #[must_use]
    pub fn with_rules(registry: Arc<ToolRegistry>, rules: EngineRules) -> Self {
        Self { registry, rules: Arc::new(rules) }
    }

    /// The tools this engine can call.
    #[must_use]
    pub fn registry(&self) -> &Arc<ToolRegistry> {
        &self.registry
    }

    /// Whether settings let a tool be called at all.
    #[must_use]
    pub fn is_on(&self, spec: &ToolSpec) -> bool {
        !spec.off_until_allowed || self.rules.allow.mean(&spec.name)
    }

    /// What is wrong with these arguments of a tool.
    ///
    /// # Errors
    /// Says it in a sentence.
    pub fn fits(&self, name: &str, args: &Value) -> Result<(), String> {
        let registered = self.registry.get(name).ok_or_else(|| format!("there is no tool `{name}`"))?;
        let bytes = json_size(args);
        if bytes > self.rules.limits.max_arguments {
            return Err(format!(
                "the arguments are {bytes} bytes; at most {} are allowed",
                self.rules.limits.max_arguments
            ));
        }
        let complaints = registered.complaints(args);
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
    }

    /// Calls a tool by either form of its name. Never fails and never panics: what went wrong is in
    /// the result, worded so that a model can mend its call.
    pub async fn call(&self, name: &str, args: Value, ctx: &ToolContext) -> ToolResult {
        let begun = Instant::now();
        let result = match self.admit(name, args, ctx) {
            Ok((registered, args)) => {
                let most = self.max_content(registered.spec());
                self.cut(self.run(&registered, args, ctx).await, most, begun.elapsed())
            }
            Err(refusal) => self.cut(refusal, self.rules.limits.max_content, begun.elapsed()),
        };
        // Every call stands in the record: the log is for those who look into one process.
        tracing::debug!(
            run = %ctx.run,
            task = %ctx.task,
            tool = %beginning(name, 64),
            status = result.status.as_str(),
            millis = result.millis,
            bytes = result.content.len(),
            truncated = result.truncated,
            "tool call"
        );
        result
    }

    /// The tool and its arguments, or why the call may not begin.
    fn admit(&self, name: &str, args: Value, ctx: &ToolContext) -> Result<(Arc<Registered>, Value), Ending> {
        let registered = self.registry.get(name).ok_or_else(|| self.unknown(name))?;
        if !self.is_on(registered.spec()) {
            let name = &registered.spec().name;
            return Err(Ending::refused(format!(
                "`{name}` is off: it is called only where the settings of the fleet allow it (`tool.allow`). Go on \
                 without it."
            )));
        }
        let args = if args.is_null() { Value::Object(Map::new()) } else { args };
        let bytes = json_size(&args);
        if bytes > self.rules.limits.max_arguments {
            return Err(Ending::refused(format!(
                "The arguments of `{name}` are {bytes} bytes; at most {} are allowed. Send less.",
                self.rules.limits.max_arguments
            )));
        }
        let complaints = registered.complaints(&args);
        if !complaints.is_empty() {
            return Err(Ending::refused(format!(
                "The arguments do not fit the schema of `{}`:\n- {}\nThe schema is: {}",
                registered.spec().name,
                complaints.join("\n- "),
                registered.spec().parameters
            )));
        }
        // Whoever carries a call out looks, not only whoever asks for it.
        ctx.rights
            .allow_all(&Use::of_call(&registered.spec().name, &args))
            .map_err(|refusal| Ending::of_failure(&ToolFailure::NoRight(Box::new(refusal))))?;
        let missing: Vec<&str> =
            registered.spec().grants.difference(&ctx.grants).map(|permission| permission.as_str()).collect();
        if !missing.is_empty() {
            return Err(Ending::refused(format!(
                "`{}` needs permission that this agent was not given: {}. Go on without it.",
                registered.spec().name,
                missing.join(", ")
            )));
        }
        Ok((registered, args))
    }

    fn unknown(&self, name: &str) -> Ending {
        let known = self.registry.list();
        let on = known.iter().filter(|spec| self.is_on(spec));
        let names: Vec<String> = on.map(|spec| spec.name.clone()).collect();
        let nearest =
            self.registry.nearest(name).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
        Ending::refused(format!(
            "There is no tool `{}`.{nearest} Available: {}.",
            beginning(name, 64),
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ))
    }

    /// Runs the call in a task of its own, so that a panic in it stays there.
    async fn run(&self, registered: &Registered, args: Value, ctx: &ToolContext) -> Ending {
        let name = &registered.spec().name;
        let limit = registered.spec().timeout.min(self.rules.limits.max_timeout);
        let tool = Arc::clone(registered.tool());
        let own = ctx.clone();
        let mut work = AbortOnDrop(tokio::spawn(async move { tool.call(&own, args).await }));
        tokio::select! {
            biased;
            () = ctx.cancel.cancelled() => Ending::refused(format!("`{name}` was given up because the task was stopped.")),
            ended = &mut work.0 => Ending::of(name, ended),
            () = tokio::time::sleep(limit) => Ending {
                status: ToolStatus::Timeout,
                content: format!(
                    "`{name}` was given up after {} ms, its time limit. Ask for less, or use another way.",
                    limit.as_millis()
                ),
                data: None,
                transient: true,
                wait: None,
                denied: None,
            },
        }
    }

    /// The longest observation of a tool, in bytes.
    fn max_content(&self, spec: &ToolSpec) -> usize {
        let most = self.rules.limits.max_content;
        spec.max_output.map_or(most, |own| own.min(most))
    }

    fn cut(&self, ending: Ending, most: usize, took: Duration) -> ToolResult {
        let Ending { status, mut content, mut data, transient, wait, denied } = ending;
        let mut truncated = false;
        if content.len() > most {
            let whole = content.len();
            content.truncate(content.floor_char_boundary(most));
            content.push_str(&format!(
                "\n[cut: {} of {whole} bytes shown; ask for less at a time to see the rest]",
                content.len()
            ));
            truncated = true;
        }
        if data.as_ref().is_some_and(|data| json_size(data) > self.rules.limits.max_data) {
            data = None;
            truncated = true;
        }
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        ToolResult { status, content, data, millis, truncated, transient, wait, denied }
    }
}

impl Ending {
    fn error(content: String) -> Self {
        let status = ToolStatus::Error;
        Self { status, content, data: None, transient: false, wait: None, denied: None }
    }

    fn refused(content: String) -> Self {
        Self { status: ToolStatus::Refused, ..Self::error(content) }
    }

    fn of(name: &str, ended: Result<Result<ToolOutput, ToolFailure>, JoinError>) -> Self {
        match ended {
            Ok(Ok(ToolOutput { content, data, wait })) => {
                Self { status: ToolStatus::Success, content, data, transient: false, wait, denied: None }
            }
            Ok(Err(failure)) => Self::of_failure(&failure),
            Err(broken) => {
                let reason = panic_message(broken);
                tracing::error!(tool = name, reason, "a tool broke");
                Self::error(format!(
                    "`{name}` broke: {reason}. This is a fault in the tool; use another way."
                ))
            }
        }
    }

    fn of_failure(failure: &ToolFailure) -> Self {
        let content = failure.to_string();
        match failure {
            // The tool is not to blame for how it was asked.
            ToolFailure::InvalidArguments(_) | ToolFailure::NotFound(_) | ToolFailure::Refused(_) => {
                Self::refused(content)
            }
            ToolFailure::NoRight(refusal) => Self { denied: Some(refusal.clone()), ..Self::refused(content) },
            ToolFailure::Failed(_) => Self::error(content),
            ToolFailure::Unavailable(_) => Self { transient: true, ..Self::error(content) },
        }
    }
}

/// Stops the call when the engine stops waiting for it, also when the engine's own future is dropped.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn panic_message(broken: JoinError) -> String {
    let Ok(panic) = broken.try_into_panic() else {
        return "it was stopped".to_owned();
    };
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked".to_owned());
    beginning(&message, 300)
}

/// Bytes of the JSON form, counted without building it.
fn json_size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
