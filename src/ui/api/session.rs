//! Logging in and out, and who somebody is.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::json;

use super::super::login;
use super::super::reply::{Problem, Reply, done, json};
use super::super::rights;
use super::super::session::Session;
use super::{Said, Shared};

/// A token that somebody logs in with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogIn {
    token: String,
}

/// Logs somebody in.
pub(crate) async fn login(State(ui): Shared, headers: HeaderMap, Said(asked): Said<LogIn>) -> Reply {
    let (session, cookie) = login::by_token(&ui, &asked.token, &headers).await?;
    let mut answer = json(&json!({ "name": session.person.name, "role": session.person.role }))?;
    let cookie = HeaderValue::from_str(&cookie)
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no cookie can be given"))?;
    answer.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(answer)
}

/// Logs somebody out.
pub(crate) async fn logout(State(ui): Shared, headers: HeaderMap) -> Reply {
    if let Some(cookie) = login::cookie(&headers, ui.port) {
        ui.sessions.end(cookie);
    }
    let mut answer = done()?;
    if let Ok(cookie) = HeaderValue::from_str(&login::to_forget(ui.port)) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(answer)
}

/// Who somebody is, and what he may do.
pub(crate) async fn me(State(ui): Shared, axum::Extension(session): axum::Extension<Session>) -> Reply {
    let person = &session.person;
    let live = ui.app.fleet.live();
    let fleet = live.as_ref().and_then(|state| state.team.clone());
    json(&json!({
        "name": person.name, "role": person.role, "csrf": session.csrf, "can": rights::all(person.role),
        "fleet": fleet, "version": env!("CARGO_PKG_VERSION"), "can_scale": live.is_some_and(|state| state.host.is_none()),
    }))
}
