//! A program looked over before it is given to a stage: its command, its files, its hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use muster_shared::flow::rights::HostPattern;
use muster_shared::time::millis;
use muster_tools::workspace::{Workspace, WorkspacePath};
use muster_tools::{Program, ProgramNetwork, ToolFailure};

use crate::paths::{PATH, find_program, may_be_read};
use crate::proxy::Rules;
use crate::wire::{Job, Limits};
use muster_tools::settings::SandboxSettings;

/// Most files that are laid into the folder of a program, and most that are taken out of it. As many as the files
/// of a run.
const MOST_FILES: u32 = 1_000;

/// Files that are read from a workspace at once.
const READ_AT_ONCE: usize = 16;

/// A program that can be given to a stage.
pub(crate) struct Prepared {
    pub(crate) job: Job,
    pub(crate) files: BTreeMap<String, Bytes>,
    pub(crate) rules: Option<Rules>,
    pub(crate) refused: Vec<String>,
}

/// Looks a program over and reads the files that it is given.
pub(crate) async fn prepare(program: &Program, settings: &SandboxSettings) -> Result<Prepared, ToolFailure> {
    let command = command_of(program)?;
    let rules = rules_of(&program.network, settings)?;
    let reads: Vec<_> = settings.reads.iter().chain(&program.reads).cloned().collect();
    for path in &reads {
        may_be_read(path).map_err(ToolFailure::Refused)?;
    }
    let mut refused = Vec::new();
    let files = files_of(program.workspace.as_deref(), &mut refused).await?;
    let limits = program.limits;
    let mut environment =
        BTreeMap::from([("PATH".to_owned(), PATH.join(":")), ("LANG".to_owned(), "C.UTF-8".to_owned())]);
    environment.extend(program.environment.clone());
    let job = Job {
        command,
        environment,
        input: program.input.len() as u64,
        files: u32::try_from(files.len()).unwrap_or(u32::MAX),
        laid: files.values().map(room_of).sum(),
        reads,
        folder: settings.folder.clone().unwrap_or_else(std::env::temp_dir),
        proxied: rules.is_some(),
        limits: Limits {
            time: millis(limits.time),
            cpu: millis(limits.cpu),
            memory: limits.memory,
            processes: limits.processes,
            disk: limits.disk,
        },
        require: settings.require.clone(),
        most_files: MOST_FILES,
    };
    Ok(Prepared { job, files, rules, refused })
}

/// What a file takes, its entry and folder included: disks give out whole blocks.
fn room_of(file: &Bytes) -> u64 {
    const BLOCK: u64 = 4096;
    (file.len() as u64).next_multiple_of(BLOCK).saturating_add(2 * BLOCK)
}

fn command_of(program: &Program) -> Result<Vec<String>, ToolFailure> {
    let name = program.command.first().map_or("", String::as_str);
    let texts = program.command.iter().chain(program.environment.keys()).chain(program.environment.values());
    if texts.into_iter().any(|text| text.contains('\0'))
        || program.environment.keys().any(|name| name.contains('='))
    {
        return Err(ToolFailure::InvalidArguments(
            "a command or its environment has a zero byte in it".to_owned(),
        ));
    }
    let path = find_program(name).ok_or_else(|| {
        ToolFailure::NotFound(format!("there is no program `{name}` on this machine; go on without it"))
    })?;
    may_be_read(&path).map_err(ToolFailure::Refused)?;
    let path = path.to_str().map(str::to_owned);
    let path =
        path.ok_or_else(|| ToolFailure::InvalidArguments(format!("the path of `{name}` is no text")))?;
    Ok(std::iter::once(path).chain(program.command.iter().skip(1).cloned()).collect())
}

fn rules_of(network: &ProgramNetwork, settings: &SandboxSettings) -> Result<Option<Rules>, ToolFailure> {
    match network {
        ProgramNetwork::Nothing => Ok(None),
        ProgramNetwork::Hosts { hosts, rights } => {
            let hosts = hosts.iter().map(|host| HostPattern::read(host)).collect::<Result<Vec<_>, _>>();
            let hosts = hosts.map_err(ToolFailure::InvalidArguments)?;
            let rights = Arc::clone(rights);
            Ok(Some(Rules { hosts, rights, connections: settings.connections, traffic: settings.traffic }))
        }
    }
}

/// The files of a workspace, as many as are let.
async fn files_of(
    workspace: Option<&dyn Workspace>,
    refused: &mut Vec<String>,
) -> Result<BTreeMap<String, Bytes>, ToolFailure> {
    let Some(workspace) = workspace else { return Ok(BTreeMap::new()) };
    let (mut chosen, mut bytes) = (Vec::new(), 0_u64);
    for file in workspace.list().await? {
        bytes = bytes.saturating_add(file.bytes);
        if chosen.len() >= MOST_FILES as usize || bytes > muster_tools::settings::programs::MAX_DISK {
            refused
                .push(format!("`{}` and what follows it in the list was not laid in: too much", file.path));
            break;
        }
        chosen.push(WorkspacePath::parse(&file.path)?);
    }
    let read = futures::stream::iter(chosen).map(|path| async move {
        let bytes = workspace.read_bytes(&path).await?;
        Ok::<_, ToolFailure>((path.as_str().to_owned(), bytes))
    });
    let files: BTreeMap<String, Bytes> = read.buffer_unordered(READ_AT_ONCE).try_collect().await?;
    Ok(files)
}
