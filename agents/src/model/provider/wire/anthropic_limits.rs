//! How many tokens Anthropic's models can answer with at most: their protocol wants a limit with every request.

/// The family and version in a name such as `claude-opus-4-5-20251101`; a missing second number is 0.
fn version(model: &str) -> Option<(&str, (u32, u32))> {
    let mut segments = model.strip_prefix("claude-")?.split('-');
    let family = segments.next()?;
    // Eight digits are a date.
    let number = |segment: Option<&str>| {
        let is_number =
            |text: &&str| (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        segment.filter(is_number).and_then(|text| text.parse().ok())
    };
    let major = number(segments.next())?;
    Some((family, (major, number(segments.next()).unwrap_or(0))))
}

/// Most answer tokens of this model.
pub(super) fn most_tokens(model: &str) -> u32 {
    let [k4, k8, k32, k64, k128] = [4096, 8192, 32_000, 64_000, 128_000];
    match version(model) {
        Some(("opus", version)) if version >= (4, 8) => return k128,
        Some(("opus", version)) if version >= (4, 5) => return k64,
        Some(("opus", version)) if version >= (4, 0) => return k32,
        Some(("opus", (3, _))) => return k4,
        Some(("haiku", version)) if version >= (5, 0) => return k128,
        Some(_) | None => {}
    }
    let holds = |part: &&str| model.contains(part);
    let by_part: [(&[&str], u32); 6] = [
        (&["fable", "mythos"], k128),
        (&["claude-sonnet", "claude-haiku", "claude-3-7-sonnet", "claude-opus-4-5"], k64),
        (&["claude-opus-4"], k32),
        (&["claude-3-5"], k8),
        (&["3-opus", "3-haiku"], k4),
        (&[""], k64),
    ];
    by_part.iter().find(|(parts, _)| parts.iter().any(holds)).map_or(k64, |(_, most)| *most)
}
