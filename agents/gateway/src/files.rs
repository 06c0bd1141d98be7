//! `files`: the files of a run and the documents of its goal, by name and within limits.

use std::sync::Arc;

use muster_agents::tools::workspace::{Workspace, WorkspaceError, WorkspacePath};
use muster_bus::GatewayRequest;
use muster_corpus::Corpus;
use muster_shared::flow::Use;
use muster_shared::ids::Role;
use muster_shared::wire::gateway::{FilesAction, FilesRequest, GatewayRefusal, RefusalCode};
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::offer::input_body;
use crate::open::OpenTask;
use crate::refusal::{failed, invalid, not_allowed};
use crate::rights;
use crate::route::{Found, find};

/// Most documents that one answer names.
const MOST_DOCUMENTS: usize = 1000;
/// Most passages of one answer.
const MOST_PASSAGES: u32 = 10;

pub(crate) async fn files(
    desk: &Arc<Desk>,
    asked: &GatewayRequest,
    role: &Role,
    request: FilesRequest,
) -> Result<Option<Value>, GatewayRefusal> {
    let task = match find(desk, asked, role, &request.token).await? {
        Found::Open(task) => task,
        Found::Past(past) => return Err(past.why.refusal()),
        Found::Answered => return Ok(None),
    };
    let _at_work = task.at_work();
    let mut course = task.course.lock().await;
    if let Some(closed) = &course.closed {
        return Err(closed.refusal());
    }
    rights::may(&task, &mut course, &uses(&request))?;
    drop(course);
    let mut answer = match request.action {
        FilesAction::List => list(desk, &task, &request).await?,
        FilesAction::Get => get(desk, &task, &request).await?,
        FilesAction::Put => put(desk, &task, &request).await?,
        FilesAction::Read => read(desk, &task, &request).await?,
        FilesAction::Search => search(desk, &task, &request).await?,
    };
    answer["token"] = json!(task.token);
    Ok(Some(answer))
}

/// What a request uses, by the names that tools of agents have for it.
fn uses(request: &FilesRequest) -> Vec<Use<'_>> {
    match request.action {
        FilesAction::List | FilesAction::Get => Vec::new(),
        FilesAction::Put => Use::of_tool("workspace.write"),
        FilesAction::Read => {
            let mut uses = Use::of_tool("corpus.read");
            uses.push(Use::Document(&request.path));
            uses
        }
        FilesAction::Search => Use::of_tool("corpus.search"),
    }
}

async fn list(desk: &Desk, task: &OpenTask, request: &FilesRequest) -> Result<Value, GatewayRefusal> {
    let files = desk.shared.workspace(&task.offer).list().await.map_err(refused)?;
    let mut answer = json!({ "files": files, "documents": [] });
    if task.offer.corpus.is_some() {
        let manifest = documents(desk, task).await?.manifest().await.map_err(failed)?;
        let from = usize::try_from(request.from).unwrap_or(usize::MAX);
        let paths = manifest.files.iter().skip(from).take(MOST_DOCUMENTS);
        answer["documents"] = paths.map(|file| json!({ "path": file.path, "lines": file.lines })).collect();
        if from.saturating_add(MOST_DOCUMENTS) < manifest.files.len() {
            answer["next"] = json!(from + MOST_DOCUMENTS);
        }
    }
    Ok(answer)
}

async fn get(desk: &Desk, task: &OpenTask, request: &FilesRequest) -> Result<Value, GatewayRefusal> {
    let text = match input_body(&task.offer, &request.path) {
        Some(body) => body.to_owned(),
        None => {
            let path = WorkspacePath::parse(&request.path).map_err(refused)?;
            desk.shared.workspace(&task.offer).read(&path).await.map_err(refused)?
        }
    };
    let from = usize::try_from(request.from).unwrap_or(usize::MAX).min(text.len());
    if !text.is_char_boundary(from) {
        return Err(invalid("from", "it lies within a character: use `next` of the answer before"));
    }
    let to = text.floor_char_boundary((from + desk.bus.gateway().most_bytes() / 4).min(text.len()));
    let mut answer = json!({ "text": text[from..to], "bytes": text.len() });
    if to < text.len() {
        answer["next"] = json!(to);
    }
    Ok(answer)
}

async fn put(desk: &Desk, task: &OpenTask, request: &FilesRequest) -> Result<Value, GatewayRefusal> {
    if !desk.shared.permissions(&task.role).tools {
        return Err(not_allowed(format!("the role {} may not write files (agent.permissions)", task.role)));
    }
    let path = WorkspacePath::parse(&request.path).map_err(refused)?;
    let workspace = desk.shared.workspace(&task.offer);
    match &request.version {
        Some(version) => workspace.replace(&path, &request.text, version).await.map_err(refused)?,
        None => workspace.write(&path, &request.text).await.map_err(refused)?,
    }
    Ok(json!({ "path": path.as_str(), "bytes": request.text.len() }))
}

async fn read(desk: &Desk, task: &OpenTask, request: &FilesRequest) -> Result<Value, GatewayRefusal> {
    let corpus = documents(desk, task).await?;
    let from = request.from.max(1);
    let lines = corpus.read(&request.path, from, request.to.unwrap_or(u64::MAX)).await;
    let lines = lines.map_err(|error| invalid("path", &error.to_string()))?;
    Ok(
        json!({ "path": lines.path, "from": lines.from, "total": lines.total, "lines": lines.lines, "cut": lines.cut }),
    )
}

async fn search(desk: &Desk, task: &OpenTask, request: &FilesRequest) -> Result<Value, GatewayRefusal> {
    if request.query.trim().is_empty() {
        return Err(invalid("query", "it is empty: say what is looked for"));
    }
    let most = usize::try_from(request.most.unwrap_or(MOST_PASSAGES)).unwrap_or(10);
    let found = documents(desk, task).await?.search(&request.query, most).await.map_err(failed)?;
    Ok(json!({ "passages": found }))
}

async fn documents(desk: &Desk, task: &OpenTask) -> Result<Corpus, GatewayRefusal> {
    let Some(corpus) = &task.offer.corpus else {
        let message = "the goal came without documents: go on without";
        return Err(GatewayRefusal::new(RefusalCode::NotFound, message));
    };
    desk.shared.documents(corpus, &task.offer.rights).await.map_err(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn refused(error: WorkspaceError) -> GatewayRefusal {
    let said = error.to_string();
    match error {
        WorkspaceError::NotFound(_) => GatewayRefusal::new(RefusalCode::NotFound, said),
        WorkspaceError::Full { .. } => not_allowed(said),
        WorkspaceError::Bus(_) => failed(said),
        WorkspaceError::BadPath { .. }
        | WorkspaceError::NotAFile(_)
        | WorkspaceError::NotAFolder(_)
        | WorkspaceError::NotText(_)
        | WorkspaceError::Taken { .. } => invalid("path", &said),
    }
}
