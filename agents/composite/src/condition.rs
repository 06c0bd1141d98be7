//! Conditions: whether a step is taken, and until when it is repeated. Pure.

use std::cmp::Ordering;

use serde_json::Value;

use crate::template::{Place, Scope, Template};

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    /// There is something at the place, and it is not null.
    Exists(Template),
    /// Both are the same.
    Equals(Template, Template),
    /// The first number is greater.
    Above(Template, Template),
    /// The first number is less.
    Below(Template, Template),
    /// It does not hold.
    Not(Box<Condition>),
}

impl Condition {
    /// Whether it holds.
    ///
    /// # Errors
    /// When it compares what cannot be compared.
    pub(crate) fn holds(&self, scope: &dyn Scope) -> Result<bool, String> {
        match self {
            Self::Exists(value) => Ok(there(value, scope)?.is_some_and(|found| !found.is_null())),
            Self::Equals(one, other) => Ok(there(one, scope)? == there(other, scope)?),
            Self::Above(one, other) => Ok(compared(one, other, scope)? == Some(Ordering::Greater)),
            Self::Below(one, other) => Ok(compared(one, other, scope)? == Some(Ordering::Less)),
            Self::Not(condition) => condition.holds(scope).map(|holds| !holds),
        }
    }

    /// The places in it.
    pub(crate) fn places(&self) -> Vec<&Place> {
        match self {
            Self::Exists(value) => value.places(),
            Self::Equals(one, other) | Self::Above(one, other) | Self::Below(one, other) => {
                one.places().into_iter().chain(other.places()).collect()
            }
            Self::Not(condition) => condition.places(),
        }
    }
}

/// What a value comes to; nothing where there is none, which is no fault here.
fn there(value: &Template, scope: &dyn Scope) -> Result<Option<Value>, String> {
    if let Template::Whole(place) = value { Ok(place.look(scope).cloned()) } else { value.fill(scope) }
}

/// How two numbers stand to each other; nothing where one of them is missing.
fn compared(one: &Template, other: &Template, scope: &dyn Scope) -> Result<Option<Ordering>, String> {
    let number = |value: Value| match value.as_f64() {
        Some(number) => Ok(number),
        None => {
            let shown = muster_shared::text::beginning(&value.to_string(), 60);
            Err(format!("{shown} is no number, and cannot be compared with one"))
        }
    };
    match (there(one, scope)?, there(other, scope)?) {
        (Some(one), Some(other)) => Ok(number(one)?.partial_cmp(&number(other)?)),
        (None, _) | (_, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::template::Root;

    struct Args(Value);

    impl Scope for Args {
        fn root(&self, root: &Root) -> Option<&Value> {
            (*root == Root::Args).then_some(&self.0)
        }
    }

    #[test]
    fn conditions_compare_look_whether_something_is_there_and_turn_around() {
        let scope = Args(json!({ "n": 3, "text": "a", "none": null, "m": 3.0 }));
        let of = |value: Value| Template::read(&value).unwrap();
        let place = |path: &str| of(json!(format!("{{{{args.{path}}}}}")));
        let not = |condition| Condition::Not(Box::new(condition));
        let table = [
            (Condition::Exists(place("n")), true),
            (Condition::Exists(place("none")), false),
            (Condition::Exists(place("other")), false),
            (not(Condition::Exists(place("other"))), true),
            (Condition::Equals(place("text"), of(json!("a"))), true),
            (Condition::Equals(place("other"), of(json!("a"))), false),
            (not(Condition::Equals(place("other"), of(json!("a")))), true),
            (Condition::Above(place("n"), of(json!(2))), true),
            (Condition::Above(place("n"), place("m")), false),
            (Condition::Below(place("n"), of(json!(3.5))), true),
            (Condition::Below(place("other"), of(json!(3.5))), false),
        ];
        for (condition, wanted) in table {
            assert_eq!(condition.holds(&scope), Ok(wanted), "{condition:?}");
        }
        let why = Condition::Above(place("text"), of(json!(1))).holds(&scope).unwrap_err();
        assert!(why.contains("no number"), "{why}");
    }
}
