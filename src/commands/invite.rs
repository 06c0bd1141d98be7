//! `muster invite`: lets other machines join, each by a line of text.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use muster_bus::credentials::{
    Fingerprint, FleetKeys, FleetTls, HolderKind, Invitation, Invited, Issued, MOST_ADDRESSES, Place,
};
use muster_bus::server::{Listen, Machine, reload};
use muster_shared::ids::AgentId;
use muster_shared::text::counted;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::app::{App, no_fleet, now};
use crate::args::InviteArgs;
use crate::exit::{Exit, Failure, failed, usage};
use crate::output;
use crate::render::{figures, table};

/// For how long an invitation counts, at most.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Does what is asked.
pub(super) fn invite(app: &App, args: &InviteArgs) -> Result<Exit, Failure> {
    if app.fleet.live().is_some_and(|state| state.host.is_some()) {
        return Err(usage!("this machine joined a fleet that is elsewhere")
            .help("invite where the fleet's keys are: on the machine of its `muster up`"));
    }
    let found = FleetKeys::open(&app.keys_folder().map_err(Failure::usage)?).map_err(Failure::usage)?;
    let keys = found.ok_or_else(no_fleet)?;
    if args.list {
        list(&keys, args.json)?;
    } else if let Some(name) = &args.withdraw {
        withdraw(app, &keys, name)?;
    } else {
        make(app, &keys, args)?;
    }
    Ok(Exit::Completed)
}

/// Where a fleet is, and by what its server is known.
struct Reach {
    addresses: Vec<String>,
    authority: Option<Fingerprint>,
}

fn make(app: &App, keys: &FleetKeys, args: &InviteArgs) -> Result<(), Failure> {
    if args.expires > LONGEST {
        return Err(usage!("an invitation counts for 30 days at most").help("--expires 1h is the usual"));
    }
    let Reach { addresses, authority } = reach(app, keys, args)?;
    let mut roles = args.roles.clone();
    roles.dedup();
    let until = now().after(args.expires);
    let invited = Invited { roles, uses: args.uses, until };
    let made = keys
        .invite(&invited, addresses, authority)
        .map_err(|error| Failure::usage(error).help("--address takes HOST:PORT, such as 192.168.1.5:4222"))?;
    let line = made.to_line().map_err(Failure::failed)?;
    if args.json {
        // The user requested this secret: it is not redacted.
        return output::line(&format!("{:#}", in_json(&made, &invited, line.expose_secret())));
    }
    output::line(line.expose_secret())?;
    output::note!(
        "on the other machine: muster join LINE; it counts for {} and {}, until {} UTC; {} withdraws it",
        figures::list(&invited.roles),
        counted(usize::from(invited.uses), "machine", "machines"),
        figures::date(until),
        format_args!("`muster invite --withdraw {}`", made.name),
    );
    Ok(())
}

fn in_json(made: &Invitation, invited: &Invited, line: &str) -> Value {
    json!({
        "line": line, "name": made.name, "roles": invited.roles, "uses": invited.uses,
        "expires": invited.until, "addresses": made.addresses,
        "fingerprint": made.authority.map(|authority| authority.to_string()),
    })
}

/// Where another machine reaches the fleet. What it is told and asks crosses no network unless it is encrypted.
fn reach(app: &App, keys: &FleetKeys, args: &InviteArgs) -> Result<Reach, Failure> {
    let state = app.fleet.live().ok_or_else(no_fleet)?;
    if app.settings().server.tls_verify {
        let why = "this fleet wants a certificate of whoever connects, and an invitation holds none";
        return Err(Failure::usage(why).help(
            "unset server.tls_verify, or give the other machine credentials and a certificate by hand",
        ));
    }
    let authority = if state.url.starts_with("tls://") { Some(authority(keys)?) } else { None };
    let unheard = || {
        usage!("this fleet listens on this machine alone ({})", state.url)
            .help("start it with `muster up --listen 0.0.0.0`, which encrypts connections; --address names where others reach it")
    };
    let listen = state.listen.as_deref().and_then(|listen| listen.parse::<Listen>().ok());
    let addresses = match listen {
        _ if !args.addresses.is_empty() => args.addresses.clone(),
        Some(listen) => addresses_of(&listen, &Machine::here(), way_out()),
        None => return Err(unheard()),
    };
    if authority.is_none() && !addresses.iter().all(|address| is_loopback(address)) {
        return Err(unheard());
    }
    Ok(Reach { addresses, authority })
}

/// By what the fleet's own authority is known.
fn authority(keys: &FleetKeys) -> Result<Fingerprint, Failure> {
    let wrong = |why: String| failed!("the fleet's certificates cannot be used: {why}");
    let tls = FleetTls::open(keys.folder()).map_err(|error| wrong(error.to_string()))?;
    let tls = tls.ok_or_else(|| wrong("there are none".to_owned()))?;
    tls.fingerprint().parse().map_err(|error| wrong(format!("{error}")))
}

/// The addresses of a server that listens here, those first by which others most likely reach it.
fn addresses_of(listen: &Listen, machine: &Machine, way_out: Option<IpAddr>) -> Vec<String> {
    let port = listen.port.unwrap_or_default();
    let with_port =
        |host: &str| if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    if !listen.is_everywhere() {
        return vec![with_port(&listen.host)];
    }
    // Whoever listens on all addresses of the fourth version listens on none of the sixth.
    let heard = |address: &&IpAddr| address.is_ipv4() || listen.host.contains(':');
    let mut all: Vec<&IpAddr> = machine.addresses.iter().filter(heard).collect();
    all.sort_by_key(|address| (Some(**address) != way_out, address.is_ipv6()));
    all.truncate(MOST_ADDRESSES);
    if all.is_empty() {
        vec![with_port(&listen.from_here())]
    } else {
        all.into_iter().map(|address| with_port(&address.to_string())).collect()
    }
}

/// The address of this machine on the way to most others, where there is one. Nothing is sent.
fn way_out() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address for documents, which is nobody's.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Whether an address is one of this machine alone.
fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn withdraw(app: &App, keys: &FleetKeys, name: &AgentId) -> Result<(), Failure> {
    let issued = keys.issued().map_err(Failure::failed)?;
    if !issued.iter().any(|one| one.name == *name && one.kind == HolderKind::Guest) {
        return Err(usage!("there is no invitation {name} that counts")
            .help("`muster invite --list` shows them; `muster keys revoke` throws a machine out"));
    }
    keys.revoke(name).map_err(Failure::failed)?;
    reload(&app.store_dir()).map_err(Failure::failed)?;
    output::line!("{name} counts no more; machines that joined by it stay (`muster keys revoke`)")
}

/// Invitations, and the machines that joined.
fn list(keys: &FleetKeys, as_json: bool) -> Result<(), Failure> {
    let issued = keys.issued().map_err(Failure::failed)?;
    let of_machines: Vec<&Issued> =
        issued.iter().filter(|one| matches!(one.kind, HolderKind::Guest | HolderKind::Host)).collect();
    if as_json {
        return output::json(&of_machines);
    }
    if of_machines.is_empty() {
        return output::line("nobody is invited, and no machine joined");
    }
    let row = |one: &&Issued| {
        let (what, roles) = match &one.place {
            Some(Place::Invitation { roles, uses, left }) => {
                (format!("invitation, {left} of {uses} left"), roles)
            }
            Some(Place::Machine { roles, invitation }) => (format!("machine, by {invitation}"), roles),
            Some(Place::On { .. }) | None => return Vec::new(),
        };
        let until = one.until.map_or_else(|| "-".to_owned(), figures::date);
        vec![one.name.to_string(), what, figures::list(roles), figures::date(one.issued), until]
    };
    let rows = of_machines.iter().map(row).filter(|row| !row.is_empty()).collect();
    output::line(table::plain(&["NAME", "WHAT", "ROLES", "SINCE (UTC)", "EXPIRES"], rows, &[]).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_where_the_fleet_is_reached_first() {
        let addresses = ["10.0.0.5", "172.17.0.1", "192.168.1.5", "fd00::5"].map(|one| one.parse().unwrap());
        let machine = Machine { name: None, addresses: addresses.to_vec() };
        let of = |listen: &str, way_out: Option<&str>| {
            addresses_of(&listen.parse().unwrap(), &machine, way_out.map(|one| one.parse().unwrap()))
        };
        assert_eq!(of("192.168.1.5:4222", None), ["192.168.1.5:4222"]);
        assert_eq!(of("mill:4222", None), ["mill:4222"]);
        assert_eq!(of("[fd00::5]:4222", None), ["[fd00::5]:4222"]);
        assert_eq!(
            of("0.0.0.0:1", Some("192.168.1.5")),
            ["192.168.1.5:1", "10.0.0.5:1", "172.17.0.1:1"],
            "none of the sixth version"
        );
        assert_eq!(of("[::]:1", None), ["10.0.0.5:1", "172.17.0.1:1", "192.168.1.5:1", "[fd00::5]:1"]);
        assert_eq!(addresses_of(&"0.0.0.0:1".parse().unwrap(), &Machine::default(), None), ["127.0.0.1:1"]);
    }

    #[test]
    fn addresses_of_this_machine_alone_are_told_from_others() {
        for own in ["127.0.0.1:1", "localhost:4222", "[::1]:4222", "127.8.8.8:1"] {
            assert!(is_loopback(own), "{own}");
        }
        for other in ["0.0.0.0:1", "192.168.1.5:4222", "mill:4222", "[fd00::1]:1", "127.0.0.1.example.org:1"]
        {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
