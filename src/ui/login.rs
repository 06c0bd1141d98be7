//! How somebody is let in: by an address that was printed, by a token, or by a proxy that vouches for him.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, StatusCode};
use muster_bus::Signatures;
use muster_bus::credentials::signing::Trust;
use muster_bus::credentials::{
    DashboardRole, FleetKeys, Holder, Token, TokenHolder, identity, is_person_name,
};
use muster_shared::ids::AgentId;
use muster_shared::sync::lock;
use muster_shared::time::Millis;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::ExposeSecret;

use super::door::{is_listed, text};
use super::reply::Problem;
use super::session::{KnownBy, Person, Session, is_same};
use super::state::Ui;
use crate::app::{App, now};
use crate::settings::{ProxySettings, SESSION_TIME};

/// The header by which a proxy proves that it is the one, where a secret is set.
const PROXY: &str = "x-muster-proxy";
/// Longest name that a proxy may give.
const LONGEST_NAME: usize = 200;

/// Who sends a request, and the cookie that he is to keep if he was not known before.
///
/// # Errors
/// When nobody is logged in.
pub(crate) async fn known(
    ui: &Arc<Ui>,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
) -> Result<(Session, Option<String>), Problem> {
    let vouched = peer.and_then(|peer| vouched_for(headers, peer, &ui.settings.proxy));
    let session = cookie(headers, ui.port).and_then(|cookie| ui.sessions.of(cookie, Instant::now()));
    match (vouched, session) {
        (Some(vouched), Some(session)) if vouched.is(&session.person) => Ok((session, None)),
        (Some(vouched), _) => {
            let person = vouched.person(ui)?;
            let (cookie, session) = ui.sessions.begin(person, Instant::now());
            Ok((session, Some(to_keep(ui.port, &cookie, is_encrypted(headers)))))
        }
        // Whoever a proxy vouched for is nobody without it.
        (None, Some(session)) if !matches!(session.person.by, KnownBy::Proxy { .. }) => {
            still_counts(ui, &session).await?;
            Ok((session, None))
        }
        (None, _) => Err(log_in()),
    }
}

fn log_in() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "nobody is logged in here")
        .help("open the address that `muster ui` prints, or log in with a token: `muster keys token NAME` makes one")
}

/// Logs somebody in by a token; gives the cookie that he is to keep.
///
/// # Errors
/// Says why he is not let in.
pub(crate) async fn by_token(
    ui: &Arc<Ui>,
    token: &str,
    headers: &HeaderMap,
) -> Result<(Session, String), Problem> {
    let person = match ui.sessions.open_link(token.trim(), Instant::now()) {
        Some(role) => Ok(Person { name: whoever_started(ui), role, by: KnownBy::Link }),
        None => of_token(ui, token).await,
    };
    // Only wrong log-ins are limited: tokens cannot be guessed, and wrong ones must not lock the owner out.
    let person = person.map_err(|problem| match ui.sessions.fails_too_often(Instant::now()) {
        true => Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many log-ins failed").help("wait a minute"),
        false => problem,
    })?;
    let (cookie, session) = ui.sessions.begin(person, Instant::now());
    Ok((session, to_keep(ui.port, &cookie, is_encrypted(headers))))
}

/// What whoever started the dashboard is called on the bus: what he does is recorded in this name.
fn whoever_started(ui: &Ui) -> AgentId {
    let credentials = ui.app.url().and_then(|url| ui.app.way_to(&url).credentials);
    let by_credentials = credentials.and_then(|file| identity(&file).ok().flatten()).map(|who| who.name);
    let by_bus = || ui.bus().ok().map(|bus| bus.who().clone());
    by_credentials.or_else(by_bus).unwrap_or_else(AgentId::anonymous)
}

async fn of_token(ui: &Arc<Ui>, text: &str) -> Result<Person, Problem> {
    let refused = |why: String| {
        Problem::new(StatusCode::UNAUTHORIZED, format!("the token lets nobody in: {why}"))
            .help("`muster keys token NAME --role viewer` makes one")
    };
    let token: Token =
        text.parse().map_err(|error: muster_bus::credentials::TokenError| refused(error.to_string()))?;
    let trust = trust(ui).ok_or_else(|| refused("the fleet has no keys that are known here".to_owned()))?;
    let TokenHolder { who, role, key, until, signer } =
        token.holder(&trust, now()).map_err(|error| refused(error.to_string()))?;
    let signatures = of_bus(ui).in_name_of(signer);
    Ok(Person { name: who.name, role, by: KnownBy::Token { signatures, key, until } })
}

/// The signatures of the bus, by which others are known; none where it is away.
fn of_bus(ui: &Ui) -> Signatures {
    ui.bus().map(|bus| bus.signatures().clone()).unwrap_or_default()
}

/// The public keys of the fleet, with who was revoked where its keys are here.
fn trust(ui: &Ui) -> Option<Trust> {
    let here = own_keys(&ui.app).and_then(|keys| keys.public().ok());
    here.or_else(|| of_bus(ui).fleet())
}

/// The fleet's keys, where this folder has them and the fleet is its own.
fn own_keys(app: &App) -> Option<FleetKeys> {
    app.keys().filter(|_| app.settings().bus.url.is_none())
}

/// Whether what somebody was let in by counts still.
async fn still_counts(ui: &Arc<Ui>, session: &Session) -> Result<(), Problem> {
    let KnownBy::Token { key, until, .. } = &session.person.by else { return Ok(()) };
    let (key, until) = (key.clone(), *until);
    let ui = Arc::clone(ui);
    // It reads files, and seldom anything that changed.
    let trust = tokio::task::spawn_blocking(move || trust(&ui)).await.ok().flatten();
    let is_revoked = trust.is_some_and(|trust| trust.revoked.contains_key(&key));
    match (until.is_some_and(|until: Millis| until <= now()), is_revoked) {
        (false, false) => Ok(()),
        (true, _) => Err(Problem { error: "the time of your token is over".to_owned(), ..log_in() }),
        (false, true) => Err(Problem { error: "your token was revoked".to_owned(), ..log_in() }),
    }
}

/// Whom a proxy vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProxyUser {
    user: String,
    role: Option<DashboardRole>,
}

impl ProxyUser {
    fn is(&self, person: &Person) -> bool {
        match &person.by {
            KnownBy::Proxy { user, .. } => *user == self.user && self.role == Some(person.role),
            KnownBy::Link | KnownBy::Token { .. } => false,
        }
    }

    fn person(self, ui: &Ui) -> Result<Person, Problem> {
        let Self { user, role } = self;
        let role = role.ok_or_else(|| {
            Problem::forbidden("none of your groups has a role here")
                .help("whoever runs the dashboard gives roles to groups: ui.proxy.roles")
        })?;
        let name = name_of(&user).ok_or_else(|| {
            Problem::forbidden(format!("the proxy's name {user:?} cannot be the name of a person"))
                .help("names of roles and of other holders such as `operator` are reserved; a name has 64 characters at most")
        })?;
        let may_order = matches!(role, DashboardRole::Operator | DashboardRole::Admin);
        let keys = own_keys(&ui.app).filter(|_| may_order);
        let signatures = keys.map(|keys| signatures_for(ui, &keys, &name)).transpose().map_err(|error| {
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("cannot issue credentials to {name}: {error}"),
            )
            .help("`muster doctor` checks the keys of the fleet")
        })?;
        Ok(Person { name, role, by: KnownBy::Proxy { user, signatures } })
    }
}

/// Signs in the name of a proxy user. All sessions of the user share credentials, which outlast a session that starts now.
fn signatures_for(ui: &Ui, keys: &FleetKeys, name: &AgentId) -> Result<Signatures, Box<dyn Error>> {
    let (trust, until) = (keys.public()?, |sessions: u32| now().after(SESSION_TIME * sessions));
    // Locked while it issues: requests at the same time get one token.
    let mut tokens = lock(&ui.tokens);
    let known = tokens.get(name).and_then(|token| token.holder(&trust, until(1)).ok());
    let holder = match known {
        Some(holder) => holder,
        None => {
            let credentials = keys.issue(&Holder::Person { name: name.clone() }, Some(until(2)))?;
            let token: Token = credentials.to_file().expose_secret().parse()?;
            let holder = token.holder(&trust, now())?;
            tokens.insert(name.clone(), token);
            holder
        }
    };
    Ok(of_bus(ui).in_name_of(holder.signer))
}

/// Whom the headers of a proxy name, if they come from one. Of several headers of one name none counts.
fn vouched_for(headers: &HeaderMap, peer: IpAddr, proxy: &ProxySettings) -> Option<ProxyUser> {
    if !is_listed(peer, &proxy.addresses) {
        return None;
    }
    if let Some(secret) = &proxy.secret
        && !is_same(text(headers, PROXY)?, secret.expose_secret())
    {
        return None;
    }
    let user = the_only(headers, &proxy.user)?.trim();
    if user.is_empty() || user.len() > LONGEST_NAME {
        return None;
    }
    let groups = the_only(headers, &proxy.groups).unwrap_or_default();
    let role = groups.split(',').filter_map(|group| proxy.roles.get(group.trim()).copied()).max();
    Some(ProxyUser { user: user.to_owned(), role })
}

fn the_only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let only = all.next()?;
    all.next().is_none().then(|| only.to_str().ok())?
}

/// Name on the bus of a proxy user, in which other characters than letters, digits and `-` are `_` and their code:
/// `ann@example.org` is `ann_40example_2Eorg`. Different users have different names. `None` if the name is too long, or
/// reserved for another holder.
fn name_of(user: &str) -> Option<AgentId> {
    const OTHERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-');
    utf8_percent_encode(user, OTHERS).to_string().replace('%', "_").parse().ok().filter(is_person_name)
}

/// What the cookie is called. Browsers give cookies to all ports of a host: each dashboard has one of its own.
fn cookie_name(port: u16) -> String {
    format!("muster_ui_{port}")
}

/// The cookie of a request.
pub(crate) fn cookie(headers: &HeaderMap, port: u16) -> Option<&str> {
    let name = cookie_name(port);
    let all = headers.get_all("cookie").iter().filter_map(|one| one.to_str().ok());
    let mut pairs = all.flat_map(|one| one.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

fn to_keep(port: u16, cookie: &str, is_encrypted: bool) -> String {
    let secure = if is_encrypted { "; Secure" } else { "" };
    format!("{}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}", cookie_name(port))
}

/// The cookie that takes the place of one that counts no more.
pub(crate) fn to_forget(port: u16) -> String {
    format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", cookie_name(port))
}

/// Whether the browser speaks to a proxy by TLS. Who lies about it harms himself.
fn is_encrypted(headers: &HeaderMap) -> bool {
    text(headers, "x-forwarded-proto").is_some_and(|proto| proto.eq_ignore_ascii_case("https"))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn proxy() -> ProxySettings {
        let roles = [("team".to_owned(), DashboardRole::Operator), ("all".to_owned(), DashboardRole::Viewer)];
        ProxySettings {
            addresses: vec!["127.0.0.1".to_owned()],
            roles: roles.into(),
            ..ProxySettings::default()
        }
    }

    #[test]
    fn a_proxy_vouches_from_its_address_alone_and_the_best_group_counts() {
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        let of = |all: &[(&str, &str)]| vouched_for(&headers(all), here, &proxy());
        let ann = |role| Some(ProxyUser { user: "ann@example.org".to_owned(), role });
        let user = ("x-forwarded-user", "ann@example.org");
        assert_eq!(of(&[user, ("x-forwarded-groups", "all, team")]), ann(Some(DashboardRole::Operator)));
        assert_eq!(of(&[user, ("x-forwarded-groups", "all")]), ann(Some(DashboardRole::Viewer)));
        assert_eq!(of(&[user, ("x-forwarded-groups", "others")]), ann(None));
        assert_eq!(of(&[user]), ann(None));
        assert_eq!(of(&[("x-forwarded-groups", "team")]), None);
        assert_eq!(of(&[("x-forwarded-user", " ")]), None);
        assert_eq!(of(&[user, ("x-forwarded-user", "root")]), None, "a header that came with the request");
        let other: IpAddr = "127.0.0.2".parse().unwrap();
        let all = headers(&[user, ("x-forwarded-groups", "team")]);
        assert_eq!(vouched_for(&all, other, &proxy()), None);
        assert_eq!(vouched_for(&all, here, &ProxySettings::default()), None, "there is no proxy");
        let secret = ProxySettings { secret: Some("hush-hush".to_owned().into()), ..proxy() };
        for (sent, counts) in [(None, false), (Some("hush"), false), (Some("hush-hush"), true)] {
            let all: Vec<_> = [user].into_iter().chain(sent.map(|sent| (PROXY, sent))).collect();
            assert_eq!(vouched_for(&headers(&all), here, &secret).is_some(), counts, "{sent:?}");
        }
    }

    #[test]
    fn cookies_are_told_apart_by_the_port() {
        let all = headers(&[
            ("cookie", "a=b; muster_ui_7177=one;muster_ui_7178=two"),
            ("cookie", "muster_ui_7179=three"),
        ]);
        let of = |port| cookie(&all, port);
        assert_eq!([of(7177), of(7178), of(7179), of(7180)], [Some("one"), Some("two"), Some("three"), None]);
        let kept = to_keep(7177, "x", true);
        for part in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(kept.contains(part), "{kept}");
        }
        assert!(!to_keep(7177, "x", false).contains("Secure"));
    }

    #[test]
    fn proxy_user_has_an_own_name_that_belongs_to_no_other_holder() {
        let names = [
            ("ann", Some("ann")),
            ("ann-smith_2", Some("ann-smith_5F2")),
            ("ann@example.org", Some("ann_40example_2Eorg")),
            ("ann_40example_2Eorg", Some("ann_5F40example_5F2Eorg")),
            ("Operator", None),
            ("worker", None),
            (&"a.".repeat(17), None),
        ];
        for (user, name) in names {
            assert_eq!(name_of(user).as_ref().map(AgentId::as_str), name, "{user}");
        }
    }

    proptest::proptest! {
        #[test]
        fn different_proxy_users_have_different_names(one in "[a5F@_.]{1,9}", other in "[a5F@_.]{1,9}") {
            proptest::prop_assert_eq!(one == other, name_of(&one) == name_of(&other));
        }
    }
}
