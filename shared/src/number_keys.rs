//! Maps by number, inside of what is told apart by a tag: there, serde hands the keys of JSON objects on as texts.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A key as either encoding has it.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(untagged)]
enum Key {
    Number(u32),
    Text(String),
}

/// Reads a map whose keys are numbers, or texts of numbers.
///
/// # Errors
/// When a key is no number.
pub(crate) fn read<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<u32, T>, D::Error> {
    let read: BTreeMap<Key, T> = BTreeMap::deserialize(deserializer)?;
    let by_number = read.into_iter().map(|(key, value)| match key {
        Key::Number(number) => Ok((number, value)),
        Key::Text(text) => match text.parse() {
            Ok(number) => Ok((number, value)),
            Err(_) => Err(D::Error::custom(format!("{text:?} is no number"))),
        },
    });
    by_number.collect()
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "event")]
    enum Tagged {
        Asked {
            #[serde(deserialize_with = "read")]
            tasks: BTreeMap<u32, String>,
        },
    }

    #[test]
    fn both_encodings_are_read_inside_of_what_is_tagged() {
        let asked = Tagged::Asked { tasks: BTreeMap::from([(1, "a".to_owned()), (20, "b".to_owned())]) };
        let json = serde_json::to_string(&asked).unwrap();
        assert_eq!(serde_json::from_str::<Tagged>(&json).unwrap(), asked);
        let packed = rmp_serde::to_vec_named(&asked).unwrap();
        assert_eq!(rmp_serde::from_slice::<Tagged>(&packed).unwrap(), asked);
        let wrong = serde_json::from_str::<Tagged>(r#"{"event": "Asked", "tasks": {"x": "a"}}"#);
        assert!(wrong.unwrap_err().to_string().contains("\"x\" is no number"));
    }
}
