//! The first page, and what is seen when the line to the dashboard or to the fleet is cut.

use muster_support::dashboard::Dashboard;
use muster_support::fleet::Folder;

use super::{Seen, picture};

/// Most bytes of the first page, as they are sent.
const MOST_BYTES: f64 = 300.0 * 1024.0;

/// The address that was printed logs somebody in, and is used up; the page is small and soon there.
pub(super) fn first_page(seen: &Seen<'_>, token: &str) {
    let url = format!("{}/#token={token}", seen.base);
    seen.page.open(&url).unwrap();
    let took = seen.until("document.querySelector('.processes tbody tr')");
    let hash = seen.js("location.hash");
    assert_eq!(hash, "#/fleet", "the token is out of the address");
    let bytes = seen.js(
        "[...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')].reduce((sum, one) => sum + one.transferSize, 0)",
    );
    let first = seen.js("performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint')?.startTime ?? 0");
    println!("first page: {bytes} bytes, something is seen after {first} ms, the fleet after {took:?}");
    assert!(bytes.as_f64().is_some_and(|bytes| bytes > 1_000.0 && bytes < MOST_BYTES), "{bytes}");
    seen.is_sound("first page");

    // The keyboard: past what stands around the page, to another one, and to all keys there are.
    seen.js("document.activeElement.blur(); 0");
    seen.page.key("Tab").unwrap();
    assert_eq!(seen.js("document.activeElement.id"), "skip");
    seen.page.key("Enter").unwrap();
    assert_eq!(seen.js("document.activeElement.id"), "main");
    seen.page.key("g").unwrap();
    seen.page.key("r").unwrap();
    seen.until(
        "location.hash === '#/runs' && document.querySelector('.empty')?.textContent.includes('No runs yet')",
    );
    seen.page.key("?").unwrap();
    seen.until("document.querySelector('dialog[open] kbd')");
    seen.page.key("Escape").unwrap();
    seen.until("!document.querySelector('dialog')");
}

/// The fleet goes and comes back, then the dashboard itself: the page says so, and goes on by itself.
pub(super) fn lost_and_mended(seen: &Seen<'_>, dashboard: &mut Dashboard, folder: &Folder) {
    seen.go("#/fleet", "document.querySelector('.processes tbody tr')");
    folder.output(&["down"]).unwrap();
    seen.until("document.querySelector('.banner:not([hidden])')?.textContent.includes('fleet')");
    seen.page.picture(&picture("away")).unwrap();
    folder.output(&["up", "--detach"]).unwrap();
    seen.until("!document.querySelector('.banner:not([hidden])') && document.querySelector('.dot.open')");
    seen.until("document.querySelectorAll('.processes tbody tr').length >= 7");
    seen.is_sound("a fleet that came back");

    dashboard.stop();
    seen.until("document.querySelector('.dot.lost') && document.querySelector('.banner:not([hidden])')?.textContent.includes('Connection lost')");
    seen.page.picture(&picture("lost")).unwrap();
    dashboard.start_again(folder).unwrap();
    // Sessions are not kept: whoever was logged in is asked again.
    seen.until("document.querySelector('.login')");
    seen.page.write(".login input", dashboard.token()).unwrap();
    seen.click(".login button", "Log in");
    seen.until("document.querySelector('.dot.open') && document.querySelector('.processes tbody tr')");
    seen.click(".foot button", "Log out");
    seen.until("document.querySelector('.login')");
}
