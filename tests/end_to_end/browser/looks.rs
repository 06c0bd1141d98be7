//! Every page in both themes and on a narrow screen: nothing that shuts people out, nothing that runs out of the screen, and a
//! picture of each.

use muster_support::browser::{Axe, Theme};
use muster_support::fleet::Folder;
use serde_json::json;

use super::{HOSTILE, Seen, picture};

/// Each page, and what of it has to be there.
fn pages(run: &str) -> Vec<(&'static str, String, &'static str)> {
    let of = |tab: &str| format!("#/runs/{run}/{tab}");
    vec![
        ("fleet", "#/fleet".to_owned(), "document.querySelector('.processes tbody tr')"),
        ("runs", "#/runs".to_owned(), "document.querySelectorAll('.run-row').length >= 2"),
        ("plan", of("plan"), "document.querySelectorAll('.tree-row').length >= 4"),
        ("timeline", of("timeline"), "document.querySelectorAll('.span-row').length > 5"),
        ("record", of("record"), "document.querySelectorAll('.entry-row').length > 5"),
        (
            "report",
            of("report"),
            "document.querySelector('.markdown table') && document.querySelector('.cite')",
        ),
        (
            "conversation",
            of("chat"),
            "document.querySelectorAll('.turn').length === 2 && document.querySelector('.turn .markdown')",
        ),
        ("spending", of("spending"), "document.querySelector('.share')"),
        ("explain", format!("{}?full=true", of("explain")), "document.querySelector('.how')"),
        ("findings", of("findings"), "document.querySelectorAll('.run-tab .panel').length === 3"),
        ("files", of("files"), "document.querySelector('.run-tab .empty')"),
        ("steering", "#/steering".to_owned(), "document.querySelector('.empty')"),
        ("traffic", "#/traffic".to_owned(), "document.querySelector('.tap-row')"),
        ("tools", "#/tools".to_owned(), "document.querySelector('[aria-label=\"Calls of tools\"] tbody tr')"),
        ("dead", "#/dead".to_owned(), "document.querySelector('main .empty, .letters')"),
    ]
}

/// Looks at all of them.
pub(super) fn of_all_pages(seen: &Seen<'_>, axe: Option<&Axe>, run: &str, folder: &Folder) {
    for (width, height, theme) in
        [(1360, 900, Theme::Light), (1360, 900, Theme::Dark), (360, 760, Theme::Light)]
    {
        seen.page.look(width, height, theme).unwrap();
        for (name, hash, ready) in pages(run) {
            seen.go(&hash, ready);
            let place = format!("{name}-{width}-{}", theme.name());
            seen.page.picture(&picture(&place)).unwrap();
            seen.is_sound(&place);
            let beyond =
                seen.js("document.documentElement.scrollWidth - window.innerWidth").as_i64().unwrap();
            assert!(beyond <= 0, "{place} is {beyond} pixels wider than the screen");
            // What is narrow has the same parts in the same colours.
            if let Some(axe) = axe.filter(|_| width > 400 || ["plan", "runs"].contains(&name)) {
                let findings = axe.findings(seen.page).unwrap();
                assert!(findings.is_empty(), "{place}: {findings:#?}");
            }
        }
    }
    seen.page.look(1360, 900, Theme::Light).unwrap();
    report_opens_its_sources(seen, run);
    seen.go("#/runs", "document.querySelector('.run-row')");
    searched(seen);
    seen.go("#/tools", "document.querySelector('[aria-label=\"Calls of tools\"] tbody tr')");
    let stats = folder.json(&["tools", "stats", "--json"]).unwrap();
    let calls =
        seen.js("document.querySelector('[aria-label=\"Calls of tools\"] tbody tr').children[1].textContent");
    assert_eq!(calls, stats["tools"][0]["calls"].to_string());
    followed(seen);
}

/// The report is text of others: what looks like markup is none, links lead to the web alone, places open their source.
fn report_opens_its_sources(seen: &Seen<'_>, run: &str) {
    seen.go(&format!("#/runs/{run}/report"), "document.querySelector('.markdown .cite')");
    let links = seen.js(
        "[...document.querySelectorAll('.markdown a:not(.cite)')].map((one) => one.getAttribute('href'))",
    );
    assert_eq!(links, json!(["https://example.org/"]));
    assert!(seen.page.text(".markdown").unwrap().contains(HOSTILE));
    seen.click(".markdown .cite", "delegation.md:7");
    seen.until("document.querySelector('.line.cited')");
    let cited = seen.page.text(".line.cited").unwrap();
    assert!(cited.contains("A delegation loop is refused"), "{cited}");
    seen.page.picture(&picture("source")).unwrap();
    seen.is_sound("a source");
}

fn searched(seen: &Seen<'_>) {
    let all = seen.js("document.querySelectorAll('.run-row').length").as_u64().unwrap();
    seen.page.write("#search", "status:completed hops").unwrap();
    seen.until(&format!(
        "document.querySelectorAll('.run-row').length < {all} && document.querySelector('.run-row .s-done')"
    ));
    seen.page.write("#search", "nothing like it").unwrap();
    seen.until("document.querySelector('main .empty')");
    seen.click("main .empty .button", "Show all");
    seen.until(&format!("document.querySelectorAll('.run-row').length === {all}"));
}

/// The traffic is narrowed, and stands still when it is told to.
fn followed(seen: &Seen<'_>) {
    seen.go("#/traffic", "document.querySelectorAll('.tap-row').length > 2");
    seen.page.write("input[name=kind]", "heartbeat").unwrap();
    let kinds = "[...document.querySelectorAll('.tap-row .kind')].map((one) => one.textContent)";
    // Rows from before the filter may be seen for one more frame, and be heartbeats too.
    let kept = "document.querySelector('main').textContent.includes('are kept here')";
    seen.until(&format!("location.hash.includes('kind=heartbeat') && {kept} && {kinds}.length > 0 && {kinds}.every((one) => one === 'heartbeat')"));
    seen.click("main .button", "Pause");
    seen.until("document.querySelector('main').textContent.includes('Paused; 1')");
    seen.click(".tap-row", "");
    seen.until("document.querySelector('.inspector .json')?.textContent.includes('heartbeat')");
    seen.is_sound("traffic");
}
