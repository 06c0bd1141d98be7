//! What is somebody's own: e-mail addresses, telephone numbers, numbers of cards and accounts. Found by form, and by check
//! digits where there are some. A guess, made so that dates, versions, hashes and places in code stay as they are. Pure.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// What was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// What it is, in words.
    pub(crate) what: &'static str,
    /// Where it stands, in bytes.
    pub(crate) at: Range<usize>,
}

/// An e-mail address.
pub(crate) const EMAIL: &str = "e-mail address";
/// A telephone number.
pub(crate) const PHONE: &str = "phone number";
/// The number of a payment card.
pub(crate) const CARD: &str = "card number";
/// The number of a bank account.
pub(crate) const IBAN: &str = "IBAN";

/// Fewest and most digits of a telephone number with its country's.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// Whether what has a form is one: by itself, and by what follows it.
type Judge = fn(&str, &str) -> bool;

/// A form, and whether what has it is one.
struct Form {
    what: &'static str,
    regex: Regex,
    is_one: Judge,
}

/// The forms with what else must hold: of the match, and of what follows it.
const FORMS: [(&str, &str, Judge); 7] = [
    (
        EMAIL,
        r"(?-u:\b)[A-Za-z0-9][A-Za-z0-9._%+-]*@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,24}(?-u:\b)",
        is_email,
    ),
    (IBAN, r"(?-u:\b)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?-u:\b)", is_iban),
    (CARD, r"(?-u:\b)[2-6][0-9]{3}(?:[ -]?[0-9]{4}){2}[ -]?[0-9]{1,7}(?-u:\b)", is_card),
    (CARD, r"(?-u:\b)3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5}(?-u:\b)", is_card),
    (PHONE, r"\+[1-9][0-9]{0,2}(?:[ .\-/]?\(?[0-9]{1,5}\)?){2,6}(?-u:\b)", is_phone),
    (PHONE, r"(?:\([2-9][0-9]{2}\) ?|(?-u:\b)[2-9][0-9]{2}[-.])[2-9][0-9]{2}[-.][0-9]{4}(?-u:\b)", always),
    (
        PHONE,
        r"(?i-u:\b(?:tel|phone|telephone|telefon|mobile?|mobil|fax)\b)[.: ]{1,3}(?:\(0[0-9]{1,4}\)|0[0-9]{1,4})[ /\-]{0,3}[0-9](?:[ /\-]?[0-9]){4,10}(?-u:\b)",
        always,
    ),
];

#[expect(clippy::expect_used, reason = "constant patterns, used by tests")]
static PATTERNS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let form = |(what, regex, is_one): (&'static str, &str, Judge)| Form {
        what,
        regex: Regex::new(regex).expect("a pattern"),
        is_one,
    };
    FORMS.into_iter().map(form).collect()
});

/// All that is found, in order; of two that overlap, the first.
pub(crate) fn find(text: &str) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for Form { what, regex, is_one } in PATTERNS.iter() {
        let hits = regex.find_iter(text).filter(|hit| stands_alone(text, hit.start()));
        let hits = hits.filter(|hit| is_one(hit.as_str(), &text[hit.end()..]));
        for hit in hits {
            if found.iter().all(|other| other.at.end <= hit.start() || hit.end() <= other.at.start) {
                found.push(Found { what, at: hit.range() });
            }
        }
    }
    found.sort_by_key(|one| one.at.start);
    found
}

/// Whether what begins here is not the rest of something longer, such as a hash, a decimal or a path.
fn stands_alone(text: &str, start: usize) -> bool {
    let before = text[..start].chars().next_back();
    before.is_none_or(|letter| !letter.is_alphanumeric() && !"._-/=+#".contains(letter))
}

fn always(_: &str, after: &str) -> bool {
    !goes_on(after)
}

/// Whether a number goes on after what was found.
fn goes_on(after: &str) -> bool {
    let mut letters = after.chars();
    match letters.next() {
        Some(letter) if letter.is_alphanumeric() || letter == '_' => true,
        Some('.' | '-' | '/') => letters.next().is_some_and(|next| next.is_ascii_digit()),
        _ => false,
    }
}

/// What looks like an address and is a file, or a place that `git` or `ssh` goes to.
fn is_email(found: &str, after: &str) -> bool {
    const FILES: [&str; 14] =
        ["png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "mjs", "ts", "tsx", "json", "lock", "tgz"];
    let ending = found.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_place =
        after.starts_with([':', '/']) && after[1..].starts_with(|c: char| c.is_alphanumeric() || c == '~');
    let is_tool = found.starts_with("git@") || found.starts_with("ssh@");
    let is_other = FILES.contains(&ending.as_str()) || after.starts_with('@');
    !(is_other || is_place && is_tool)
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|letter| letter.to_digit(10)).collect()
}

fn is_phone(found: &str, after: &str) -> bool {
    PHONE_DIGITS.contains(&digits(found).len()) && !goes_on(after)
}

fn is_card(found: &str, after: &str) -> bool {
    let digits = digits(found);
    let varied = digits.iter().any(|digit| digits.first() != Some(digit));
    (13..=19).contains(&digits.len()) && varied && !goes_on(after) && luhn(&digits)
}

/// The check digit of cards.
fn luhn(digits: &[u32]) -> bool {
    let doubled = |(at, digit): (usize, &u32)| match (at % 2, digit * 2) {
        (0, _) => *digit,
        (_, twice) if twice > 9 => twice - 9,
        (_, twice) => twice,
    };
    digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

/// The check digits of accounts (ISO 13616): the number modulo 97 is 1.
fn is_iban(found: &str, after: &str) -> bool {
    let plain: String = found.chars().filter(|letter| *letter != ' ').collect();
    if !(15..=34).contains(&plain.len()) || goes_on(after) {
        return false;
    }
    let turned = plain[4..].chars().chain(plain[..4].chars());
    let rest = turned.filter_map(|letter| letter.to_digit(36)).fold(0_u32, |rest, value| {
        let (shift, value) = if value > 9 { (100, value) } else { (10, value) };
        (rest * shift + value) % 97
    });
    rest == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<&'static str> {
        find(text).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn what_is_somebodys_own_is_found() {
        for (text, wanted) in [
            ("write to jane.doe+news@mail.example.org.", EMAIL),
            ("<ann@example.com>", EMAIL),
            ("mailto:bob_1@sub.example.co.uk?subject=x", EMAIL),
            ("DE89 3704 0044 0532 0130 00", IBAN),
            ("GB82WEST12345698765432", IBAN),
            ("account FR1420041010050500013M02606, please", IBAN),
            ("card 4111 1111 1111 1111 exp 12/29", CARD),
            ("5500-0000-0000-0004", CARD),
            ("4012888888881881", CARD),
            ("378282246310005", CARD),
            ("3782 822463 10005", CARD),
            ("call +49 30 901820", PHONE),
            ("+1 (415) 555-2671", PHONE),
            ("+442071838750.", PHONE),
            ("(415) 555-2671", PHONE),
            ("415-555-2671", PHONE),
            ("Tel.: 030 / 9018 20", PHONE),
            ("phone: 0171 2345678", PHONE),
        ] {
            assert_eq!(kinds(text), [wanted], "{text}");
        }
        let text = "ann@example.com and bob@example.com, +49 30 901820";
        assert_eq!(kinds(text), [EMAIL, EMAIL, PHONE]);
        assert_eq!(&text[find(text)[1].at.clone()], "bob@example.com");
    }

    #[test]
    fn what_only_looks_like_it_stays() {
        for text in [
            "icon@2x.png",
            "git@github.com:owner/repo.git",
            "@types/node@18.2.0",
            "user@localhost",
            "a @ b.c",
            "2024-01-31 12:30:45.123456",
            "version 1.22.333-4444",
            "192.168.100.200:8080",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "4111111111111112",
            "1111 1111 1111 1111",
            "0000000000000000",
            "1700000000000",
            "id 0190a1b2c3d4700080000000000000aa",
            "550e8400-e29b-41d4-a716-446655440000",
            "3.14159265358979323846",
            "10 000 000 + 20 000 000",
            "x = a +12 -4",
            "1+1234567890123456789012",
            "DE00 3704 0044 0532 0130 00",
            "AB12CD34EF56GH78",
            "src/lib.rs:415:555",
            "978-3-16-148410-0",
            "call me in 2030",
            "$1,234,567.89",
        ] {
            assert_eq!(kinds(text), Vec::<&str>::new(), "{text}");
        }
    }
}
