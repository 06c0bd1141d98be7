//! Documents and what cites them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use muster_agents::react::lookup::cited_in;
use muster_corpus::{
    CitedPlace, Corpus, CorpusError, CorpusOptions, MAX_LINES, MemoryBlobs, SearchKind, look_up_among,
};
use muster_shared::flow::PlaceFound;

use super::{ensure, fixture, text_of};
use crate::{Seen, Shape, Target};

/// Documents as they are read into a corpus: the first line names the file, the rest is what stands in it.
pub(super) const CORPUS: Target = Target::new("documents", Shape::Text, document).with_words(&[
    "# ",
    "## Heading",
    "|a|b|\n|-|-|\n",
    "a,b,c\n",
    "\t",
    "<p>",
    "</p>",
    "<script>",
    "<!--",
    "-->",
    "&#x110000;",
    "&#0;",
    "<td",
    "<![CDATA[",
    "<h1>",
    "---\n",
    "file: page.html\n",
    "file: stations.csv\n",
    "file: notes.md\n",
    "file: main.rs\n",
    "file: a.json\n",
    "{\"a\":",
    "\u{feff}",
    "\u{2028}",
    "fn main() {",
    "NEAR",
    "\"a OR b\"",
    "*",
]);

thread_local! {
    static RUNTIME: Result<tokio::runtime::Runtime, String> =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string());
}

/// Waits for something on this thread's own runtime.
pub(super) fn wait<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    RUNTIME.with(|runtime| runtime.as_ref().map_err(Clone::clone)?.block_on(work))
}

fn document(input: &[u8]) -> Result<Seen, String> {
    let (name, content) = match input.strip_prefix(b"file: ").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        Some((std::str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]))
    }) {
        Some((name, content)) if muster_bus_token(name) => (name, content),
        Some(_) | None => ("notes.md", input),
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let docs = folder.path().join("docs");
    std::fs::create_dir(&docs)
        .and_then(|()| std::fs::write(docs.join(name), content))
        .map_err(|error| error.to_string())?;
    let options = CorpusOptions::new(folder.path().join("cache"), vec![docs]);
    let root = folder.path().display().to_string();
    wait(async move {
        match Corpus::open_or_build(options, &MemoryBlobs::default()).await {
            Ok(opened) => read_through(&opened.corpus, content).await.map(|()| Seen::Read),
            Err(error) => Ok(Seen::Refused(error.to_string().replace(&root, "folder"))),
        }
    })
}

/// A plain name of a file.
fn muster_bus_token(name: &str) -> bool {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    plain && !name.starts_with('.') && (1..40).contains(&name.len())
}

async fn read_through(corpus: &Corpus, content: &[u8]) -> Result<(), String> {
    let failed = |error: CorpusError| error.to_string();
    let manifest = corpus.manifest().await.map_err(failed)?;
    let outlines = corpus.outlines(10).await.map_err(failed)?;
    let text = text_of(content);
    let words: String = text.split_whitespace().take(12).collect::<Vec<_>>().join(" ");
    for outline in &outlines {
        let all = corpus.read(&outline.path, 1, u64::MAX).await.map_err(failed)?;
        ensure(all.to() <= outline.lines && all.to() <= MAX_LINES, || {
            format!("line {} of {}", all.to(), outline.lines)
        })?;
        let past = corpus.read(&outline.path, outline.lines + 1, u64::MAX).await;
        ensure(past.is_err(), || "a line was read behind the last".to_owned())?;
        cited(corpus, &outline.path, outline.lines, &words).await?;
    }
    for kind in [SearchKind::Words, SearchKind::Exact, SearchKind::Regex] {
        match corpus.search_in(&words, kind, None, 5).await {
            Ok(hits) => {
                for hit in hits {
                    let known = manifest.files.iter().any(|file| file.path == hit.path);
                    ensure(known && hit.start_line >= 1, || {
                        format!("a passage of {:?}, line {}", hit.path, hit.start_line)
                    })?;
                    let read = corpus.read(&hit.path, hit.start_line, hit.start_line).await;
                    ensure(read.is_ok(), || format!("{} cannot be read: {:?}", hit.citation(), read.err()))?;
                }
            }
            Err(CorpusError::BadPattern(_)) => {}
            Err(error) => return Err(format!("a search fails: {error}")),
        }
    }
    Ok(())
}

/// Nothing outside the documents stands anywhere.
async fn cited(corpus: &Corpus, path: &str, lines: u64, words: &str) -> Result<(), String> {
    let last = u32::try_from(lines).unwrap_or(u32::MAX);
    let place = |path: &str, line| CitedPlace {
        path: path.to_owned(),
        line,
        last: 0,
        quote: words.to_owned(),
        statement: words.to_owned(),
        group: 1,
    };
    let outside = ["../../../../../../etc/passwd", "/etc/passwd", "../cache", ""];
    let mut places: Vec<CitedPlace> = outside.iter().map(|path| place(path, 1)).collect();
    places.extend([0, 1, last, last.saturating_add(1), u32::MAX].map(|line| place(path, line)));
    let found = corpus.look_up(places.clone(), true).await.map_err(|error| error.to_string())?;
    ensure(found.len() == places.len(), || "not every place was looked up".to_owned())?;
    for found in &found {
        within(found, |named| named == path, |_| last)?;
    }
    Ok(())
}

/// Whatever was found is a document that is there, and a line of it.
fn within(
    found: &PlaceFound,
    knows: impl Fn(&str) -> bool,
    lines: impl Fn(&str) -> u32,
) -> Result<(), String> {
    let named = match found {
        PlaceFound::Stands(standing) => standing.path.as_deref().map(|path| (path, standing.line)),
        PlaceFound::NoFile { nearest } => Some((nearest.as_str(), None)).filter(|(path, _)| !path.is_empty()),
        PlaceFound::NoLine { .. } | PlaceFound::NoQuote { .. } | PlaceFound::Contradicted { .. } => None,
    };
    let Some((path, line)) = named else { return Ok(()) };
    ensure(knows(path), || format!("{path:?} is none of the documents"))?;
    ensure(line.is_none_or(|line| line >= 1 && line <= lines(path)), || {
        format!("{path:?} has no line {line:?}")
    })
}

/// Texts that cite documents.
pub(super) const CITATIONS: Target = Target::new("citations", Shape::Text, citations)
    .with_fixtures(&["agents/tests/corpus/cited/record.md", "agents/tests/corpus/cited/turns.md"])
    .with_words(&[
        "pump.log:3",
        "garden.txt:1",
        "[record.md:1]",
        "(turns.md:99999999999)",
        "settings.toml:0",
        "../../etc/passwd:1",
        "/etc/passwd:1",
        "\u{201c}",
        "\u{201d}",
        "\u{ab}",
        "\u{bb}",
        "line 3 of pump.log",
        "http://host:80",
        "#L3",
        "12.5 %",
        "1,000",
        "[1]",
        "[^1]: ",
        "> ",
        "page.html:12",
        "; ",
        " and ",
        "\n- ",
    ]);

static AT_HAND: LazyLock<Result<BTreeMap<String, String>, String>> = LazyLock::new(|| {
    let names =
        ["garden.txt", "pump.log", "record.md", "settings.toml", "stations.csv", "turns.md", "running.md"];
    names
        .iter()
        .map(|name| Ok(((*name).to_owned(), fixture(&format!("agents/tests/corpus/cited/{name}"))?)))
        .collect()
});

fn citations(input: &[u8]) -> Result<Seen, String> {
    let documents = AT_HAND.as_ref().map_err(Clone::clone)?;
    let places = cited_in(&text_of(input));
    if places.is_empty() {
        return Ok(Seen::Refused("it cites nothing".to_owned()));
    }
    let found = look_up_among(documents, &places).map_err(|error| error.to_string())?;
    ensure(found.len() == places.len(), || "not every place was looked up".to_owned())?;
    for (place, found) in places.iter().zip(&found) {
        within(
            found,
            |path| documents.contains_key(path),
            |path| {
                let lines = documents.get(path).map_or(0, |text| text.lines().count());
                u32::try_from(lines).unwrap_or(u32::MAX)
            },
        )?;
        let stands = matches!(found, PlaceFound::Stands(_));
        let known = documents
            .keys()
            .any(|path| place.path.ends_with(path.as_str()) || path.ends_with(place.path.as_str()));
        ensure(
            !stands || known || matches!(found, PlaceFound::Stands(standing) if standing.path.is_some()),
            || format!("{:?} stands, and is no document", place.path),
        )?;
    }
    Ok(Seen::Read)
}
