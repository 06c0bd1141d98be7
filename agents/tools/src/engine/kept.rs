//! The last good answers of pure tools that reach other machines, for when these cannot be reached.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::Value;

use super::ToolEngine;
use super::ending::{Ending, Fault};
use crate::context::ToolContext;
use crate::spec::{Permission, ToolSource, ToolSpec, ToolStatus};
use muster_shared::sync::lock;

/// Most answers that are kept.
const MOST: usize = 64;
/// Most bytes of all of them together.
const MOST_BYTES: usize = 512 * 1024;
/// Largest arguments of a call whose answer is kept, in bytes of JSON.
const MOST_ARGUMENTS: usize = 4 * 1024;

/// A call that is the same whenever it is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SameCall(String);

impl SameCall {
    /// The call, if its answer is kept: its tool changes nothing and reaches others. Calls are the same within a task only:
    /// what another may use, it may not.
    pub(super) fn of(spec: &ToolSpec, args: &Value, ctx: &ToolContext) -> Option<Self> {
        let reaches_others = spec.grants.contains(&Permission::Network) || spec.source != ToolSource::BuiltIn;
        if !spec.pure || !reaches_others {
            return None;
        }
        let args = args.to_string();
        (args.len() <= MOST_ARGUMENTS)
            .then(|| Self([&spec.name, &ctx.run, &ctx.task, &args].map(String::as_str).join("\n")))
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KeptAnswer {
    pub(super) content: String,
    pub(super) data: Option<Value>,
    pub(super) at: Instant,
}

impl KeptAnswer {
    fn bytes(&self) -> usize {
        self.content.len() + self.data.as_ref().map_or(0, |data| data.to_string().len())
    }
}

/// The newest answers, the oldest first.
#[derive(Debug, Default)]
pub(super) struct KeptAnswers {
    answers: VecDeque<(SameCall, KeptAnswer)>,
    bytes: usize,
}

impl KeptAnswers {
    pub(super) fn keep(&mut self, call: SameCall, answer: KeptAnswer) {
        self.forget(&call);
        let bytes = answer.bytes();
        if bytes > MOST_BYTES / 2 {
            return;
        }
        while self.answers.len() >= MOST || self.bytes + bytes > MOST_BYTES {
            let Some((_, oldest)) = self.answers.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
        self.bytes += bytes;
        self.answers.push_back((call, answer));
    }

    pub(super) fn find(&self, call: &SameCall) -> Option<&KeptAnswer> {
        self.answers.iter().find(|(kept, _)| kept == call).map(|(_, answer)| answer)
    }

    fn forget(&mut self, call: &SameCall) {
        if let Some((_, old)) =
            self.answers.iter().position(|(kept, _)| kept == call).and_then(|at| self.answers.remove(at))
        {
            self.bytes -= old.bytes();
        }
    }
}

impl ToolEngine {
    /// Keeps a good answer, or gives the last one where the tool cannot be reached.
    pub(super) fn kept_or(&self, same: Option<SameCall>, ending: Ending) -> Ending {
        let Some(same) = same else { return ending };
        let (mut answers, at) = (lock(&self.seen.answers), Instant::now());
        match ending.fault {
            Fault::None if ending.status == ToolStatus::Success && ending.wait.is_none() => {
                let (content, data) = (ending.content.clone(), ending.data.clone());
                answers.keep(same, KeptAnswer { content, data, at });
                ending
            }
            Fault::Passing => match answers.find(&same) {
                Some(kept) => ending.or_kept(kept, at - kept.at),
                None => ending,
            },
            _ => ending,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> ToolSpec {
        ToolSpec::new("web.fetch", "For tests.", json!({"type": "object"})).needing(Permission::Network)
    }

    fn call(of: usize) -> SameCall {
        SameCall::of(&spec(), &json!({ "of": of }), &ToolContext::new("r", "1")).unwrap()
    }

    fn answer(bytes: usize) -> KeptAnswer {
        KeptAnswer { content: "x".repeat(bytes), data: None, at: Instant::now() }
    }

    #[test]
    fn only_what_is_pure_and_reaches_others_is_kept_and_for_the_same_task() {
        let ctx = ToolContext::new("r", "1");
        let args = json!({"url": "a"});
        let same = SameCall::of(&spec(), &args, &ctx);
        assert!(same.is_some());
        assert_eq!(same, SameCall::of(&spec(), &args, &ctx));
        assert_ne!(same, SameCall::of(&spec(), &args, &ToolContext::new("r", "2")));
        assert_ne!(same, SameCall::of(&spec(), &json!({"url": "b"}), &ctx));
        assert_eq!(SameCall::of(&spec().with_side_effects(), &args, &ctx), None);
        let at_home = ToolSpec::new("calculator", "For tests.", json!({"type": "object"}));
        assert_eq!(SameCall::of(&at_home, &args, &ctx), None);
        assert_eq!(SameCall::of(&spec(), &json!({"url": "x".repeat(5_000)}), &ctx), None);
    }

    #[test]
    fn the_newest_answers_are_kept_within_both_limits() {
        let mut kept = KeptAnswers::default();
        for of in 0..200 {
            kept.keep(call(of), answer(10));
        }
        assert_eq!((kept.answers.len(), kept.bytes), (MOST, MOST * 10));
        assert!(kept.find(&call(0)).is_none() && kept.find(&call(199)).is_some());
        kept.keep(call(199), answer(20));
        assert_eq!(kept.find(&call(199)).unwrap().content.len(), 20, "the newest of the same call");
        for of in 0..10 {
            kept.keep(call(of), answer(100 * 1024));
        }
        assert!(kept.bytes <= MOST_BYTES && kept.find(&call(9)).is_some());
        kept.keep(call(300), answer(MOST_BYTES));
        assert!(kept.find(&call(300)).is_none(), "one that would take the place of all");
    }
}
