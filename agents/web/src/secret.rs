//! Secrets out of files: read when they are needed, put into a header, and taken out of whatever comes back.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

/// Largest file of a secret, in bytes.
const LARGEST: u64 = 16 * 1024;

/// Shortest secret: a shorter one would stand in any text by chance, and could not be taken out.
const SHORTEST: usize = 8;

/// What stands in a file, without white space around it.
///
/// # Errors
/// When there is none that can be used; what is said names the setting and the file, and never what stands in it.
pub(crate) fn read(setting: &str, file: &str) -> Result<SecretString, String> {
    let wrong = |why: &str| format!("{setting} names {file}, which cannot be used: {why}");
    let about = std::fs::metadata(file).map_err(|error| wrong(&error.kind().to_string()))?;
    if !about.is_file() || about.len() > LARGEST {
        return Err(wrong("it is no file of a secret"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error.kind().to_string()))?;
    let text = text.trim();
    if text.len() < SHORTEST || text.chars().any(char::is_control) {
        return Err(wrong("a secret is one line of at least 8 characters"));
    }
    Ok(SecretString::from(text))
}

/// A header with a secret, which is not shown.
///
/// # Errors
/// When it cannot stand in a header.
pub(crate) fn header(setting: &str, prefix: &str, secret: &SecretString) -> Result<HeaderValue, String> {
    let value = format!("{prefix}{}", secret.expose_secret());
    let mut value =
        HeaderValue::from_str(&value).map_err(|_| format!("{setting} cannot stand in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A secret with its name, to be taken out of texts.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) secret: SecretString,
}

/// A text without these secrets, in any way of writing that services are known to echo them in.
pub(crate) fn redacted(text: &str, secrets: &[Named]) -> String {
    let mut text = text.to_owned();
    for Named { name, secret } in secrets {
        for form in forms(secret.expose_secret()) {
            if text.contains(&form) {
                text = text.replace(&form, &format!("[secret {name}]"));
            }
        }
    }
    text
}

/// The ways in which a secret is written, the longest first.
fn forms(secret: &str) -> Vec<String> {
    let escaped = serde_json::to_string(secret).unwrap_or_default();
    let mut forms = vec![
        secret.to_owned(),
        escaped.trim_matches('"').to_owned(),
        utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
        STANDARD.encode(secret),
        STANDARD_NO_PAD.encode(secret),
        URL_SAFE.encode(secret),
        URL_SAFE_NO_PAD.encode(secret),
    ];
    // Who knows a name and a password by their encoding shows them decoded.
    for word in secret.split_whitespace() {
        forms.extend(STANDARD.decode(word).ok().and_then(|bytes| String::from_utf8(bytes).ok()));
        forms.push(word.to_owned());
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn a_file_that_holds_no_secret_is_named_without_what_stands_in_it() {
        for text in ["short", "", "one secret\nand another", "\0\0\0\0\0\0\0\0\0"] {
            let file = file(text);
            let wrong = read("tool.search.key_file", file.path().to_str().unwrap()).unwrap_err();
            assert!(
                wrong.contains("tool.search.key_file") && (text.is_empty() || !wrong.contains(text)),
                "{wrong}"
            );
        }
        assert!(read("x", "/nowhere/at/all").unwrap_err().contains("not found"));
        let read = read("x", file(" secret-0123\n").path().to_str().unwrap()).unwrap();
        assert_eq!(read.expose_secret(), "secret-0123");
    }

    #[test]
    fn a_secret_is_taken_out_in_every_way_of_writing() {
        let secret = "s3cr3t/+\"key\"=9";
        let named = [Named { name: "api".to_owned(), secret: SecretString::from(secret) }];
        let basic = Named { name: "basic".to_owned(), secret: SecretString::from("dXNlcjpwYXNzd29yZA==") };
        for text in [
            secret.to_owned(),
            format!("{{\"key\": {}}}", serde_json::to_string(secret).unwrap()),
            format!("?key={}", utf8_percent_encode(secret, NON_ALPHANUMERIC)),
            STANDARD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
        ] {
            let left = redacted(&format!("before {text} after"), &named);
            assert!(
                left.contains("[secret api]") && !left.contains("s3cr3t") && !left.contains("czNjcjN0"),
                "{left}"
            );
        }
        assert_eq!(redacted("user:password", &[basic]), "[secret basic]");
        assert_eq!(redacted("nothing of it", &named), "nothing of it");
    }
}
