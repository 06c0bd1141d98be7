//! Reading a file with a composite tool: what may stand in it, and what is wrong with it, where.

mod form;
mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use muster_shared::span;
use muster_shared::wire::tool_server::MOST_DESCRIPTION;
use muster_tools::patterns::is_name;
use muster_tools::registry::sound_schema;
use serde_json::{Value, json};
use toml::Spanned;

use crate::condition::Condition;
use crate::file::{Calls, Compensation, Composite, Named, Step};
use crate::template::{Place, Root, Template, depth, steps_of};
use crate::written::form::{Written, WrittenCondition, WrittenRepeat, WrittenStep};
use crate::written::order::circle;
use crate::{MAX_BYTES, MOST_AT_ONCE, MOST_ITERATIONS, MOST_STEPS, NAMESPACE};
use muster_shared::text::Fault;

/// How long the steps may take where nothing is said.
const USUAL_TIME: Duration = Duration::from_secs(120);
/// The longest that may be said: with what undoing takes it is within what the engine gives a call.
const LONGEST_TIME: Duration = Duration::from_secs(480);
/// Longest wait between two calls of one step.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Deepest nesting of arguments.
const MOST_DEPTH: usize = 16;

/// Reads a file.
pub(crate) fn read(text: &str, stem: &str) -> Result<Composite, Fault> {
    if text.len() as u64 > MAX_BYTES {
        return Err(Fault::at(
            text,
            0,
            format!("it has more than {} KiB", MAX_BYTES / 1024),
            "make two of it",
        ));
    }
    let written: Written = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::at(text, at, error.message(), "docs/own-tools.md says what may stand in it")
    })?;
    Reader { text, names: BTreeMap::new(), arguments: None }.composite(&written, stem)
}

/// What is known of the file while it is read.
struct Reader<'a> {
    text: &'a str,
    /// The steps by name.
    names: BTreeMap<String, usize>,
    /// The arguments that a call has, where no others may be given.
    arguments: Option<BTreeSet<String>>,
}

/// Which roots a template may have.
#[derive(Clone, Copy)]
struct Roots {
    item: bool,
    index: bool,
    result: bool,
}

impl Roots {
    const NONE: Self = Self { item: false, index: false, result: false };
}

impl Reader<'_> {
    fn fault<T>(&self, of: &Spanned<T>, what: impl Into<String>, advice: &str) -> Fault {
        Fault::at(self.text, of.span().start, what, advice)
    }

    fn composite(mut self, written: &Written, stem: &str) -> Result<Composite, Fault> {
        if !is_name(stem) {
            let what = format!("{stem:?} is no name for a tool");
            return Err(Fault::at(
                self.text,
                0,
                what,
                "call the file NAME.composite.toml, with a NAME of letters, digits, _ and -",
            ));
        }
        let description = written.description.get_ref().trim().to_owned();
        if description.is_empty() || description.len() > MOST_DESCRIPTION {
            let what = format!("description must have 1 to {MOST_DESCRIPTION} bytes");
            return Err(self.fault(
                &written.description,
                what,
                "say what it does and when to use it: models choose by it",
            ));
        }
        let parameters = self.parameters(written.parameters.as_ref())?;
        self.name_steps(&written.steps)?;
        let steps = written.steps.iter().map(|step| self.step(step)).collect::<Result<Vec<_>, _>>()?;
        if let Some(at) = circle(&steps) {
            let what =
                format!("the step `{}` can never begin: it, or what it needs, needs itself", steps[at].name);
            return Err(self.fault(
                &written.steps[at].get_ref().name,
                what,
                "take one of the places or `needs` away",
            ));
        }
        let result = written.result.as_ref().map(|result| self.template(result, Roots::NONE)).transpose()?;
        Ok(Composite {
            name: format!("{NAMESPACE}.{stem}"),
            description,
            parameters,
            time: self.span(written.time.as_ref(), USUAL_TIME, LONGEST_TIME)?,
            sample: written.sample.as_ref().map(|sample| sample.get_ref().clone()),
            result,
            steps,
        })
    }

    fn parameters(&mut self, written: Option<&Spanned<Value>>) -> Result<Value, Fault> {
        let Some(written) = written else {
            self.arguments = Some(BTreeSet::new());
            return Ok(json!({ "type": "object", "additionalProperties": false }));
        };
        let mut schema = written.get_ref().clone();
        let unusable = |why: &str| {
            self.fault(
                written,
                format!("parameters is no JSON Schema that can be used: {why}"),
                "see https://json-schema.org",
            )
        };
        let Some(fields) = schema.as_object_mut() else { return Err(unusable("it is no table")) };
        fields.entry("type").or_insert_with(|| json!("object"));
        if fields["type"] != "object" {
            return Err(unusable("its `type` must be \"object\""));
        }
        let known =
            fields.get("properties").and_then(Value::as_object).map(|known| known.keys().cloned().collect());
        let is_open = fields.get("additionalProperties").is_some_and(|further| *further != json!(false))
            || fields.contains_key("patternProperties");
        sound_schema(&schema).map_err(|why| unusable(&why))?;
        self.arguments = known.filter(|_| !is_open);
        Ok(schema)
    }

    fn name_steps(&mut self, written: &[Spanned<WrittenStep>]) -> Result<(), Fault> {
        if written.is_empty() || written.len() > MOST_STEPS {
            let at = written.get(MOST_STEPS).map_or(0, |step| step.get_ref().name.span().start);
            return Err(Fault::at(
                self.text,
                at,
                format!("there must be 1 to {MOST_STEPS} steps"),
                "make composites of parts of it",
            ));
        }
        for (at, step) in written.iter().enumerate() {
            let name = &step.get_ref().name;
            if !is_name(name.get_ref())
                || !name.get_ref().starts_with(|first: char| first.is_ascii_alphabetic())
            {
                let what = format!("{:?} is no name for a step", name.get_ref());
                return Err(self.fault(name, what, "letters, digits, _ and -, a letter first, 48 at most"));
            }
            if self.names.insert(name.get_ref().clone(), at).is_some() {
                return Err(self.fault(
                    name,
                    format!("there are two steps `{}`", name.get_ref()),
                    "call one of them otherwise",
                ));
            }
        }
        Ok(())
    }

    fn step(&self, written: &Spanned<WrittenStep>) -> Result<Step, Fault> {
        let written = written.get_ref();
        let calls = self.calls(written)?;
        let (is_each, is_loop) = match &calls {
            Calls::Once => (false, false),
            Calls::Each { .. } => (true, true),
            Calls::Until { .. } => (false, true),
        };
        let roots = Roots { item: is_each, index: is_loop, result: false };
        let arguments = self.arguments(written.arguments.as_ref(), roots)?;
        let mut places = arguments.places();
        if let Calls::Each { list, .. } = &calls {
            places.extend(list.places());
        }
        // What may be missing need not have been done, but has to have ended.
        let (optional, used): (Vec<_>, Vec<_>) = places.into_iter().partition(|place| place.optional);
        let (mut needs, mut after) = (self.steps(used), self.steps(optional));
        for name in &written.needs {
            needs.insert(
                self.named_step(name.get_ref())
                    .map_err(|what| self.fault(name, what, self.known_steps().as_str()))?,
            );
        }
        let when = match &written.when {
            Some(when) => Some(self.condition(when.get_ref(), when.span().start, Roots::NONE)?),
            None => None,
        };
        after.extend(when.as_ref().map(|when| self.steps(when.places())).unwrap_or_default());
        let compensate = match &written.compensate {
            Some(undo) => {
                let roots = Roots { result: true, ..roots };
                let arguments = self.arguments(undo.arguments.as_ref(), roots)?;
                // It is there whenever anything is undone: whatever the step itself needed.
                if let Some(other) = self.steps(arguments.places()).difference(&needs).next() {
                    let what = format!(
                        "what undoes it uses the step {other:?}, which it does not need",
                        other = self.name_of(*other)
                    );
                    return Err(self.fault(&undo.tool, what, "name that step in `needs`"));
                }
                Some(Compensation { tool: self.tool(&undo.tool)?, arguments })
            }
            None => None,
        };
        let tool = self.tool(&written.tool)?;
        let (name, on_failure) = (written.name.get_ref().clone(), written.on_failure);
        Ok(Step { name, tool, arguments, needs, after, when, calls, on_failure, compensate })
    }

    fn calls(&self, written: &WrittenStep) -> Result<Calls, Fault> {
        match (&written.for_each, &written.repeat) {
            (Some(list), Some(_)) => {
                Err(self.fault(list, "there are both `for_each` and `repeat`", "leave one of them out"))
            }
            (Some(list), None) => {
                let at_once = match &written.at_once {
                    None => 1,
                    Some(most) if (1..=MOST_AT_ONCE).contains(most.get_ref()) => *most.get_ref(),
                    Some(most) => {
                        return Err(self.fault(most, format!("it must be 1 to {MOST_AT_ONCE}"), ""));
                    }
                };
                Ok(Calls::Each { list: self.template(list, Roots::NONE)?, at_once })
            }
            (None, _) if written.at_once.is_some() => {
                let place = written.at_once.as_ref().map_or(0, |at_once| at_once.span().start);
                Err(Fault::at(self.text, place, "at_once is for `for_each`", "leave it out"))
            }
            (None, Some(repeat)) => {
                let WrittenRepeat { until, most, wait } = repeat.get_ref();
                if !(1..=MOST_ITERATIONS).contains(most) {
                    return Err(self.fault(repeat, format!("`most` must be 1 to {MOST_ITERATIONS}"), ""));
                }
                let roots = Roots { index: true, result: true, item: false };
                let condition = self.condition(until, repeat.span().start, roots)?;
                if let Some(other) = self.steps(condition.places()).first() {
                    let what =
                        format!("`until` looks at the step `{}`, which stays as it is", self.name_of(*other));
                    return Err(self.fault(repeat, what, "look at `result`, what came of the last call"));
                }
                let wait = match wait {
                    None => Duration::ZERO,
                    Some(text) => {
                        span::parse(text).filter(|wait| *wait <= LONGEST_WAIT).ok_or_else(|| {
                            self.fault(
                                repeat,
                                format!("{text:?} is no wait of at most {} s", LONGEST_WAIT.as_secs()),
                                "such as \"1s\"",
                            )
                        })?
                    }
                };
                Ok(Calls::Until { condition, most: *most, wait })
            }
            (None, None) => Ok(Calls::Once),
        }
    }

    fn arguments(&self, written: Option<&Spanned<Value>>, roots: Roots) -> Result<Template, Fault> {
        match written {
            None => Ok(Template::Table(Vec::new())),
            Some(written) if written.get_ref().is_object() => self.template(written, roots),
            Some(written) => {
                Err(self.fault(written, "arguments is no table", "such as { path = \"{{args.path}}\" }"))
            }
        }
    }

    fn template(&self, written: &Spanned<Value>, roots: Roots) -> Result<Template, Fault> {
        self.read_template(written.get_ref(), written.span().start, roots)
    }

    fn read_template(&self, written: &Value, at: usize, roots: Roots) -> Result<Template, Fault> {
        let fault = |what: String| Fault::at(self.text, at, what, "docs/own-tools.md has the places");
        if depth(written) > MOST_DEPTH {
            return Err(fault(format!("it is nested more than {MOST_DEPTH} levels deep")));
        }
        let template = Template::read(written).map_err(fault)?;
        template.places().into_iter().try_for_each(|place| self.check(place, roots)).map_err(fault)?;
        Ok(template)
    }

    fn condition(&self, written: &WrittenCondition, at: usize, roots: Roots) -> Result<Condition, Fault> {
        let advice = "such as { value = \"{{steps.find.data.total}}\", above = 0 }";
        let fault = |what: &str| Fault::at(self.text, at, what, advice);
        let WrittenCondition { value, exists, equals, above, below, not } = written;
        let read = |value: &Value| self.read_template(value, at, roots);
        match (value, exists, equals, above, below, not) {
            (None, None, None, None, None, Some(not)) => {
                Ok(Condition::Not(Box::new(self.condition(not, at, roots)?)))
            }
            (Some(value), Some(exists), None, None, None, None) => {
                let there = Condition::Exists(read(value)?);
                Ok(if *exists { there } else { Condition::Not(Box::new(there)) })
            }
            (Some(value), None, Some(other), None, None, None) => {
                Ok(Condition::Equals(read(value)?, read(other)?))
            }
            (Some(value), None, None, Some(other), None, None) => {
                Ok(Condition::Above(read(value)?, read(other)?))
            }
            (Some(value), None, None, None, Some(other), None) => {
                Ok(Condition::Below(read(value)?, read(other)?))
            }
            _ => Err(fault("a condition is a `value` with one of exists, equals, above, below; or `not`")),
        }
    }

    fn tool(&self, written: &Spanned<String>) -> Result<Named, Fault> {
        let name = written.get_ref();
        let is_sound = !name.is_empty()
            && name.len() <= muster_tools::spec::MAX_NAME
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
        if !is_sound {
            return Err(self.fault(
                written,
                format!("{name:?} is no name of a tool"),
                "`muster tools list` has those there are",
            ));
        }
        Ok(Named { name: name.clone(), at: written.span().start })
    }

    fn span(
        &self,
        written: Option<&Spanned<String>>,
        usual: Duration,
        longest: Duration,
    ) -> Result<Duration, Fault> {
        let Some(written) = written else { return Ok(usual) };
        let parsed = span::parse(written.get_ref()).filter(|span| !span.is_zero() && *span <= longest);
        parsed.ok_or_else(|| {
            let what = format!("{:?} is no time of at most {} s", written.get_ref(), longest.as_secs());
            self.fault(written, what, "such as \"60s\"")
        })
    }

    /// What is wrong with a place in a template that may have these roots.
    fn check(&self, place: &Place, roots: Roots) -> Result<(), String> {
        let only = |fits: bool, root: &str, whereto: &str| {
            if fits { Ok(()) } else { Err(format!("`{root}` is there only {whereto}")) }
        };
        match place.root() {
            Root::Item => only(roots.item, "item", "in a step with `for_each`"),
            Root::Index => only(roots.index, "index", "in a step with `for_each` or `repeat`"),
            Root::Result => only(roots.result, "result", "in `compensate` and in `until`"),
            Root::Step(name) => self.named_step(name).map(|_| ()),
            Root::Args => match (&self.arguments, place.first()) {
                (Some(known), Some(wanted)) if !known.contains(wanted) => {
                    Err(format!("the parameters have no `{wanted}`"))
                }
                _ => Ok(()),
            },
        }
    }

    fn named_step(&self, name: &str) -> Result<usize, String> {
        self.names.get(name).copied().ok_or_else(|| format!("there is no step `{name}`"))
    }

    fn steps<'a>(&self, places: impl IntoIterator<Item = &'a Place>) -> BTreeSet<usize> {
        steps_of(places).into_iter().filter_map(|name| self.names.get(name).copied()).collect()
    }

    fn name_of(&self, step: usize) -> &str {
        self.names.iter().find(|(_, at)| **at == step).map_or("", |(name, _)| name.as_str())
    }

    fn known_steps(&self) -> String {
        format!("there are {}", self.names.keys().cloned().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
#[path = "written_tests.rs"]
mod tests;
