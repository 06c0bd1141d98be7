//! What a call asks of whoever called, before it ends: the questions that are open, and the answers that came.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use muster_shared::sync::lock;
use muster_shared::wire::tool_question::{CallAnswer, OpenQuestion, PersonQuestion, QuestionAnswer};
use muster_tools::Asker;
use tokio::sync::{oneshot, watch};

/// Most questions of one call that are open at the same time.
const MOST_OPEN: usize = 8;
/// Most questions of one call, the answered ones included.
const MOST_ASKED: usize = 64;

/// The questions of one call.
pub(crate) struct Questions {
    may_ask: bool,
    state: Mutex<State>,
    /// Told whenever a question is opened or answered.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// By their names, in the order in which they are asked.
    open: BTreeMap<(usize, String), Pending>,
    asked: usize,
    /// How often each question was asked.
    same: HashMap<String, usize>,
    /// Answers to questions that the call asked when it was made before, and is to ask again.
    known: HashMap<String, CallAnswer>,
}

struct Pending {
    question: PersonQuestion,
    answer: oneshot::Sender<CallAnswer>,
}

/// What became of a question.
enum Opened {
    Known(CallAnswer),
    Waits { at: (usize, String), answer: oneshot::Receiver<CallAnswer> },
}

impl Questions {
    /// No questions yet. `answered` holds the answers to questions of an earlier attempt of the same call.
    pub(crate) fn new(may_ask: bool, answered: Vec<QuestionAnswer>) -> Arc<Self> {
        let known = answered.into_iter().take(MOST_ASKED).map(|one| (one.id, one.answer)).collect();
        let state = Mutex::new(State { known, ..State::default() });
        Arc::new(Self { may_ask, state, changed: watch::Sender::new(()) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Takes an answer. One to a question that is not open is kept for when it is asked.
    pub(crate) fn answer(&self, QuestionAnswer { id, answer }: QuestionAnswer) {
        let mut state = self.state();
        let at = state.open.keys().find(|(_, open)| *open == id).cloned();
        match at.and_then(|at| state.open.remove(&at)) {
            Some(pending) => {
                // Whoever asked may be gone by now.
                let _gone = pending.answer.send(answer);
            }
            None if state.known.len() < MOST_ASKED => {
                state.known.insert(id, answer);
            }
            None => {}
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// The question that is open the longest, once there is one.
    pub(crate) async fn next(&self) -> OpenQuestion {
        let mut changes = self.changed.subscribe();
        loop {
            if let Some(open) = self.first() {
                return open;
            }
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    fn first(&self) -> Option<OpenQuestion> {
        let state = self.state();
        let ((_, id), pending) = state.open.first_key_value()?;
        Some(OpenQuestion { id: id.clone(), question: pending.question.clone() })
    }

    fn open(&self, question: PersonQuestion) -> Opened {
        let mut state = self.state();
        if state.open.len() >= MOST_OPEN || state.asked >= MOST_ASKED {
            return Opened::Known(CallAnswer::declined("too many questions were asked in one call"));
        }
        state.asked += 1;
        let digest = question.digest();
        let count = state.same.entry(digest.clone()).or_default();
        *count += 1;
        let id = format!("{digest}-{count}");
        if let Some(answer) = state.known.remove(&id) {
            return Opened::Known(answer);
        }
        let (tell, answer) = oneshot::channel();
        let at = (state.asked, id);
        state.open.insert(at.clone(), Pending { question, answer: tell });
        drop(state);
        self.changed.send_replace(());
        Opened::Waits { at, answer }
    }
}

/// Takes a question back when nobody waits for its answer any more.
struct TakenBack<'a>(&'a Questions, (usize, String));

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.0.state().open.remove(&self.1);
    }
}

#[async_trait]
impl Asker for Questions {
    async fn ask(&self, question: PersonQuestion) -> CallAnswer {
        if !self.may_ask {
            return CallAnswer::declined("whoever calls answers no such questions");
        }
        if let Some(fault) = question.fault() {
            return CallAnswer::declined(fault);
        }
        match self.open(question) {
            Opened::Known(answer) => answer,
            Opened::Waits { at, answer } => {
                let _taken_back = TakenBack(self, at);
                answer.await.unwrap_or_else(|_| CallAnswer::cancelled("nobody answers any more"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::Form;
    use serde_json::json;

    use super::*;

    fn question(text: &str) -> PersonQuestion {
        PersonQuestion { text: text.to_owned(), form: Form::Values(json!({ "type": "object" })) }
    }

    fn said(text: &str) -> CallAnswer {
        CallAnswer::Given { values: json!({ "said": text }) }
    }

    #[tokio::test]
    async fn questions_are_answered_by_their_names_and_taken_back_when_nobody_waits() {
        let questions = Questions::new(true, Vec::new());
        let asker = Arc::clone(&questions);
        let asking = tokio::spawn(async move { asker.ask(question("a")).await });
        let open = questions.next().await;
        assert_eq!(open.question, question("a"));
        questions.answer(QuestionAnswer { id: "another".to_owned(), answer: said("no") });
        assert_eq!(questions.next().await.id, open.id, "still open");
        questions.answer(QuestionAnswer { id: open.id.clone(), answer: said("yes") });
        assert_eq!(asking.await.unwrap(), said("yes"));
        assert!(questions.first().is_none());
        let asker = Arc::clone(&questions);
        let asking = tokio::spawn(async move { asker.ask(question("a")).await });
        assert_ne!(questions.next().await.id, open.id, "the same words are another question");
        asking.abort();
        assert!(asking.await.is_err() && questions.first().is_none(), "nobody waits");
    }

    #[tokio::test]
    async fn a_call_that_is_made_again_gets_what_was_answered_before() {
        let first = Questions::new(true, Vec::new());
        let asker = Arc::clone(&first);
        tokio::spawn(async move { asker.ask(question("a")).await });
        let id = first.next().await.id;
        let answered = vec![QuestionAnswer { id, answer: said("yes") }];
        let again = Questions::new(true, answered);
        assert_eq!(again.ask(question("a")).await, said("yes"));
    }

    #[tokio::test]
    async fn what_may_not_be_asked_is_declined_and_there_is_an_end_to_questions() {
        let none = Questions::new(false, Vec::new());
        assert!(matches!(none.ask(question("a")).await, CallAnswer::Decline { .. }));
        let some = Questions::new(true, Vec::new());
        assert!(matches!(some.ask(question(&"x".repeat(300_000))).await, CallAnswer::Decline { .. }));
        for n in 0..MOST_ASKED {
            let (asker, text) = (Arc::clone(&some), n.to_string());
            let asking = tokio::spawn(async move { asker.ask(question(&text)).await });
            let id = some.next().await.id;
            some.answer(QuestionAnswer { id, answer: said("yes") });
            assert_eq!(asking.await.unwrap(), said("yes"));
        }
        assert!(matches!(some.ask(question("one more")).await, CallAnswer::Decline { .. }));
    }
}
