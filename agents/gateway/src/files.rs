//! `files`: the files of a run and the documents of its goal, by name and within limits.

use std::sync::Arc;

use muster_agents::host::guarded::{APART, AfterGuards};
use muster_agents::tools::workspace::{Workspace, WorkspaceError, WorkspacePath};
use muster_bus::GatewayRequest;
use muster_corpus::Corpus;
use muster_shared::flow::{Action, Use};
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
    rights::may(&task, &mut course, APART, &uses(&request))?;
    rights::has_place(&course)?;
    drop(course);
    let (request, changed) = let_through(desk, &task, request).await?;
    let given = carry_out(desk, &task, &request).await?;
    let mut answer = shown(desk, &task, &request, given).await?;
    if let Some(arguments) = changed {
        answer["arguments"] = arguments;
    }
    answer["token"] = json!(task.token);
    Ok(Some(answer))
}

async fn carry_out(desk: &Desk, task: &OpenTask, request: &FilesRequest) -> Result<Value, GatewayRefusal> {
    match request.action {
        FilesAction::List => list(desk, task, request).await,
        FilesAction::Get => get(desk, task, request).await,
        FilesAction::Put => put(desk, task, request).await,
        FilesAction::Read => read(desk, task, request).await,
        FilesAction::Search => search(desk, task, request).await,
    }
}

/// The request as guards leave it, with its arguments where they changed them.
async fn let_through(
    desk: &Desk,
    task: &OpenTask,
    request: FilesRequest,
) -> Result<(FilesRequest, Option<Value>), GatewayRefusal> {
    let action = call(&request);
    let fits = |arguments: &Value| {
        let changed = with_arguments(&request, arguments)?;
        task.offer.rights.allow_all(&uses(&changed)).map_err(|refusal| refusal.to_string())
    };
    let AfterGuards { what, note } = rights::ask_guards(desk, task, (APART, &action), &fits).await;
    rights::keep(&mut *task.course.lock().await, note);
    match what? {
        None => Ok((request, None)),
        Some(arguments) => {
            let changed = with_arguments(&request, &arguments).map_err(|why| invalid("arguments", &why))?;
            Ok((changed, Some(arguments)))
        }
    }
}

/// What is given, as guards leave it.
async fn shown(
    desk: &Desk,
    task: &OpenTask,
    request: &FilesRequest,
    given: Value,
) -> Result<Value, GatewayRefusal> {
    let action = call(request);
    let asked = desk.shared.guard_answer(&task.role, &task.offer, &action, given);
    let AfterGuards { what, note } = asked.await;
    rights::keep(&mut *task.course.lock().await, note);
    what.map_err(|why| not_allowed(format!("what {} gives is withheld: {why}", action.name)))
}

/// The call of an agent's tool that a request is, for guards.
fn call(request: &FilesRequest) -> Action {
    let FilesRequest { path, text, version, query, .. } = request;
    let (name, arguments) = match request.action {
        FilesAction::List => ("workspace.list", json!({})),
        FilesAction::Get => ("workspace.read", json!({ "path": path })),
        FilesAction::Put => ("workspace.write", json!({ "path": path, "text": text, "replaces": version })),
        FilesAction::Read => {
            ("corpus.read", json!({ "path": path, "from": request.from.max(1), "to": request.to }))
        }
        FilesAction::Search => ("corpus.search", json!({ "query": query, "k": request.most })),
    };
    let given = arguments.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let arguments = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    Action { name: name.to_owned(), arguments: Value::Object(arguments) }
}

/// The same request with other arguments; those that are left out stay as they were.
fn with_arguments(request: &FilesRequest, arguments: &Value) -> Result<FilesRequest, String> {
    let arguments = arguments.as_object().ok_or_else(|| "`arguments` is no object".to_owned())?;
    let mut whole = serde_json::to_value(request).map_err(|error| error.to_string())?;
    for (name, value) in arguments {
        let known = match name.as_str() {
            "path" | "text" | "query" | "to" => name.as_str(),
            "from" if request.action == FilesAction::Read => "from",
            "replaces" => "version",
            "k" => "most",
            other => return Err(format!("there is no argument `{other}`")),
        };
        whole[known] = value.clone();
    }
    serde_json::from_value(whole).map_err(|error| format!("`arguments`: {error}"))
}

/// What a request uses, by the names that tools of agents have for it.
fn uses(request: &FilesRequest) -> Vec<Use<'_>> {
    match request.action {
        FilesAction::List | FilesAction::Get => Vec::new(),
        FilesAction::Put => {
            let mut uses = Use::of_tool("workspace.write");
            uses.push(Use::Effect("workspace.write"));
            uses
        }
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
