//! How inputs are changed: bytes, lines, and the trees of documents. What is chosen, and by which seed, is `mutatis`'.

mod bytes;
mod tree;
mod words;

use mutatis::Session;
use serde_json::Value;

use self::bytes::Bytes;
use self::tree::Tree;
use self::words::Words;
use crate::{MAX_INPUT, Shape};

/// Most changes of one input.
const MOST: u64 = 6;

/// Changes inputs, by a seed.
#[derive(Debug)]
pub struct Mutator {
    session: Session,
    shape: Shape,
    words: Words,
    /// Numbers that this module draws itself (SplitMix64).
    drawn: u64,
}

impl Mutator {
    /// A mutator with these words and those of the corpus: the same seed changes the same inputs in the same way.
    #[must_use]
    pub fn new(seed: u64, shape: Shape, words: &'static [&'static str], corpus: &[Vec<u8>]) -> Self {
        let text = |input: &Vec<u8>| match shape {
            Shape::MessagePack => tree_of(shape, input).map_or_else(String::new, |tree| tree.to_string()),
            Shape::Bytes | Shape::Text | Shape::Json | Shape::Toml => {
                String::from_utf8_lossy(input).into_owned()
            }
        };
        let words = Words::new(words, corpus.iter().map(text));
        Self { session: Session::new().seed(seed), shape, words, drawn: seed }
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.drawn = self.drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.drawn;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).checked_rem(end).unwrap_or(0)
    }

    /// One of the inputs, changed: mostly one of the first `corpus`, since of what was refused mostly that is made again.
    pub fn next(&mut self, pool: &[Vec<u8>], corpus: usize) -> Vec<u8> {
        let pick = |at: u64| pool.get(usize::try_from(at).unwrap_or(0)).cloned().unwrap_or_default();
        let among = if self.below(4) > 0 { corpus } else { pool.len() };
        let at = self.below(among as u64);
        let mut input = pick(at);
        let changes = if self.below(2) == 0 { 1 } else { 1 + self.below(MOST) };
        let by_tree = self.below(4) > 0;
        match tree_of(self.shape, &input).filter(|_| by_tree) {
            Some(mut tree) => {
                let other = pick(self.below(pool.len() as u64));
                let other = tree_of(self.shape, &other).unwrap_or(Value::Null);
                for _ in 0..changes {
                    // A tree always has a node that can be changed.
                    let _ =
                        self.session.mutate_with(&mut Tree { other: &other, words: &self.words }, &mut tree);
                }
                input = self.bytes_of(&tree).unwrap_or(input);
                if self.below(12) == 0 {
                    self.change_bytes(&mut input, pool);
                }
            }
            None => {
                for _ in 0..changes {
                    self.change_bytes(&mut input, pool);
                }
            }
        }
        input.truncate(MAX_INPUT);
        input
    }

    fn change_bytes(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let is_text = !matches!(self.shape, Shape::Bytes | Shape::MessagePack);
        // There is always something to change.
        let _ = self.session.mutate_with(&mut Bytes { pool, words: &self.words, is_text }, input);
    }

    fn bytes_of(&self, tree: &Value) -> Option<Vec<u8>> {
        match self.shape {
            Shape::Bytes | Shape::Text => None,
            Shape::Json => Some(tree::with_keys_twice(&serde_json::to_string(tree).ok()?).into_bytes()),
            Shape::MessagePack => {
                muster_shared::wire::codec::write(tree, muster_shared::wire::Encoding::MessagePack).ok()
            }
            Shape::Toml => toml::to_string(&without_nothing(tree)).ok().map(String::into_bytes),
        }
    }
}

fn tree_of(shape: Shape, input: &[u8]) -> Option<Value> {
    match shape {
        Shape::Bytes | Shape::Text => None,
        Shape::Json => serde_json::from_slice(input).ok(),
        Shape::MessagePack => {
            muster_shared::wire::codec::read(input, muster_shared::wire::Encoding::MessagePack).ok()
        }
        Shape::Toml => toml::from_str(std::str::from_utf8(input).ok()?).ok(),
    }
}

/// TOML has no word for nothing.
fn without_nothing(tree: &Value) -> Value {
    match tree {
        Value::Object(fields) => {
            let some = fields.iter().filter(|(_, value)| !value.is_null());
            some.map(|(key, value)| (key.clone(), without_nothing(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::Array(items) => {
            items.iter().filter(|item| !item.is_null()).map(without_nothing).collect::<Vec<_>>().into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: [&str; 3] = [r#"{"a": [1, 2.5, {"b": "text"}], "c": null}"#, "[]", "\"x\""];

    fn inputs(seed: u64, shape: Shape) -> Vec<Vec<u8>> {
        let pool: Vec<Vec<u8>> = POOL.iter().map(|text| text.as_bytes().to_vec()).collect();
        let mut mutator = Mutator::new(seed, shape, &["word"], &pool);
        (0..3_000).map(|_| mutator.next(&pool, pool.len())).collect()
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_another_makes_others() {
        assert_eq!(inputs(7, Shape::Json), inputs(7, Shape::Json));
        assert_ne!(inputs(7, Shape::Json), inputs(8, Shape::Json));
    }

    #[test]
    fn many_inputs_differ_and_many_of_a_tree_are_documents_still() {
        let all = inputs(1, Shape::Json);
        assert!(all.iter().all(|input| input.len() <= MAX_INPUT));
        let different: std::collections::BTreeSet<&Vec<u8>> = all.iter().collect();
        let documents = all.iter().filter(|input| serde_json::from_slice::<Value>(input).is_ok()).count();
        assert!(different.len() > 1_200, "{} different", different.len());
        assert!((1_000..2_900).contains(&documents), "{documents} documents");
    }

    #[test]
    fn there_are_inputs_that_are_deep_long_twice_keyed_and_no_text() {
        let all = inputs(3, Shape::Json);
        let any = |is: fn(&Vec<u8>) -> bool| all.iter().any(is);
        assert!(any(|input| input.windows(200).any(|part| part.iter().all(|byte| *byte == b'['))));
        assert!(any(|input| input.len() > 40_000));
        assert!(any(|input| std::str::from_utf8(input).is_err()));
        assert!(any(|input| String::from_utf8_lossy(input).matches("\"a\":").count() == 2));
    }
}
