//! Against a real PostgreSQL, as a child of the test with a folder and a port of its own. It is found by
//! `MUSTER_POSTGRES_BIN`, else under `/usr/lib/postgresql`; where there is none, the tests say so and pass. It refuses to
//! be run by root: as root, it is run as `nobody` by `setpriv`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_tools::{ToolEngine, ToolResult, ToolStatus};

use super::*;
use crate::testing::{Held, context, engine};

const PASSWORD: &str = "correct-horse";

/// A server, and the folder that goes with it.
struct Server {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
    bin: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bin() -> Option<PathBuf> {
    let given = std::env::var_os("MUSTER_POSTGRES_BIN").map(PathBuf::from);
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut installed: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    installed.sort();
    given.into_iter().chain(installed.into_iter().rev()).find(|bin| bin.join("initdb").is_file())
}

fn is_root() -> bool {
    let ids = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ids.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(1) == Some("0"))
}

/// A command that is run as `nobody` where the test is run by root.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig=KILL"]).arg(program);
    command
}

impl Server {
    /// Begins a server, or says why there is none.
    fn begin() -> Option<Self> {
        Self::begin_with(&[])
    }

    /// The same with further settings; what it reads lies in `data`.
    fn begin_with(files: &[(&str, String)]) -> Option<Self> {
        let Some(bin) = bin() else {
            eprintln!("passed over: there is no PostgreSQL here (Debian: apt-get install postgresql)");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("muster-postgres").tempdir().unwrap();
        if is_root() {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
        }
        let data = folder.path().join("data");
        let made = unprivileged(&bin.join("initdb"))
            .args([
                "-D",
                data.to_str().unwrap(),
                "-U",
                "owner",
                "--auth=trust",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C",
            ])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // Whoever reads needs the password; the owner comes by the socket in the folder.
        std::fs::write(
            data.join("pg_hba.conf"),
            "local all owner trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
        )
        .unwrap();
        for (name, text) in files {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(data.join(name), text).unwrap();
            std::fs::set_permissions(data.join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                std::os::unix::fs::chown(data.join(name), Some(65534), Some(65534)).unwrap();
            }
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let sockets = format!("unix_socket_directories={}", folder.path().display());
        let child = unprivileged(&bin.join("postgres"))
            .args(["-D", data.to_str().unwrap(), "-p", &port.to_string(), "-c", &sockets])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "shared_buffers=16MB"])
            .args(["-c", if files.is_empty() { "ssl=off" } else { "ssl=on" }])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let server = Self { child, port, folder, bin };
        server.wait();
        server.fill();
        Some(server)
    }

    fn wait(&self) {
        let begun = Instant::now();
        while !self.sql("SELECT 1").status.success() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// As the owner.
    fn sql(&self, sql: &str) -> std::process::Output {
        Command::new(self.bin.join("psql"))
            .args([
                "-h",
                self.folder.path().to_str().unwrap(),
                "-p",
                &self.port.to_string(),
                "-U",
                "owner",
                "-d",
                "postgres",
            ])
            .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .output()
            .unwrap()
    }

    fn value(&self, sql: &str) -> String {
        let said = self.sql(sql);
        assert!(said.status.success(), "{sql}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }

    fn fill(&self) {
        self.value(&format!(
            "CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE boss LOGIN SUPERUSER PASSWORD '{PASSWORD}';
             CREATE TYPE mood AS ENUM ('ok');
             CREATE TABLE orders (id int PRIMARY KEY, region text, total numeric(10,2), at timestamptz, tags text[], doc jsonb,
                 mood mood DEFAULT 'ok');
             COMMENT ON TABLE orders IS 'what was sold';
             INSERT INTO orders SELECT n, CASE n % 2 WHEN 0 THEN 'north' ELSE 'south' END, n * 1.5, '2026-01-02 03:04:05+00',
                 ARRAY['a', 'b'], '{{\"k\": 1}}' FROM generate_series(1, 1000) n;
             CREATE VIEW totals AS SELECT region, sum(total) AS total FROM orders GROUP BY 1;
             CREATE SCHEMA audit; CREATE TABLE audit.log (who text); INSERT INTO audit.log VALUES ('x');
             CREATE VIEW leak AS SELECT * FROM audit.log;
             CREATE SEQUENCE numbers;
             CREATE FUNCTION harm() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
                 $$ BEGIN INSERT INTO orders (id) VALUES (-1); RETURN 1; END $$;
             CREATE FUNCTION wait_long() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN 1; END $$;
             CREATE FUNCTION unbound() RETURNS int LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM set_config('statement_timeout', '0', false); PERFORM pg_sleep(60); RETURN 1; END $$;
             GRANT USAGE ON SCHEMA public, audit TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public, audit TO reader;
             GRANT ALL ON orders, numbers TO reader; ANALYZE orders"
        ));
    }

    fn settings(&self, user: &str) -> PostgresSettings {
        let password = self.folder.path().join("password");
        std::fs::write(&password, format!("{PASSWORD}\n")).unwrap();
        PostgresSettings {
            url: format!("postgres://{user}@127.0.0.1:{}/postgres", self.port),
            password_file: Some(password),
            statement_time: Duration::from_millis(1_500),
            per_minute: 1_000,
            about: "orders since 2019".to_owned(),
            ..PostgresSettings::default()
        }
    }
}

fn tools(settings: PostgresSettings) -> ToolEngine {
    engine(postgres_tools(&BTreeMap::from([("sales".to_owned(), settings)])).unwrap())
}

async fn ask(engine: &ToolEngine, query: &str) -> ToolResult {
    engine.call("postgres.sales.query", json!({"query": query}), &context(&Held::with(&[]))).await
}

#[tokio::test]
async fn a_database_is_asked_with_citations_and_freshness() {
    let Some(server) = Server::begin() else { return };
    let engine = tools(server.settings("reader"));
    let schema =
        engine.call("postgres.sales.schema", json!({"table": "ord"}), &context(&Held::with(&[]))).await;
    assert_eq!(schema.status, ToolStatus::Success, "{}", schema.content);
    assert!(
        schema.content.starts_with(
            "public.orders (about 1000 rows, what was sold): id integer, region text, total numeric(10,2), "
        ),
        "{}",
        schema.content
    );
    assert!(!schema.content.contains("audit") && !schema.content.contains("totals"), "{}", schema.content);

    let result = ask(&engine, "SELECT region, count(*) AS n, sum(total) AS t, max(at) AS at FROM orders WHERE id <= 4 GROUP BY 1 ORDER BY 1;").await;
    assert_eq!(result.status, ToolStatus::Success, "{}", result.content);
    let table = "| region | n | t | at |\n| --- | --- | --- | --- |\n| north | 2 | 9 | 2026-01-02 03:04:05+00 |\n| south | 2 | 6 | 2026-01-02 03:04:05+00 |\n(2 rows)\nFrom sales:public.orders.\nAsked at 20";
    assert!(
        result.content.replace("9.00", "9").replace("6.00", "6").starts_with(table),
        "{}",
        result.content
    );
    let data = result.data.unwrap();
    assert_eq!(data["citations"], json!(["sales:public.orders"]));
    assert_eq!(data["rows"][0]["n"], json!(2));

    let all = ask(&engine, "SELECT id, tags, doc, mood, 1 AS x, 2 AS x FROM orders ORDER BY id").await;
    assert!(
        all.content.contains("(more than 50, the first 50 are shown")
            || all.content.contains("more than 50 rows"),
        "{}",
        all.content
    );
    assert!(all.content.contains("| 1 | {a,b} | {\"k\": 1} | ok | 1 | 2 |"), "{}", all.content);
    let cut = ask(&engine, "SELECT repeat('x', 20000000) AS x").await;
    assert_eq!(cut.status, ToolStatus::Success, "{}", cut.content);
    let cell = cut.data.unwrap()["rows"][0]["x"].as_str().unwrap().chars().count();
    assert_eq!(cell, 2001, "cut by the server, and marked");
    let view = ask(&engine, "WITH t AS (SELECT * FROM totals) SELECT count(*) FROM t").await;
    assert!(view.content.contains("From sales:public.orders, sales:public.totals."), "{}", view.content);
}

#[tokio::test]
async fn what_does_more_than_read_fails_and_changes_nothing() {
    let Some(server) = Server::begin() else { return };
    let engine = tools(server.settings("reader"));
    for query in [
        "INSERT INTO orders (id) VALUES (0)",
        "UPDATE orders SET total = 0",
        "DELETE FROM orders",
        "TRUNCATE orders",
        "DROP TABLE orders",
        "CREATE TABLE t (a int)",
        "CREATE TEMP TABLE t (a int)",
        "SELECT * INTO t FROM orders",
        "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
        "WITH x AS (INSERT INTO orders (id) VALUES (0) RETURNING id) SELECT * FROM x",
        "SELECT harm()",
        "SELECT * FROM orders FOR UPDATE",
        "COPY orders TO '/tmp/muster-never'",
        "COPY orders TO PROGRAM 'touch /tmp/muster-never'",
        "COPY (SELECT 1) TO STDOUT",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_sleep(60)",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_notify('x', 'y')",
        "SELECT nextval('numbers')",
        "SELECT setval('numbers', 100)",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT query_to_xml('select who from audit.log', true, true, '')",
        "SELECT 1; DROP TABLE orders",
        "SELECT 1); DROP TABLE orders; SELECT (1",
        "COMMIT; DROP TABLE orders",
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "SET TRANSACTION READ WRITE",
        "SET statement_timeout = 0",
        "SET ROLE owner",
        "RESET ALL",
        "SHOW data_directory",
        "LISTEN x",
        "NOTIFY x",
        "LOCK TABLE orders",
        "DO $$ BEGIN PERFORM 1; END $$",
        "PREPARE x AS SELECT 1",
        "DECLARE x CURSOR FOR SELECT 1",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "CALL harm()",
        "VACUUM",
        "SELECT * FROM audit.log",
        "SELECT * FROM leak",
        "SELECT * FROM pg_catalog.pg_stat_activity",
        "SELECT rolpassword FROM pg_authid",
        "SELECT usename FROM pg_user",
        "SELECT $1::int",
        "SELECT FROM orders",
        "SELECT nothing FROM orders",
        "SELECT '\u{0}'",
    ] {
        let result = ask(&engine, query).await;
        assert_ne!(result.status, ToolStatus::Success, "{query}: {}", result.content);
        assert!(!result.content.contains(PASSWORD), "{query}");
    }
    assert_eq!(server.value("SELECT count(*), sum(total) FROM orders"), "1000|750750.00");
    assert_eq!(server.value("SELECT last_value, is_called FROM numbers"), "1|f");
    assert_eq!(server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
    assert!(!Path::new("/tmp/muster-never").exists());
}

/// How many statements of readers the server is at work on.
async fn wait_until_idle(server: &Server) {
    let begun = Instant::now();
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active'";
    while server.value(busy) != "0" {
        assert!(begun.elapsed() < Duration::from_secs(10), "the server is still at work");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_takes_too_long_is_ended_on_the_server_too() {
    let Some(server) = Server::begin() else { return };
    let engine = tools(server.settings("reader"));
    for query in [
        "SELECT wait_long()",
        "SELECT unbound()",
        "SELECT count(*) FROM orders a, orders b, orders c, orders d",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    ] {
        let begun = Instant::now();
        let result = ask(&engine, query).await;
        assert_eq!(result.status, ToolStatus::Error, "{query}: {}", result.content);
        assert!(result.content.contains("stopped after"), "{query}: {}", result.content);
        assert!(begun.elapsed() < Duration::from_secs(8), "{query}: {:?}", begun.elapsed());
        wait_until_idle(&server).await;
    }
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let rows = ask(&engine, endless).await;
    assert!(rows.content.contains("more than 50 rows"), "the first rows come at once: {}", rows.content);
    wait_until_idle(&server).await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_on_the_server() {
    let Some(server) = Server::begin() else { return };
    let settings = PostgresSettings { statement_time: Duration::from_secs(120), ..server.settings("reader") };
    let (engine, ctx) = (tools(settings), context(&Held::with(&[])));
    let call = {
        let (engine, ctx) = (engine.clone(), ctx.clone());
        tokio::spawn(async move {
            engine.call("postgres.sales.query", json!({"query": "SELECT wait_long()"}), &ctx).await
        })
    };
    let begun = Instant::now();
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND wait_event = 'PgSleep'";
    while server.value(busy) != "1" {
        assert!(begun.elapsed() < Duration::from_secs(20), "it did not begin: {}", server.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ctx.cancel.cancel();
    assert_eq!(call.await.unwrap().status, ToolStatus::Refused);
    wait_until_idle(&server).await;
}

#[tokio::test]
async fn roles_rights_and_wrong_settings_are_told() {
    let Some(server) = Server::begin() else { return };
    let boss = ask(&tools(server.settings("boss")), "SELECT 1").await;
    assert_eq!(boss.status, ToolStatus::Refused, "{boss:?}");
    assert!(boss.content.contains("a role of its own"), "{}", boss.content);
    let stranger = ask(&tools(server.settings("stranger")), "SELECT 1").await;
    assert!(stranger.content.contains("refused the connection"), "{}", stranger.content);
    let no_file =
        PostgresSettings { password_file: Some("/nowhere/at/all".into()), ..server.settings("reader") };
    assert!(ask(&tools(no_file), "SELECT 1").await.content.contains("password_file"));
    let encrypted = PostgresSettings {
        url: format!("{}?sslmode=require", server.settings("reader").url),
        ..server.settings("reader")
    };
    let encrypted = ask(&tools(encrypted), "SELECT 1").await;
    assert_eq!(
        (encrypted.status, encrypted.transient),
        (ToolStatus::Error, true),
        "a server without TLS is not talked to: {encrypted:?}"
    );

    let few = PostgresSettings { per_minute: 2, ..server.settings("reader") };
    let engine = tools(few);
    for _ in 0..2 {
        assert!(ask(&engine, "SELECT 1").await.is_success());
    }
    assert!(ask(&engine, "SELECT 1").await.content.contains("2 queries in a minute are the most"));

    let hosts = Rights {
        hosts: muster_shared::flow::rights::Allowed::read(["example.org"]).unwrap(),
        ..Rights::default()
    };
    let rights = Arc::new(TaskRights::default().narrowed_by(Grantor::Goal, &hosts));
    let ctx = context(&Held::with(&[])).within(rights);
    let refused = tools(server.settings("reader"))
        .call("postgres.sales.query", json!({"query": "SELECT 1"}), &ctx)
        .await;
    assert!(refused.denied.is_some(), "{refused:?}");
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

#[tokio::test]
async fn a_connection_is_encrypted_and_the_server_verified() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = pem("CERTIFICATE", made.cert.der());
    let key = pem("PRIVATE KEY", &made.signing_key.serialize_der());
    let Some(server) = Server::begin_with(&[("server.crt", certificate.clone()), ("server.key", key)]) else {
        return;
    };
    let settings = |authority: &str, host: &str| {
        let path = server.folder.path().join("authority.pem");
        std::fs::write(&path, authority).unwrap();
        let url = format!("postgres://reader@{host}:{}/postgres?sslmode=require", server.port);
        PostgresSettings { url, ca_file: Some(path), ..server.settings("reader") }
    };
    let encrypted = "SELECT EXISTS (SELECT FROM pg_stat_get_activity(pg_backend_pid()) WHERE ssl) AS ssl";
    let result = ask(&tools(settings(&certificate, "localhost")), encrypted).await;
    assert_eq!(result.status, ToolStatus::Success, "{}", result.content);
    assert!(result.content.contains("| true |"), "{}", result.content);
    let stranger = ask(&tools(settings(&pem("CERTIFICATE", other.cert.der()), "localhost")), encrypted).await;
    assert!(stranger.transient && stranger.content.contains("cannot be reached"), "{stranger:?}");
    let other_name = ask(&tools(settings(&certificate, "127.0.0.1")), encrypted).await;
    assert!(other_name.transient && other_name.content.contains("cannot be reached"), "{other_name:?}");
    let nobody = ask(&tools(settings("", "localhost")), encrypted).await;
    assert!(nobody.content.contains("no authorities"), "{nobody:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_as_such() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = PostgresSettings {
        url: format!("postgres://reader@127.0.0.1:{port}/x"),
        ..PostgresSettings::default()
    };
    let result = ask(&tools(settings), "SELECT 1").await;
    assert!(result.transient, "{result:?}");
    assert!(result.content.contains("cannot be reached"), "{}", result.content);
    // One that takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let settings = PostgresSettings {
        url: format!("postgres://reader@127.0.0.1:{port}/x"),
        connect_time: Duration::from_millis(300),
        ..PostgresSettings::default()
    };
    let result = ask(&tools(settings), "SELECT 1").await;
    assert!(result.transient && result.content.contains("did not answer within 300 ms"), "{result:?}");
}

#[test]
fn names_of_databases_become_names_of_tools() {
    let settings =
        PostgresSettings { url: "postgres://r@db.example.org/x".to_owned(), ..PostgresSettings::default() };
    let named = |name: &str| postgres_tools(&BTreeMap::from([(name.to_owned(), settings.clone())]));
    let names: Vec<String> = named("sales_eu").unwrap().iter().map(|tool| tool.spec().name).collect();
    assert_eq!(names, ["postgres.sales_eu.query", "postgres.sales_eu.schema"]);
    for wrong in ["", "Sales", "1x", "a.b", "a-b", &"x".repeat(25)] {
        assert!(named(wrong).err().unwrap().contains("a name has"), "{wrong}");
    }
}
