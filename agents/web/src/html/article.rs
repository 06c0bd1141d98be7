//! Which blocks of a page are its content, and how they are written.

use super::{Block, BlockKind, Document, Place};

/// How much of a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Its content.
    Article,
    /// All of it.
    Everything,
}

/// Words that a part of a page needs to be taken for its content.
const ENOUGH_WORDS: usize = 25;

/// The part of a page that says it is the main part needs so much of all words, in percent.
const ENOUGH_PERCENT: usize = 20;

/// A block of which so much is links, in percent, leads elsewhere; so many of them in a row are a menu.
const LINKS_PERCENT: usize = 80;
const MENU: usize = 4;

/// The text of a page, in Markdown.
pub(crate) fn text(document: &Document, shown: Shown) -> String {
    let all: Vec<&Block> = document.blocks.iter().collect();
    let chosen = match shown {
        Shown::Everything => all,
        Shown::Article => content(&all),
    };
    let mut written = String::new();
    let mut before: Option<&Block> = None;
    for block in chosen {
        if let Some(before) = before {
            written.push_str(if is_list(before) && is_list(block) { "\n" } else { "\n\n" });
        }
        write(&mut written, block);
        before = Some(block);
    }
    written
}

fn content<'a>(all: &[&'a Block]) -> Vec<&'a Block> {
    let of = |places: &[Place]| -> Vec<&'a Block> {
        all.iter().copied().filter(|block| places.contains(&block.place)).collect()
    };
    let (main, body) = (of(&[Place::Main]), of(&[Place::Main, Place::Body]));
    let (of_main, of_body) = (words(&main), words(&body));
    if of_main >= ENOUGH_WORDS && of_main * 100 >= of_body * ENOUGH_PERCENT {
        return main;
    }
    let kept = without_menus(&body);
    if words(&kept) >= ENOUGH_WORDS {
        return kept;
    }
    // A page of links alone, or one that is built in an unusual way.
    if words(&body) >= ENOUGH_WORDS || of_body * 2 >= words(all) { body } else { all.to_vec() }
}

/// The blocks without rows of those that are links and nothing else.
fn without_menus<'a>(blocks: &[&'a Block]) -> Vec<&'a Block> {
    let runs = blocks.chunk_by(|one, next| leads_elsewhere(one) == leads_elsewhere(next));
    let kept =
        runs.filter(|run| run.len() < MENU || !run.first().is_some_and(|block| leads_elsewhere(block)));
    kept.flatten().copied().collect()
}

fn leads_elsewhere(block: &Block) -> bool {
    let letters = block.text.chars().filter(|c| !c.is_whitespace()).count();
    block.kind != BlockKind::Table && block.linked * 100 >= letters * LINKS_PERCENT
}

fn words(blocks: &[&Block]) -> usize {
    blocks.iter().map(|block| block.text.split_whitespace().count()).sum()
}

const fn is_list(block: &Block) -> bool {
    matches!(block.kind, BlockKind::Item { .. })
}

fn write(into: &mut String, block: &Block) {
    let text = &block.text;
    match block.kind {
        BlockKind::Heading(level) => {
            into.push_str(&"#".repeat(level.into()));
            into.push(' ');
            into.push_str(text);
        }
        BlockKind::Paragraph | BlockKind::Table => into.push_str(text),
        BlockKind::Item { depth, number } => {
            /// Deeper lists are written as deep as this.
            const DEEPEST: usize = 8;
            into.push_str(&"  ".repeat(depth.min(DEEPEST).saturating_sub(1)));
            match number {
                Some(number) => into.push_str(&format!("{number}. ")),
                None => into.push_str("- "),
            }
            into.push_str(&text.replace('\n', " "));
        }
        BlockKind::Quote => {
            into.push_str("> ");
            into.push_str(&text.replace('\n', "\n> "));
        }
        BlockKind::Preformatted => {
            // A fence is longer than any within.
            let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
            into.push_str(&format!("{fence}\n{text}\n{fence}"));
        }
    }
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}
