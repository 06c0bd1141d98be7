//! Hosts that are granted are reached by the proxy, and no others.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use muster_sandbox::Sandbox;
use muster_shared::flow::rights::Allowed;
use muster_shared::flow::{Grantor, Rights, TaskRights};
use muster_tools::settings::SandboxSettings;
use muster_tools::{Program, ProgramEnd, ProgramNetwork, ProgramRunner, ToolFailure};
use tokio_util::sync::CancellationToken;

use crate::help::{How, STAGE, python, settings, text};

/// A server that answers every request with the same and counts them.
struct Server {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn new(answer: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, asked) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut request = [0; 4096];
                let length = client.read(&mut request).unwrap_or(0);
                let line =
                    String::from_utf8_lossy(&request[..length]).lines().next().unwrap_or_default().to_owned();
                let body = format!("{line} {}", "y".repeat(answer));
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                let _gone = client.write_all(format!("{head}{body}").as_bytes());
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Says things to the proxy and prints what it answers.
const ASK: &str = "
import os, socket, sys
def proxy():
    host, port = os.environ['HTTP_PROXY'].removeprefix('http://').split(':')
    return socket.create_connection((host, int(port)), 10)
def ask(*parts):
    s = proxy(); answer = b''
    for part in parts:
        s.sendall(part.encode())
        if part.startswith('CONNECT'): answer += s.recv(4096)
    while True:
        try: more = s.recv(65536)
        except OSError: break
        if not more: break
        answer += more
    print(answer.decode()[:300])
";

async fn asking(
    script: &str,
    hosts: &[String],
    rights: TaskRights,
    own: SandboxSettings,
) -> Result<ProgramEnd, ToolFailure> {
    let network = ProgramNetwork::Hosts { hosts: hosts.to_vec(), rights: Arc::new(rights) };
    let program = Program { network, ..python(&format!("{ASK}{script}")) };
    Sandbox::with_stage(own, STAGE).run(program, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_host_that_was_granted_is_reached_in_the_clear_and_by_a_way_through() {
    let server = Server::new(1);
    let port = server.port;
    let script = format!(
        "ask('GET http://127.0.0.1:{port}/page HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
ask('CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n', 'GET /tunnel HTTP/1.1\\r\\n\\r\\n')"
    );
    let end = asking(&script, &[format!("127.0.0.1:{port}")], TaskRights::default(), settings(How::Whole))
        .await
        .unwrap();
    let output = text(&end.output);
    assert!(output.contains("GET /page HTTP/1.1 y") && output.contains("GET /tunnel HTTP/1.1 y"), "{end:?}");
    assert_eq!((server.asked(), end.refused), (2, Vec::new()));
}

#[tokio::test]
async fn hosts_that_were_not_granted_are_not_reached_by_any_way() {
    let server = Server::new(1);
    let port = server.port;
    let only = Rights { hosts: Allowed::read(["example.org"]).unwrap(), ..Rights::default() };
    let narrow = TaskRights::default().narrowed_by(Grantor::Goal, &only);
    let get = |host: &str| format!("ask('GET http://{host}:{port}/ HTTP/1.1\\r\\n\\r\\n')");
    let granted = format!("127.0.0.1:{port}");
    let table = [
        // Another port, another way to write the address, and names that lead to it.
        (get("127.0.0.1"), "127.0.0.1:1".to_owned(), TaskRights::default(), "403"),
        (get("127.1"), "127.1".to_owned(), TaskRights::default(), "403"),
        (get("2130706433"), "2130706433".to_owned(), TaskRights::default(), "403"),
        (get("localhost"), format!("localhost:{port}"), TaskRights::default(), "403"),
        (get("[::ffff:127.0.0.1]"), format!("127.0.0.1:{port}"), TaskRights::default(), "403"),
        // Granted to the code, and not to the task.
        (get("127.0.0.1"), granted.clone(), narrow, "403"),
        // Without the proxy.
        (
            format!(
                "try: socket.create_connection(('127.0.0.1', {port}), 5); print('reached')\nexcept OSError: print('not')"
            ),
            granted.clone(),
            TaskRights::default(),
            "not",
        ),
        (
            format!(
                "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', {port})); print('not')"
            ),
            granted.clone(),
            TaskRights::default(),
            "not",
        ),
        // What is no request, and a second one behind the first.
        ("ask('nonsense\\r\\n\\r\\n')".to_owned(), granted.clone(), TaskRights::default(), "400"),
        (
            format!("ask('GET /{port} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n')"),
            granted.clone(),
            TaskRights::default(),
            "400",
        ),
    ];
    for (script, host, rights, expected) in table {
        let end = asking(&script, &[host], rights, settings(How::Whole)).await.unwrap();
        assert!(text(&end.output).contains(expected), "{script} {end:?}");
        assert_eq!(server.asked(), 0, "{script}");
        assert_eq!(end.refused.len(), usize::from(expected == "403"), "{script} {end:?}");
    }
}

#[tokio::test]
async fn connections_and_bytes_are_counted() {
    let server = Server::new(200_000);
    let port = server.port;
    let get = format!("ask('GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\n\\r\\n')");
    let hosts = [format!("127.0.0.1:{port}")];
    let few = SandboxSettings { connections: 2, ..settings(How::Whole) };
    let end = asking(&format!("for i in range(5): {get}"), &hosts, TaskRights::default(), few).await.unwrap();
    assert_eq!(server.asked(), 2, "{end:?}");
    assert!(end.refused.iter().any(|why| why.contains("too many connections")), "{end:?}");
    let little = SandboxSettings { traffic: 50_000, ..settings(How::Whole) };
    let script = format!(
        "s = proxy(); s.sendall(b'GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\n\\r\\n')
n = 0
while True:
    try: more = s.recv(65536)
    except OSError: break
    if not more: break
    n += len(more)
print(n)"
    );
    let end = asking(&script, &hosts, TaskRights::default(), little).await.unwrap();
    let got: usize = text(&end.output).trim().parse().unwrap();
    assert!(got <= 50_000, "{got}");
    assert!(end.refused.iter().any(|why| why.contains("no more bytes")), "{end:?}");
}

#[tokio::test]
async fn without_namespaces_no_host_is_granted() {
    let server = Server::new(1);
    let hosts = [format!("127.0.0.1:{}", server.port)];
    let refused = asking("", &hosts, TaskRights::default(), settings(How::Plain)).await.unwrap_err();
    assert!(matches!(&refused, ToolFailure::Refused(why) if why.contains("namespaces")), "{refused:?}");
}
