//! What calls of tools cost that an agent carries out itself: a plain one, a page that is kept, a program in the sandbox.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::routing::get;
use muster_agents::tools::{Permission, ToolContext, ToolEngine, ToolSettings, standard_registry};
use muster_sandbox::Sandbox;
use muster_support::figures::{Aim, Figure, Measured};
use muster_tools::settings::SandboxSettings;
use muster_tools::settings::{HttpSettings, SearchSettings, WebSettings};
use muster_tools::{Program, ProgramEnd, ProgramLimits, ProgramNetwork, ProgramRunner, ProgramStatus};
use muster_web::{Resolver, WebTools};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::print::median;

/// Plain calls.
const CALLS: usize = 2_000;
/// Calls for a page.
const PAGES: usize = 100;
/// Paragraphs of the page, a hundred bytes each.
const PARAGRAPHS: usize = 1_000;
/// Programs that are run.
const PROGRAMS: usize = 30;
/// A sandbox that is kept ready has started by then, and uses no processor any more.
const QUIET: Duration = Duration::from_millis(50);

pub(crate) fn measure() -> Vec<Figure> {
    // As the program does first of all.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut figures = vec![plain().await];
        figures.push(kept_page().await);
        figures.extend(sandboxed().await);
        figures
    })
}

/// A pure tool of ours, all that the engine does about it included.
async fn plain() -> Figure {
    let registry = Arc::new(standard_registry(&ToolSettings::default()).unwrap());
    let (engine, context) = (ToolEngine::new(Arc::clone(&registry)), ToolContext::new("bench", "1"));
    let tool = Arc::clone(registry.get("calculator").unwrap().tool());
    let arguments = || json!({ "expression": "(1200 * 15%) / 3" });
    let (mut called, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let begun = Instant::now();
        let result = engine.call("calculator", arguments(), &context).await;
        called.push(begun.elapsed());
        assert!(result.is_success(), "{result:?}");
        let begun = Instant::now();
        tool.call(&context, arguments()).await.unwrap();
        bare.push(begun.elapsed());
    }
    Figure::new("a call of the calculator by the engine", Measured::time(median(&mut called)))
        .against("the calculator alone", Measured::time(median(&mut bare)))
        .aiming(Aim::AtMost(0.5))
}

/// Every name is a public one that is found on this machine.
struct Here;

#[async_trait]
impl Resolver for Here {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14))])
    }

    fn reached_at(&self, _: IpAddr) -> IpAddr {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    }
}

/// A page of 100 KB with a thousand links that is kept, beside asking its site for it.
async fn kept_page() -> Figure {
    let listener = tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let paragraph = "<p>Rivers are <a href=/x>long</a>, and so is this page, which is made of many such lines of text.</p>";
    let page = format!("<!doctype html><title>t</title><main>{}</main>", paragraph.repeat(PARAGRAPHS));
    let headers = [(CACHE_CONTROL, "max-age=600"), (CONTENT_TYPE, "text/html")];
    let site = Router::new().route("/", get(move || async move { (headers, page) }));
    let serving = tokio::spawn(async move { axum::serve(listener, site).await });
    let folder = tempfile::tempdir().unwrap();
    let web = WebSettings { ports: vec![port], robots: false, ..WebSettings::default() };
    let tools = muster_web::tools(WebTools {
        web,
        search: SearchSettings::default(),
        http: HttpSettings::default(),
        cache_dir: folder.path().to_owned(),
        reader: None,
        resolver: Arc::new(Here),
    });
    let fetch = tools.into_iter().find(|tool| tool.spec().name == "fetch").unwrap();
    let context = ToolContext::new("bench", "1").granting([Permission::Network]);
    let (mut kept, mut bare) = (Vec::new(), Vec::new());
    let client = reqwest::Client::new();
    for round in 0..=PAGES {
        let begun = Instant::now();
        let given = fetch.call(&context, json!({ "url": format!("http://site.org:{port}/") })).await.unwrap();
        let took = begun.elapsed();
        assert_eq!(given.content.contains("kept"), round > 0, "{}", given.content);
        let begun = Instant::now();
        client.get(format!("http://127.0.0.1:{port}/")).send().await.unwrap().bytes().await.unwrap();
        if round > 0 {
            kept.push(took);
            bare.push(begun.elapsed());
        }
    }
    serving.abort();
    Figure::new("fetch of a kept page of 100 KB, text and links", Measured::time(median(&mut kept)))
        .against("a bare request to its site", Measured::time(median(&mut bare)))
}

/// A program in a sandbox that waited ready, beside the bare one. Nothing where programs cannot be kept in.
async fn sandboxed() -> Vec<Figure> {
    let settings = SandboxSettings { pool: 1, ..SandboxSettings::default() };
    let sandbox = Sandbox::with_stage(settings, env!("CARGO_BIN_EXE_muster"));
    if let Err(reason) = run(&sandbox).await {
        eprintln!("no program is run in the sandbox here: {reason}");
        return Vec::new();
    }
    let (mut warm, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..PROGRAMS {
        while sandbox.waiting() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(QUIET).await;
        let begun = Instant::now();
        run(&sandbox).await.unwrap();
        warm.push(begun.elapsed());
        let begun = Instant::now();
        assert!(std::process::Command::new("/bin/true").status().unwrap().success());
        bare.push(begun.elapsed());
    }
    let (warm, bare) = (median(&mut warm), median(&mut bare));
    vec![
        Figure::new("a program in a sandbox that waits ready (/bin/true)", Measured::time(warm))
            .against("the bare program", Measured::time(bare))
            .aiming(Aim::AtMost(30.0)),
    ]
}

async fn run(sandbox: &Sandbox) -> Result<ProgramEnd, String> {
    let program = Program {
        command: vec!["/bin/true".to_owned()],
        input: bytes::Bytes::new(),
        environment: Default::default(),
        workspace: None,
        reads: Vec::new(),
        network: ProgramNetwork::Nothing,
        limits: ProgramLimits::default(),
    };
    let end = sandbox.run(program, &CancellationToken::new()).await.map_err(|failure| failure.to_string())?;
    assert_eq!(end.status, ProgramStatus::Exited(0), "{end:?}");
    Ok(end)
}
