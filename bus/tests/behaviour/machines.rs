//! Machines that join: who is connected to by a fingerprint, what is asked and answered.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use muster_bus::credentials::{
    Credentials, Equipping, Fingerprint, FleetKeys, FleetTls, Invitation, Invited, Joining, OwnKey,
};
use muster_bus::hosts::{Answer, Asking, HostQuestion, JoinAnswer, JoinQuestion, StartAnswer, StartQuestion};
use muster_bus::server::{LocalServer, ServerSettings};
use muster_bus::{Asker, Bus, BusError, BusSettings, Reply};
use muster_shared::time::Millis;
use secrecy::ExposeSecret;
use tempfile::TempDir;

use crate::fixture::{SOON, agent, server_settings, settings};

/// An encrypted server, an invitation to it as it is after its line, and the folder of whoever holds it.
struct Scene {
    server: LocalServer,
    invited: Invitation,
    folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = ServerSettings { tls: true, ..server_settings(folder.path(), 0) };
        let server = LocalServer::start(&settings).await.unwrap();
        let print: Fingerprint = server.tls().unwrap().fingerprint().parse().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let until = Millis(u64::try_from(now).unwrap() + 3_600_000);
        let invited = Invited { roles: vec!["worker".parse().unwrap()], uses: 1, until };
        let address = format!("127.0.0.1:{}", server.port());
        let made = server.keys().invite(&invited, vec![address], Some(print)).unwrap();
        let line = made.to_line().unwrap();
        let invited = Invitation::from_line(line.expose_secret()).unwrap();
        Self { server, invited, folder }
    }

    /// How somebody connects by credentials, and by nothing else that he knows.
    fn way(&self, name: &str, credentials: &Credentials) -> BusSettings {
        let file = self.folder.path().join(name);
        credentials.write(&file).unwrap();
        BusSettings { url: self.invited.urls().pop(), credentials: Some(file), ..BusSettings::default() }
    }

    async fn guest(&self, authority: Option<Fingerprint>) -> Result<Asker, BusError> {
        Asker::connect(&self.way("guest.creds", self.invited.credentials()), authority).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_known_by_the_fingerprint_of_its_authority_and_by_no_other() {
    let scene = Scene::new().await;
    let authority = scene.invited.authority.unwrap();
    let asker = scene.guest(Some(authority)).await.unwrap();
    let ca = std::fs::read_to_string(scene.server.tls().unwrap().ca_file()).unwrap();
    let plain = |text: &str| text.lines().filter(|line| !line.starts_with('-')).collect::<String>();
    assert_eq!(plain(&asker.authority().unwrap()), plain(&ca));

    // What is kept of it does for the next connection.
    let kept = scene.folder.path().join("kept.pem");
    std::fs::write(&kept, asker.authority().unwrap()).unwrap();
    let way = scene.way("guest.creds", scene.invited.credentials());
    Asker::connect(&BusSettings { tls_ca: Some(kept), ..way }, None).await.unwrap();

    let other = FleetKeys::open_or_make(&scene.folder.path().join("other")).unwrap();
    let (other, _) = FleetTls::open_or_make(other.folder(), &["127.0.0.1".to_owned()]).unwrap();
    let mut changed = authority;
    changed.0[31] ^= 1;
    for (wrong, what) in [
        (Some(changed), "another fingerprint"),
        (Some(other.fingerprint().parse().unwrap()), "another fleet's"),
        (None, "no authority that the system knows"),
    ] {
        let refused = scene.guest(wrong).await.unwrap_err();
        assert!(matches!(refused, BusError::Tls { .. }), "{what}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_is_let_in_and_asks_for_its_processes() {
    let scene = Scene::new().await;
    let keys = Arc::clone(scene.server.keys());
    let guest = scene.guest(scene.invited.authority).await.unwrap();
    let asking = Asking::Join(scene.invited.name.clone());
    let machine = OwnKey::new();
    let question = JoinQuestion { key: machine.public(), machine: "mill".into(), version: "1".into() };
    let ask = async || guest.ask::<_, Answer<JoinAnswer>>(&asking, &question, SOON).await.unwrap();
    assert!(matches!(ask().await, Reply::Nobody), "nobody supervises the fleet yet");

    let owner = BusSettings { credentials: Some(keys.operator_file()), ..settings() }.at(&scene.server);
    let bus = Bus::connect(&owner, &agent("tester"), Arc::default()).await.unwrap();
    let door = bus.hosts();
    let mut questions = door.serve().await.unwrap();
    tokio::spawn(async move {
        while let Some(question) = questions.next().await {
            match &question.asking {
                Asking::Join(invitation) => {
                    let asked: JoinQuestion = question.content().unwrap();
                    let joining = Joining { invitation, key: &asked.key, machine: &asked.machine, here: "" };
                    let answer = match keys.let_join(&joining).unwrap() {
                        Ok((joined, jwt)) => Answer::Granted(JoinAnswer {
                            host: joined.host,
                            roles: joined.roles,
                            jwt,
                            settings: [("bus.ack_wait".to_owned(), "5s".to_owned())].into(),
                            version: "1".to_owned(),
                        }),
                        Err(refusal) => Answer::Refused(refusal.to_string()),
                    };
                    door.answer(&question, &answer).await.unwrap();
                }
                Asking::Start(host) => {
                    let HostQuestion::Start(asked) = question.content().unwrap() else { panic!() };
                    let StartQuestion { key, role, member } = &asked;
                    let equipping = Equipping { host, key, role, member };
                    let (id, jwt) =
                        keys.let_start(&equipping, "worker-0000abcd".parse().unwrap()).unwrap().unwrap();
                    let fleet = Some(keys.trust().unwrap());
                    door.answer(&question, &Answer::Granted(StartAnswer { id, jwt, fleet })).await.unwrap();
                }
            }
        }
    });
    // The subscription is on its way.
    let answer = loop {
        match ask().await {
            Reply::Answered(answer) => break answer,
            Reply::Nobody | Reply::Silence => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let Answer::Granted(JoinAnswer { host, jwt, settings, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!((host.as_str(), settings["bus.ack_wait"].as_str()), ("mill", "5s"));

    let way = scene.way("host.creds", &Credentials::of_own(&machine, jwt, None).unwrap());
    let asker = Asker::connect(&way, scene.invited.authority).await.unwrap();
    assert_eq!(asker.who(), &host);
    let process = OwnKey::new();
    let question = HostQuestion::Start(StartQuestion {
        key: process.public(),
        role: "worker".parse().unwrap(),
        member: "worker-1".parse().unwrap(),
    });
    let reply = asker.ask::<_, Answer<StartAnswer>>(&Asking::Start(host.clone()), &question, SOON).await;
    let Ok(Reply::Answered(Answer::Granted(StartAnswer { id, jwt, fleet }))) = reply else {
        panic!("{reply:?}")
    };
    let ca = Some(scene.server.tls().unwrap().ca_file());
    let way = scene.way("worker.creds", &Credentials::of_own(&process, jwt, fleet).unwrap());
    let worker = BusSettings { tls_ca: ca, ..way };
    let worker = Bus::connect(&worker, &"x".parse().unwrap(), Arc::default()).await.unwrap();
    assert_eq!(worker.who(), &id);

    // In another's name nothing is asked: the server denies it, and the connection is of no use any more.
    let others = Asking::Start("other".parse().unwrap());
    let reply = asker.ask::<_, Answer<StartAnswer>>(&others, &question, SOON).await;
    assert!(matches!(reply, Err(BusError::Denied { .. })), "{reply:?}");

    // Thrown out with all that it was given.
    assert_eq!(scene.server.keys().revoke(&host).unwrap(), 2);
    muster_bus::server::reload(&scene.folder.path().join("nats")).unwrap();
    let ended = tokio::time::timeout(SOON, worker.failed()).await.expect("its process is cut off");
    assert!(matches!(ended, BusError::Unauthorized { .. }), "{ended}");
}
