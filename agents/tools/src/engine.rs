//! The engine: calls a tool under rules and gives a result whatever the tool does.

mod attempt;
mod breaker;
mod ending;
mod inner;
mod kept;
mod quota;
mod rules;
mod shared;

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use muster_shared::flow::Use;
use muster_shared::text::beginning;
use serde_json::{Map, Value};

use super::{
    registry::{Registered, ToolRegistry},
    sharing::SharedAnswers,
    spec::{ToolContext, ToolResult, ToolSpec, ToolStatus},
};
use attempt::{Threads, attempt};
use breaker::Breaker;
use ending::{Ending, Fault, json_size};
use inner::may_have_effect;
use kept::{KeptAnswers, SameCall};
use muster_shared::sync::lock;
use rules::{may_repeat, may_stand_in};

pub use attempt::why_broken;
pub use quota::{CallCount, CallCounter, LocalCounts};
pub use rules::{EngineLimits, EngineRules, ToolBreakerRules, ToolQuota, ToolRetries};

/// Runs tools. Cheap to clone; clones know the same of tools that fail.
#[derive(Clone)]
pub struct ToolEngine {
    registry: Arc<ToolRegistry>,
    rules: Arc<EngineRules>,
    counter: Arc<dyn CallCounter>,
    /// Where answers of pure tools are kept for others, if anywhere.
    shared: Option<Arc<dyn SharedAnswers>>,
    seen: Arc<Seen>,
}

/// What an engine has seen of its tools.
#[derive(Default)]
struct Seen {
    /// Of tools whose last try failed.
    breakers: Mutex<BTreeMap<String, Breaker>>,
    answers: Mutex<KeptAnswers>,
    threads: Threads,
}

/// A call that may be made.
struct Admitted {
    registered: Arc<Registered>,
    args: Value,
}

impl Admitted {
    fn spec(&self) -> &ToolSpec {
        self.registered.spec()
    }
}

impl ToolEngine {
    /// An engine over a registry with the default rules: nothing is allowed that is off until it is allowed.
    #[must_use]
    pub fn new(registry: Arc<ToolRegistry>) -> Self {
        Self::with_rules(registry, EngineRules::default())
    }

    /// An engine with rules of its own, which counts the calls of this process.
    #[must_use]
    pub fn with_rules(registry: Arc<ToolRegistry>, rules: EngineRules) -> Self {
        let counter = Arc::new(LocalCounts::default());
        Self { registry, rules: Arc::new(rules), counter, shared: None, seen: Arc::default() }
    }

    /// The same where calls are counted elsewhere, such as for a whole fleet.
    #[must_use]
    pub fn counting(self, counter: Arc<dyn CallCounter>) -> Self {
        Self { counter, ..self }
    }

    /// The tools this engine can call.
    #[must_use]
    pub fn registry(&self) -> &Arc<ToolRegistry> {
        &self.registry
    }

    /// What it goes by.
    #[must_use]
    pub fn rules(&self) -> &EngineRules {
        &self.rules
    }

    /// Whether settings let a tool be called at all.
    #[must_use]
    pub fn is_on(&self, spec: &ToolSpec) -> bool {
        !spec.off_until_allowed || self.rules.allow.mean(&spec.name)
    }

    /// Why a person has to approve a call of a tool before it is made with this; nothing when nobody has to, or there is no
    /// such tool.
    #[must_use]
    pub fn approval(&self, name: &str, ctx: &ToolContext) -> Option<&'static str> {
        let registered = self.registry.get(name)?;
        self.approval_of(registered.spec(), ctx)
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
        let EngineLimits { max_content, max_data, .. } = self.rules.limits;
        let result = match self.admit(name, args, ctx) {
            Ok(call) => {
                let most = self.rules.limits.max_content;
                let mut ending = self.perform(&call, ctx, begun).await;
                if let Some(keeper) = &ctx.keeper {
                    ending = ending.kept_by(keeper.as_ref(), most).await;
                }
                ending.cut(most, max_data, begun.elapsed())
            }
            Err(refusal) => refusal.cut(max_content, max_data, begun.elapsed()),
        };
        // Every call stands in the record: the log is for those who look into one process.
        tracing::debug!(
            run = %ctx.run,
            task = %ctx.task,
            tool = %beginning(name, 64),
            status = result.status.as_str(),
            millis = result.millis,
            tries = result.tries,
            bytes = result.content.len(),
            truncated = result.truncated,
            "tool call"
        );
        result
    }

    /// The tool and its arguments, or why the call may not begin.
    fn admit(&self, name: &str, args: Value, ctx: &ToolContext) -> Result<Admitted, Box<Ending>> {
        let registered = self.registry.get(name).ok_or_else(|| Box::new(self.unknown(name)))?;
        let name = &registered.spec().name;
        if let Some(off) = self.off_of(registered.spec()) {
            return Err(refused(format!(
                "`{off}` is off: it is called only where the settings of the fleet allow it (`tool.allow`). Go on \
                 without it."
            )));
        }
        let args = if args.is_null() { Value::Object(Map::new()) } else { args };
        let bytes = json_size(&args);
        if bytes > self.rules.limits.max_arguments {
            return Err(refused(format!(
                "The arguments of `{name}` are {bytes} bytes; at most {} are allowed. Send less.",
                self.rules.limits.max_arguments
            )));
        }
        let complaints = registered.complaints(&args);
        if !complaints.is_empty() {
            return Err(refused(format!(
                "The arguments do not fit the schema of `{name}`:\n- {}\nThe schema is: {}",
                complaints.join("\n- "),
                registered.spec().parameters
            )));
        }
        // Whoever carries a call out looks, not only whoever asks for it.
        ctx.rights
            .allow_all(&Use::of_call(name, &args))
            .and_then(|()| may_have_effect(registered.spec(), ctx))
            .and_then(|()| self.may_begin(registered.spec(), ctx))
            .map_err(|refusal| Box::new(Ending::of_failure(&refusal.into())))?;
        if let Some(why) = self.approval_of(registered.spec(), ctx).filter(|_| !ctx.approved) {
            return Err(refused(format!("`{name}` was not called: {why}, and nobody approved this one.")));
        }
        let missing: Vec<&str> =
            registered.spec().grants.difference(&ctx.grants).map(|permission| permission.as_str()).collect();
        if !missing.is_empty() {
            return Err(refused(format!(
                "`{name}` needs permission that this agent was not given: {}. Go on without it.",
                missing.join(", ")
            )));
        }
        Ok(Admitted { registered, args })
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

    /// What the same call was answered before, where that serves it; else what comes of making it. What is not made counts for
    /// no quota.
    async fn perform(&self, call: &Admitted, ctx: &ToolContext, begun: Instant) -> Ending {
        match self.shared_call(call, ctx) {
            // Few calls are, and whatever waits for one is not to be larger for it.
            Some(shared) => Box::pin(shared.find_or(self.make(call, ctx, begun))).await,
            None => self.make(call, ctx, begun).await,
        }
    }

    /// Makes a call, and what takes its place where it fails for good: another tool, else the last good answer.
    async fn make(&self, call: &Admitted, ctx: &ToolContext, begun: Instant) -> Ending {
        if let Some(full) = self.over_quota(call.spec(), ctx).await {
            return full;
        }
        let same = SameCall::of(call.spec(), &call.args, ctx);
        let ending = self.with_retries(call, ctx, begun).await;
        // What may have taken effect is not done once more by other means.
        let may_be_replaced = may_repeat(call.spec()) || ending.tries == 0;
        if ending.fault != Fault::None
            && may_be_replaced
            && let Some((other, given)) = self.by_another(call, ctx, begun).await
        {
            return ending.stood_in(&call.spec().name, &other, given);
        }
        self.kept_or(same, ending)
    }

    /// Tries a call, and again where that may help and do no harm.
    async fn with_retries(&self, call: &Admitted, ctx: &ToolContext, begun: Instant) -> Ending {
        let (spec, mut failed, mut last) = (call.spec(), 0, None);
        let ctx = &*self.given(spec, ctx);
        loop {
            let left = self.rules.limits.max_timeout.saturating_sub(begun.elapsed());
            let limit = self.rules.time_limit(spec, failed).min(left);
            if let Err(left) = self.ask_breaker(&spec.name, limit) {
                return last.unwrap_or_else(|| Ending::left_alone(&spec.name, left)).after(failed);
            }
            let ending = attempt(&call.registered, call.args.clone(), ctx, limit, &self.seen.threads).await;
            self.tell_breaker(&spec.name, ending.fault);
            failed += 1;
            let again = match ending.fault {
                Fault::Passing => {
                    self.rules.again(spec, failed, begun.elapsed(), jitter(&spec.name, ctx, failed))
                }
                _ => None,
            };
            let Some(wait) = again else { return ending.after(failed) };
            tokio::select! {
                () = ctx.cancel.cancelled() => return ending.after(failed),
                () = tokio::time::sleep(wait) => last = Some(ending),
            }
        }
    }

    /// What the tool gives that stands in for one that failed; nothing where there is none or it fails as well.
    async fn by_another(
        &self,
        call: &Admitted,
        ctx: &ToolContext,
        begun: Instant,
    ) -> Option<(String, Ending)> {
        let other = self.rules.alternatives.get(&call.spec().name)?;
        // What a person approved is the call of the other tool.
        let unapproved = ToolContext { approved: false, ..ctx.clone() };
        let admitted = self.admit(other, call.args.clone(), &unapproved).ok()?;
        if !may_stand_in(admitted.spec(), call.spec())
            || self.over_quota(admitted.spec(), ctx).await.is_some()
        {
            return None;
        }
        let given = self.with_retries(&admitted, ctx, begun).await;
        let answered = given.status == ToolStatus::Success;
        answered.then(|| (admitted.spec().name.clone(), given))
    }

    fn ask_breaker(&self, tool: &str, limit: Duration) -> Result<(), Duration> {
        match lock(&self.seen.breakers).get_mut(tool) {
            Some(breaker) => breaker.admit(Instant::now(), limit),
            None => Ok(()),
        }
    }

    fn tell_breaker(&self, tool: &str, fault: Fault) {
        let mut breakers = lock(&self.seen.breakers);
        match fault {
            Fault::Passing | Fault::Broken => {
                breakers.entry(tool.to_owned()).or_default().fail(Instant::now(), &self.rules.breaker);
            }
            Fault::None | Fault::Lasting => {
                if let Some(breaker) = breakers.get_mut(tool) {
                    breaker.succeed();
                }
            }
        }
    }
}

fn refused(content: String) -> Box<Ending> {
    Box::new(Ending::refused(content))
}

/// From 0 to 1, another for every task and try: those whose calls failed together do not come back together.
fn jitter(tool: &str, ctx: &ToolContext, failed: u32) -> f64 {
    let mut hasher = DefaultHasher::new();
    (tool, &ctx.run, &ctx.task, failed).hash(&mut hasher);
    f64::from(u32::try_from(hasher.finish() >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "engine/failing_tests.rs"]
mod failing_tests;

#[cfg(test)]
#[path = "engine/shared_tests.rs"]
mod shared_tests;
