//! The specialist: a role that a user defined. It works as a worker does, under its own instructions, and its result
//! holds what its contract promises.

use std::sync::Arc;

use muster_shared::flow::{ContractSide, ContractViolation, Ending, Product, TaskOffered, specialist::given};
use serde_json::{Value, json};

use super::{Faults, RoleRules, Submission, worker};
use crate::definition::{Contract, Definition, Schema};

/// The name of the template that all specialists share.
pub const SPECIALIST: &str = "specialist";

/// What all specialists have in common.
pub(super) static RULES: RoleRules = RoleRules {
    name: SPECIALIST,
    template: include_str!("../prompts/specialist.md.j2"),
    tools: &["*"],
    max_steps: None,
    schema: worker::schema,
    read: worker::read,
    from_prose: Some(worker::FROM_PROSE),
    contract: None,
    specialist: None,
};

/// The rules of a specialist.
#[must_use]
pub fn rules_of(definition: Arc<Definition>) -> RoleRules {
    RoleRules {
        max_steps: definition.limits.steps,
        // Prose holds no data.
        from_prose: RULES.from_prose.filter(|_| definition.contract.output.is_none()),
        contract: Some(definition.contract.clone()),
        specialist: Some(definition),
        ..RULES.clone()
    }
}

/// The rules of a specialist of which only the promise is known: all that its record needs to be decided again.
#[must_use]
pub fn promising(output: Schema) -> RoleRules {
    let contract = Contract { input: None, output: Some(output) };
    RoleRules { from_prose: None, contract: Some(contract), ..RULES.clone() }
}

/// What a model is told to submit, with the data that is promised.
pub(super) fn with_data(rules: &RoleRules, mut schema: Value) -> Value {
    let Some(output) = rules.contract.as_ref().and_then(|contract| contract.output.as_ref()) else {
        return schema;
    };
    schema["properties"]["data"] = output.written().clone();
    if let Some(required) = schema["required"].as_array_mut() {
        required.push(json!("data"));
    }
    schema
}

/// Checks what was submitted against the contract.
pub(super) fn check(rules: &RoleRules, submission: &Submission, faults: &mut Faults) {
    for fault in rules.contract.as_ref().map(|contract| contract.unkept(submission)).unwrap_or_default() {
        faults.add(fault);
    }
}

impl Contract {
    /// What of a task does not fit what is taken on.
    #[must_use]
    pub fn refused(&self, offer: &TaskOffered) -> Option<ContractViolation> {
        self.input.as_ref()?.refuses(&given(offer)?)
    }

    /// What a result that is said to be good lacks.
    #[must_use]
    pub fn unkept(&self, submission: &Submission) -> Vec<String> {
        let Some(output) = &self.output else { return Vec::new() };
        if !counts(submission) {
            return Vec::new();
        }
        match &submission.product {
            Some(Product::Result(result)) => match &result.data {
                Some(data) => output.faults("data", data),
                None => vec!["`data` is missing: the result is promised as data too".to_owned()],
            },
            _ => Vec::new(),
        }
    }

    /// The end of a task as it may stand: a result that does not hold what is promised does not count.
    #[must_use]
    pub fn hold(&self, submission: Submission) -> (Submission, Option<ContractViolation>) {
        let faults = self.unkept(&submission);
        if faults.is_empty() {
            return (submission, None);
        }
        let ending = if submission.ending.is_success() { Ending::GaveUp } else { submission.ending };
        let why =
            if submission.reason.is_empty() { String::new() } else { format!("{}; ", submission.reason) };
        let reason = format!("{why}the result does not fit the contract of this role: {}", faults.join("; "));
        (
            Submission::without_product(ending, reason),
            Some(ContractViolation { side: ContractSide::Output, faults }),
        )
    }
}

/// Whether somebody would build upon it.
fn counts(submission: &Submission) -> bool {
    submission.product.is_some()
        && (submission.ending.is_success() || submission.ending == Ending::BudgetExhausted)
}

/// How a task ends that does not fit what is taken on.
#[must_use]
pub fn refusal(contract_violation: &ContractViolation) -> Submission {
    let reason =
        format!("the task does not fit what this role takes on: {}", contract_violation.faults.join("; "));
    Submission::without_product(Ending::Blocked, reason)
}

/// The data of a result made by rule: what the schema asks for, as far as a result holds something of that name.
/// Nothing is made up; what is missing fails the contract.
#[must_use]
pub fn data_by_rule(contract: &Contract, arguments: &Value) -> Option<Value> {
    let properties = contract.output.as_ref()?.written().get("properties")?.as_object()?;
    let known = |name: &str| match name {
        "summary" | "answer" => arguments.get("conclusion"),
        name => arguments.get(name),
    };
    let data = properties.keys().filter_map(|name| Some((name.clone(), known(name)?.clone())));
    Some(Value::Object(data.collect()))
}

#[cfg(test)]
mod tests {
    use muster_shared::flow::TaskResult;

    use super::*;
    use crate::testing::leaf;

    const TEXT: &str = "\
---
role: counter
description: counts
contract:
  input: {properties: {documents: {minimum: 1}}}
  output: {type: object, required: [words], properties: {words: {type: integer}, summary: {type: string}}}
---
";

    fn rules() -> RoleRules {
        rules_of(Arc::new(Definition::parse(TEXT).unwrap()))
    }

    fn submitted(data: &Value) -> Result<Submission, Vec<String>> {
        let offer = leaf("counter".parse().unwrap());
        rules().submission(&offer, &json!({"ending": "done", "conclusion": "c", "data": data}))
    }

    /// What is wrong is said in words that a model can act on.
    #[test]
    fn a_result_must_fit_what_is_promised() {
        assert!(submitted(&json!({"words": 7})).is_ok());
        for (data, said) in [
            (json!(null), "`data` is missing"),
            (json!({"words": "seven"}), "`data.words`"),
            (json!({}), "\"words\" is a required property"),
        ] {
            let faults = submitted(&data).unwrap_err();
            assert!(faults[0].contains(said), "{faults:?}");
        }
        let given_up = json!({"ending": "give_up", "reason": "no text", "conclusion": ""});
        assert!(rules().submission(&leaf("counter".parse().unwrap()), &given_up).is_ok());
    }

    #[test]
    fn the_model_is_told_the_schema_and_prose_does_not_count() {
        let schema = rules().submit_schema(&leaf("counter".parse().unwrap()));
        assert_eq!(schema["properties"]["data"]["required"], json!(["words"]));
        assert!(schema["required"].as_array().unwrap().contains(&json!("data")));
        assert!(rules().from_prose.is_none());
    }

    #[test]
    fn what_was_cut_short_does_not_count_without_its_data() {
        let contract = rules().contract.unwrap();
        let result = TaskResult { conclusion: "so far".into(), ..TaskResult::default() };
        let partial = Submission::done(Product::Result(result)).ending(Ending::DonePartial);
        let (held, contract_violation) = contract.hold(partial);
        assert_eq!((held.ending, held.product), (Ending::GaveUp, None));
        assert_eq!(contract_violation.unwrap().side, ContractSide::Output);
    }

    #[test]
    fn a_task_that_does_not_fit_is_refused_with_the_reason() {
        let mut offer = leaf("counter".parse().unwrap());
        offer.corpus = None;
        let contract_violation = rules().contract.unwrap().refused(&offer).unwrap();
        assert_eq!(contract_violation.side, ContractSide::Input);
        assert!(contract_violation.faults[0].contains("`input.documents`"), "{contract_violation:?}");
        assert_eq!(refusal(&contract_violation).ending, Ending::Blocked);
    }

    #[test]
    fn rules_give_as_data_only_what_they_have() {
        let contract = rules().contract.unwrap();
        let data = data_by_rule(&contract, &json!({"conclusion": "c", "findings": []}));
        assert_eq!(data, Some(json!({"summary": "c"})));
    }
}
