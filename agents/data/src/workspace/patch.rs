//! Changes to a text: one exact text in place of another, or a unified diff. Pure; applied as a whole or not at all.

/// Most hunks of a diff.
const MAX_HUNKS: usize = 200;

/// Most characters of a line that a message shows.
const MAX_SHOWN: usize = 120;

/// Puts a text in the place of another one that stands there once.
///
/// # Errors
/// When it stands there not at all, or more often, with the lines.
pub(crate) fn replaced(text: &str, old: &str, new: &str) -> Result<String, String> {
    if old.is_empty() {
        return Err("`old` is empty; give the text that is to be replaced".to_owned());
    }
    if old == new {
        return Err("`old` and `new` are the same; nothing would change".to_owned());
    }
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).take(20).collect();
    match places.as_slice() {
        [] => Err(format!("`old` does not stand in the file{}", nearly(text, old))),
        [at] => Ok(format!("{}{new}{}", &text[..*at], &text[at + old.len()..])),
        several => {
            let line = |at: &usize| (text[..*at].matches('\n').count() + 1).to_string();
            let lines: Vec<String> = several.iter().map(line).collect();
            Err(format!(
                "`old` stands in the file {} times, in lines {}; give more of the text around it",
                several.len(),
                lines.join(", ")
            ))
        }
    }
}

/// Where the first line of what was looked for stands, by itself and whatever the spaces around it are.
fn nearly(text: &str, old: &str) -> String {
    let Some(first) = old.lines().map(str::trim).find(|line| !line.is_empty()) else { return String::new() };
    let found = (1..).zip(text.lines()).find(|(_, line): &(usize, &str)| line.trim() == first);
    match found {
        Some((number, line)) => format!(
            ": line {number} is `{}`, so that spaces, or what follows, are different; read the file again",
            shown(line)
        ),
        None => "; read the file again".to_owned(),
    }
}

fn shown(line: &str) -> String {
    let mut cut: String = line.chars().take(MAX_SHOWN).collect();
    if cut.len() < line.len() {
        cut.push('…');
    }
    cut
}

/// One part of a diff.
#[derive(Debug, PartialEq, Eq)]
struct Hunk {
    /// The line at which the old text is said to begin, from 1.
    from: usize,
    old: Vec<String>,
    new: Vec<String>,
}

/// Applies a unified diff of one file. Every line of it has to stand there as it says; where the number of a line is
/// wrong, what it changes has to stand in one place only.
///
/// # Errors
/// Which part does not fit, and what stands there.
pub(crate) fn patched(text: &str, diff: &str) -> Result<String, String> {
    let hunks = hunks(diff)?;
    let ends_in_newline = text.ends_with('\n');
    let lines: Vec<&str> = text.lines().collect();
    let mut made: Vec<String> = Vec::with_capacity(lines.len());
    let mut done = 0;
    for (number, hunk) in (1..).zip(&hunks) {
        let at =
            place(&lines, hunk, done).map_err(|reason| format!("part {number} of the diff: {reason}"))?;
        made.extend(lines[done..at].iter().map(|line| (*line).to_owned()));
        made.extend(hunk.new.iter().cloned());
        done = at + hunk.old.len();
    }
    made.extend(lines[done..].iter().map(|line| (*line).to_owned()));
    let mut made = made.join("\n");
    if (ends_in_newline || text.is_empty()) && !made.is_empty() {
        made.push('\n');
    }
    if made == text { Err("the diff changes nothing".to_owned()) } else { Ok(made) }
}

/// The line at which a part fits, from 0, at `least` or after it.
fn place(lines: &[&str], hunk: &Hunk, least: usize) -> Result<usize, String> {
    let said = hunk.from.saturating_sub(1);
    if hunk.old.is_empty() {
        // An addition stands behind the line that is named.
        let at = hunk.from.min(lines.len());
        return if at >= least { Ok(at) } else { Err("it lies before the part above".to_owned()) };
    }
    let fits = |at: usize| {
        lines
            .get(at..at + hunk.old.len())
            .is_some_and(|there| there.iter().zip(&hunk.old).all(|(one, other)| *one == other.as_str()))
    };
    if said >= least && fits(said) {
        return Ok(said);
    }
    let last = lines.len().saturating_sub(hunk.old.len());
    let places: Vec<usize> = (least..=last).filter(|at| fits(*at)).take(2).collect();
    match places.as_slice() {
        [at] => Ok(*at),
        [] => Err(differs(lines, hunk, said)),
        _ => Err(format!(
            "what it changes does not stand at line {} and stands in several other places; give more lines around it",
            hunk.from
        )),
    }
}

fn differs(lines: &[&str], hunk: &Hunk, said: usize) -> String {
    let pairs = hunk.old.iter().enumerate().map(|(at, old)| (said + at, old, lines.get(said + at)));
    let wrong = pairs.into_iter().find(|(_, old, there)| there.is_none_or(|there| *there != old.as_str()));
    match wrong {
        Some((at, old, Some(there))) => {
            format!(
                "it does not fit: line {} is `{}`, the diff has `{}`; read the file again",
                at + 1,
                shown(there),
                shown(old)
            )
        }
        Some((_, old, None)) => {
            format!(
                "it does not fit: the file has {} lines, and `{}` would stand after them",
                lines.len(),
                shown(old)
            )
        }
        None => "it lies before the part above".to_owned(),
    }
}

fn hunks(diff: &str) -> Result<Vec<Hunk>, String> {
    let mut found: Vec<Hunk> = Vec::new();
    let mut files = 0;
    let mut lines = (1..).zip(diff.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        if let Some(header) = line.strip_prefix("@@") {
            found.push(Hunk {
                from: begin(header).ok_or_else(|| {
                    format!(
                        "line {number} of the diff, `{}`, should be such as `@@ -1,3 +1,4 @@`",
                        shown(line)
                    )
                })?,
                old: Vec::new(),
                new: Vec::new(),
            });
            if found.len() > MAX_HUNKS {
                return Err(format!("the diff has more than {MAX_HUNKS} parts"));
            }
            continue;
        }
        // A removed line may begin with `--`: a header of a file is known by the one that follows.
        let begins_file =
            line.starts_with("--- ") && lines.peek().is_some_and(|(_, next)| next.starts_with("+++ "));
        if begins_file {
            lines.next();
            files += 1;
            if files > 1 {
                return Err("the diff is about several files; give one at a time".to_owned());
            }
            continue;
        }
        let Some(hunk) = found.last_mut() else {
            // Whatever stands before the first part (`diff --git`, `index`) says nothing.
            continue;
        };
        take(hunk, line).map_err(|reason| format!("line {number} of the diff: {reason}"))?;
    }
    if found.is_empty() {
        return Err("it is no unified diff: there is no line such as `@@ -1,3 +1,4 @@`".to_owned());
    }
    if found.iter().any(|hunk| hunk.old == hunk.new && hunk.old.is_empty()) {
        return Err("a part of the diff is empty".to_owned());
    }
    Ok(found)
}

fn take(hunk: &mut Hunk, line: &str) -> Result<(), String> {
    let rest = || line[1..].to_owned();
    match line.as_bytes().first() {
        // An empty line is one whose leading space went missing.
        None => {
            hunk.old.push(String::new());
            hunk.new.push(String::new());
        }
        Some(b' ') => {
            hunk.old.push(rest());
            hunk.new.push(rest());
        }
        Some(b'-') => hunk.old.push(rest()),
        Some(b'+') => hunk.new.push(rest()),
        // `\ No newline at end of file`
        Some(b'\\') => {}
        Some(_) => return Err(format!("`{}` begins with none of ` `, `-`, `+`", shown(line))),
    }
    Ok(())
}

/// The first line of the old text, of ` -12,3 +12,4 @@`.
fn begin(header: &str) -> Option<usize> {
    let (_, after) = header.split_once('-')?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    let (_, added) = after.split_once('+')?;
    added.starts_with(|c: char| c.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
