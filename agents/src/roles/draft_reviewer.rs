//! The reviewer of a report's draft: holds it against the goal and the results. Reflectors do it.

use muster_shared::flow::{DraftRemark, DraftReview, DraftVerdict, Product, TaskOffered};
use serde_json::{Value, json};

use super::{Document, Faults, RoleRules, Submission};

pub(super) static RULES: RoleRules = RoleRules::single_answer(
    "draft_reviewer",
    include_str!("../prompts/draft_reviewer.md.j2"),
    schema,
    read,
    None,
);

fn schema(_: &TaskOffered) -> Value {
    json!({
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["accept", "revise"]},
            "remarks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "place": {"type": "string", "description": "where: a heading, or the first words of a sentence"},
                        "text": {"type": "string", "description": "what is wrong there"}
                    },
                    "required": ["place", "text"]
                }
            },
            "unanswered": {"type": "array", "items": {"type": "string"}, "description": "parts of the goal that the results answer and the draft does not"},
            "unsupported": {"type": "array", "items": {"type": "string"}, "description": "claims of the draft that no result supports, in its words"}
        },
        "required": ["verdict"]
    })
}

fn read(_: &TaskOffered, document: &Document<'_>, faults: &mut Faults) -> Submission {
    let review = DraftReview {
        verdict: verdict(document, faults),
        remarks: remarks(document),
        unanswered: document.texts("unanswered"),
        unsupported: document.texts("unsupported"),
    };
    if review.verdict == DraftVerdict::Revise && !review.asks_for_changes() {
        faults.add("`revise` needs something to change: say it in `remarks`, `unanswered` or `unsupported`, or accept the draft");
    }
    Submission::done(Product::DraftReview(review.bounded()))
}

fn verdict(document: &Document<'_>, faults: &mut Faults) -> DraftVerdict {
    match document.text("verdict").to_lowercase().as_str() {
        "accept" | "accepted" => DraftVerdict::Accept,
        "revise" | "revised" | "reject" => DraftVerdict::Revise,
        other => {
            faults.add(format!("`verdict` is {other:?}: it must be `accept` or `revise`"));
            DraftVerdict::Accept
        }
    }
}

/// Remarks as models write them: with a place each, or as bare texts.
fn remarks(document: &Document<'_>) -> Vec<DraftRemark> {
    let remark = |item: &Value| match Document::of(item) {
        Some(remark) => DraftRemark { place: remark.text("place"), text: remark.text("text") },
        None => DraftRemark {
            place: String::new(),
            text: item.as_str().map_or_else(|| item.to_string(), |text| text.trim().to_owned()),
        },
    };
    document.items("remarks").iter().map(remark).filter(|remark| !remark.text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::Report;
    use muster_shared::ids::{Role, TaskId};

    use super::*;
    use crate::testing;

    fn submitted(arguments: &Value) -> Result<DraftReview, Vec<String>> {
        let work = testing::work(json!({ "draft_review": { "draft": Report::default(), "results": [] } }));
        let offer = testing::offer(TaskId::DraftReview(1), Role::Reflector, work);
        let submission = RULES.submission(&offer, arguments)?;
        match submission.product.unwrap() {
            Product::DraftReview(review) => Ok(review),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reviews_are_read_as_models_write_them() {
        let review = submitted(&json!({
            "verdict": "Revise",
            "remarks": [{"place": "Apples", "text": "they are red"}, "too short", {"place": "Figs", "text": ""}],
            "unanswered": "figs",
        }))
        .unwrap();
        assert_eq!(review.verdict, DraftVerdict::Revise);
        assert_eq!(review.lines(), ["Apples: they are red", "too short", "not answered: figs"]);
        assert_eq!(submitted(&json!({"verdict": "accept"})).unwrap(), DraftReview::default());
    }

    #[test]
    fn what_says_nothing_is_asked_for_again() {
        for (written, wanted) in [
            (json!({"verdict": "revise"}), "something to change"),
            (json!({"verdict": "perhaps"}), "`accept` or `revise`"),
            (json!({}), "`accept` or `revise`"),
        ] {
            let faults = submitted(&written).unwrap_err();
            assert!(faults[0].contains(wanted), "{written}: {faults:?}");
        }
    }
}
