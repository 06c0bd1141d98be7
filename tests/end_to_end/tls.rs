//! Fleets whose bus is encrypted, and keys and certificates that change while a run goes on.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use muster_support::async_nats::ConnectOptions;
use muster_support::fleet::{Fleet, Folder, both, wait_until};
use muster_support::model_server::ModelServer;
use muster_support::workload::{MODEL_CALLS, Speech, script};
use muster_support::{python, way};
use serde_json::Value;

use super::support::{folder, of_kind, with_model};

const LIMIT: Duration = Duration::from_secs(60);

fn run(folder: &Folder) {
    let output = folder.run(&["run", "What is 17.5 % of 2480?", "--quiet"]).unwrap();
    assert!(output.status.success(), "{}\n{}", both(&output), folder.logs());
    assert!(both(&output).contains("434"), "{}", both(&output));
}

fn keys(folder: &Folder, file: &str) -> std::path::PathBuf {
    folder.path().join(".muster/nats/keys").join(file)
}

#[test]
fn an_encrypted_fleet_works_and_its_folder_needs_no_word_more() {
    let fleet = folder().up(&["--tls"]).unwrap();
    let folder = fleet.folder();
    assert!(fleet.url().starts_with("tls://127.0.0.1:"), "{}", fleet.url());
    run(folder);
    for command in [&["ps"][..], &["runs"], &["doctor"], &["show", "last"], &["keys", "list"]] {
        let output = folder.run(command).unwrap();
        assert!(output.status.success(), "{command:?}: {}", both(&output));
    }
    // Nobody is told a key by arguments, environment or logs.
    let secrets: Vec<String> = ["ca.key", "server.key", "operator.nk", "operator.creds"]
        .iter()
        .flat_map(|file| secrets_in(&keys(folder, file)))
        .collect();
    assert!(secrets.len() >= 8, "{secrets:?}");
    let mut shown = folder.logs();
    for (_, pid) in fleet.pids() {
        for what in ["cmdline", "environ"] {
            shown +=
                &String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default());
        }
    }
    assert!(shown.contains("MUSTER_BUS_TLS_CA"));
    for secret in &secrets {
        assert!(!shown.contains(secret.as_str()), "a part of a key is shown");
    }
}

/// Lines of a file of keys that are long enough to be parts of a key.
fn secrets_in(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let is_secret = |line: &&str| {
        line.len() > 30 && !line.contains("-----") && !line.contains(' ') && !line.contains('.')
    };
    text.lines().map(str::trim).filter(is_secret).map(str::to_owned).collect()
}

#[test]
fn a_command_from_elsewhere_names_the_authority_or_is_told_to() {
    let fleet = folder().up(&["--listen", "0.0.0.0"]).unwrap();
    let url = fleet.url();
    let state = fleet.folder().state().unwrap();
    let port = url.rsplit(':').next().unwrap();
    assert_eq!(state["listen"], Value::from(format!("0.0.0.0:{port}")));
    let credentials = keys(fleet.folder(), "operator.creds").display().to_string();
    let elsewhere = folder().with("MUSTER_BUS_CREDENTIALS", &credentials);
    let asked = |more: &[&str]| {
        let output = elsewhere.run(&[&["ps", "--url", &url], more].concat()).unwrap();
        (output.status.code(), both(&output))
    };
    let ca = |file: &Path| format!("bus.tls_ca={}", file.display());
    let (code, said) = asked(&["--set", &ca(&keys(fleet.folder(), "ca.pem"))]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("worker"), "{said}");

    let (code, said) = asked(&[]);
    assert!(code == Some(3) && said.contains("bus.tls_ca") && said.contains("ca.pem"), "{said}");
    let told = both(&elsewhere.run(&["doctor", "--url", &url]).unwrap());
    assert!(told.contains("no encrypted connection") && told.contains("bus.tls_ca"), "{told}");
    let (code, said) = asked(&["--set", &ca(&keys(fleet.folder(), "missing.pem"))]);
    assert!(code == Some(2) && said.contains("missing.pem"), "{said}");
    let other = folder().up(&["--tls"]).unwrap();
    let (code, said) = asked(&["--set", &ca(&keys(other.folder(), "ca.pem"))]);
    assert!(code == Some(3) && said.contains("not of the authority in"), "{said}");
    // A server that does not encrypt, asked by tls://.
    let plain = folder().up(&[]).unwrap();
    let asked = plain.url().replace("nats://", "tls://");
    let output = elsewhere.run(&["ps", "--url", &asked]).unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", both(&output));
    assert!(both(&output).contains("speaks no"), "{}", both(&output));
}

#[test]
fn what_cannot_be_listened_on_is_said() {
    let folder = folder();
    for (listen, wanted) in
        [("1.2.3.4:99999", "port"), ("nats://x", "address"), ("198.51.100.77", "198.51.100.77")]
    {
        let output = folder.run(&["up", "--detach", "--listen", listen]).unwrap();
        let said = both(&output);
        assert!(matches!(output.status.code(), Some(2 | 3)) && said.contains(wanted), "{listen}: {said}");
    }
    let output = folder.run(&["--url", "nats://127.0.0.1:1", "up", "--tls"]).unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(both(&output).contains("bus.url"), "{}", both(&output));
    assert!(folder.state().is_none());
}

#[test]
fn clients_show_certificates_where_the_server_wants_them() {
    let fleet = folder().up(&["--tls", "--set", "server.tls_verify=true"]).unwrap();
    run(fleet.folder());
    let (credentials, ca) = (keys(fleet.folder(), "operator.creds"), keys(fleet.folder(), "ca.pem"));
    let elsewhere = folder()
        .with("MUSTER_BUS_CREDENTIALS", credentials.display().to_string())
        .with("MUSTER_BUS_TLS_CA", ca.display().to_string());
    let output = elsewhere.run(&["ps", "--url", &fleet.url()]).unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", both(&output));
    assert!(both(&output).contains("bus.tls_cert"), "{}", both(&output));
}

/// The examples in Python, by the authority that the supervisor names.
#[test]
fn a_program_of_a_team_works_on_an_encrypted_bus() {
    let Some(python) = python::with_nats().unwrap() else { return };
    let folder = folder();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples/specialist.py");
    std::fs::copy(example, folder.path().join("specialist.py")).unwrap();
    let team = format!(
        "[members.word_counter]\ncommand = [{:?}, \"specialist.py\"]\n",
        python.display().to_string()
    );
    folder.write("team.toml", team).unwrap();
    let fleet = folder.up(&["--listen", "127.0.0.1", "--fleet", "team.toml"]).unwrap();
    let is_there =
        || fleet.folder().output(&["ps", "--json"]).is_ok_and(|listed| listed.contains("word_counter-"));
    wait_until("the program has joined", LIMIT, is_there)
        .unwrap_or_else(|late| panic!("{late}\n{}", fleet.folder().logs()));
}

/// Workload W, whose model takes its time.
struct Scene {
    fleet: Fleet,
    server: ModelServer,
    asker: Child,
}

impl Scene {
    fn begin(up: &[&str]) -> Self {
        let server = ModelServer::start(script(Duration::from_millis(600), Speech::Native)).unwrap();
        let folder = with_model(&server);
        let fleet = folder.up(up).unwrap();
        let mut asker = fleet.folder().command(&[
            "run",
            "Work out the eight sums.",
            "--model",
            "openai/scripted",
            "--json",
            "--set",
            "limits.max_width=8",
        ]);
        let asker = asker.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { fleet, server, asker }
    }

    fn calls(&self, count: usize) {
        let what = format!("{count} calls of the model");
        let late = |late| format!("{late}\n{}", self.fleet.folder().logs());
        wait_until(&what, LIMIT, || self.server.arrived() >= count).map_err(late).unwrap();
    }
}

/// Keys and certificates change in the midst of workload W, and those of before end: it ends as it would have.
#[test]
fn keys_and_certificates_change_while_a_run_goes_on() {
    let scene = Scene::begin(&["--tls"]);
    let folder = scene.fleet.folder();
    let before = folder.path().join("before.creds");
    std::fs::copy(keys(folder, "worker-1.creds"), &before).unwrap();
    let certificate = || std::fs::read(keys(folder, "server.pem")).unwrap();
    let first = certificate();

    scene.calls(6);
    let said = folder.output(&["keys", "rotate", "--grace", "10m"]).unwrap();
    assert!(said.contains("the server was told"), "{said}");
    let second = certificate();
    assert_ne!(second, first);
    scene.calls(14);
    assert!(lets_in(&scene.fleet, &before), "within the time");
    // Everybody who is connected by a key of before is cut off, and comes again by his file.
    folder.output(&["keys", "rotate", "--finish"]).unwrap();
    wait_until("credentials of before count no more", LIMIT, || !lets_in(&scene.fleet, &before)).unwrap();
    assert!(scene.server.arrived() < MODEL_CALLS, "the run goes on");
    scene.calls(22);
    folder.output(&["keys", "rotate", "--certificates"]).unwrap();
    assert_ne!(certificate(), second);

    let Scene { fleet, server, asker } = scene;
    let output = asker.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{}", both(&output), fleet.folder().logs());
    assert_eq!(server.arrived(), MODEL_CALLS, "nothing was asked for twice");
    let trace = fleet.folder().json_lines(&["trace", "last", "--json"]).unwrap();
    assert_eq!(
        of_kind(&trace, "outcome").count(),
        8 + 8 + 2,
        "{:?}",
        trace.iter().map(|e| e["kind"].clone()).collect::<Vec<_>>()
    );
    // Whoever comes now does so as ever.
    let again = fleet.folder().run(&["run", "What is 3 + 4?", "--model", "offline", "--quiet"]).unwrap();
    assert!(again.status.success(), "{}", both(&again));
}

/// The supervisor ends what its time is over by itself.
#[test]
fn keys_of_before_end_by_themselves() {
    let fleet = folder().up(&[]).unwrap();
    let folder = fleet.folder();
    let before = folder.path().join("before.creds");
    std::fs::copy(keys(folder, "worker-1.creds"), &before).unwrap();
    folder.output(&["keys", "rotate", "--grace", "1s"]).unwrap();
    wait_until("credentials of before count no more", LIMIT, || !lets_in(&fleet, &before)).unwrap();
    assert!(lets_in(&fleet, &keys(folder, "worker-1.creds")));
    run(folder);
}

/// Whether the server of a fleet lets somebody in with these credentials.
fn lets_in(fleet: &Fleet, credentials: &Path) -> bool {
    let url = fleet.url();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let options = ConnectOptions::with_credentials_file(credentials).await.unwrap();
        let options = match way::authority(&url) {
            Some(ca) => options.add_root_certificates(ca),
            None => options,
        };
        options.connect(&url).await.is_ok()
    })
}
