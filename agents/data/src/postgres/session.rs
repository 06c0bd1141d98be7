//! One connection to PostgreSQL for one call: it only reads, is bounded by the server too, and leaves nothing behind.

use std::net::IpAddr;

use muster_tools::ToolFailure;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{CancelToken, Client, Config};

use super::guard;
use super::problem;
use super::tls::Tls;
use crate::settings::PostgresSettings;

/// Longest password, in bytes.
const MAX_PASSWORD: usize = 4096;

/// Where a database is, read from its settings once.
#[derive(Clone)]
pub(super) struct Place {
    config: Config,
    /// The hosts with their ports, for the rights of tasks; none of one that is reached by a file.
    pub(super) hosts: Vec<String>,
    settings: PostgresSettings,
}

/// What the server says of itself and of what it has.
pub(super) struct Standing {
    /// The server's clock.
    pub(super) asked_at: String,
    /// How many seconds a standby is behind; nothing of one that takes writes.
    pub(super) behind: Option<f64>,
    /// Whether it is a standby.
    pub(super) is_standby: bool,
}

/// A connection on which transactions only read.
pub(super) struct Session {
    pub(super) client: Client,
    /// What the server says of itself.
    pub(super) standing: Standing,
    cancel: CancelToken,
    tls: Option<Tls>,
    driver: tokio::task::JoinHandle<()>,
    /// Whether the server may still be at work for us.
    pub(super) is_busy: bool,
}

/// A call that is given up is given up on the server too.
impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
        if !self.is_busy {
            return;
        }
        let (cancel, tls) = (self.cancel.clone(), self.tls.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let sent = async {
                    match tls {
                        Some(tls) => cancel.cancel_query(tls).await,
                        None => cancel.cancel_query(tokio_postgres::NoTls).await,
                    }
                };
                // The server's own time limit ends what a lost request does not.
                let _ = tokio::time::timeout(std::time::Duration::from_secs(5), sent).await;
            });
        }
    }
}

impl Place {
    /// Reads where a database is.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub(super) fn read(settings: &PostgresSettings) -> Result<Self, String> {
        let url = settings
            .url
            .replace("sslmode=verify-full", "sslmode=require")
            .replace("sslmode=verify-ca", "sslmode=require");
        // Not told as it came: what is wrong in a URL may be its password.
        let mut config: Config = url.parse().map_err(|_| {
            "`url` is no URL of PostgreSQL such as postgres://reader@db.example.org/sales".to_owned()
        })?;
        if config.get_password().is_some() {
            return Err(
                "`url` has a password in it; put it into a file and name that in `password_file`".to_owned()
            );
        }
        if config.get_hosts().is_empty() {
            return Err("`url` names no host".to_owned());
        }
        if settings.schemas.is_empty() {
            return Err("`schemas` is empty: nothing could be read".to_owned());
        }
        config.ssl_mode(encryption(&url, &config));
        config.application_name("muster").connect_timeout(settings.connect_time);
        Ok(Self { hosts: hosts(&config), config, settings: settings.clone() })
    }

    /// Connects, and bounds what can be done.
    pub(super) async fn open(&self) -> Result<Session, ToolFailure> {
        let opened = tokio::time::timeout(self.settings.connect_time, self.connected()).await;
        opened.map_err(|_| {
            let millis = self.settings.connect_time.as_millis();
            ToolFailure::Unavailable(format!(
                "the database did not answer within {millis} ms; try again later, or go on without it"
            ))
        })?
    }

    async fn connected(&self) -> Result<Session, ToolFailure> {
        let mut config = self.config.clone();
        if let Some(path) = &self.settings.password_file {
            let told = |why: &str| {
                ToolFailure::Failed(format!(
                    "the password of the database cannot be read ({why}); a person has to look at password_file"
                ))
            };
            let password =
                tokio::fs::read_to_string(path).await.map_err(|error| told(&error.kind().to_string()))?;
            if password.len() > MAX_PASSWORD {
                return Err(told("it is too long"));
            }
            config.password(password.trim_end_matches(['\n', '\r']));
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            // The modes are open: whatever is not "never" is encrypted.
            _ => Some(Tls::new(&self.settings).map_err(ToolFailure::Failed)?),
        };
        let (client, driver) = match &tls {
            Some(tls) => {
                let (client, connection) = config
                    .connect(tls.clone())
                    .await
                    .map_err(|error| problem::told(&error, &self.settings))?;
                (client, tokio::spawn(async move { drop(connection.await) }))
            }
            None => {
                let (client, connection) = config
                    .connect(tokio_postgres::NoTls)
                    .await
                    .map_err(|error| problem::told(&error, &self.settings))?;
                (client, tokio::spawn(async move { drop(connection.await) }))
            }
        };
        let cancel = client.cancel_token();
        let standing = Standing { asked_at: String::new(), behind: None, is_standby: false };
        let mut session = Session { client, standing, cancel, tls, driver, is_busy: true };
        session.begin(&self.settings).await?;
        Ok(session)
    }
}

impl Session {
    /// Bounds the session, and refuses a role that could do harm whatever the bounds are.
    async fn begin(&mut self, settings: &PostgresSettings) -> Result<(), ToolFailure> {
        let schemas: Vec<String> = settings.schemas.iter().map(|schema| guard::name(schema)).collect();
        let millis = settings.statement_time.as_millis();
        let bounds = format!(
            "SET default_transaction_read_only = on; SET statement_timeout = {millis}; SET lock_timeout = {millis}; \
             SET idle_in_transaction_session_timeout = {}; SET search_path = {}; SET client_min_messages = error; \
             SET standard_conforming_strings = on; SET intervalstyle = iso_8601; SET datestyle = ISO",
            millis.saturating_mul(3),
            schemas.join(", ")
        );
        let told = |error: tokio_postgres::Error| problem::told(&error, settings);
        self.client.batch_execute(&bounds).await.map_err(told)?;
        let row = self.client.query_one(STANDING, &[]).await.map_err(told)?;
        let is_powerful: bool = row.try_get(0).map_err(told)?;
        if is_powerful && !settings.allow_powerful_role {
            return Err(ToolFailure::Refused(
                "the role of this database could write files or run programs on the server, so that it is not used. A person \
                 has to give the tool a role of its own that only reads (docs/data.md)."
                    .to_owned(),
            ));
        }
        self.standing = Standing {
            asked_at: row.try_get(1).map_err(told)?,
            is_standby: row.try_get(2).map_err(told)?,
            behind: row.try_get(3).map_err(told)?,
        };
        Ok(())
    }
}

/// What the role could do, and how fresh the data are.
const STANDING: &str = "SELECT bool_or(r.rolsuper \
    OR pg_has_role(r.oid, 'pg_read_server_files', 'MEMBER') \
    OR pg_has_role(r.oid, 'pg_write_server_files', 'MEMBER') \
    OR pg_has_role(r.oid, 'pg_execute_server_program', 'MEMBER')), \
    to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), \
    pg_is_in_recovery(), \
    CASE WHEN pg_is_in_recovery() THEN extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8 END \
    FROM pg_catalog.pg_roles r WHERE r.rolname IN (session_user, current_user)";

/// Encrypted, unless the URL says otherwise or the server is on this machine.
fn encryption(url: &str, config: &Config) -> SslMode {
    if config.get_ssl_mode() == SslMode::Disable {
        return SslMode::Disable;
    }
    let is_local = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    if is_local && !url.contains("sslmode=require") { SslMode::Disable } else { SslMode::Require }
}

fn hosts(config: &Config) -> Vec<String> {
    let port = |at: usize| {
        config.get_ports().get(at).or_else(|| config.get_ports().first()).copied().unwrap_or(5432)
    };
    let named = config.get_hosts().iter().enumerate().filter_map(|(at, host)| match host {
        Host::Tcp(name) if name.contains(':') => Some(format!("[{name}]:{}", port(at))),
        Host::Tcp(name) => Some(format!("{name}:{}", port(at))),
        #[cfg(unix)]
        Host::Unix(_) => None,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_url_says_where_and_whether_it_is_encrypted_and_has_no_password() {
        for (url, mode, hosts) in [
            ("postgres://reader@db.example.org/sales", SslMode::Require, vec!["db.example.org:5432"]),
            (
                "postgres://reader@db.example.org:6000/sales?sslmode=prefer",
                SslMode::Require,
                vec!["db.example.org:6000"],
            ),
            (
                "postgres://reader@db.example.org/sales?sslmode=verify-full",
                SslMode::Require,
                vec!["db.example.org:5432"],
            ),
            (
                "postgres://reader@db.example.org/sales?sslmode=disable",
                SslMode::Disable,
                vec!["db.example.org:5432"],
            ),
            ("postgres://reader@127.0.0.1/sales", SslMode::Disable, vec!["127.0.0.1:5432"]),
            ("postgres://reader@localhost/sales?sslmode=require", SslMode::Require, vec!["localhost:5432"]),
            ("host=/run/postgresql user=reader dbname=sales", SslMode::Disable, vec![]),
        ] {
            let place = Place::read(&PostgresSettings { url: url.to_owned(), ..PostgresSettings::default() })
                .unwrap();
            assert_eq!(
                (place.config.get_ssl_mode(), place.hosts),
                (mode, hosts.into_iter().map(str::to_owned).collect()),
                "{url}"
            );
        }
        for (url, said) in [
            ("postgres://reader:hunter2@db/sales", "has a password in it"),
            ("postgres://db:port/sales", "no URL"),
            ("dbname=sales", "names no host"),
            ("", "names no host"),
        ] {
            let told = Place::read(&PostgresSettings { url: url.to_owned(), ..PostgresSettings::default() })
                .err()
                .unwrap();
            assert!(told.contains(said) && !told.contains("hunter2"), "{url}: {told}");
        }
    }
}
