//! Random numbers good enough to spread waits, and for nothing else.

use std::hash::{BuildHasher, Hasher};

/// A number in 0..1, different for every process and call: from the keys that the standard library draws for each hasher.
pub(crate) fn fraction() -> f64 {
    let bits = std::hash::RandomState::new().build_hasher().finish() >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let fraction = bits as f64 / (1_u64 << 53) as f64;
    fraction
}
