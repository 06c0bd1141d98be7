//! Goals asked of a weak model: actions as text, one in an answer, a context of eight thousand tokens, and a share of its
//! answers that goes wrong as those of models of seven billion weights do.

use std::collections::BTreeSet;
use std::path::Path;

use muster_support::fleet::{EFFORT, Folder, both};
use muster_support::good_model::weak::{Happened, NativeTools, Nature, WeakModel};
use muster_support::model_server::ModelServer;
use serde_json::Value;

use super::support::{citations, folder, write_documents};

const PERCENT: &str = "What is 17.5 % of 2480?";
const FILES: &str = "Work out 17.5 % of 2480, 12 % of 1995 and 8 % of 640, and their sum. Write the numbers to the file \
                     `shares.csv` with the columns share, of and result, and a short summary to the file `shares.md`.";
const DEPTH: &str = "What is the depth of delegation limited to?";
/// Share of answers that go wrong, in percent.
const SLIPS: u8 = 40;
/// So many kinds of slips are seen over the seeds of a goal.
const KINDS: usize = 5;
/// A name by which it is known to be weak, and its server's usual context.
const WEAK: &str = "ollama/qwen2.5:3b";

/// What came of a goal.
struct Asked {
    folder: Folder,
    code: Option<i32>,
    summary: Value,
    happened: Happened,
    /// Whether a request showed older steps in short.
    in_short: bool,
    said: String,
}

impl Asked {
    fn report(&self) -> &str {
        self.summary["report"]["body"].as_str().unwrap_or_default()
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join("made").join(path)).unwrap_or_default()
    }

    fn trace(&self) -> String {
        let traced = self.folder.run(&["trace", "last"]).map(|ended| both(&ended));
        format!("{}\n{:?}\n{}", self.said, self.happened, traced.unwrap_or_default())
    }
}

fn ask(nature: Nature, model: &str, goal: &str, arguments: &[&str]) -> Asked {
    let weak = WeakModel::new(nature);
    let server = ModelServer::start(weak.script()).unwrap();
    let folder = folder()
        .with(EFFORT, "standard")
        .with("OLLAMA_HOST", server.url())
        .with("OPENAI_API_KEY", "sk-weak")
        .with("OPENAI_BASE_URL", server.openai_url());
    write_documents(&folder);
    let asked = ["run", goal, "--model", model, "--json", "--out", "made"];
    let ended = folder.run(&[&asked[..], arguments].concat()).unwrap();
    let summary = serde_json::from_slice(&ended.stdout).unwrap_or(Value::Null);
    assert!(server.violations().is_empty(), "{:?}", server.violations());
    let in_short = server.log().iter().any(|entry| entry.request.holds("[in short: "));
    Asked {
        code: ended.status.code(),
        summary,
        happened: weak.happened(),
        in_short,
        said: both(&ended),
        folder,
    }
}

fn slipping(seed: u64) -> Nature {
    Nature { slips: SLIPS, seed, ..Nature::default() }
}

/// That a goal ended rightly, within so many calls, and no request was longer than the model takes.
fn ended_well(asked: &Asked, most: usize) {
    assert_eq!(asked.code, Some(0), "{}", asked.trace());
    let Happened { answers, too_long, with_tools, .. } = asked.happened;
    assert_eq!((too_long, with_tools), (0, 0), "{}", asked.trace());
    assert!(answers <= most, "{answers} calls\n{}", asked.trace());
}

#[test]
fn one_sum_is_worked_out_in_spite_of_slips() {
    let plain = ask(Nature::default(), WEAK, PERCENT, &[]);
    ended_well(&plain, 2);
    let mut slips = BTreeSet::new();
    for seed in 1..=8 {
        let asked = ask(slipping(seed), WEAK, PERCENT, &[]);
        ended_well(&asked, 6);
        assert!(asked.report().contains("434"), "{}", asked.trace());
        slips.extend(asked.happened.slips.into_keys());
    }
    assert!(slips.len() >= KINDS, "{slips:?}");
}

#[test]
fn files_are_written_in_spite_of_slips() {
    let plain = ask(Nature::default(), WEAK, FILES, &[]);
    ended_well(&plain, 7);
    let mut slips = BTreeSet::new();
    for seed in 1..=4 {
        let asked = ask(slipping(seed), WEAK, FILES, &[]);
        ended_well(&asked, 14);
        let table = asked.read("shares.csv");
        let wanted = ["share,of,result", "434", "239.4", "51.2"];
        assert!(wanted.iter().all(|word| table.contains(word)), "{table}\n{}", asked.trace());
        assert!(asked.read("shares.md").contains("724.6"), "{}", asked.trace());
        slips.extend(asked.happened.slips.into_keys());
    }
    assert!(slips.len() >= KINDS, "{slips:?}");
}

/// Every place that a report cites is there: so many of these documents.
fn cites_truly(asked: &Asked, documents: &Path, least: usize) {
    let cited = citations(asked.report());
    assert!(cited.len() >= least, "{}", asked.trace());
    for (path, line) in cited {
        let name = Path::new(&path).file_name().unwrap();
        let text = std::fs::read_to_string(documents.join(name)).unwrap_or_default();
        let stands = text.lines().nth(line.wrapping_sub(1)).unwrap_or_default();
        assert!(!stands.trim().is_empty(), "{path}:{line}\n{}", asked.trace());
    }
}

#[test]
fn what_is_cited_stands_there_in_spite_of_slips() {
    let mut slips = BTreeSet::new();
    for seed in 1..=8 {
        let asked = ask(slipping(seed), WEAK, DEPTH, &["--docs", "docs"]);
        ended_well(&asked, 7);
        assert!(asked.report().contains("five hops"), "{}", asked.trace());
        assert!(!asked.report().contains("9998"), "{}", asked.trace());
        cites_truly(&asked, &asked.folder.path().join("docs"), 1);
        slips.extend(asked.happened.slips.into_keys());
    }
    assert!(slips.len() >= KINDS, "{slips:?}");
}

#[test]
fn a_server_that_refuses_tools_is_asked_in_text() {
    let nature = Nature { context: 64_000, tools: NativeTools::Refused, ..Nature::default() };
    let asked = ask(nature, "openai/house-model", PERCENT, &[]);
    assert_eq!(asked.code, Some(0), "{}", asked.trace());
    assert!(asked.report().contains("434") && asked.happened.with_tools > 0, "{}", asked.trace());
}

/// The server counts the tokens that an answer may take too.
#[test]
fn what_an_answer_may_take_is_left_free_of_the_context() {
    const CONTEXT: &str = "agent.capabilities.\"qwen2.5:3b\".context=4096";
    let settings = ["--docs", "docs", "--set", CONTEXT, "--set", "agent.max_answer_tokens=1024"];
    let nature = Nature { context: 4_096, ..slipping(2) };
    let asked = ask(nature, "openai/qwen2.5:3b", DEPTH, &settings);
    ended_well(&asked, 12);
    assert!(asked.report().contains("five hops"), "{}", asked.trace());
}

/// Ollama has half of what it is taken for unless it is told otherwise.
#[test]
fn a_context_that_is_shorter_than_known_is_found_out() {
    let nature = Nature { context: 4_096, ..Nature::default() };
    let asked = ask(nature, WEAK, COMPARE, &["--docs", DOCUMENTS]);
    assert!(asked.happened.too_long > 0 && asked.in_short, "{}", asked.trace());
    assert!(matches!(asked.code, Some(0 | 6)), "{}", asked.trace());
    cites_truly(&asked, Path::new(DOCUMENTS), 1);
    let replayed = asked.folder.json(&["replay", "--json"]).unwrap();
    assert_eq!(replayed["same"], true, "{replayed}");
}

const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/eval/suites/docs");
const COMPARE: &str = "Compare the four documents by their iteration limits, depth of delegation, recovery after a crash, \
                       cost control, retries and human approval, and recommend one for work that must not be lost. Cite \
                       every statement as path:line.";

/// A single task cannot hold 24 points in such a context: it is done in part, and says so.
#[test]
fn a_long_task_stays_within_a_short_context() {
    for (nature, least) in [(Nature::default(), 3), (slipping(1), 0)] {
        let steps = ["--docs", DOCUMENTS, "--set", "limits.max_steps=20"];
        let asked = ask(nature, WEAK, COMPARE, &steps);
        assert_eq!(asked.happened.too_long, 0, "{}", asked.trace());
        assert!(asked.in_short, "it is long enough to be shown in short: {}", asked.trace());
        assert!(matches!(asked.code, Some(0 | 6)), "{}", asked.trace());
        cites_truly(&asked, Path::new(DOCUMENTS), least);
        // Every answer leads to the same decision again.
        let replayed = asked.folder.json(&["replay", "--json"]).unwrap();
        assert_eq!(replayed["same"], true, "{replayed}");
    }
}
