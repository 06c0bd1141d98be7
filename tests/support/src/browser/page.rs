//! A page: looked at, clicked, typed into as a person would.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

use super::pipe::Pipe;

/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(15);

/// How colours are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A page of a browser.
pub struct Page {
    pipe: Arc<Pipe>,
    session: String,
}

impl Page {
    pub(super) fn begin(pipe: Arc<Pipe>, session: String) -> io::Result<Self> {
        let page = Self { pipe, session };
        for domain in ["Page", "Runtime", "Log"] {
            page.ask(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(page)
    }

    /// Asks the browser something about this page.
    ///
    /// # Errors
    /// When it refuses.
    pub fn ask(&self, method: &str, params: &Value) -> io::Result<Value> {
        self.pipe.ask(Some(&self.session), method, params)
    }

    /// Goes to an address.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self, url: &str) -> io::Result<()> {
        let went = self.ask("Page.navigate", &json!({ "url": url }))?;
        match went["errorText"].as_str() {
            Some(error) => Err(io::Error::other(format!("{url}: {error}"))),
            None => Ok(()),
        }
    }

    /// What an expression comes to; promises are waited for.
    ///
    /// # Errors
    /// When it throws.
    pub fn js(&self, expression: &str) -> io::Result<Value> {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let answer = self.ask("Runtime.evaluate", &asked)?;
        match answer.get("exceptionDetails") {
            Some(thrown) => {
                let why = thrown["exception"]["description"].as_str().or_else(|| thrown["text"].as_str());
                Err(io::Error::other(format!("{}: {expression:.300}", why.unwrap_or("it throws"))))
            }
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true; says how long that took.
    ///
    /// # Errors
    /// When it is not, after `limit`.
    pub fn until(&self, condition: &str, limit: Duration) -> io::Result<Duration> {
        let began = Instant::now();
        loop {
            // While a page is left for another one, nothing can be asked of it.
            let is_true = self.js(&format!("Boolean({condition})")).unwrap_or_default();
            if is_true == true {
                return Ok(began.elapsed());
            }
            if began.elapsed() > limit {
                let shown =
                    self.js("document.querySelector('main')?.innerText.slice(0, 1500)").unwrap_or_default();
                return Err(io::Error::other(format!(
                    "not within {limit:?}: {condition}; the page shows: {shown}"
                )));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The text of the first element that a selector fits.
    ///
    /// # Errors
    /// When there is none.
    pub fn text(&self, selector: &str) -> io::Result<String> {
        let found = self.js(&format!("document.querySelector({})?.textContent ?? null", json!(selector)))?;
        found.as_str().map(str::to_owned).ok_or_else(|| io::Error::other(format!("there is no {selector}")))
    }

    /// Presses what a selector fits, and, where one is given, has this text: with the mouse, in its middle.
    ///
    /// # Errors
    /// When there is none that can be pressed within a moment.
    pub fn click(&self, selector: &str, text: Option<&str>) -> io::Result<()> {
        let find = format!(
            "(() => {{ const all = [...document.querySelectorAll({})]; const text = {};\
             const el = all.find((one) => one.checkVisibility() && (text === null || one.textContent.includes(text)));\
             if (!el) return null; el.scrollIntoView({{ block: 'center' }}); const box = el.getBoundingClientRect();\
             const [x, y] = [box.left + box.width / 2, box.top + box.height / 2]; const hit = document.elementFromPoint(x, y);\
             return hit && (el.contains(hit) || hit.contains(el)) ? {{ x, y }} : null; }})()",
            json!(selector),
            json!(text)
        );
        let began = Instant::now();
        let place = loop {
            let found = self.js(&find)?;
            if found.is_object() {
                break found;
            }
            if began.elapsed() > Duration::from_secs(8) {
                return Err(io::Error::other(format!("there is no {selector} with {text:?} to be pressed")));
            }
            std::thread::sleep(LOOK);
        };
        self.mouse("mouseMoved", &place)?;
        self.mouse("mousePressed", &place)?;
        self.mouse("mouseReleased", &place)
    }

    /// Moves or presses the mouse at `{x, y}`.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn mouse(&self, kind: &str, place: &Value) -> io::Result<()> {
        let buttons = u8::from(kind != "mouseReleased");
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let asked = json!({
            "type": kind, "x": place["x"], "y": place["y"], "button": button, "buttons": buttons, "clickCount": 1,
        });
        self.ask("Input.dispatchMouseEvent", &asked).map(drop)
    }

    /// Writes a text into a field, in place of what is in it.
    ///
    /// # Errors
    /// When there is no such field.
    pub fn write(&self, selector: &str, text: &str) -> io::Result<()> {
        self.until(&format!("document.querySelector({})", json!(selector)), Duration::from_secs(8))?;
        self.js(&format!(
            "document.querySelector({0}).focus(); document.querySelector({0}).select?.()",
            json!(selector)
        ))?;
        self.ask("Input.insertText", &json!({ "text": text })).map(drop)
    }

    /// Presses a key by its name, such as `Enter` or `g`.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn key(&self, key: &str) -> io::Result<()> {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let mut asked = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code });
        if key.chars().count() == 1 {
            asked["text"] = json!(key);
        } else if key == "Enter" {
            asked["text"] = json!("\r");
        }
        self.ask("Input.dispatchKeyEvent", &asked)?;
        self.ask(
            "Input.dispatchKeyEvent",
            &json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code }),
        )
        .map(drop)
    }

    /// How large it is, and which colours are wanted.
    ///
    /// # Errors
    /// When the browser refuses.
    pub fn look(&self, width: u32, height: u32, theme: Theme) -> io::Result<()> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", &size)?;
        let features = json!([{ "name": "prefers-color-scheme", "value": theme.name() }]);
        self.ask("Emulation.setEmulatedMedia", &json!({ "features": features })).map(drop)
    }

    /// Keeps a picture of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn picture(&self, file: &Path) -> io::Result<()> {
        let taken = self.ask("Page.captureScreenshot", &json!({ "format": "png" }))?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(taken["data"].as_str().unwrap_or_default())
            .map_err(io::Error::other)?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, bytes)
    }

    /// What went wrong in it since this was asked last: scripts that threw, and what the page's own rules forbade. Requests that
    /// were refused are answers, and no troubles.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let told = |one: Value| match one["method"].as_str() {
            Some("Runtime.exceptionThrown") => Some(one["params"]["exceptionDetails"].to_string()),
            Some("Log.entryAdded") => {
                let entry = &one["params"]["entry"];
                let is_trouble = entry["level"] == "error" && entry["source"] != "network";
                is_trouble.then(|| entry.to_string())
            }
            Some("Page.javascriptDialogOpening") => {
                Some(format!("a dialog of the browser: {}", one["params"]))
            }
            _ => None,
        };
        self.pipe.said(&self.session).into_iter().filter_map(told).collect()
    }
}
