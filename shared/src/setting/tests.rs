use serde_json::json;

use super::*;

#[derive(
    Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, strum::EnumMessage, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
enum Colour {
    /// Like grass.
    #[default]
    LightGreen,
    /// Like the sea.
    Blue,
}

crate::settings! {
    [default]
    /// A sample.
    #[derive(PartialEq)]
    struct Sample {
        /// Most steps
        /// of a task.
        steps: u32 = 10 => whole(1, 100); Project Harmless,
        /// How long
        wait_ms: u64 = 250 => span(SECOND, MINUTE).or_zero(); Project Harmless,
        /// Time for it.
        time_ms: Option<u64> = None => span(1, DAY).or_nothing_at_zero(); Project Harmless,
        /// Most that it may cost.
        cost_micros: Option<u64> = None => dollars(1e9); Project Harmless,
        /// Colours.
        colour: Colour = Colour::LightGreen => words::<Colour>(); Project Harmless,
        /// Names.
        names: Vec<String> = vec!["a".to_owned()] => list().at_most(2); Project Harmless,
        /// More.
        inner: Inner,
    }
}

crate::settings! {
    [default]
    /// More of it.
    #[derive(PartialEq)]
    const struct Inner {
        /// How long.
        #[serde(with = "crate::span")]
        long: Duration = Duration::from_secs(2) => span(SECOND, HOUR); Project Harmless,
    }
}

fn setting(field: &str) -> &'static Setting {
    Sample::SETTINGS.iter().find(|setting| setting.field == field).unwrap()
}

#[test]
fn a_declaration_is_the_type_its_defaults_and_its_table() {
    assert_eq!(Sample::default().inner, Inner::USUAL);
    let names: Vec<&str> = Sample::SETTINGS.iter().map(Setting::name).collect();
    assert_eq!(names, ["steps", "wait", "time", "cost", "colour", "names", "inner"]);
    assert_eq!(setting("steps").help(), "Most steps of a task.");
    assert_eq!((setting("steps").default)(), 10);
    assert_eq!((Inner::SETTINGS[0].default)(), "2s");
    assert_eq!(Inner::SETTINGS[0].help(), "How long.");
}

#[test]
fn values_go_from_how_people_write_them_to_how_fields_hold_them_and_back() {
    for (field, written, held) in [
        ("steps", json!(7), json!(7)),
        ("wait_ms", json!("2s"), json!(2_000)),
        ("time_ms", json!("0s"), Value::Null),
        ("time_ms", json!("1m"), json!(60_000)),
        ("cost_micros", json!(1.5), json!(1_500_000)),
        ("colour", json!("blue"), json!("blue")),
    ] {
        assert_eq!(setting(field).held(&written), Some(held.clone()), "{field}");
        assert_eq!(setting(field).written(Some(&held)), written, "{field}");
    }
    assert_eq!(setting("wait_ms").held(&json!("30")), None);
    assert_eq!(setting("cost_micros").held(&json!(-1)), None);
    assert_eq!(setting("wait_ms").written(None), "250ms");
    assert_eq!(setting("time_ms").written(None), "0s");
}

#[test]
fn what_is_not_allowed_is_said() {
    for (field, value, allowed) in [
        ("steps", json!(0), false),
        ("steps", json!(100), true),
        ("steps", Value::Null, false),
        ("wait_ms", json!("0s"), true),
        ("wait_ms", json!("999ms"), false),
        ("cost_micros", json!(-0.5), false),
    ] {
        assert_eq!(setting(field).takes.allows(&value), allowed, "{field} = {value}");
    }
    for (field, said) in [
        ("steps", "a whole number from 1 to 100"),
        ("wait_ms", "0s or a span of time from 1s to 1m"),
        ("colour", "light-green, blue"),
        ("names", "a list of texts"),
    ] {
        assert_eq!(setting(field).takes.to_string(), said);
    }
    let Kind::Words(words) = setting("colour").takes.kind else { unreachable!() };
    assert_eq!(words()[1], Word { word: "blue".to_owned(), meaning: "Like the sea.".to_owned() });
}

#[test]
fn clamping_brings_what_is_held_within_bounds_and_leaves_the_rest() {
    let mut held = json!({ "steps": 0, "wait_ms": 1, "time_ms": null, "names": ["a", "b", "c"], "other": 7 });
    clamp(&mut held, Sample::SETTINGS);
    assert_eq!(
        held,
        json!({ "steps": 1, "wait_ms": 1_000, "time_ms": null, "names": ["a", "b"], "other": 7 })
    );
    let mut none = json!({ "wait_ms": 0, "steps": 101 });
    clamp(&mut none, Sample::SETTINGS);
    assert_eq!(none, json!({ "wait_ms": 0, "steps": 100 }));
}
