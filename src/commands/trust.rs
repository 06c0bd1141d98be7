//! `muster trust`: shows what of a project needs the user's word, asks, and keeps the answer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use muster_bus::credentials::FleetKeys;
use muster_tool_server::file::ENDING as TOOL_ENDING;
use serde_json::{Value, json};

use super::keep;
use crate::app::{current_folder, inputs, now, variables};
use crate::args::{Global, TrustArgs};
use crate::exit::{Exit, Failure, usage};
use crate::fleet::joined::JoinedFolder;
use crate::fleet::state::FleetFolder;
use crate::settings::{self, AGENTS_DIR, Care, Inputs, Loaded, MemberSource, TOOLS_DIR};
use crate::trust::{
    Danger, Grant, Item, RecordError, Trust, absolute, difference, file_item, files_of, fingerprint,
    project_server, real, template_items,
};
use crate::{agent_file, mcp_file, output, render, tool_files};

/// A project, and what in it needs the user's word.
struct Project {
    folder: PathBuf,
    items: Vec<Item>,
    held: Option<Grant>,
}

/// Trusts, lists or revokes.
pub(super) fn trust(global: &Global, args: &TrustArgs) -> miette::Result<Exit> {
    let folder = match &args.path {
        Some(path) if path.is_dir() => real(path),
        Some(path) if path.is_file() => parent(&real(path)),
        Some(path) => {
            return Err(usage!("{} is no file or folder", path.display())
                .help("name the folder of the project, or leave it out")
                .into());
        }
        None => current_folder()?,
    };
    let inputs = Inputs { care: Care::Everything, ..inputs(global, folder, variables()) };
    if args.list {
        return Ok(list(&inputs.trust, args)?);
    }
    if args.revoke {
        return Ok(revoke(&inputs, args)?);
    }
    let loaded = settings::load(&inputs)?;
    let file = args.path.as_deref().filter(|path| path.is_file()).map(real);
    let project = look(&inputs, &loaded, file)?;
    Ok(ask(&inputs.trust, &project, args)?)
}

fn cannot(error: RecordError) -> Failure {
    Failure::usage(error)
        .help("what you trust is kept in ~/.local/state/muster/trust (XDG_STATE_HOME): it must be yours, and closed to others")
}

/// Gathers what needs the user's word.
fn look(inputs: &Inputs, loaded: &Loaded, file: Option<PathBuf>) -> Result<Project, Failure> {
    let trust = &inputs.trust;
    let folder = project_folder(inputs, loaded.file.as_deref());
    let mut items = loaded.needs.clone();
    // As commands do, from the folder in which they are given.
    let (fleet, _) = FleetFolder::nearest(&inputs.folder);
    let beside = fleet.path().parent().unwrap_or(&folder);
    let agents = files_of(&beside.join(AGENTS_DIR), ".agent.md");
    let tools_folder = beside.join(TOOLS_DIR);
    let mut tools = tool_files::files_in(&tools_folder, TOOL_ENDING);
    tools.extend(file.iter().filter(|file| file.to_string_lossy().ends_with(TOOL_ENDING)).cloned());
    let servers = beside.join(&loaded.settings.tool.mcp.file);
    items.extend(agents.iter().flat_map(|path| agent_file::wanted(path)));
    items.extend(tools.iter().flat_map(|path| tool_files::wanted(path, beside)));
    items.extend(mcp_file::wanted(&servers, beside));
    items.extend(
        loaded.templates_of_project().iter().flat_map(|path| template_items(&inputs.folder.join(path))),
    );
    let lists = loaded.settings.guards.values().filter_map(|guard| Some(beside.join(guard.file.as_ref()?)));
    let lists = lists.filter(|list| list.starts_with(beside));
    let mut files: Vec<PathBuf> = loaded.file.iter().chain(&inputs.team).cloned().chain(file).collect();
    files.extend(agents.into_iter().chain(tools).chain(lists));
    files.extend(tool_files::files_in(&tools_folder, muster_composite::ENDING));
    let members = loaded.team.iter().flat_map(|team| &team.specialists);
    files.extend(members.filter_map(|member| match &member.source {
        MemberSource::File(path) => Some(path.clone()),
        MemberSource::Command(_) => None,
    }));
    for file in files {
        let file = absolute(&file);
        let base = if file.starts_with(beside) { beside.to_owned() } else { parent(&file) };
        let fault = trust.plain_fault(&file, &base);
        items.extend(fault.and_then(|fault| file_item(Danger::Foreign, &file, &fault.to_string())));
    }
    let programs =
        project_server(&inputs.folder).into_iter().chain(own_program(&inputs.folder, &folder, loaded));
    items.extend(programs.filter_map(|path| file_item(Danger::Program, &path, "in the project")));
    items.extend(keys_of_others(trust, &beside.join(&loaded.settings.server.store_dir)));
    // A membership in a fleet on another machine that the user did not create.
    let folder_of_joined = JoinedFolder::of(&fleet);
    let joined = folder_of_joined.read().ok().flatten().and_then(|joined| folder_of_joined.item(&joined));
    items.extend(joined.filter(|item| !trust.made(folder_of_joined.path(), item)));
    let mut seen = BTreeSet::new();
    items.retain(|item| seen.insert((item.what, item.name.clone())));
    let held = trust.records().of(&folder).map_err(cannot)?;
    Ok(Project { folder, items, held })
}

/// The keys of the fleet here, where the user did not make them.
fn keys_of_others(trust: &Trust, store: &Path) -> Option<Item> {
    let folder = muster_bus::server::keys_folder(store).ok()?;
    let account = FleetKeys::open(&folder).ok()??.account();
    Some(Item::keys(&folder, &account)).filter(|item| !trust.made(&folder, item))
}

/// The server that the project's file names, where it is the project's own.
fn own_program(base: &Path, folder: &Path, loaded: &Loaded) -> Option<PathBuf> {
    let is_asked = loaded.needs.iter().any(|item| item.name == "server.binary");
    let binary = loaded.settings.server.binary.as_ref().filter(|_| is_asked)?;
    Some(real(&base.join(binary))).filter(|binary| binary.starts_with(folder) && binary.is_file())
}

fn parent(file: &Path) -> PathBuf {
    file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

fn project_folder(inputs: &Inputs, file: Option<&Path>) -> PathBuf {
    real(&file.map_or_else(|| inputs.folder.clone(), parent))
}

fn ask(trust: &Trust, project: &Project, args: &TrustArgs) -> Result<Exit, Failure> {
    let Project { folder, items, held } = project;
    let changes = difference(held.as_ref().map_or(&[], |grant| &grant.items), items);
    let trusted =
        |words: &str| output::json_or_line(args.json, || shown(project, &changes, true), || words.to_owned());
    if items.is_empty() {
        // What is gone needs no word any more.
        trust.records().revoke(folder).map_err(cannot)?;
        return trusted("there is nothing here that needs your word");
    }
    if held.is_some() && changes.is_empty() {
        return trusted("it is trusted already, as it is");
    }
    if !args.json {
        output::line(&render::trust::asked(folder, items, held.is_some().then_some(&changes[..])))?;
    }
    if !args.yes && !keep::agreed("Trust it?", "`muster trust --yes` does not ask")? {
        if args.json {
            output::json(&shown(project, &changes, false))?;
        }
        return Err(usage!("{} is not trusted", folder.display())
            .help("`muster trust --yes` trusts what is shown without asking"));
    }
    let grant = Grant { folder: folder.clone(), at: now().0, items: items.clone() };
    trust.records().keep(&grant).map_err(cannot)?;
    trusted(&format!("{} is trusted as it is now", folder.display()))
}

fn shown(project: &Project, changes: &[String], is_trusted: bool) -> Value {
    json!({
        "folder": project.folder, "trusted": is_trusted, "items": project.items, "changes": changes,
        "fingerprint": fingerprint(&project.items),
    })
}

fn list(trust: &Trust, args: &TrustArgs) -> Result<Exit, Failure> {
    let grants = trust.records().all().map_err(cannot)?;
    if args.json {
        let one = |Grant { folder, at, items }: &Grant| json!({ "folder": folder, "at": at, "fingerprint": fingerprint(items), "items": items });
        output::json(&grants.iter().map(one).collect::<Value>())?;
    } else if grants.is_empty() {
        output::note("no project is trusted");
    } else {
        output::line(&render::trust::list(&grants))?;
    }
    Ok(Exit::Completed)
}

fn revoke(inputs: &Inputs, args: &TrustArgs) -> Result<Exit, Failure> {
    let nearest = settings::nearest(&inputs.folder);
    let folder = project_folder(inputs, inputs.file.as_deref().or(nearest.as_deref()));
    let revoked = inputs.trust.records().revoke(&folder).map_err(cannot)?;
    let how = if revoked { "is trusted no more" } else { "was not trusted" };
    output::json_or_line(
        args.json,
        || json!({ "folder": folder, "revoked": revoked }),
        || format!("{} {how}", folder.display()),
    )
}
