//! How arguments are read.

use std::time::Duration;

use muster_shared::ids::Role;

use crate::settings::MOST_PROCESSES;

pub(super) fn parse_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: write 90s, 10m, 1h30m or 30d");
    // Settings write days as `30d`, which jiff refuses without a calendar.
    let span = muster_shared::span::parse(text)
        .or_else(|| Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok());
    span.filter(|span| !span.is_zero()).ok_or_else(wrong)
}

/// The same, or no time at all.
pub(super) fn parse_wait(text: &str) -> Result<Duration, String> {
    if text.trim() == "0s" { Ok(Duration::ZERO) } else { parse_span(text) }
}

pub(super) fn parse_scale(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text:?} is not ROLE=N, such as worker=4");
    let (role, count) = text.split_once('=').ok_or_else(wrong)?;
    let number: u64 = count.trim().parse().map_err(|_| wrong())?;
    let count = u16::try_from(number).ok().filter(|count| *count <= MOST_PROCESSES).ok_or_else(|| {
        format!("{number} processes of {} are too many: {MOST_PROCESSES} of a role is the most", role.trim())
    })?;
    let role = role.trim();
    // Which specialists there are is known when the fleet is: here it need only be a name.
    if role != "orchestrator" {
        role.parse::<Role>().map_err(|error| error.to_string())?;
    }
    Ok((role.to_owned(), count))
}

pub(super) fn parse_role(text: &str) -> Result<Role, String> {
    let role: Role = text.parse().map_err(|_| unknown_role(text))?;
    if Role::BUILT_IN.contains(&role) { Ok(role) } else { Err(unknown_role(text)) }
}

fn unknown_role(text: &str) -> String {
    let names: Vec<String> = Role::BUILT_IN.iter().map(Role::to_string).collect();
    format!("{text:?} is not a role: {}", names.join(", "))
}

pub(super) fn parse_assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not KEY=VALUE"))?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let good = [("90s", 90), ("10m", 600), ("1h30m", 5400), ("1h 30m", 5400), ("30d", 2_592_000)];
        for (text, seconds) in good {
            assert_eq!(parse_span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "10", "-5m", "0s", "0d", "ten minutes"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_scale_names_a_role_and_a_number() {
        assert_eq!(parse_scale("worker=4"), Ok(("worker".into(), 4)));
        assert_eq!(parse_scale("orchestrator=2"), Ok(("orchestrator".into(), 2)));
        assert_eq!(parse_scale("fact_checker=2"), Ok(("fact_checker".into(), 2)));
        for text in ["worker", "worker=", "worker=-1", "No Name=1"] {
            assert!(parse_scale(text).is_err(), "{text}");
        }
        assert_eq!(parse_scale("worker=256"), Ok(("worker".into(), 256)));
        for text in ["worker=257", "worker=65535", "worker=99999"] {
            let said = parse_scale(text).unwrap_err();
            assert!(said.contains("of worker are too many: 256 of a role is the most"), "{said}");
        }
    }
}
