//! `fetch` and `fetch_file`.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use muster_shared::flow::Use;
use muster_shared::text::one_line;
use muster_tools::workspace::WorkspacePath;
use muster_tools::{DocumentReader, Permission, Tool, ToolContext, ToolFailure, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use crate::browse::{Origin, Page, Web};
use crate::content::{self, Body, Content, NoText};
use crate::failure::shown;
use crate::html::Shown;

/// Time that a call may take beyond what the web takes: for making text of it.
const FOR_READING: std::time::Duration = std::time::Duration::from_secs(30);

/// Longest title, remark and text of a link that is shown, in characters.
const LONGEST_LINE: usize = 300;

/// Gets a page and shows its text.
pub(crate) struct Fetch {
    pub(crate) web: Arc<Web>,
    pub(crate) reader: Option<Arc<dyn DocumentReader>>,
}

#[async_trait]
impl Tool for Fetch {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "fetch",
            "Gets a page or a document from the web and shows its text: the article of a page, its tables, PDF, office \
             documents, data. Long texts are shown in parts; go on with `from`.",
            json!({
                    "url": {"type": "string", "minLength": 1, "maxLength": 4096},
                    "from": {
                        "type": "integer", "minimum": 0, "default": 0,
                        "description": "Where in the text to begin, in bytes, as the part before said"
                    },
                    "links": {"type": "boolean", "default": false, "description": "Whether to list the links of the page"},
                    "whole": {
                        "type": "boolean", "default": false,
                        "description": "Whether to show menus and whatever else surrounds the article"
                    }
                }), &["url"],
        )
        .needing(Permission::Network)
        .until_allowed()
        .with_timeout(self.web.settings.total + FOR_READING)
    }

    async fn call(&self, ctx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        let page = self.web.get(&ctx.rights, text_of(&arguments, "url")).await?;
        page.succeeded()?;
        let flag = |name: &str| arguments[name].as_bool().unwrap_or(false);
        let shown = if flag("whole") { Shown::Everything } else { Shown::Article };
        let body = Body {
            bytes: page.body.clone(),
            media_type: page.header("content-type").map(str::to_owned),
            url: page.url.clone(),
        };
        let content = content::read(body, shown, self.reader.as_ref()).await;
        let content =
            content.map_err(|NoText(why)| ToolFailure::Failed(format!("{}\n{why}", page.line())))?;
        let from = arguments["from"].as_u64().and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
        let most = usize::try_from(crate::SHOWN_BYTES).unwrap_or(usize::MAX);
        observation(&page, &content, Wanted { from, most, links: flag("links") })
    }
}

/// What of a text is to be shown.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    from: usize,
    most: usize,
    links: bool,
}

fn observation(page: &Page, content: &Content, wanted: Wanted) -> Result<ToolOutput, ToolFailure> {
    let bytes = content.text.len();
    if wanted.from > 0 && wanted.from >= bytes {
        return Err(ToolFailure::InvalidArguments(format!(
            "The text has {bytes} bytes; `from` must be less, not {}.",
            wanted.from
        )));
    }
    let slice = content::slice(&content.text, wanted.from, wanted.most);
    let mut words = page.line();
    for line in
        content.title.iter().map(|title| format!("Title: {title}")).chain(content.remarks.iter().cloned())
    {
        words.push('\n');
        words.push_str(&one_line(&line, LONGEST_LINE));
    }
    words.push_str("\n\n");
    words.push_str(if content.text.trim().is_empty() { "(It has no text.)" } else { slice.text.trim_end() });
    if slice.from > 0 || slice.to < bytes {
        words.push_str(&format!("\n\n[bytes {} to {} of {bytes}", slice.from, slice.to));
        words.push_str(&if slice.to < bytes {
            format!("; go on with from: {}]", slice.to)
        } else {
            "]".to_owned()
        });
    }
    if wanted.links {
        words.push_str(&listed_links(content, wanted.most));
    }
    let data = json!({
        "url": page.url.as_str(),
        "status": page.status,
        "media_type": page.header("content-type").map(content::essence),
        "title": content.title,
        "bytes": bytes,
        "from": slice.from,
        "next": (slice.to < bytes).then_some(slice.to),
        "came": page.came(),
        "age_seconds": page.age_ms / 1000,
        "origin": page.origin.as_str(),
    });
    Ok(ToolOutput::text(words).with_data(data))
}

/// The links, within as many bytes as are shown of a text.
fn listed_links(content: &Content, most: usize) -> String {
    if content.links.is_empty() {
        return "\n\n[The page has no links.]".to_owned();
    }
    let mut list = "\n\nLinks:".to_owned();
    for (number, link) in content.links.iter().enumerate() {
        let line = format!("\n- {} <{}>", one_line(&link.text, LONGEST_LINE), link.to);
        if list.len() + line.len() > most {
            list.push_str(&format!("\n[{} more links]", content.links.len() - number));
            break;
        }
        list.push_str(&line);
    }
    list
}

/// Gets a file and puts it into the workspace as it is.
pub(crate) struct FetchFile {
    pub(crate) web: Arc<Web>,
}

#[async_trait]
impl Tool for FetchFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec::with_properties(
            "fetch_file",
            "Gets a file from the web and saves it in the workspace as it is, for programs and other tools. To read a page, \
             use fetch.",
            json!({
                    "url": {"type": "string", "minLength": 1, "maxLength": 4096},
                    "save_as": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Path in the workspace"}
                }), &["url", "save_as"],
        )
        .needing(Permission::Network)
        .until_allowed()
        .needing(Permission::WriteWorkspace)
        // The same file is written again.
        .with_repeatable_effects()
        .with_timeout(self.web.settings.total + FOR_READING)
    }

    async fn call(&self, ctx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolFailure> {
        ctx.rights.allows(&Use::WriteFile)?;
        let path = WorkspacePath::parse(text_of(&arguments, "save_as"))?;
        let Some(workspace) = &ctx.workspace else {
            return Err(ToolFailure::Refused("There is no workspace to save it in. Use fetch.".to_owned()));
        };
        let page = self.web.get(&ctx.rights, text_of(&arguments, "url")).await?;
        page.succeeded()?;
        workspace.write_bytes(&path, page.body.clone()).await?;
        let (bytes, media_type) = (page.body.len(), page.header("content-type").map(content::essence));
        let kind = media_type.as_deref().filter(|said| !said.is_empty()).unwrap_or("unknown");
        let words = format!("{}\nSaved as {path}: {bytes} bytes of type {kind}.", page.line());
        let data = json!({
            "url": page.url.as_str(),
            "path": path.as_str(),
            "bytes": bytes,
            "media_type": media_type,
            "came": page.came(),
        });
        Ok(ToolOutput::text(words).with_data(data))
    }
}

impl Page {
    /// Where it is from, when it came, and how fresh it is.
    fn line(&self) -> String {
        let redirects = match self.redirects {
            0 => String::new(),
            1 => " after a redirect".to_owned(),
            n => format!(" after {n} redirects"),
        };
        let freshness = match self.origin {
            Origin::Site => "from the site".to_owned(),
            Origin::Kept => format!("kept, {} old, still fresh", span(self.age_ms)),
            Origin::Confirmed => "kept, and the site says it is unchanged".to_owned(),
            Origin::StandIn => format!(
                "kept, {} old; the site does not answer now, and it may be out of date",
                span(self.age_ms)
            ),
        };
        format!(
            "From {}{redirects}; {}; status {}; {freshness}.",
            shown(self.url.as_str()),
            self.came(),
            self.status
        )
    }

    /// When it came, as people write it.
    fn came(&self) -> String {
        let seconds = i64::try_from(self.came_ms / 1000).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds).unwrap_or_default().to_string()
    }

    /// Whether it is what was asked for, and not the site's word that there is none.
    pub(crate) fn succeeded(&self) -> Result<(), ToolFailure> {
        let url = shown(self.url.as_str());
        let said = format!("{url} answers with status {}", self.status);
        match self.status {
            200..=299 => Ok(()),
            404 | 410 => Err(ToolFailure::NotFound(format!(
                "{said}: there is no such page. Check the URL, or search for it."
            ))),
            401 | 402 | 403 | 407 | 451 => Err(ToolFailure::Refused(format!(
                "{said}: the site does not let us read it. Use another source."
            ))),
            429 | 503 => {
                let later = self
                    .header("retry-after")
                    .map_or_else(String::new, |said| format!(" (it says: after {})", one_line(said, 40)));
                Err(ToolFailure::Unavailable(format!(
                    "{said}: it is busy. Try again later{later}, or use another source."
                )))
            }
            408 | 500..=599 => Err(ToolFailure::Unavailable(format!(
                "{said}: something is wrong there. Try again later, or use another source."
            ))),
            _ => Err(ToolFailure::Failed(format!("{said}. Use another source."))),
        }
    }
}

impl Origin {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Kept => "kept",
            Self::Confirmed => "confirmed",
            Self::StandIn => "stand_in",
        }
    }
}

/// How long something is, roughly.
fn span(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

pub(crate) fn text_of<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments[name].as_str().unwrap_or_default()
}
