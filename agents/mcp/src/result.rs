//! What a server answers, as a model is shown it: text as it is, files put into the run's workspace and named.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use muster_shared::flow::Use;
use muster_tools::workspace::{Workspace, WorkspacePath};
use muster_tools::{Permission, ToolContext, ToolOutput};
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResourceContents, Role,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::names::hex_of;
use crate::plain::{cut, is_within_depth, visible};

/// Deepest structured result that is passed on.
pub(crate) const MAX_DEPTH: usize = 32;
/// Longest address or name in a result, in bytes.
const MAX_LABEL: usize = 300;

/// Limits of one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultLimits {
    /// Longest text, in bytes.
    pub(crate) text: usize,
    /// Largest file, in bytes.
    pub(crate) file: usize,
    /// Most files.
    pub(crate) files: usize,
}

/// An answer in pieces, before anything is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) pieces: Vec<Piece>,
    /// The structured form.
    pub(crate) data: Option<Value>,
    /// Whether the tool says that it failed.
    pub(crate) failed: bool,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    File(FileOfResult),
}

/// A file that came with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileOfResult {
    pub(crate) media_type: String,
    pub(crate) bytes: Bytes,
}

/// What a call of a tool answered.
pub(crate) fn of_call(result: CallToolResult, limits: ResultLimits) -> Told {
    let mut told = Told { failed: result.is_error == Some(true), ..Told::default() };
    let mut room = limits.files;
    for block in result.content {
        told.pieces.push(of_block(block, limits, &mut room));
    }
    match result.structured_content {
        Some(data) if is_within_depth(&data, MAX_DEPTH) => {
            if told.pieces.is_empty() {
                told.pieces.push(Piece::Text(data.to_string()));
            }
            told.data = Some(data);
        }
        Some(_) => {
            told.pieces
                .push(Piece::Text(format!("[its data is nested deeper than {MAX_DEPTH} and left out]")));
        }
        None => {}
    }
    told
}

/// What reading a resource answered.
pub(crate) fn of_resource(result: ReadResourceResult, limits: ResultLimits) -> Told {
    let mut room = limits.files;
    let pieces =
        result.contents.into_iter().map(|contents| of_contents(contents, limits, &mut room)).collect();
    Told { pieces, ..Told::default() }
}

/// What asking for a prompt answered.
pub(crate) fn of_prompt(result: GetPromptResult, limits: ResultLimits) -> Told {
    let mut room = limits.files;
    let mut told = Told::default();
    told.pieces.extend(result.description.map(Piece::Text));
    for message in result.messages {
        let by = if message.role == Role::Assistant { "assistant:" } else { "user:" };
        told.pieces.push(Piece::Text(by.to_owned()));
        told.pieces.push(of_block(message.content, limits, &mut room));
    }
    told
}

fn of_block(block: ContentBlock, limits: ResultLimits, room: &mut usize) -> Piece {
    match block {
        ContentBlock::Text(text) => Piece::Text(text.text),
        ContentBlock::Image(image) => file(&image.mime_type, &image.data, limits, room),
        ContentBlock::Audio(audio) => file(&audio.mime_type, &audio.data, limits, room),
        ContentBlock::Resource(embedded) => of_contents(embedded.resource, limits, room),
        ContentBlock::ResourceLink(link) => Piece::Text(format!(
            "[resource {}: {}; read it with read_resource]",
            label(&link.uri),
            label(link.title.as_deref().unwrap_or(&link.name)),
        )),
        _ => Piece::Text("[content of a kind that is not known]".to_owned()),
    }
}

fn of_contents(contents: ResourceContents, limits: ResultLimits, room: &mut usize) -> Piece {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            Piece::Text(format!("[{}]\n{text}", label(&uri)))
        }
        ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
            file(mime_type.as_deref().unwrap_or("application/octet-stream"), &blob, limits, room)
        }
        _ => Piece::Text("[a resource of a kind that is not known]".to_owned()),
    }
}

fn file(media_type: &str, encoded: &str, limits: ResultLimits, room: &mut usize) -> Piece {
    let media_type = label(media_type);
    let left_out = |why: &str| Piece::Text(format!("[{media_type} left out: {why}]"));
    if *room == 0 {
        return left_out("too many files in one result");
    }
    // Four letters stand for three bytes.
    if encoded.len() / 4 * 3 > limits.file.saturating_add(2) {
        return left_out("it is larger than what is taken");
    }
    match STANDARD.decode(encoded.trim()) {
        Ok(bytes) => {
            *room -= 1;
            Piece::File(FileOfResult { media_type: media_type.clone(), bytes: bytes.into() })
        }
        Err(_) => left_out("it is not base64"),
    }
}

fn label(text: &str) -> String {
    visible(&cut(text, MAX_LABEL))
}

impl FileOfResult {
    /// Where it is kept: named by what stands in it, so that the same file is written once.
    fn path(&self, namespace: &str) -> String {
        let hash = hex_of(&Sha256::digest(&self.bytes));
        format!("mcp/{namespace}/{}.{}", hash.get(..12).unwrap_or(&hash), ending_of(&self.media_type))
    }
}

fn ending_of(media_type: &str) -> &'static str {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        "application/json" => "json",
        "text/plain" => "txt",
        "text/csv" => "csv",
        "text/html" => "html",
        _ => "bin",
    }
}

/// Puts the files of an answer into the run's workspace, and gives the words.
pub(crate) async fn keep(told: Told, namespace: &str, limits: ResultLimits, ctx: &ToolContext) -> ToolOutput {
    let mut words = Vec::new();
    for piece in told.pieces {
        words.push(match piece {
            Piece::Text(text) => text,
            Piece::File(file) => kept(&file, namespace, ctx).await,
        });
    }
    let content = cut(&words.join("\n"), limits.text);
    ToolOutput { data: told.data, ..ToolOutput::text(content) }
}

async fn kept(file: &FileOfResult, namespace: &str, ctx: &ToolContext) -> String {
    let about = format!("{}, {} bytes", file.media_type, file.bytes.len());
    let path = file.path(namespace);
    match write(file, &path, ctx).await {
        Ok(()) => format!("[file {path}: {about}]"),
        Err(why) => format!("[{about}: not kept, {why}]"),
    }
}

async fn write(file: &FileOfResult, path: &str, ctx: &ToolContext) -> Result<(), String> {
    let workspace: &dyn Workspace = ctx.workspace.as_deref().ok_or("the run has no workspace")?;
    if !ctx.grants.contains(&Permission::WriteWorkspace) {
        return Err("this agent may not write files".to_owned());
    }
    ctx.rights.allow_all(&[Use::WriteFile]).map_err(|refusal| refusal.to_string())?;
    let path = WorkspacePath::parse(path).map_err(|error| error.to_string())?;
    match workspace.write_bytes(&path, file.bytes.clone()).await {
        Ok(()) => Ok(()),
        // Named by what stands in it: whoever wrote it, it is the same.
        Err(_) if workspace.read_bytes(&path).await.is_ok_and(|bytes| bytes == file.bytes) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
