//! The line by which a machine joins, and where nobody else reads it.

use std::io::Read;

use secrecy::SecretString;

use crate::args::JoinArgs;
use crate::exit::{Failure, usage};
use crate::fleet::process;

/// Holds the invitation where it is not to be read by others.
pub(crate) const INVITATION: &str = "MUSTER_INVITATION";

/// Longest invitation that is read, in bytes.
const LONGEST: u64 = 16 * 1024;

/// Begins anew with the line in the environment, which nobody else reads, in place of the arguments, which everybody does. Only
/// returns when that cannot be done: the line counts all the same.
pub(super) fn hide(line: &str) {
    let words = std::env::args_os().skip(1).filter(|word| word != line);
    let error = process::begin_anew(words, &[(INVITATION, line)]);
    tracing::warn!(%error, "the invitation stays among the arguments of this process");
}

/// The line that was given: as an argument, on standard input, or in the environment.
pub(super) fn given(args: &JoinArgs) -> Result<Option<SecretString>, Failure> {
    match args.line.as_deref() {
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut text);
            read.map_err(|error| usage!("the invitation cannot be read: {error}"))?;
            Ok(Some(SecretString::from(text)))
        }
        Some(line) => Ok(Some(SecretString::from(line))),
        None => Ok(std::env::var(INVITATION).ok().filter(|line| !line.is_empty()).map(SecretString::from)),
    }
}
