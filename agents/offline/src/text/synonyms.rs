//! Words that mean nearly the same in technical writing.
//!
//! A small table instead of a thesaurus: it only has to bridge the usual gap between how people ask ("what
//! limits", "survive the death of") and how documents answer ("at most", "goes on after a crash").

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::stem;

/// Groups of close synonyms: a statement with one may answer a question with another.
const CLOSE: &[&str] = &[
    "limit limited maximum max cap capped bound bounded restrict refuse refused ceiling most prevent",
    "death die dies dead dying kill killed crash crashed crashes disconnect takeover take_over",
    "survive survival recover recovery resume continue restart redelivered checkpoint takeover take_over go_on carry_on pick_up come_back nothing_lost outlast",
    "worker agent process",
    "error errors failure failures fail fails failed fault",
    "start starts begin begins launch startup bring_up",
    "stop stops end ends halt terminate terminates shutdown shut_down",
    "delete deletes remove removes removed purge drop drops erase",
    "create creates created make add adds generate",
    "change changes modify modifies update updates edit",
    "fast speed latency performance quick throughput",
    "big large size bytes",
    "safe safety secure security protect protected",
    "choose chooses select selects pick picks chosen",
    "install installs installation setup installing",
    "configure configures configuration config setting settings option options",
    "license licence licensed",
    "require requires required requirement requirements needs prerequisite",
    "purpose goal aim",
    "cost costs price budget",
    "store stores storage save saves saved persist persists persisted kept keep keeps retain retains retention",
    "send sends publish publishes emit",
    "receive receives subscribe consume consumes",
    "wait waits timeout deadline",
    "retry retries repeat repeated redelivered backoff try_again",
    "duplicate duplicates twice once deduplicate deduplicated",
    "concurrent concurrency parallel simultaneously",
    "order ordering sequence ordered",
    "test tests testing tested",
    "user users person people human",
    "allow allows allowed permit permits permission",
    "forbid forbids forbidden deny denied refuse refused prohibit",
    "split splits divide divides decompose",
    "merge merges combine combines join",
    "default defaults",
    "depend depends dependency dependencies",
    "author authors maintainer maintainers written",
    "version versions release releases",
    "replace replaces replacement substitute",
    "avoid avoids prevent prevents",
    "detect detects detection detected notice",
    "check checks verify verifies verified validate validates validation",
    "compare compares comparison versus",
    "advantage advantages benefit benefits",
    "disadvantage disadvantages drawback drawbacks limitation limitations",
    "minimum least lowest smallest below",
    "convert converts conversion transform transforms",
    "parse parses parsing parser",
    "encode encodes encoding encoded serialise serialize serialization",
    "decode decodes decoding deserialise deserialize",
    "outdoors outdoor outside out",
    "indoors indoor inside",
    "repair repairs mend mends fix fixes maintain maintains maintenance",
    "buy buys purchase purchases acquire",
    "forbidden prohibited banned ban",
    "happen occur",
    "responsible charge duty liable",
    "largest biggest highest most maximum longest",
    "depth deep",
    "length long",
    "height high tall",
    "width wide",
    "weight heavy weigh weighs",
    "old age",
    "expire expires expiry",
    "pay pays payment fee charge charges",
    "cause causes reason because",
    "employee employees staff",
    "doctor physician",
    "car vehicle",
    "begin commence",
    "salary wage wages",
    "own owns owner owners belong belongs",
    "polar pole poles",
    "colour color",
    "centre center",
    "agree agrees consent consents approve approves approval",
    "fly flight flights",
    "throw discard dispose",
    "reset restore",
    "often frequency frequently",
    "supply supplies supplier deliver delivers",
    "log record logs records",
    "holiday vacation leave",
    "amount quantity sum",
    "location place site",
    "show shows display displays",
    "meet meets meeting",
];

/// Words that exclude each other: who asks for the first is not told of the last.
const OPPOSITES: &[&[&str]] = &[
    &["first", "last", "again"],
    &["minimum", "maximum"],
    &["least", "most"],
    &["lowest", "highest"],
    &["smallest", "largest"],
    &["oldest", "newest"],
    &["earliest", "latest"],
    &["arrival", "departure"],
    &["before", "after"],
    &["increase", "decrease"],
    &["success", "failure"],
    &["input", "output"],
    &["summer", "winter"],
    &["north", "south"],
    &["free", "paid"],
];

/// Groups of looser relatives, used only when a search is widened.
const LOOSE: &[&str] = &[
    "limit depth width budget quota threshold deadline exceed",
    "loop loops cycle cycles recursion recursive circular chain",
    "delegation delegate delegates hand handed assign assigned",
    "survive lost journal redelivery replay durable persist saved kept",
    "death failure gone poison unresponsive heartbeat outage",
    "worker workers node host thread",
    "error exception problem issue bug panic",
    "error result return returns",
    "fast slow benchmark milliseconds",
    "secure credential credentials key keys token authentication",
    "store database disk file",
    "message messages event events",
    "configure flag environment variable",
    "install build cargo download",
    "document documents documentation guide manual",
    "memory ram resident allocation",
    "thread threads async runtime",
];

static OPPOSITES_BY_STEM: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut table: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for group in OPPOSITES {
        for word in *group {
            let others = group.iter().filter(|other| *other != word).map(|other| stem(other));
            table.entry(stem(word)).or_default().extend(others);
        }
    }
    table
});
static CLOSE_BY_STEM: LazyLock<BTreeMap<String, Vec<&'static str>>> = LazyLock::new(|| by_stem(CLOSE));
static LOOSE_BY_STEM: LazyLock<BTreeMap<String, Vec<&'static str>>> = LazyLock::new(|| by_stem(LOOSE));

/// Close synonyms of a word, by its stem; the word itself is not among them.
pub(in super::super) fn synonyms(word_stem: &str) -> Vec<&'static str> {
    CLOSE_BY_STEM.get(word_stem).cloned().unwrap_or_default()
}

/// Stems of words that exclude a word, by its stem.
pub(in super::super) fn opposites(word_stem: &str) -> &'static [String] {
    OPPOSITES_BY_STEM.get(word_stem).map_or(&[], Vec::as_slice)
}

/// Looser relatives of a word, by its stem; the word itself is not among them.
pub(in super::super) fn related(word_stem: &str) -> Vec<&'static str> {
    LOOSE_BY_STEM.get(word_stem).cloned().unwrap_or_default()
}

fn by_stem(groups: &[&'static str]) -> BTreeMap<String, Vec<&'static str>> {
    let mut table: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for group in groups {
        for word in group.split_whitespace() {
            let own = stem(word);
            let others = group.split_whitespace().filter(|other| stem(other) != own);
            let known = table.entry(own.clone()).or_default();
            for other in others {
                if !known.iter().any(|present| stem(present) == stem(other)) {
                    known.push(other);
                }
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_go_both_ways_and_leave_out_the_word() {
        assert!(synonyms(&stem("death")).contains(&"kill"));
        assert!(synonyms(&stem("killed")).contains(&"death"));
        assert!(!synonyms(&stem("limits")).iter().any(|word| stem(word) == stem("limits")));
        assert!(synonyms("zebra").is_empty());
        assert!(related(&stem("loops")).contains(&"cycle"));
    }
}
