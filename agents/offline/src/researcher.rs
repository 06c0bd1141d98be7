//! Researching by rule: search, read around the best hits, extract the statements that answer.

use std::collections::BTreeSet;

use muster_shared::flow::{
    Advice, Citation, Finding, PlanTask, Product, SearchQuery, Step, TaskOffered, TaskResult,
};

use super::observed::{Block, Observed, read_call, search_call};
use super::question::{ParsedQuestion, question};
use super::rank::{ChosenStatement, FoundAnswer, are_of_two_documents, choose};
use super::statements::{
    Statement, StatementKind, begins_with_a_pointer, is_html, is_plain_text, statements,
};
use super::subquestions::asked_in;
use super::text::{capitalise, counted, related, shorten, stem, stem_set};
use super::wanted::Wanted;
use super::{OfflineMove, thought};

/// Most searches of one task.
const MAX_SEARCHES: usize = 3;
/// Places read after each search.
const READS_PER_SEARCH: usize = 2;
/// Lines read before and after a hit.
const LINES_BEFORE: u32 = 6;
const LINES_AFTER: u32 = 14;
/// Steps at most, the submission included.
const MAX_STEPS: usize = 10;
/// Coverage above which no further search is made.
const GOOD: f64 = 0.7;

/// What stands between a question and that of which nothing was found.
pub(super) const NOTHING_ON: &str = " — nothing was found on ";

pub(super) fn next(offer: &TaskOffered, task: &PlanTask, steps: &[Step]) -> OfflineMove {
    let asked = asked_in(task);
    let question = question(&asked.question, &asked.also);
    if offer.corpus.is_none() {
        return without_documents(&asked);
    }
    if question.terms.is_empty() {
        return submit(&asked, &FoundAnswer::default(), &Observed::default());
    }
    let observed = Observed::of(steps);
    let answer = choose(&question, pool(&observed));
    let limit = MAX_STEPS.min(offer.limits.max_steps as usize);
    if steps.len() + 1 >= limit {
        return submit(&asked, &answer, &observed);
    }
    next_search(&question, &asked, &observed, &answer)
        .or_else(|| next_read(&question, &observed))
        .unwrap_or_else(|| submit(&asked, &answer, &observed))
}

/// All statements in what was seen.
fn pool(observed: &Observed) -> Vec<Statement> {
    observed.pages.iter().flat_map(|(path, lines)| statements(path, lines, &observed.trails)).collect()
}

/// The first search at once, another when what was read after the last one does not answer.
fn next_search(
    question: &ParsedQuestion,
    asked: &SearchQuery,
    observed: &Observed,
    answer: &FoundAnswer,
) -> Option<OfflineMove> {
    let done = observed.searches.len();
    if done == 0 {
        let mut query = question.search_words().join(" ");
        asked.also.iter().for_each(|word| query = format!("{query} {word}"));
        if question.wanted == Wanted::Definition {
            // "X is" opens what defines X; other passages with the word are many.
            query = format!("{query} \"{query} is\"");
        }
        return Some(search_call(
            thought(
                format!("Find what the documents say on: {}", asked.question),
                "The telling words of the question find the passages that share the rarest of them.",
                "Search, then read around the best hits.",
            ),
            &query,
        ));
    }
    let read_enough =
        observed.reads.len() >= READS_PER_SEARCH * done || next_read(question, observed).is_none();
    let satisfied = answer.best_coverage() >= GOOD && answer.missing.is_empty();
    // What something is, one place tells; how and why it is so is said in many.
    let wants_more = done < 2 && !matches!(question.wanted, Wanted::Definition | Wanted::Number(_));
    if done >= MAX_SEARCHES || !read_enough || (satisfied && !wants_more) {
        return None;
    }
    let query = variants(question, asked, answer)
        .into_iter()
        .find(|query| observed.searches.iter().all(|search| &search.query != query))?;
    Some(search_call(
        thought(
            format!("See whether other words find more on: {}", asked.question),
            if answer.missing.is_empty() {
                "The documents may say more of it in other words.".to_owned()
            } else {
                format!(
                    "Nothing read so far speaks of {}; the documents may use other words.",
                    listed(&answer.missing)
                )
            },
            "Search with other words of like meaning.",
        ),
        &query,
    ))
}

/// Other ways to ask: with synonyms of what is missing, then with the two rarest words alone.
fn variants(question: &ParsedQuestion, asked: &SearchQuery, answer: &FoundAnswer) -> Vec<String> {
    let telling: Vec<_> = question.terms.iter().filter(|term| !term.light).collect();
    let is_missing = |word: &String| answer.missing.is_empty() || answer.missing.contains(word);
    let mut queries = Vec::new();
    if answer.missing.is_empty() || answer.missing.len() == telling.len() {
        let near = telling.iter().flat_map(|term| super::text::synonyms(&term.stem).into_iter().take(7));
        let all: Vec<&str> = telling.iter().map(|term| term.word.as_str()).chain(near).collect();
        if all.len() > telling.len() {
            queries.push(all.join(" "));
        }
    }
    let kept: Vec<&str> =
        telling.iter().filter(|term| !is_missing(&term.word)).map(|term| term.word.as_str()).collect();
    let mut others: Vec<&str> = Vec::new();
    for term in telling.iter().filter(|term| is_missing(&term.word)) {
        others.extend(super::text::synonyms(&term.stem).into_iter().take(5));
        if asked.widened {
            others.extend(related(&term.stem).into_iter().take(4));
        }
    }
    if !others.is_empty() {
        queries.push([kept.as_slice(), others.as_slice()].concat().join(" "));
    }
    if !answer.missing.is_empty() && answer.missing.len() < telling.len() {
        queries.push(answer.missing.join(" "));
    }
    if asked.widened && telling.len() > 1 {
        queries.extend(telling.iter().map(|term| term.word.clone()));
    }
    queries
}

/// Reads around the best hit that was not seen in full, a few after each search.
fn next_read(question: &ParsedQuestion, observed: &Observed) -> Option<OfflineMove> {
    let searches = observed.searches.len();
    if observed.reads.len() >= READS_PER_SEARCH * searches {
        return None;
    }
    let hits = &observed.searches.last()?.hits;
    let best = best_hit(question, observed, hits)?;
    let first = best.first().saturating_sub(LINES_BEFORE).max(1);
    let last = best.last() + LINES_AFTER;
    Some(read_call(
        thought(
            format!(
                "{}:{} speaks of {}; see what stands around it.",
                best.path,
                best.first(),
                listed(&shared_words(question, best))
            ),
            "A passage may begin or end in the middle of what it explains.",
            "Read the lines around the hit.",
        ),
        &best.path,
        first,
        last,
    ))
}

fn best_hit<'a>(question: &ParsedQuestion, observed: &Observed, hits: &'a [Block]) -> Option<&'a Block> {
    let was_read = |hit: &Block| {
        observed
            .reads
            .iter()
            .any(|read| read.path == hit.path && read.first() <= hit.first() && hit.first() <= read.last())
    };
    let value = |rank: usize, hit: &Block| {
        let text: String = hit.lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join(" ");
        let stems = stem_set(&text);
        let known = question.terms.iter().filter(|term| stems.contains(&term.stem)).count() as f64;
        let near = question.terms.iter().filter(|term| !term.near.is_disjoint(&stems)).count() as f64;
        known + 0.5 * near - 0.12 * rank as f64
    };
    hits.iter()
        .enumerate()
        .filter(|(_, hit)| !was_read(hit))
        .filter(|(_, hit)| !observed.has_seen(&hit.path, hit.first(), hit.last() + LINES_AFTER))
        .max_by(|(left_rank, left), (right_rank, right)| {
            value(*left_rank, left).total_cmp(&value(*right_rank, right)).then(right_rank.cmp(left_rank))
        })
        .map(|(_, hit)| hit)
}

fn shared_words(question: &ParsedQuestion, hit: &Block) -> Vec<String> {
    let stems: BTreeSet<String> = hit.lines.iter().flat_map(|(_, line)| stem_set(line)).collect();
    question.terms.iter().filter(|term| stems.contains(&term.stem)).map(|term| term.word.clone()).collect()
}

fn submit(asked: &SearchQuery, answer: &FoundAnswer, observed: &Observed) -> OfflineMove {
    let findings: Vec<Finding> =
        answer.chosen.iter().map(|chosen| finding(asked, chosen, &answer.chosen)).collect();
    let unanswered = unanswered(asked, answer);
    let result = TaskResult {
        conclusion: conclusion(&findings, asked),
        milestones: milestones(observed, &findings),
        advice: (!unanswered.is_empty()).then(|| Advice {
            refine: !asked.widened,
            reason: format!("nothing that answers it was found: {}", unanswered.join("; ")),
            plan: None,
            suggestions: Vec::new(),
        }),
        findings,
        unanswered,
        ..TaskResult::default()
    };
    let text = match result.findings.len() {
        0 => format!("The documents seen do not answer: {}", asked.question),
        count => format!("{} found.", counted(count, "passage", "passages")),
    };
    OfflineMove::submit(
        thought(text, "", "Submit what was found, each with its place."),
        &Product::Result(result),
    )
}

fn without_documents(asked: &SearchQuery) -> OfflineMove {
    let result = TaskResult {
        conclusion: "There are no documents to search, and no language model to ask.".to_owned(),
        unanswered: vec![asked.question.clone()],
        ..TaskResult::default()
    };
    OfflineMove::submit(thought(result.conclusion.clone(), "", ""), &Product::Result(result))
}

fn finding(asked: &SearchQuery, chosen: &ChosenStatement, all: &[ChosenStatement]) -> Finding {
    let statement = &chosen.statement;
    // What documents say each in its own way of one thing is told with their names.
    let text = if all.iter().any(|other| are_of_two_documents(statement, &other.statement)) {
        format!("In {}: {}", statement.path, said(statement))
    } else {
        said(statement)
    };
    Finding {
        text,
        citations: vec![Citation {
            path: statement.path.clone(),
            line: statement.line,
            quote: statement.quote.clone(),
        }],
        subquestion: asked.question.clone(),
        confidence: confidence(chosen.coverage),
        verified: false,
        looked_up: false,
    }
}

/// The statement with the name it stands under, where it would not be understood without it.
fn said(statement: &Statement) -> String {
    if statement.kind.is_whole() {
        return in_its_lines(statement);
    }
    let text = capitalise(&statement.text);
    let heading = statement.heading.trim_end_matches([':', '.']);
    let heading_is_said = stem_set(heading).is_subset(&statement.stems);
    let names_code = heading.starts_with('`');
    let is_fragment = matches!(statement.kind, StatementKind::Item) || begins_with_a_pointer(&statement.text);
    if statement.defines && !heading.is_empty() {
        return format!("{heading}: {}", statement.text);
    }
    if heading.is_empty() || heading_is_said || heading.chars().count() > 60 || !(names_code || is_fragment) {
        return text;
    }
    format!("{heading}: {}", statement.text)
}

/// A list, a table or a piece of code in its own lines, under what it stands under.
fn in_its_lines(statement: &Statement) -> String {
    let title = match statement.heading.trim_end_matches([':', '.']) {
        "" => statement.path.rsplit('/').next().unwrap_or_default(),
        heading => heading,
    };
    // Without marks of its own, a list or a table would run together.
    let in_columns = || statement.text.lines().any(|line| line.trim().contains("  "));
    let unmarked = match statement.kind {
        StatementKind::Listing => true,
        StatementKind::List | StatementKind::Table => is_plain_text(&statement.path),
        StatementKind::Section => is_plain_text(&statement.path) && in_columns(),
        _ => false,
    };
    let text = match (unmarked && !statement.text.contains("```"), is_html(&statement.path)) {
        (true, _) => format!("```\n{}\n```", statement.text),
        (false, true) => itemised(&statement.text),
        (false, false) => statement.text.clone(),
    };
    format!("{title}\n{text}")
}

/// The lines as items of a list.
fn itemised(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("- {}", line.trim())).collect::<Vec<_>>().join("\n")
}

pub(super) fn confidence(coverage: f64) -> u8 {
    // Never certain: words were matched, not understood.
    (coverage * 100.0).clamp(5.0, 95.0) as u8
}

fn conclusion(findings: &[Finding], asked: &SearchQuery) -> String {
    if findings.is_empty() {
        return format!("The documents do not answer: {}", asked.question);
    }
    match findings {
        // What has lines of its own says all.
        [first, ..] if first.text.contains('\n') => first.text.clone(),
        findings => {
            let said = findings.iter().map(|finding| finding.text.as_str());
            said.filter(|text| !text.contains('\n')).take(2).collect::<Vec<_>>().join(" ")
        }
    }
}

fn unanswered(asked: &SearchQuery, answer: &FoundAnswer) -> Vec<String> {
    if !answer.is_answered() {
        return vec![asked.question.clone()];
    }
    if answer.missing.is_empty() {
        return Vec::new();
    }
    vec![format!("{}{NOTHING_ON}{}", asked.question, listed(&answer.missing))]
}

fn milestones(observed: &Observed, findings: &[Finding]) -> Vec<String> {
    let hits: usize = observed.searches.iter().map(|search| search.hits.len()).sum();
    let mut reached = vec![format!(
        "{}{} with {}, {} read",
        if hits > 0 { "passages found: " } else { "" },
        counted(observed.searches.len(), "search", "searches"),
        counted(hits, "hit", "hits"),
        counted(observed.reads.len(), "place", "places"),
    )];
    // To have looked in vain is to have looked: the task is done, and its question is open.
    reached.push(match findings.len() {
        0 => "nothing that could be cited".to_owned(),
        count => format!("{} cited", counted(count, "statement", "statements")),
    });
    reached
}

/// Words in quotes, with commas and an "or" before the last.
pub(super) fn listed(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().take(6).map(|word| format!("“{}”", shorten(word, 60))).collect();
    match quoted.split_last() {
        None => "this".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
    }
}

/// Words that a wider search for a question may use: relatives of its terms.
pub(super) fn wider_words(subquestion: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for term in question(subquestion, &[]).terms.iter().filter(|term| !term.light) {
        for word in related(&term.stem).into_iter().take(4) {
            if !words.iter().any(|known| stem(known) == stem(word)) {
                words.push(word.to_owned());
            }
        }
    }
    words.truncate(10);
    words
}
