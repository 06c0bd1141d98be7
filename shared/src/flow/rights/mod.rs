//! What a task may use: tools, documents, values of the shared context, people, hosts, and work handed to others. Rights
//! come from the goal and are narrowed on the way: by tasks of the plan, steps of a blueprint, hand-overs, and the task
//! that a run was begun for. Nobody on the way can widen them: a use is allowed only where every grant of the chain
//! allows it.

mod allowed;
mod chain;
mod host;
mod statement;
mod uses;

use strum::VariantArray;

pub use allowed::{
    Allowed, ContextKeys, DocumentPaths, EVERYTHING, HostNames, LONGEST_PATTERN, MOST_PATTERNS, PatternKind,
    ToolNames,
};
pub use chain::{Grant, Grantor, MOST_GRANTS, Refusal, RefusalLink, TaskRights};
pub use host::HostPattern;
pub use statement::{Statement, Voucher, statement};
pub use uses::{Right, Use};

use super::budget::Budget;
use crate::settings;

settings! {
    /// What a task may use. What is not named is open. Each list has what is allowed; what begins with ! is left out of it,
    /// of everything where nothing else is listed.
    #[derive(PartialEq, Eq)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    pub struct Rights {
        /// Tools that tasks may call: calculator, or corpus.* for all that begin so.
        #[serde(skip_serializing_if = "Allowed::is_all")]
        pub tools: Allowed<ToolNames> = Allowed::all() => list(); Project Narrowing,
        /// Documents that tasks may read, search and cite, by their paths: docs/guide.md, or docs for a whole folder.
        #[serde(skip_serializing_if = "Allowed::is_all")]
        pub documents: Allowed<DocumentPaths> = Allowed::all() => list(); Project Narrowing,
        /// Values of the shared context that tasks may read, by their keys.
        #[serde(skip_serializing_if = "Allowed::is_all")]
        pub read_context: Allowed<ContextKeys> = Allowed::all() => list(); Project Narrowing,
        /// Values of the shared context that tasks may write.
        #[serde(skip_serializing_if = "Allowed::is_all")]
        pub write_context: Allowed<ContextKeys> = Allowed::all() => list(); Project Narrowing,
        /// Hosts that tasks may fetch from: example.org, *.example.org for those below it, example.org:443 for one port.
        #[serde(skip_serializing_if = "Allowed::is_all")]
        pub hosts: Allowed<HostNames> = Allowed::all() => list(); Project Narrowing,
        /// Whether tasks may ask people.
        #[serde(skip_serializing_if = "crate::is_true")]
        pub people: bool = true => flag(); Project Narrowing,
        /// Whether tasks may hand work over to others, and ask them.
        #[serde(skip_serializing_if = "crate::is_true")]
        pub hand_over: bool = true => flag(); Project Narrowing,
        /// Whether tasks may begin runs of their own.
        #[serde(skip_serializing_if = "crate::is_true")]
        pub runs: bool = true => flag(); Project Narrowing,
        /// Whether tasks may write files of the run.
        #[serde(skip_serializing_if = "crate::is_true")]
        pub write_files: bool = true => flag(); Project Narrowing,
        /// Whether tasks may make calls that change something; else they may only look.
        #[serde(skip_serializing_if = "crate::is_true")]
        pub effects: bool = true => flag(); Project Narrowing,
        /// The most that the task may use, within what its run gives it.
        #[serde(skip_serializing_if = "Budget::is_unlimited")]
        pub budget: Budget = Budget::UNLIMITED => internal(),
    }
}

impl Rights {
    /// Whether everything may be used.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// These rights without what a wish does not allow. Never wider, whatever is wished.
    #[must_use]
    pub fn narrowed_by(&self, wish: &Self) -> Self {
        Self {
            tools: self.tools.meet(&wish.tools),
            documents: self.documents.meet(&wish.documents),
            read_context: self.read_context.meet(&wish.read_context),
            write_context: self.write_context.meet(&wish.write_context),
            hosts: self.hosts.meet(&wish.hosts),
            people: self.people && wish.people,
            hand_over: self.hand_over && wish.hand_over,
            runs: self.runs && wish.runs,
            write_files: self.write_files && wish.write_files,
            effects: self.effects && wish.effects,
            budget: self.budget.tighter(&wish.budget),
        }
    }

    /// Whether this use is allowed.
    #[must_use]
    pub fn allow(&self, wanted: &Use<'_>) -> bool {
        match wanted {
            Use::Tool(name) => self.tools.allows(name),
            Use::Documents => !self.documents.is_none(),
            Use::Document(path) => self.documents.allows(path),
            Use::ReadKey(key) => self.read_context.allows(key),
            Use::ReadKeys => !self.read_context.is_none(),
            Use::WriteKey(key) => self.write_context.allows(key),
            Use::Host(host) => {
                HostPattern::read(host).is_ok_and(|host| host.is_one()) && self.hosts.allows(host)
            }
            Use::Person => self.people,
            Use::HandOver => self.hand_over,
            Use::Run => self.runs,
            Use::WriteFile => self.write_files,
            Use::Effect(_) => self.effects,
        }
    }

    /// What of one right there is, in words: `all tools`, `no hosts`, `may ask nobody`.
    #[must_use]
    pub fn in_words(&self, right: Right) -> String {
        let flag = |open: bool| if open { "yes" } else { "no" }.to_owned();
        match right {
            Right::Tools => self.tools.to_string(),
            Right::Documents => self.documents.to_string(),
            Right::ReadContext => self.read_context.to_string(),
            Right::WriteContext => self.write_context.to_string(),
            Right::Hosts => self.hosts.to_string(),
            Right::People => flag(self.people),
            Right::HandOver => flag(self.hand_over),
            Right::Runs => flag(self.runs),
            Right::WriteFiles => flag(self.write_files),
            Right::Effects => flag(self.effects),
        }
    }

    /// Whether it says nothing of one right.
    #[must_use]
    pub fn leaves_open(&self, right: Right) -> bool {
        match right {
            Right::Tools => self.tools.is_all(),
            Right::Documents => self.documents.is_all(),
            Right::ReadContext => self.read_context.is_all(),
            Right::WriteContext => self.write_context.is_all(),
            Right::Hosts => self.hosts.is_all(),
            Right::People => self.people,
            Right::HandOver => self.hand_over,
            Right::Runs => self.runs,
            Right::WriteFiles => self.write_files,
            Right::Effects => self.effects,
        }
    }

    /// Whether nothing of it is left.
    #[must_use]
    pub fn leaves_nothing(&self, right: Right) -> bool {
        match right {
            Right::Tools => self.tools.is_none(),
            Right::Documents => self.documents.is_none(),
            Right::ReadContext => self.read_context.is_none(),
            Right::WriteContext => self.write_context.is_none(),
            Right::Hosts => self.hosts.is_none(),
            Right::People | Right::HandOver | Right::Runs | Right::WriteFiles | Right::Effects => {
                !self.leaves_open(right)
            }
        }
    }

    /// All that is not open, in words, for people; nothing where all is.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let closed = Right::VARIANTS.iter().copied().filter(|right| !self.leaves_open(*right));
        let mut told: Vec<String> =
            closed.map(|right| format!("{}: {}", right.as_str(), self.in_words(right))).collect();
        if !self.budget.is_unlimited() {
            told.push(format!("budget: {}", self.budget));
        }
        told
    }
}

#[cfg(test)]
mod tests;
