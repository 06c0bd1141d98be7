//! What is asked of runs: confirmed, or typed.

use muster_shared::flow::question::MAX_QUESTION_BYTES;
use muster_shared::ids::{QuestionId, RunId};
use muster_shared::run::RequestAction;

use super::super::editor::Editor;
use super::super::key::Key;
use super::super::rows;
use super::super::state::{Order, Over, Purpose, Top, View};
use super::Effect;
use crate::live::model::Model;
use crate::render::figures;

/// Longest text of a question before the line that is typed.
const SHOWN: usize = 60;

/// The question that is chosen; in a run, its oldest.
pub(super) fn chosen(top: &Top, model: &Model) -> Option<(RunId, QuestionId)> {
    match top.view {
        View::Questions => top.questions.chosen_of(rows::questions(model, top.now)),
        View::Run | View::Runs => {
            let run = if top.view == View::Run {
                top.open?
            } else {
                top.runs.chosen_of(rows::runs(model, top.now))?
            };
            let asking = model.questions().filter(|(state, ..)| state.id == run);
            let oldest = asking.min_by_key(|(_, id, asked)| (asked.asked_at, *id));
            oldest.map(|(_, id, _)| (run, id))
        }
        View::Fleet | View::Traffic => None,
    }
}

/// Begins to type an answer.
pub(super) fn answer(top: &mut Top, model: &Model) {
    let Some((run, id)) = chosen(top, model) else { return top.complain("nothing is asked here") };
    let asked = model.run(run).and_then(|run| run.state()?.questions.get(&id));
    let choices = asked.map(|asked| asked.question.choices.as_slice()).unwrap_or_default();
    let choices: Vec<String> = (1..)
        .zip(choices)
        .map(|(number, choice)| format!("{number} {}", figures::one_line(choice, 30)))
        .collect();
    let what = match choices.len() {
        0 => format!("answer to {id} of {}", run.short()),
        _ => format!("answer to {id} ({})", figures::one_line(&choices.join(", "), SHOWN)),
    };
    top.over = Over::Typing { what, purpose: Purpose::Answer(run, id), editor: Editor::default() };
}

/// Approves what is asked about, once it is confirmed.
pub(super) fn approve(top: &mut Top, model: &Model) {
    if let Some((run, question)) = approved(top, model) {
        let action = RequestAction::Approve { question: Some(question), arguments: None, plan: None };
        let what = format!("approve question {question} of run {}", run.short());
        top.over = Over::Confirm(Order { run, action, reason: String::new(), what });
    }
}

/// Begins to type why it is rejected.
pub(super) fn reject(top: &mut Top, model: &Model) {
    if let Some((run, question)) = approved(top, model) {
        let what = format!("reject {question} of {}, because", run.short());
        top.over = Over::Typing { what, purpose: Purpose::Reject(run, question), editor: Editor::default() };
    }
}

/// The question that is chosen, if it is one to approve.
fn approved(top: &mut Top, model: &Model) -> Option<(RunId, QuestionId)> {
    let chosen = chosen(top, model);
    let asked = chosen.and_then(|(run, id)| model.run(run)?.state()?.questions.get(&id));
    match asked {
        Some(asked) if asked.about.is_approved() => return chosen,
        Some(_) => top.complain("this is no matter of yes or no: a answers it"),
        None => top.complain("nothing is asked here"),
    }
    None
}

/// A key while something is to be confirmed: only `y` does.
pub(super) fn confirm(top: &mut Top, key: Key) -> Vec<Effect> {
    let Over::Confirm(order) = std::mem::replace(&mut top.over, Over::Nothing) else { return Vec::new() };
    match key {
        Key::Char('y' | 'Y') => vec![Effect::Ask(order)],
        _ => {
            top.say(format!("{}: not done", order.what));
            Vec::new()
        }
    }
}

/// A key while a text is typed.
pub(super) fn type_on(top: &mut Top, key: Key) -> Vec<Effect> {
    let Over::Typing { purpose, editor, .. } = &mut top.over else { return Vec::new() };
    match key {
        Key::Esc => {
            top.over = Over::Nothing;
            top.say("not sent");
        }
        Key::Enter => {
            let text = editor.text().trim().to_owned();
            match (text.is_empty(), text.len() > MAX_QUESTION_BYTES) {
                (true, _) => top.complain("type something, or leave with Esc"),
                (_, true) => top.complain("that is longer than an answer may be"),
                (false, false) => {
                    let order = order(*purpose, text);
                    top.over = Over::Nothing;
                    return vec![Effect::Ask(order)];
                }
            }
        }
        key => {
            top.said = None;
            editor.press(key);
        }
    }
    Vec::new()
}

fn order(purpose: Purpose, text: String) -> Order {
    match purpose {
        Purpose::Answer(run, question) => Order {
            run,
            action: RequestAction::Answer { question, text },
            reason: String::new(),
            what: format!("answer to question {question} of run {}", run.short()),
        },
        Purpose::Reject(run, question) => Order {
            run,
            action: RequestAction::Reject { question: Some(question) },
            reason: text,
            what: format!("reject question {question} of run {}", run.short()),
        },
    }
}
