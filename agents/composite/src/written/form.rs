//! What may stand in a file with a composite tool, as it is written.

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use crate::file::OnFailure;

/// Class of each key in the file of a project: a new key does not compile without one. All are harmless: a composite calls
/// only tools that the task may call.
const _: fn(Written, WrittenStep, WrittenCompensation) =
    |Written { description: _, parameters: _, time: _, sample: _, result: _, steps: _ },
     WrittenStep {
         name: _,
         tool: _,
         arguments: _,
         needs: _,
         when: _,
         for_each: _,
         at_once: _,
         repeat: _,
         on_failure: _,
         compensate: _,
     },
     WrittenCompensation { tool: _, arguments: _ }| {};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub(super) description: Spanned<String>,
    pub(super) parameters: Option<Spanned<Value>>,
    pub(super) time: Option<Spanned<String>>,
    pub(super) sample: Option<Spanned<Value>>,
    pub(super) result: Option<Spanned<Value>>,
    pub(super) steps: Vec<Spanned<WrittenStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenStep {
    pub(super) name: Spanned<String>,
    pub(super) tool: Spanned<String>,
    pub(super) arguments: Option<Spanned<Value>>,
    #[serde(default)]
    pub(super) needs: Vec<Spanned<String>>,
    pub(super) when: Option<Spanned<WrittenCondition>>,
    pub(super) for_each: Option<Spanned<Value>>,
    pub(super) at_once: Option<Spanned<usize>>,
    pub(super) repeat: Option<Spanned<WrittenRepeat>>,
    #[serde(default)]
    pub(super) on_failure: OnFailure,
    pub(super) compensate: Option<WrittenCompensation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenCondition {
    pub(super) value: Option<Value>,
    pub(super) exists: Option<bool>,
    pub(super) equals: Option<Value>,
    pub(super) above: Option<Value>,
    pub(super) below: Option<Value>,
    pub(super) not: Option<Box<WrittenCondition>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenRepeat {
    pub(super) until: WrittenCondition,
    pub(super) most: usize,
    pub(super) wait: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenCompensation {
    pub(super) tool: Spanned<String>,
    pub(super) arguments: Option<Spanned<Value>>,
}
