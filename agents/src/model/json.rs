//! Writing JSON straight into bytes.

use serde::Serialize;

/// Writes this at the end of `into`. Plain data can always be written to memory; what could not be would be `null`.
pub(crate) fn write_json<T: Serialize + ?Sized>(value: &T, into: &mut Vec<u8>) {
    let begin = into.len();
    if serde_json::to_writer(&mut *into, value).is_err() {
        into.truncate(begin);
        into.extend_from_slice(b"null");
    }
}
