//! `muster blueprint`: plans written beforehand are listed, checked, shown, and made of runs that went well.

use std::fs;
use std::path::{Path, PathBuf};

use muster_agents::library::{self, Library, LibraryError, Listed};
use muster_shared::blueprint::{self, Blueprint, Saved, check_limits, save, write};
use muster_shared::flow::BlueprintBrief;
use muster_shared::ids::Role;
use serde_json::{Value, json};

use super::select;
use crate::app::App;
use crate::args::{BlueprintAction, BlueprintListArgs, BlueprintNameArgs, BlueprintSaveArgs};
use crate::exit::{Exit, Failure, failed, usage};
use crate::render::figures;
use crate::trust::Fault;
use crate::{output, render};

/// Looks after blueprints.
pub(super) async fn blueprint(app: &App, action: &BlueprintAction) -> Result<Exit, Failure> {
    match action {
        BlueprintAction::List(args) => list(app, args),
        BlueprintAction::Check(args) => check(app, args),
        BlueprintAction::Show(args) => show(app, args),
        BlueprintAction::Save(args) => keep(app, args).await,
    }
}

/// The folders in which blueprints lie that count.
pub(crate) fn folders(app: &App) -> Vec<PathBuf> {
    all_folders(app).filter(|folder| fault(app, folder).is_none()).collect()
}

/// The folders that do not count, since somebody else can change what is in them, a line each.
pub(super) fn left_out(app: &App) -> Vec<String> {
    let faults = all_folders(app).filter_map(|folder| Some((fault(app, &folder)?, folder)));
    faults
        .map(|(fault, folder)| format!("the blueprints in {} do not count: {fault}", folder.display()))
        .collect()
}

fn all_folders(app: &App) -> impl Iterator<Item = PathBuf> {
    app.settings().agent.blueprints.iter().map(|folder| app.beside_fleet(folder))
}

fn fault(app: &App, folder: &Path) -> Option<Fault> {
    app.trust.fault_within(folder, ".toml")
}

/// What a planner is told of the blueprints that can be called by name. One that cannot be used is left out.
pub(super) fn briefs(app: &App) -> Vec<BlueprintBrief> {
    let listed = Library::new(folders(app)).list().into_iter();
    BlueprintBrief::told(listed.filter_map(|listed| Some(BlueprintBrief::of(&listed.blueprint.ok()?))))
}

/// The blueprint of that name, or in that file.
pub(super) fn find(app: &App, wanted: &str) -> Result<Blueprint, Failure> {
    let path = Path::new(wanted);
    let is_file =
        wanted.contains(std::path::MAIN_SEPARATOR) || path.extension().is_some_and(|end| end == "toml");
    let found = if is_file { library::read(path) } else { Library::new(folders(app)).find(wanted) };
    found.map_err(|error| {
        let help = match &error {
            LibraryError::Unknown { .. } if !left_out(app).is_empty() => {
                "`muster blueprint list` says which folders do not count; MUSTER_TRUST names folders that you trust as a whole"
            }
            LibraryError::Unknown { .. } => {
                "`muster blueprint list` shows them; a file is named with its path"
            }
            LibraryError::Unreadable { .. } => "name a TOML file, or a blueprint of `muster blueprint list`",
            LibraryError::Wrong { .. } => {
                "mend what is named and ask again; `muster blueprint check` looks at it"
            }
        };
        Failure::usage(error).help(help)
    })
}

fn list(app: &App, args: &BlueprintListArgs) -> Result<Exit, Failure> {
    let listed = Library::new(folders(app)).list();
    left_out(app).iter().for_each(|left_out| output::note(left_out));
    output::json_or_line(
        args.json,
        || listed.iter().map(brief).collect::<Vec<Value>>(),
        || render::blueprints::table(&listed),
    )
}

fn brief(listed: &Listed) -> Value {
    let file = listed.file.as_ref().map(|file| file.display().to_string());
    match &listed.blueprint {
        Ok(found) => json!({
            "name": listed.name, "file": file, "version": found.version, "description": found.description,
            "params": blueprint::schema(found),
        }),
        Err(wrong) => json!({ "name": listed.name, "file": file, "wrong": wrong.to_string() }),
    }
}

fn check(app: &App, args: &BlueprintNameArgs) -> Result<Exit, Failure> {
    let found = find(app, &args.blueprint)?;
    // Which specialists there are is known to the fleet alone.
    let specialists = found.steps.iter().flat_map(|step| {
        step.role.iter().chain(step.fallback.iter().filter_map(|other| other.role.as_ref()))
    });
    let specialists = specialists.filter_map(|role| role.trim().to_lowercase().parse::<Role>().ok());
    let roles: Vec<Role> = [Role::Researcher, Role::Worker].into_iter().chain(specialists).collect();
    let limits = &app.settings().limits;
    if let Some(problem) = check_limits(&found, limits, &roles).first() {
        return Err(usage!("{} does not fit the limits of runs: {problem}", args.blueprint)
            .help("set what it needs with --set limits.KEY=VALUE, or in muster.toml"));
    }
    output::json_or_line(
        args.json,
        || json!({ "name": found.name, "version": found.version, "steps": found.steps.len() }),
        || format!("{} {} is in order: {} steps", found.name, found.version, found.steps.len()),
    )
}

fn show(app: &App, args: &BlueprintNameArgs) -> Result<Exit, Failure> {
    let found = find(app, &args.blueprint)?;
    if args.json {
        output::json(&found)?;
    } else {
        output::text(&blueprint::shipped(&args.blueprint).map_or_else(|| write(&found), str::to_owned))?;
    }
    Ok(Exit::Completed)
}

async fn keep(app: &App, args: &BlueprintSaveArgs) -> Result<Exit, Failure> {
    let file = match &args.output {
        Some(file) => file.clone(),
        None => {
            let folder = all_folders(app).next().unwrap_or_else(|| PathBuf::from("blueprints"));
            folder.join(format!("{}.toml", args.name))
        }
    };
    if file.exists() {
        return Err(
            usage!("{} is there already", file.display()).help("choose another name, or remove it first")
        );
    }
    let found = select::reading(app, async |bus| select::wanted(bus, &args.run).await).await?;
    let Saved { blueprint: made, lost } = save(&found, &args.name).map_err(|error| {
        failed!("no blueprint can be made of run {}: {error}", args.run)
            .help("`muster show` tells how the run went; names are lower case letters, digits and _")
    })?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = folder.map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, write(&made)));
    written.map_err(|error| {
        failed!("cannot write {}: {error}", file.display()).help("give --output another file")
    })?;
    if args.json {
        output::json(&json!({ "name": made.name, "file": file, "steps": made.steps.len(), "lost": lost }))?;
    } else {
        for line in &lost {
            output::note!("not kept: {}", figures::one_line(line, 300));
        }
        output::line!(
            "{}: {} steps; put parameters in where runs are to differ, then `muster run --blueprint {}`",
            file.display(),
            made.steps.len(),
            // By its name it is found in the folders of blueprints alone.
            args.output
                .as_ref()
                .map_or(made.name.clone(), |file| figures::quoted(&file.display().to_string()))
        )?;
    }
    Ok(Exit::Completed)
}
