//! What a server remembers of calls: those that it is at, and what came of those that ended, for a while. Whoever asks again
//! for the same call is given the same answer, and nothing is done twice.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_shared::ids::AgentId;
use muster_shared::wire::tool_server::ServedResult;
use muster_tools::ToolServerSettings;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::questions::Questions;

/// What will come of a call.
pub(crate) type Outcome = watch::Receiver<Option<Arc<ServedResult>>>;

/// What is known of a call.
pub(crate) enum Known {
    /// It is being carried out, and may ask something.
    Running(Outcome, Arc<Questions>),
    /// It has ended.
    Ended(Arc<ServedResult>),
}

enum Entry {
    Running {
        outcome: Outcome,
        questions: Arc<Questions>,
        cancel: CancellationToken,
        callers: BTreeSet<AgentId>,
    },
    Ended {
        result: Arc<ServedResult>,
        bytes: usize,
    },
}

/// What a server remembers of calls, by ticket.
#[derive(Default)]
pub(crate) struct Answers {
    entries: HashMap<String, Entry>,
    /// Those that ended, the oldest first.
    ended: VecDeque<(Instant, String)>,
    bytes: usize,
    running: usize,
    settings: ToolServerSettings,
}

/// A call that is begun.
pub(crate) struct Begun {
    /// Where its end is told.
    pub(crate) done: watch::Sender<Option<Arc<ServedResult>>>,
    /// Raised when nobody waits for it any more.
    pub(crate) cancel: CancellationToken,
    /// Where its end is heard.
    pub(crate) outcome: Outcome,
}

impl Answers {
    pub(crate) fn new(settings: ToolServerSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// What is known of a call; from now on this agent waits for it too.
    pub(crate) fn find(&mut self, ticket: &str, caller: &AgentId, now: Instant) -> Option<Known> {
        self.forget_old(now);
        match self.entries.get_mut(ticket)? {
            Entry::Running { outcome, questions, callers, .. } => {
                callers.insert(caller.clone());
                Some(Known::Running(outcome.clone(), Arc::clone(questions)))
            }
            Entry::Ended { result, .. } => Some(Known::Ended(Arc::clone(result))),
        }
    }

    /// Whether this agent waits for a call that is being carried out.
    pub(crate) fn waits(&self, ticket: &str, caller: &AgentId) -> bool {
        matches!(self.entries.get(ticket), Some(Entry::Running { callers, .. }) if callers.contains(caller))
    }

    /// Takes note that a call begins; nothing when there are as many as may be.
    pub(crate) fn begin(
        &mut self,
        ticket: &str,
        caller: &AgentId,
        questions: &Arc<Questions>,
    ) -> Option<Begun> {
        if self.running >= usize::try_from(self.settings.at_once).unwrap_or(usize::MAX) {
            return None;
        }
        let (done, outcome) = watch::channel(None);
        let cancel = CancellationToken::new();
        let entry = Entry::Running {
            outcome: outcome.clone(),
            questions: Arc::clone(questions),
            cancel: cancel.clone(),
            callers: BTreeSet::from([caller.clone()]),
        };
        self.running += 1;
        self.entries.insert(ticket.to_owned(), entry);
        Some(Begun { done, cancel, outcome })
    }

    /// Takes note of how a call ended. What is not `kept` was not done, and may be asked for anew.
    pub(crate) fn end(&mut self, ticket: &str, result: &Arc<ServedResult>, kept: bool, now: Instant) {
        let bytes = ticket.len()
            + result.content.len()
            + result.data.as_ref().map_or(0, |data| data.to_string().len());
        if let Some(Entry::Running { .. }) = self.entries.remove(ticket) {
            self.running -= 1;
        }
        if !kept {
            return;
        }
        self.bytes += bytes;
        self.entries.insert(ticket.to_owned(), Entry::Ended { result: Arc::clone(result), bytes });
        self.ended.push_back((now, ticket.to_owned()));
        self.forget_old(now);
    }

    /// An agent waits for a call no more; it is given up when nobody else does.
    pub(crate) fn leave(&mut self, ticket: &str, caller: &AgentId) {
        if let Some(Entry::Running { cancel, callers, .. }) = self.entries.get_mut(ticket)
            && callers.remove(caller)
            && callers.is_empty()
        {
            cancel.cancel();
        }
    }

    /// Gives a call up, whoever waits for it.
    pub(crate) fn give_up(&self, ticket: &str) {
        if let Some(Entry::Running { cancel, .. }) = self.entries.get(ticket) {
            cancel.cancel();
        }
    }

    /// Calls that are being carried out.
    pub(crate) const fn running(&self) -> usize {
        self.running
    }

    fn forget_old(&mut self, now: Instant) {
        let most = usize::try_from(self.settings.kept).unwrap_or(usize::MAX);
        let most_bytes =
            usize::try_from(self.settings.kept_mib).unwrap_or(usize::MAX).saturating_mul(1024 * 1024);
        let is_old = |at: Instant, kept_for: Duration| now.saturating_duration_since(at) > kept_for;
        while let Some((at, _)) = self.ended.front()
            && (self.ended.len() > most || self.bytes > most_bytes || is_old(*at, self.settings.kept_for))
            && let Some((_, ticket)) = self.ended.pop_front()
        {
            if let Some(Entry::Ended { bytes, .. }) = self.entries.remove(&ticket) {
                self.bytes -= bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::wire::tool_server::ServedStatus;

    use super::*;

    fn result(content: &str) -> Arc<ServedResult> {
        Arc::new(ServedResult { status: ServedStatus::Success, content: content.to_owned(), data: None })
    }

    fn agent(name: &str) -> AgentId {
        name.parse().unwrap()
    }

    fn no_questions() -> Arc<Questions> {
        Questions::new(false, Vec::new())
    }

    fn ended(answers: &mut Answers, ticket: &str, now: Instant) -> Option<String> {
        match answers.find(ticket, &agent("w-1"), now)? {
            Known::Ended(result) => Some(result.content.clone()),
            Known::Running(..) => None,
        }
    }

    #[test]
    fn the_same_call_has_the_same_answer_for_a_while_and_no_more_are_kept_than_may_be() {
        let settings = ToolServerSettings {
            kept: 2,
            kept_for: Duration::from_secs(10),
            ..ToolServerSettings::default()
        };
        let (mut answers, begun) = (Answers::new(settings), Instant::now());
        for ticket in ["a", "b", "c"] {
            answers.begin(ticket, &agent("w-1"), &no_questions()).unwrap();
            assert!(matches!(answers.find(ticket, &agent("w-2"), begun), Some(Known::Running(..))));
            answers.end(ticket, &result(ticket), true, begun);
        }
        assert_eq!(answers.running(), 0);
        assert_eq!(ended(&mut answers, "a", begun), None, "the oldest gave way");
        assert_eq!(ended(&mut answers, "c", begun).as_deref(), Some("c"));
        let late = begun + Duration::from_secs(11);
        assert_eq!(ended(&mut answers, "c", late), None, "its time is up");
        assert_eq!((answers.bytes, answers.entries.len()), (0, 0));
    }

    #[test]
    fn large_answers_are_kept_as_far_as_there_is_room() {
        let settings = ToolServerSettings { kept_mib: 1, ..ToolServerSettings::default() };
        let (mut answers, now) = (Answers::new(settings), Instant::now());
        for ticket in ["a", "b", "c"] {
            answers.begin(ticket, &agent("w-1"), &no_questions()).unwrap();
            answers.end(ticket, &result(&"x".repeat(500_000)), true, now);
        }
        assert_eq!(ended(&mut answers, "a", now), None);
        assert!(ended(&mut answers, "c", now).is_some() && answers.bytes <= 1024 * 1024);
    }

    #[test]
    fn a_call_is_given_up_when_nobody_waits_for_it_and_no_stranger_ends_it() {
        let mut answers = Answers::new(ToolServerSettings::default());
        let begun = answers.begin("a", &agent("w-1"), &no_questions()).unwrap();
        assert!(matches!(answers.find("a", &agent("w-2"), Instant::now()), Some(Known::Running(..))));
        answers.leave("a", &agent("thief-1"));
        answers.leave("a", &agent("w-1"));
        assert!(!begun.cancel.is_cancelled(), "another one waits");
        answers.leave("a", &agent("w-2"));
        assert!(begun.cancel.is_cancelled());
        answers.end("a", &result("given up"), false, Instant::now());
        assert!(answers.find("a", &agent("w-1"), Instant::now()).is_none(), "it may be asked for anew");
    }

    #[test]
    fn as_many_calls_are_carried_out_at_once_as_may_be() {
        let settings = ToolServerSettings { at_once: 1, ..ToolServerSettings::default() };
        let mut answers = Answers::new(settings);
        answers.begin("a", &agent("w-1"), &no_questions()).unwrap();
        assert!(answers.begin("b", &agent("w-1"), &no_questions()).is_none());
        answers.end("a", &result(""), true, Instant::now());
        assert!(answers.begin("b", &agent("w-1"), &no_questions()).is_some());
    }
}
