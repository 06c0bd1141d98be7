//! Whoever may only look sees everything, and what cannot be pressed says why.

use muster_support::browser::{Browser, Theme};
use muster_support::fleet::Folder;

use super::{Seen, picture};

/// Somebody who may look logs in by a token, the first of which is wrong.
pub(super) fn viewer(browser: &Browser, base: &str, folder: &Folder) {
    let token = folder.output(&["keys", "token", "eve", "--role", "viewer"]).unwrap();
    let page = browser.page().unwrap();
    page.look(1000, 800, Theme::Dark).unwrap();
    page.open(base).unwrap();
    let seen = Seen { page: &page, base };
    seen.until("document.querySelector('.login input')");
    page.picture(&picture("login")).unwrap();
    page.write(".login input", "no such token").unwrap();
    seen.click(".login button", "Log in");
    seen.until("document.querySelector('.login [role=alert]').textContent");
    page.write(".login input", token.trim()).unwrap();
    page.key("Enter").unwrap();
    seen.until("document.querySelector('.processes tbody tr')");
    assert!(page.text(".who").unwrap().contains("viewer"));
    let why = seen.js("document.querySelector('[data-role=\"worker\"] .button').title");
    assert!(why.as_str().unwrap().contains("viewer may not"), "{why}");
    assert_eq!(
        seen.js("document.querySelector('[data-role=\"worker\"] .button').getAttribute('aria-disabled')"),
        "true"
    );
    seen.go("#/runs", "document.querySelector('.run-row')");
    let pressed = seen.js("(() => { const one = [...document.querySelectorAll('main .button')].find((el) => el.textContent.startsWith('New run')); one.click(); return [one.getAttribute('aria-disabled'), document.querySelectorAll('dialog').length]; })()");
    assert_eq!(pressed, serde_json::json!(["true", 0]));
    seen.go("#/dead", "document.querySelector('main .empty, .letters')");
    seen.is_sound("a viewer");
}
