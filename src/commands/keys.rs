//! `muster keys`: makes the fleet's keys, and credentials with them.

use std::path::{Path, PathBuf};

use muster_bus::credentials::tls::ca_file;
use muster_bus::credentials::{
    CredentialsError, FleetKeys, FleetTls, Holder, HolderKind, Identity, Issued, Place, Unread, identity,
};
use muster_bus::server::reload;
use muster_bus::without_user;
use muster_shared::flow::is_guard_name;
use muster_shared::ids::{AgentId, Role};
use muster_shared::wire::Profile;
use muster_shared::wire::tool_server::{SERVER_NAME_RULE, is_tool_server_name};
use secrecy::ExposeSecret;
use serde_json::json;

use crate::app::{App, new_id, no_fleet, now};
use crate::args::{
    CertificateArgs, IssueArgs, KeysArgs, KeysCommand, KeysContextArgs, RotateArgs, TokenArgs,
};
use crate::exit::{Exit, Failure, failed, usage};
use crate::fleet::supervisor::delete_abandoned_consumers;
use crate::fleet::{own_keys, private};
use crate::output;
use crate::render::{figures, table};
use crate::trust::real;

/// Words that would make a program of such a role, and mean something else.
const RESERVED: [&str; 8] = ["person", "people", "presence", "guard", "host", "guest", "system", "account"];

/// Does what is asked.
pub(super) async fn keys(app: &App, args: &KeysArgs) -> Result<Exit, Failure> {
    let folder = folder(app, args)?;
    match &args.command {
        KeysCommand::Init => {
            let keys = own_keys::make(app, &folder).map_err(wrong)?;
            keys.write_own().map_err(wrong)?;
            output::line!("the keys are in {}: whoever reads them is the fleet's owner", folder.display())?;
        }
        KeysCommand::Issue(asked) => issue(&open(&folder)?, asked)?,
        KeysCommand::Person(asked) => issue(&open(&folder)?, &IssueArgs::from(asked.clone()))?,
        KeysCommand::Token(asked) => token(&open(&folder)?, asked)?,
        KeysCommand::Export => output::line(
            open(&folder)?.server_configuration(&[app.settings().bus.parted()]).map_err(wrong)?.trim_end(),
        )?,
        KeysCommand::Certificate(asked) => certificate(&folder, asked)?,
        KeysCommand::Public => {
            let public = open(&folder)?.public().map_err(wrong)?;
            output::note!("fingerprint: {}", public.fingerprint());
            output::json(&public)?;
        }
        KeysCommand::List { json } => list(&open(&folder)?, *json)?,
        KeysCommand::Revoke { name } => revoke(app, &open(&folder)?, name).await?,
        KeysCommand::Rotate(asked) => rotate(app, &folder, asked)?,
        KeysCommand::Context(asked) => context(app, &open(&folder)?, asked)?,
    }
    Ok(Exit::Completed)
}

fn folder(app: &App, args: &KeysArgs) -> Result<PathBuf, Failure> {
    args.keys.clone().map_or_else(|| app.keys_folder().map_err(Failure::usage), Ok)
}

fn open(folder: &Path) -> Result<FleetKeys, Failure> {
    let found = FleetKeys::open(folder).map_err(wrong)?;
    found.ok_or_else(|| {
        usage!("there are no keys in {}", folder.display()).help(
            "a fleet makes them when it comes up first (`muster up`); `muster keys init` makes them without a fleet",
        )
    })
}

fn wrong(error: CredentialsError) -> Failure {
    Failure::usage(error).help("`muster keys --help` says where keys are, and who may read them")
}

fn issue(keys: &FleetKeys, asked: &IssueArgs) -> Result<(), Failure> {
    let holder = holder(asked)?;
    let until = asked.expires.map(|time| now().after(time));
    match &asked.out {
        None => output::line(keys.issue(&holder, until).map_err(wrong)?.to_file().expose_secret().trim_end()),
        Some(file) => {
            // In the ledger with its file: it is made anew when the keys are.
            let absolute = std::path::absolute(file).map_err(unwritable)?;
            may_write(keys, &absolute, &holder, asked.name.is_some())?;
            keys.issue_to(&absolute, &holder, until).map_err(|error| match error {
                CredentialsError::Name { .. } => wrong(error),
                error => unwritable(error),
            })?;
            output::line!(
                "{} ({}) is let in by {}: set MUSTER_BUS_CREDENTIALS for a process of Muster, NATS_CREDS and \
                 NATS_INBOX_PREFIX={} for a program",
                holder.name(),
                holder.kind(),
                file.display(),
                muster_bus::credentials::rights::inbox(holder.name()),
            )
        }
    }
}

/// Makes a token for somebody who logs in to the dashboard.
fn token(keys: &FleetKeys, asked: &TokenArgs) -> Result<(), Failure> {
    let name = named("", &asked.name)?;
    let until = now().after(asked.expires);
    let token = keys.token(name, asked.role, Some(until)).map_err(wrong)?;
    match &asked.out {
        None => output::line(token.expose_secret()),
        Some(file) => {
            private::write(file, format!("{}\n", token.expose_secret()).as_bytes()).map_err(unwritable)?;
            output::line!(
                "{} logs in to the dashboard as {} by {} until {} (UTC)",
                asked.name,
                asked.role,
                file.display(),
                figures::date(until)
            )
        }
    }
}

/// Refuses to write over what is no credentials of the same holder: a key that is gone is gone for ever.
fn may_write(keys: &FleetKeys, file: &Path, holder: &Holder, is_named: bool) -> Result<(), Failure> {
    if file.parent().is_some_and(|folder| real(folder) == real(keys.folder())) {
        return Err(usage!("{} is where the fleet keeps its own", keys.folder().display())
            .help("name a file elsewhere (--out)"));
    }
    let fits = match identity(file) {
        _ if !file.exists() && !file.is_symlink() => true,
        // Whose they were is not told any more; credentials they were.
        Err(CredentialsError::Expired { .. }) => true,
        Ok(Some(Identity { name, kind })) => {
            kind == holder.kind() && ((kind != HolderKind::Person && !is_named) || name == *holder.name())
        }
        Ok(None) | Err(_) => false,
    };
    match fits {
        true => Ok(()),
        false => {
            Err(usage!("{} is there already, and holds no credentials of {}", file.display(), holder.name())
                .help("name another file (--out), or take this one away first"))
        }
    }
}

/// What was issued and counts.
fn list(keys: &FleetKeys, as_json: bool) -> Result<(), Failure> {
    let (issued, unread) = (keys.issued().map_err(wrong)?, keys.unread().map_err(wrong)?);
    if as_json {
        let all = issued.iter().map(|one| json!(one)).chain(unread.iter().map(|one| json!(one)));
        return output::json(&all.collect::<Vec<_>>());
    }
    let row = |issued: &Issued| {
        let expires = issued.until.map_or_else(|| "-".to_owned(), figures::date);
        let machine = issued.place.as_ref().map_or_else(|| "-".to_owned(), of_machines);
        vec![issued.name.to_string(), issued.kind.to_string(), figures::date(issued.issued), expires, machine]
    };
    let later = |one: &Unread| {
        let expires = one.until.map_or_else(|| "-".to_owned(), figures::date);
        vec![
            one.name.clone(),
            one.kind.clone(),
            "-".to_owned(),
            expires,
            "made by a later version".to_owned(),
        ]
    };
    let rows = issued.iter().map(row).chain(unread.iter().map(later)).collect();
    let heads = ["NAME", "FOR", "ISSUED (UTC)", "EXPIRES", "MACHINE"];
    output::line(table::plain(&heads, rows, &[]).trim_end())
}

/// What credentials have to do with machines that join.
fn of_machines(place: &Place) -> String {
    match place {
        Place::Invitation { roles, uses, left } => {
            format!("lets in {left} of {uses} more, for {}", figures::list(roles))
        }
        Place::Machine { roles, invitation } => {
            format!("joined by {invitation}, for {}", figures::list(roles))
        }
        Place::On { host, .. } => format!("on {host}"),
    }
}

/// Makes a certificate for a server that is not the fleet's own.
fn certificate(folder: &Path, asked: &CertificateArgs) -> Result<(), Failure> {
    // Without keys there is no fleet to be a server of.
    open(folder)?;
    let made = FleetTls::for_server(folder, &asked.names, &asked.out)
        .map_err(|error| Failure::failed(error).help("name a folder that you may write to (--out)"))?;
    output::line!(
        "{} is the certificate of {}, {} its key; clients know it by {} (bus.tls_ca)",
        made.certificate_file().display(),
        asked.names.join(", "),
        made.key_file().display(),
        made.ca_file().display(),
    )
}

/// Throws somebody out: at once where the server is this folder's own.
async fn revoke(app: &App, keys: &FleetKeys, name: &str) -> Result<(), Failure> {
    let whom: AgentId = name
        .parse()
        .map_err(|error| usage!("{name:?}: {error}").help("`muster keys list` shows the names"))?;
    let revoked = keys.revoke(&whom).map_err(wrong)?;
    if revoked == 0 {
        return Err(usage!("no credentials were issued to {name}").help("`muster keys list` shows the names"));
    }
    let is_told = tell_server(app)?;
    if is_told
        && let Some(url) = app.url()
        && let Ok(bus) = app.connect_to(&url, "keys").await
    {
        delete_abandoned_consumers(&bus, keys).await;
    }
    let then = if is_told {
        "the server has cut it off"
    } else {
        "no server runs here: those of your own learn it from `muster keys export`"
    };
    let with = match revoked {
        0 | 1 => String::new(),
        many => format!(", by none of {many} credentials"),
    };
    output::line!("{name} is let in no more{with}; {then}")
}

/// Puts new keys in the place of those that are there. The server is told before any credentials are made by them.
fn rotate(app: &App, folder: &Path, asked: &RotateArgs) -> Result<(), Failure> {
    let keys = open(folder)?;
    if asked.finish {
        let dropped = keys.drop_retired(true).map_err(wrong)?;
        let told = tell_server(app)?;
        return output::line(&match dropped {
            0 => "there are no keys of before".to_owned(),
            _ => format!("credentials of before count no more; {}", told_of(told)),
        });
    }
    let tls = FleetTls::renew(folder).map_err(wrong)?;
    if asked.certificates {
        let Some(tls) = tls else {
            return Err(usage!("there are no certificates in {}", folder.display()).help(
                "a fleet makes them when it comes up encrypted first: `muster up --tls`, or --listen",
            ));
        };
        let told = tell_server(app)?;
        let certificate = tls.certificate_file();
        return output::line!("{} is a new certificate; {}", certificate.display(), told_of(told));
    }
    let until = now().after(asked.grace);
    let keys = FleetKeys::rotate(folder, until).map_err(wrong)?;
    let told = tell_server(app)?;
    let renewed = keys.reissue().map_err(wrong)?;
    let certificates = if tls.is_some() { ", and the certificates are new ones" } else { "" };
    output::line!(
        "new keys vouch from now on{certificates}; {renewed} credentials files of the fleet were made anew. Others count until {} \
         (UTC); {}",
        figures::date(until),
        told_of(told),
    )
}

fn tell_server(app: &App) -> Result<bool, Failure> {
    reload(&app.store_dir()).map_err(Failure::failed)
}

const fn told_of(told: bool) -> &'static str {
    if told {
        "the server was told"
    } else {
        "no server runs here: those of your own learn it from `muster keys export`"
    }
}

fn unwritable(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error).help("name a file in a folder that you may write to (--out)")
}

/// A name that was given at the command line, as `what`.
fn named(what: &str, name: &str) -> Result<AgentId, Failure> {
    name.parse()
        .map_err(|error| usage!("{what}{name:?}: {error}").help("letters, digits, - and _ make a name"))
}

fn holder(asked: &IssueArgs) -> Result<Holder, Failure> {
    let name = |role: &str| match &asked.name {
        None => Ok(new_id(role)),
        Some(name) => named("--name ", name),
    };
    let holder = match (asked.holder.split_once(':'), asked.holder.as_str()) {
        (Some(("person", person)), _) => {
            let name = named("", person)?;
            if asked.name.is_some() {
                return Err(usage!("a person's name stands in person:NAME").help("leave --name out"));
            }
            Holder::Person { name }
        }
        (Some(("guard", guard)), _) => {
            if !is_guard_name(guard) {
                return Err(usage!("{guard:?} is no name of a guard")
                    .help("lower-case letters, digits, - and _ make one"));
            }
            Holder::Guard { guard: guard.to_owned(), id: name(&format!("guard-{guard}"))? }
        }
        (Some(("tools", server)), _) => {
            if !is_tool_server_name(server) {
                return Err(usage!("{server:?} is no name of a tool server")
                    .help(format!("{SERVER_NAME_RULE} make one")));
            }
            Holder::ToolServer { server: server.to_owned(), id: name(&Profile::role_of_tool_server(server))? }
        }
        (Some(("agent", called)), _) => Holder::Agent { role: read_role(called)?, id: name(called)? },
        (_, "operator") => Holder::Operator { name: name("operator")? },
        (_, "observer") => Holder::Observer { name: name("observer")? },
        (_, "orchestrator") => Holder::Orchestrator { id: name("orchestrator")? },
        (_, other) => {
            if RESERVED.contains(&other) {
                return Err(usage!("{other:?} is no role: it is kept for what belongs to a fleet itself")
                    .help("people are person:NAME (or `muster keys person NAME`), guards guard:NAME, tool servers tools:NAME, machines join by `muster invite`"));
            }
            match read_role(other)? {
                role @ Role::Specialist(_) => Holder::Program { role, id: name(other)? },
                role => Holder::Agent { role, id: name(other)? },
            }
        }
    };
    Ok(holder)
}

fn read_role(text: &str) -> Result<Role, Failure> {
    text.parse().map_err(|error| {
        usage!("{text:?} is no role: {error}").help(
            "name operator, person:NAME, observer, orchestrator, or a role such as worker or word_counter",
        )
    })
}

/// Writes credentials of an observer, and the file by which the `nats` command finds them.
fn context(app: &App, keys: &FleetKeys, asked: &KeysContextArgs) -> Result<(), Failure> {
    let KeysContextArgs { name } = asked;
    // Who watches has credentials of his own.
    let url = without_user(&app.url().ok_or_else(no_fleet)?);
    let holder = Holder::Observer { name: named("--name ", name)? };
    let credentials = keys.folder().join(format!("context-{name}.creds"));
    // In the ledger with its file: it is made anew when the keys are.
    keys.issue_to(&credentials, &holder, None).map_err(wrong)?;
    let folder = contexts()?;
    let file = folder.join(format!("{name}.json"));
    let ca = url.starts_with("tls://").then(|| ca_file(keys.folder()).display().to_string());
    let content = json!({
        "description": "Watches a fleet of Muster", "url": url, "creds": credentials, "ca": ca.unwrap_or_default(),
        "inbox_prefix": muster_bus::credentials::rights::inbox(holder.name()),
    });
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| private::write(&file, format!("{content:#}\n").as_bytes()));
    written.map_err(|error| {
        failed!("{}: {error}", file.display()).help("XDG_CONFIG_HOME names another folder")
    })?;
    output::line!("wrote {}: `nats --context {name} sub 'run.>'` watches the fleet", file.display())
}

/// Where the `nats` command keeps contexts.
fn contexts() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    folder
        .map(|folder| folder.join("nats/context"))
        .ok_or_else(|| usage!("no folder for settings is known").help("set HOME or XDG_CONFIG_HOME"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_no_password() {
        assert_eq!(without_user("nats://ann:pass@h:1, tls://t@b:2"), "nats://h:1,tls://b:2");
        assert_eq!((without_user("nats://h:1"), without_user("a:b@h")), ("nats://h:1".into(), "h".into()));
    }

    #[test]
    fn words_of_the_fleet_itself_are_no_roles() {
        let asked =
            |holder: &str| IssueArgs { holder: holder.to_owned(), name: None, expires: None, out: None };
        for word in RESERVED {
            assert!(holder(&asked(word)).is_err(), "{word}");
        }
        for word in ["operator", "observer", "person:ann", "worker", "word_counter", "agent:fact_checker"] {
            assert!(holder(&asked(word)).is_ok(), "{word}");
        }
    }

    /// Each secret that `muster keys` and `muster invite` issue. An additional kind of command or holder does not compile.
    #[test]
    fn issued_secret_is_redacted() {
        let folder = tempfile::tempdir().unwrap();
        let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        let words = [
            "operator",
            "person:ann",
            "observer",
            "orchestrator",
            "worker",
            "word_counter",
            "guard:g",
            "tools:t",
        ];
        let name = || "h".parse().unwrap();
        let asked =
            |holder: &str| IssueArgs { holder: holder.to_owned(), name: None, expires: None, out: None };
        let mut issued: Vec<String> = Vec::new();
        for holder in words.iter().map(|word| holder(&asked(word)).unwrap()) {
            let has_file = |kind: &HolderKind| match kind {
                HolderKind::Operator
                | HolderKind::Person
                | HolderKind::Observer
                | HolderKind::Orchestrator => true,
                HolderKind::Agent(_)
                | HolderKind::Program(_)
                | HolderKind::Guard(_)
                | HolderKind::ToolServer(_) => true,
                HolderKind::Host | HolderKind::Guest | HolderKind::Presence => false,
            };
            assert!(has_file(&holder.kind()));
            let file = keys.issue(&holder, None).unwrap().to_file().expose_secret().to_owned();
            issued.extend(
                file.lines()
                    .filter(|line| line.matches('.').count() == 2 || line.starts_with('S'))
                    .map(str::to_owned),
            );
        }
        assert_eq!(issued.len(), 2 * words.len(), "a JWT and a seed each");
        let token = |role| keys.token(name(), role, None).unwrap().expose_secret().to_owned();
        issued.extend(muster_bus::credentials::DashboardRole::ALL.map(token));
        let until = now().after(std::time::Duration::from_secs(60));
        let invited =
            muster_bus::credentials::Invited { roles: vec!["worker".parse().unwrap()], uses: 1, until };
        let invitation = keys.invite(&invited, vec!["127.0.0.1:4222".to_owned()], None).unwrap();
        issued.push(invitation.to_line().unwrap().expose_secret().to_owned());
        let prints_no_other = |command: &KeysCommand| match command {
            KeysCommand::Init | KeysCommand::Issue(_) | KeysCommand::Person(_) | KeysCommand::Token(_) => {
                true
            }
            KeysCommand::Export
            | KeysCommand::Certificate(_)
            | KeysCommand::Public
            | KeysCommand::List { .. } => true,
            KeysCommand::Revoke { .. } | KeysCommand::Rotate(_) | KeysCommand::Context(_) => true,
        };
        assert!(prints_no_other(&KeysCommand::Init));
        for secret in issued {
            let shown = crate::redaction::redacted(&format!("see {secret} here"));
            assert!(!shown.contains(&secret[..32]) && shown.contains("[redacted]"), "{shown}");
        }
    }
}
