//! What pages that show a run were told of it last, of that which is large and seldom changes: it is told again when it does. Pure.

use std::collections::BTreeMap;

use muster_shared::flow::{Plan, Reflection, RefusedOperation};
use muster_shared::ids::TaskIndex;
use muster_shared::run::{ConflictState, RunState};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What pages have of a run.
#[derive(Debug, Default)]
pub(super) struct Shown {
    plan: Option<Plan>,
    reflections: BTreeMap<TaskIndex, Reflection>,
    conflicts: BTreeMap<u32, ConflictState>,
    refinements: Vec<(Vec<String>, Vec<RefusedOperation>)>,
    lessons: Vec<String>,
}

impl Shown {
    /// What is not as pages have it, by its name in the whole run; they have it from now on. Of reflections and conflicts there are
    /// those that changed, and `null` for one that is gone.
    pub(super) fn news(&mut self, state: &RunState) -> Map<String, Value> {
        let news = [
            ("plan", whole(&mut self.plan, &state.plan)),
            ("reflections", parts(&mut self.reflections, state.reflections())),
            ("conflicts", parts(&mut self.conflicts, &state.conflicts.found)),
            ("refinements", whole(&mut self.refinements, &state.refining.done)),
            ("lessons", whole(&mut self.lessons, &state.planning.lessons)),
        ];
        news.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// What it is now, where that is another than it was.
fn whole<T: PartialEq + Clone + Serialize>(shown: &mut T, now: &T) -> Option<Value> {
    if *shown == *now {
        return None;
    }
    shown.clone_from(now);
    Some(json!(now))
}

/// The parts that are others than they were, by their keys, if there are any.
fn parts<'a, K, T>(shown: &mut BTreeMap<K, T>, now: impl IntoIterator<Item = (&'a K, &'a T)>) -> Option<Value>
where
    K: Ord + Clone + ToString + 'a,
    T: PartialEq + Clone + Serialize + 'a,
{
    let now: BTreeMap<&K, &T> = now.into_iter().collect();
    let mut news = Map::new();
    shown.retain(|key, _| {
        let stays = now.contains_key(key);
        if !stays {
            news.insert(key.to_string(), Value::Null);
        }
        stays
    });
    for (key, part) in now {
        if shown.get(key) != Some(part) {
            shown.insert(key.clone(), part.clone());
            news.insert(key.to_string(), json!(part));
        }
    }
    (!news.is_empty()).then_some(Value::Object(news))
}

#[cfg(test)]
mod tests {
    use muster_shared::ids::TaskId;
    use muster_shared::run::{ConflictEnd, apply};

    use super::*;
    use crate::render::{golden, json as in_full};

    const NAMES: [&str; 5] = ["plan", "reflections", "conflicts", "refinements", "lessons"];

    /// Puts news into what a page has, as the page does.
    fn put(page: &mut Map<String, Value>, news: Map<String, Value>) {
        for (name, told) in news {
            let is_by_parts = ["reflections", "conflicts"].contains(&name.as_str());
            match told {
                Value::Object(parts) if is_by_parts => {
                    let all = page.entry(name).or_insert_with(|| json!({})).as_object_mut().unwrap();
                    for (key, part) in parts {
                        assert_ne!(all.get(&key), Some(&part), "told twice");
                        all.insert(key, part);
                    }
                    all.retain(|_, part| !part.is_null());
                }
                told => {
                    assert_ne!(page.get(&name), Some(&told), "told twice");
                    page.insert(name, told);
                }
            }
        }
    }

    /// What a page has under a name, or is shown of the whole run; nothing where it says nothing.
    fn said(fields: &Map<String, Value>, name: &str) -> Value {
        match fields.get(name) {
            Some(Value::Array(all)) if all.is_empty() => Value::Null,
            Some(Value::Object(all)) if all.is_empty() => Value::Null,
            said => said.cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn a_page_that_puts_the_news_together_has_the_run() {
        let (mut shown, mut page, mut state) = (Shown::default(), Map::new(), None);
        for entry in golden::entries() {
            apply(&mut state, &entry).unwrap();
            let Some(state) = &state else { continue };
            put(&mut page, shown.news(state));
            assert!(shown.news(state).is_empty(), "at {}: nothing else changed", entry.seq);
            let run = in_full::run(state);
            for name in NAMES {
                assert_eq!(
                    said(&page, name),
                    said(run.as_object().unwrap(), name),
                    "{name} at {}",
                    entry.seq
                );
            }
        }
        assert!(!said(&page, "plan").is_null() && !said(&page, "reflections").is_null(), "{page:?}");
    }

    #[test]
    fn of_parts_those_are_told_that_changed_and_those_that_are_gone() {
        let mut state = None;
        golden::entries().iter().for_each(|entry| apply(&mut state, entry).unwrap());
        let (mut state, mut shown) = (state.unwrap(), Shown::default());
        shown.news(&state);
        let index = state.reflections().map(|(index, _)| index.clone()).next().unwrap();
        let task = state.tasks.get_mut(&TaskId::Leaf(index.clone())).unwrap();
        task.reflection.as_mut().unwrap().summary = "otherwise".to_owned();
        let news = Value::Object(shown.news(&state));
        assert_eq!(news["reflections"][index.to_string()]["summary"], "otherwise");
        assert_eq!(news["reflections"].as_object().unwrap().len(), 1, "{news}");
        state.tasks.get_mut(&TaskId::Leaf(index.clone())).unwrap().reflection = None;
        let gone = json!({ "reflections": { index.to_string(): null } });
        assert_eq!(Value::Object(shown.news(&state)), gone);

        let conflict = json!({ "subject": "s", "sides": [], "found_at": 1, "until": 2 });
        for number in [7, 8] {
            state.conflicts.found.insert(number, serde_json::from_value(conflict.clone()).unwrap());
        }
        assert_eq!(
            Value::Object(shown.news(&state)),
            json!({ "conflicts": { "7": conflict, "8": conflict } })
        );
        state.conflicts.found.get_mut(&8).unwrap().end = Some(ConflictEnd::Gone("it is none".to_owned()));
        let news = Value::Object(shown.news(&state));
        assert_eq!(news["conflicts"]["8"]["end"], json!({ "gone": "it is none" }), "{news}");
        assert_eq!(news["conflicts"].as_object().unwrap().len(), 1, "{news}");
    }
}
