//! `muster ui`: the dashboard, until told to stop.

use std::process::Stdio;

use muster_bus::credentials::DashboardRole;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::app::App;
use crate::args::UiArgs;
use crate::exit::{Exit, Failure, usage};
use crate::output;
use crate::settings::UI_PORT;
use crate::signals::StopSignals;
use crate::ui;

/// Serves the dashboard, and says where it is.
pub(super) async fn ui(app: &App, args: &UiArgs) -> Result<Exit, Failure> {
    let stop = StopSignals::listen()?.into_token();
    let port = args.port.unwrap_or(app.settings().ui.port);
    let listening = ui::listen(app, port, args.port.is_none() && port == UI_PORT).await?;
    let allowed = listening.role().await;
    let role = args.role.unwrap_or(allowed);
    if role > allowed {
        return Err(usage!("your credentials allow the role {allowed}, and no more")
            .help("leave --role out, or ask whoever runs the fleet for other credentials"));
    }
    let address = listening.addresses();
    let port = listening.port();
    let say = move || {
        let (url, token) = address(role);
        tell(args.json, port, &url, &token, role).map(|()| url)
    };
    let url = say()?;
    if !args.json {
        output::note("the address logs in once; Enter prints another one, Ctrl-C ends");
    }
    if args.open {
        open(&url);
    }
    let serving = listening.serve(stop.clone());
    tokio::pin!(serving);
    let mut lines = Some(BufReader::new(tokio::io::stdin()).lines());
    loop {
        tokio::select! {
            () = &mut serving => return Ok(Exit::Completed),
            line = next(&mut lines) => match line {
                Some(_) => drop(say()?),
                // Nobody is there to ask.
                None => lines = None,
            },
        }
    }
}

type Lines = tokio::io::Lines<BufReader<tokio::io::Stdin>>;

/// The next line; for ever where there is none to come.
async fn next(lines: &mut Option<Lines>) -> Option<String> {
    match lines {
        Some(lines) => lines.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

fn tell(as_json: bool, port: u16, url: &str, token: &str, role: DashboardRole) -> Result<(), Failure> {
    if as_json {
        let address = format!("http://127.0.0.1:{port}/");
        // The user requested this secret: it is not redacted.
        let told = json!({ "url": url, "address": address, "port": port, "token": token, "role": role });
        return output::line(&told.to_string());
    }
    output::line(url)
}

/// Has a browser open the address, by whatever opens addresses on this machine.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = std::process::Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        output::note!("no browser can be opened ({program}: {error}): open the address yourself");
    }
}
