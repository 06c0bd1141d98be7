//! Reading what providers send without trusting its shape: a field of another type than it should have counts as not
//! there. Nothing is put into a tree in between, and texts are borrowed where they stand as they are.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a value is taken for, by its type. What is not said is nothing.
pub(super) trait Loose<'de>: Sized + Default {
    fn text(_: Cow<'de, str>) -> Self {
        Self::default()
    }

    fn count(_: u64) -> Self {
        Self::default()
    }

    fn flag(_: bool) -> Self {
        Self::default()
    }

    fn map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

struct Reading<T>(PhantomData<T>);

impl<'de, T: Loose<'de>> Visitor<'de> for Reading<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(T::flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(u64::try_from(number).map(T::count).unwrap_or_default())
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::count(number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::map(fields)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::list(items)
    }
}

pub(super) fn read<'de, T: Loose<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Reading(PhantomData))
}

macro_rules! read_loosely {
    ($($name:ident $([$($generic:tt)*])?),* $(,)?) => {$(
        impl<'de $(, $($generic)*)?> Deserialize<'de> for $name $(<$($generic)*>)?
        where
            Self: Loose<'de>,
        {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read(deserializer)
            }
        }
    )*};
}

/// A text.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

impl Text<'_> {
    pub(super) fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The text, unless it is empty.
    pub(super) fn said(&self) -> Option<&str> {
        self.get().filter(|text| !text.is_empty())
    }
}

impl<'de> Loose<'de> for Text<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read::<Text<'de>, D>(deserializer).map(|text| Self(text.0))
    }
}

/// A number of something.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Count(pub(super) Option<u64>);

impl Loose<'_> for Count {
    fn count(number: u64) -> Self {
        Self(Some(number))
    }
}

/// Whether a flag is set.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Flag(pub(super) bool);

impl Loose<'_> for Flag {
    fn flag(flag: bool) -> Self {
        Self(flag)
    }
}

/// Whether there is anything but null.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Given(pub(super) bool);

impl<'de> Loose<'de> for Given {
    fn text(_: Cow<'de, str>) -> Self {
        Self(true)
    }

    fn count(_: u64) -> Self {
        Self(true)
    }

    fn flag(_: bool) -> Self {
        Self(true)
    }

    fn map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self(true))
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self(true))
    }
}

/// An object.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Loose<'de> for Object<T> {
    fn map<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(|object| Self(Some(object)))
    }
}

/// A list.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Option<Vec<T>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Loose<'de> for List<T> {
    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(|items| Self(Some(items)))
    }
}

/// The first of a list.
#[derive(Debug)]
pub(super) struct First<T>(pub(super) Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Loose<'de> for First<T> {
    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let first = items.next_element()?;
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self(first))
    }
}

read_loosely!(Count, Flag, Given, Object[T], List[T], First[T]);

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Sample<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        count: Count,
        flag: Flag,
        given: Given,
        #[serde(borrow)]
        object: Object<Inner<'a>>,
        #[serde(borrow)]
        list: List<Object<Inner<'a>>>,
        #[serde(borrow)]
        first: First<Text<'a>>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Inner<'a> {
        #[serde(borrow)]
        text: Text<'a>,
    }

    #[test]
    fn what_has_its_type_is_read_and_texts_are_borrowed() {
        let json = r#"{"text": "plain", "count": 3, "flag": true, "given": [], "object": {"text": "é\n"},
                       "list": [{"text": "a"}, 5], "first": ["one", {"two": 2}], "more": {"x": [1]}}"#;
        let read: Sample<'_> = serde_json::from_str(json).unwrap();
        assert!(matches!(read.text.0, Some(Cow::Borrowed("plain"))));
        assert_eq!((read.count.0, read.flag.0, read.given.0), (Some(3), true, true));
        assert_eq!(read.object.0.unwrap().text.get(), Some("é\n"));
        let list = read.list.0.unwrap();
        assert_eq!(list[0].0.as_ref().unwrap().text.get(), Some("a"));
        assert!(list[1].0.is_none());
        assert_eq!(read.first.0.unwrap().get(), Some("one"));
    }

    #[test]
    fn what_has_another_type_is_not_there() {
        for other in ["null", "true", "-1", "1.5", r#""""#, r#"[[{}], "x"]"#, r#"{"y": [null, {"z": 1}]}"#] {
            let fields = ["text", "count", "flag", "object", "list", "first", "given"];
            let json = fields.map(|field| format!(r#""{field}": {other}"#)).join(",");
            let json = format!("{{{json}}}");
            let read: Sample<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(read.text.said(), None, "{other}");
            assert_eq!(read.count.0, None, "{other}");
            assert_eq!(read.flag.0, other == "true", "{other}");
            assert_eq!(read.object.0.is_some(), other.starts_with('{'), "{other}");
            assert_eq!(read.list.0.is_some(), other.starts_with('['), "{other}");
            assert_eq!(read.first.0.is_some(), other.starts_with('['), "{other}");
            assert!(read.given.0 || matches!(other, "null" | "-1" | "1.5"), "{other}");
        }
        assert!(serde_json::from_str::<Sample<'_>>(r#"{"text": "half"#).is_err());
    }
}
