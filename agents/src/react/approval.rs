//! What guards and people made of the calls of a step before these are made. Pure.

use muster_shared::flow::{
    Action, CallRuling, CallToApprove, FormReply, Given, Guarded, Hook, Note, Observation,
};
use muster_shared::wire::tool_question::{CallAnswer, QuestionAnswer};
use serde_json::Value;

use super::decide::ChosenAction;
use super::loop_detection::refused;

/// How a call stands before it is made.
#[derive(Debug, Default)]
pub(super) struct CallStanding<'a> {
    /// What the model is told in place of making it.
    pub(super) refused: Option<Observation>,
    /// The arguments that somebody put in the place of the model's own.
    pub(super) changed: Option<&'a Value>,
    /// What the model is told of that.
    pub(super) word: Option<String>,
    /// Whether a person approved it.
    pub(super) approved: bool,
    /// What people gave whom it asked for something when it was made before.
    pub(super) given: Vec<QuestionAnswer>,
}

/// How the call at this place of a step stands by what was noted of it.
pub(super) fn standing(notes: &[Note], at: usize) -> CallStanding<'_> {
    let (guarded, verdict) = (Note::guarded(notes, Hook::BeforeTool, at), Note::approval(notes, at));
    if let Some(why) = guarded.and_then(Guarded::refused) {
        return CallStanding { refused: Some(not_done(&why)), ..CallStanding::default() };
    }
    if let Some(verdict) = verdict.filter(|verdict| verdict.ruling == CallRuling::Refused) {
        return CallStanding { refused: Some(not_done(&verdict.to_string())), ..CallStanding::default() };
    }
    let by_guards = guarded.and_then(|said| {
        let arguments = said.changed.as_ref()?.get("arguments")?;
        Some((arguments, format!("[The arguments of this call are not those you gave: {said}]")))
    });
    let by_person = verdict.and_then(|verdict| {
        let arguments = verdict.arguments()?;
        // The answer would not make sense to whoever does not know what was asked.
        Some((arguments, format!("[This call was {verdict}: {arguments}]")))
    });
    // Guards are asked once more about what a person changed.
    let guards_are_newer = by_person.is_some() && !Note::is_to_guard(notes, Hook::BeforeTool, at);
    let changed = match (by_guards, by_person) {
        (Some(by_guards), Some(_)) if guards_are_newer => Some(by_guards),
        (by_guards, by_person) => by_person.or(by_guards),
    };
    let (changed, word) = changed.unzip();
    // Only what is called first waits for anybody.
    let given = Note::forms(notes).filter(|_| at == 0).map(answer_of).collect();
    CallStanding { refused: None, changed, word, approved: verdict.is_some(), given }
}

/// What a tool is answered by what a person gave.
fn answer_of(FormReply { id, given, .. }: &FormReply) -> QuestionAnswer {
    let answer = match given {
        Given::Values(values) => CallAnswer::Given { values: values.clone() },
        Given::Declined => CallAnswer::declined("the person declined"),
        Given::Nothing => CallAnswer::cancelled("nobody answered in time"),
    };
    QuestionAnswer { id: id.clone(), answer }
}

fn not_done(why: &str) -> Observation {
    refused(format!(
        "Not done: {why}. The same call will be refused again: go another way, or submit what there is."
    ))
}

/// Whether any call of an answer is to be done.
pub(super) fn lets_any_through(chosen: &ChosenAction) -> bool {
    undone(chosen).any(|(at, _)| standing(&chosen.notes, at).refused.is_none())
}

/// The calls of an answer of which the model is told nothing yet, each with its place.
pub(super) fn undone(chosen: &ChosenAction) -> impl Iterator<Item = (usize, &Action)> {
    let more = chosen.more.iter().enumerate().filter(|(_, one)| one.observation.is_none());
    std::iter::once((0, &chosen.action)).chain(more.map(|(at, one)| (at + 1, &one.action)))
}

/// The first call of an answer that a person has to approve and has not decided on. `why` says of a tool why its calls need
/// that.
pub(super) fn to_approve(
    chosen: &ChosenAction,
    why: impl Fn(&str) -> Option<&'static str>,
) -> Option<CallToApprove> {
    undone(chosen).find_map(|(at, action)| {
        let standing = standing(&chosen.notes, at);
        let is_open = standing.refused.is_none() && !standing.approved;
        let why = is_open.then(|| why(&action.name)).flatten()?;
        Some(CallToApprove {
            at: u32::try_from(at).unwrap_or(u32::MAX),
            tool: action.name.clone(),
            arguments: standing.changed.unwrap_or(&action.arguments).clone(),
            why: why.to_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::{CallVerdict, FurtherAction, GuardVerdict, Ruling, Thought};
    use serde_json::json;

    use super::*;

    fn call(name: &str) -> Action {
        Action { name: name.to_owned(), arguments: json!({ "of": name }) }
    }

    fn chosen(names: &[&str], notes: Vec<Note>) -> ChosenAction {
        let more = names[1..].iter().map(|name| FurtherAction { action: call(name), observation: None });
        ChosenAction { thought: Thought::default(), action: call(names[0]), more: more.collect(), notes }
    }

    fn verdict(at: u32, ruling: CallRuling) -> Note {
        let by = Some("ann".to_owned());
        Note::Approval { verdict: CallVerdict { at, ruling, by, reason: "so it is".to_owned() } }
    }

    fn guarded(at: u32, ruling: Ruling, changed: Option<Value>) -> Note {
        let verdict = GuardVerdict {
            guard: "g".to_owned(),
            verdict: ruling,
            reason: "rule 7".to_owned(),
            failed: false,
        };
        let said = Guarded { verdicts: vec![verdict], changed, ..Guarded::default() };
        Note::Guarded { hook: Hook::BeforeTool, at, said, reworded: Vec::new() }
    }

    fn asks_for(tool: &str) -> Option<&'static str> {
        (tool != "free").then_some("a rule")
    }

    #[test]
    fn the_calls_of_a_step_are_asked_about_one_after_the_other() {
        let asked = |notes| to_approve(&chosen(&["free", "mail", "pay"], notes), asks_for);
        let first = asked(vec![]).unwrap();
        assert_eq!((first.at, first.tool.as_str(), first.why.as_str()), (1, "mail", "a rule"));
        assert_eq!(first.arguments, json!({ "of": "mail" }));
        for ruling in [CallRuling::Approved, CallRuling::Refused, CallRuling::Changed(json!({}))] {
            assert_eq!(asked(vec![verdict(1, ruling)]).unwrap().at, 2);
        }
        let both = vec![verdict(1, CallRuling::Approved), verdict(2, CallRuling::Refused)];
        assert_eq!(asked(both), None);
        assert_eq!(to_approve(&chosen(&["free"], vec![]), asks_for), None);
    }

    #[test]
    fn a_person_is_asked_about_what_guards_left() {
        let changed = json!({ "arguments": { "to": "b" } });
        let left = to_approve(&chosen(&["mail"], vec![guarded(0, Ruling::Change, Some(changed))]), asks_for);
        assert_eq!(left.unwrap().arguments, json!({ "to": "b" }));
        let refused = chosen(&["mail"], vec![guarded(0, Ruling::Refuse, None)]);
        assert_eq!(to_approve(&refused, asks_for), None);
        assert!(!lets_any_through(&refused));
    }

    #[test]
    fn the_word_that_came_last_counts() {
        let by_ann = || verdict(0, CallRuling::Changed(json!({ "to": "ann's" })));
        let by_guard = || guarded(0, Ruling::Change, Some(json!({ "arguments": { "to": "guard's" } })));
        let table = [
            (vec![], None),
            (vec![by_guard()], Some("guard's")),
            (vec![by_guard(), verdict(0, CallRuling::Approved)], Some("guard's")),
            (vec![by_guard(), by_ann()], Some("ann's")),
            (vec![by_ann(), by_guard()], Some("guard's")),
            (vec![by_ann(), guarded(0, Ruling::Allow, None)], Some("ann's")),
            (vec![verdict(1, CallRuling::Changed(json!({ "to": "other" })))], None),
        ];
        for (notes, to) in table {
            let standing = standing(&notes, 0);
            assert_eq!(standing.changed.and_then(|args| args["to"].as_str()), to, "{notes:?}");
            assert_eq!(standing.word.is_some(), to.is_some());
            assert!(standing.refused.is_none());
        }
        let notes = [by_ann(), guarded(0, Ruling::Refuse, None)];
        let refused = standing(&notes, 0).refused.unwrap().content;
        assert!(refused.contains("rule 7"), "guards have the last word: {refused}");
        let notes = [verdict(0, CallRuling::Refused)];
        let refused = standing(&notes, 0).refused.unwrap().content;
        assert!(refused.contains("not approved by ann: so it is"), "{refused}");
    }
}
