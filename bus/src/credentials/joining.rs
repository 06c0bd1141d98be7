//! Who joins from another machine, and what for: what follows from the ledger. Pure.
//!
//! Keys are made where they are used: who asks sends a public key and gets a statement about it. What is secret of
//! credentials never crosses the bus.

use muster_shared::ids::{AgentId, Role};
use muster_shared::time::Millis;
use nkeys::{KeyPair, KeyPairType};

use super::holder::HolderKind;
use super::ledger::{Books, Issued, Place};

/// Credentials that a machine's processes have at once, at most.
pub const MOST_OF_A_HOST: usize = 512;
/// Longest name that is made of a machine's own.
const MOST_OF_A_NAME: usize = 40;
/// What a machine is called that says nothing of use.
const NAMELESS: &str = "host";

/// Why somebody is not given what he asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The invitation is not there any more.
    #[error("this invitation counts no more: it ended or was withdrawn")]
    NoInvitation,
    /// As many machines joined by it as may.
    #[error("this invitation is used up: ask for another one (`muster invite`)")]
    UsedUp,
    /// The machine is not one of the fleet's.
    #[error("this machine is no part of the fleet any more: it was thrown out")]
    NotJoined,
    /// It was not invited for that.
    #[error("this machine may start {} only, and not {role}", names(allowed))]
    Role {
        /// What it asked for.
        role: String,
        /// What it may start.
        allowed: Vec<Role>,
    },
    /// It has very many already.
    #[error("this machine has {MOST_OF_A_HOST} processes already")]
    TooMany,
    /// The key is no user's, or somebody else's.
    #[error("the key is of no use: {0}")]
    Key(&'static str),
}

fn names(roles: &[Role]) -> String {
    roles.iter().map(Role::to_string).collect::<Vec<_>>().join(", ")
}

/// What somebody asks who holds an invitation.
#[derive(Debug, Clone, Copy)]
pub struct Joining<'a> {
    /// The invitation.
    pub invitation: &'a AgentId,
    /// The public key of the machine.
    pub key: &'a str,
    /// What the machine is called by itself.
    pub machine: &'a str,
    /// What the fleet's own machine is called: no other one is called so.
    pub here: &'a str,
}

/// A machine that joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// What it is called here.
    pub host: AgentId,
    /// Of which roles it may start agents.
    pub roles: Vec<Role>,
}

/// What a machine asks for one of its processes.
#[derive(Debug, Clone, Copy)]
pub struct Equipping<'a> {
    /// The machine.
    pub host: &'a AgentId,
    /// The public key of the process.
    pub key: &'a str,
    /// The role of the process.
    pub role: &'a Role,
    /// What the process is called there.
    pub member: &'a AgentId,
}

/// Lets a machine in by an invitation. Whoever asks again with the same key is told the same again: the answer may have been
/// lost.
pub(super) fn join(books: &mut Books, asked: &Joining<'_>, now: Millis) -> Result<Joined, Refusal> {
    user_key(asked.key)?;
    if let Some(before) = known(books, asked.key)? {
        return match &before.place {
            Some(Place::Machine { roles, invitation }) if invitation == asked.invitation => {
                Ok(Joined { host: before.name.clone(), roles: roles.clone() })
            }
            Some(_) | None => Err(Refusal::Key("it is somebody else's already")),
        };
    }
    let host = free_name(books, asked.machine, asked.here);
    let is_meant = |one: &&mut Issued| one.name == *asked.invitation && one.kind == HolderKind::Guest;
    let invitation = books.issued.iter_mut().find(is_meant).ok_or(Refusal::NoInvitation)?;
    let Some(Place::Invitation { roles, left, .. }) = &mut invitation.place else {
        return Err(Refusal::NoInvitation);
    };
    *left = left.checked_sub(1).ok_or(Refusal::UsedUp)?;
    let roles = roles.clone();
    let place = Place::Machine { roles: roles.clone(), invitation: asked.invitation.clone() };
    books.issued.push(issued(&host, HolderKind::Host, asked.key, now, place));
    Ok(Joined { host, roles })
}

/// Lets a process of a machine in, in place of the one of that name before it; says what it is called on the bus. `name` is what it
/// is called where it is a new one.
pub(super) fn equip(
    books: &mut Books,
    asked: &Equipping<'_>,
    name: AgentId,
    now: Millis,
) -> Result<AgentId, Refusal> {
    user_key(asked.key)?;
    let host = books.of(asked.host, &HolderKind::Host).ok_or(Refusal::NotJoined)?;
    let Some(Place::Machine { roles, .. }) = &host.place else { return Err(Refusal::NotJoined) };
    if !roles.contains(asked.role) {
        return Err(Refusal::Role { role: asked.role.to_string(), allowed: roles.clone() });
    }
    let (kind, place) = (
        HolderKind::Agent(asked.role.clone()),
        Place::On { host: asked.host.clone(), member: asked.member.clone() },
    );
    if let Some(before) = known(books, asked.key)? {
        let is_same = before.kind == kind && before.place.as_ref() == Some(&place);
        return is_same.then(|| before.name.clone()).ok_or(Refusal::Key("it is somebody else's already"));
    }
    // What the process had before counts no more: a machine that is thrown out has nothing that nobody knows of.
    books.revoke(now, |old| old.place.as_ref() == Some(&place));
    if books.issued.iter().filter(|one| one.host() == Some(asked.host)).count() >= MOST_OF_A_HOST {
        return Err(Refusal::TooMany);
    }
    books.issued.push(issued(&name, kind, asked.key, now, place));
    Ok(name)
}

/// Whether a machine is to be vouched for again: it is one of the fleet's, and this is its key.
pub(super) fn renew(books: &Books, host: &AgentId, key: &str) -> Result<(), Refusal> {
    let found = books.of(host, &HolderKind::Host).filter(|one| one.key == key);
    found.map(|_| ()).ok_or(Refusal::NotJoined)
}

fn issued(name: &AgentId, kind: HolderKind, key: &str, now: Millis, place: Place) -> Issued {
    let (name, key, place) = (name.clone(), key.to_owned(), Some(place));
    Issued { name, kind, key, issued: now, until: None, file: None, place }
}

/// Whose a key is.
fn known<'a>(books: &'a Books, key: &str) -> Result<Option<&'a Issued>, Refusal> {
    if books.revoked.contains_key(key) {
        return Err(Refusal::Key("it was thrown out"));
    }
    Ok(books.issued.iter().find(|one| one.key == key))
}

/// Refuses what is no public key of a user.
fn user_key(key: &str) -> Result<(), Refusal> {
    let of_user = |pair: KeyPair| pair.key_pair_type() == KeyPairType::User;
    if let Ok(true) = KeyPair::from_public_key(key).map(of_user) {
        Ok(())
    } else {
        Err(Refusal::Key("it is no public key of a user"))
    }
}

/// What a machine is called by itself, as far as a name is made of it.
fn plain_name(machine: &str) -> String {
    let machine = machine.split('.').next().unwrap_or_default();
    let letters = machine.chars().map(|letter| letter.to_ascii_lowercase());
    let plain = letters.filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    plain.take(MOST_OF_A_NAME).collect()
}

/// A name that nobody has, made of what a machine is called by itself.
fn free_name(books: &Books, machine: &str, here: &str) -> AgentId {
    let (plain, here) = (plain_name(machine), plain_name(here));
    let plain = if plain.is_empty() { NAMELESS.to_owned() } else { plain };
    let numbered = (2_u32..).map(|n| format!("{plain}-{n}"));
    let taken = |name: &AgentId| name.as_str() == here || books.issued.iter().any(|one| one.name == *name);
    let mut names = std::iter::once(plain.clone()).chain(numbered).filter_map(|name| name.parse().ok());
    names.find(|name| !taken(name)).unwrap_or_else(AgentId::anonymous)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(5_000);

    fn key() -> String {
        KeyPair::new_user().public_key()
    }

    fn id(name: &str) -> AgentId {
        name.parse().unwrap()
    }

    fn role(name: &str) -> Role {
        name.parse().unwrap()
    }

    /// A fleet with an invitation for workers.
    fn invited(uses: u16) -> Books {
        let place = Place::Invitation { roles: vec![role("worker")], uses, left: uses };
        let guest = Issued {
            until: Some(Millis(9_000)),
            ..issued(&id("guest-1"), HolderKind::Guest, &key(), NOW, place)
        };
        Books { issued: vec![guest], ..Books::default() }
    }

    fn ask(books: &mut Books, key: &str, machine: &str) -> Result<AgentId, Refusal> {
        let asked = Joining { invitation: &id("guest-1"), key, machine, here: "Own.example.org" };
        join(books, &asked, NOW).map(|joined| joined.host)
    }

    fn start(books: &mut Books, host: &str, key: &str, role: &str, member: &str) -> Result<AgentId, Refusal> {
        let (host, role, member) = (id(host), self::role(role), id(member));
        let new = id(&format!("{role}-{}", books.issued.len() + books.revoked.len()));
        equip(books, &Equipping { host: &host, key, role: &role, member: &member }, new, NOW)
    }

    #[test]
    fn an_invitation_is_used_as_often_as_it_says() {
        let mut books = invited(2);
        let (one, two) = (key(), key());
        assert_eq!(ask(&mut books, &one, "Mill.example.org").unwrap(), id("mill"));
        assert_eq!(ask(&mut books, &two, "mill").unwrap(), id("mill-2"));
        assert_eq!(ask(&mut books, &key(), "mill"), Err(Refusal::UsedUp));
        assert_eq!(ask(&mut books, &one, "other").unwrap(), id("mill"), "the answer was lost");
        assert_eq!(books.issued.len(), 3);
        assert_eq!(ask(&mut invited(1), &one, "own").unwrap(), id("own-2"), "the fleet's own is another one");
    }

    #[test]
    fn whoever_has_no_invitation_any_more_is_refused() {
        let mut books = invited(1);
        let joined = key();
        ask(&mut books, &joined, "mill").unwrap();
        let used = |one: &Issued| one.name.as_str() == "guest-1";
        assert_eq!(books.revoke(NOW, used), 1);
        assert_eq!(ask(&mut books, &key(), "mill"), Err(Refusal::NoInvitation));
        assert_eq!(ask(&mut books, &joined, "mill").unwrap(), id("mill"), "who joined before stays");
        let host = |one: &Issued| one.name.as_str() == "mill";
        books.revoke(NOW, host);
        assert!(matches!(ask(&mut books, &joined, "mill"), Err(Refusal::Key(_))), "thrown out");
    }

    #[test]
    fn a_key_of_somebody_else_or_of_no_user_is_refused() {
        let mut books = invited(9);
        let guest = books.issued[0].key.clone();
        let account = KeyPair::new_account().public_key();
        for wrong in ["", "nonsense", &account, &guest] {
            assert!(matches!(ask(&mut books, wrong, "mill"), Err(Refusal::Key(_))), "{wrong}");
        }
        let host = key();
        ask(&mut books, &host, "mill").unwrap();
        let refused = start(&mut books, "mill", &host, "worker", "worker-1");
        assert!(matches!(refused, Err(Refusal::Key(_))), "{refused:?}");
    }

    #[test]
    fn a_machine_starts_what_it_was_invited_for() {
        let (mut books, host) = (invited(1), key());
        ask(&mut books, &host, "mill").unwrap();
        let refused = start(&mut books, "mill", &key(), "planner", "planner-1").unwrap_err();
        assert_eq!(refused.to_string(), "this machine may start worker only, and not planner");
        assert_eq!(
            start(&mut books, "guest-1", &key(), "worker", "worker-1"),
            Err(Refusal::NotJoined),
            "an invitation is no machine"
        );
        let first = key();
        let name = start(&mut books, "mill", &first, "worker", "worker-1").unwrap();
        assert_eq!(start(&mut books, "mill", &first, "worker", "worker-1").unwrap(), name, "asked again");
        let refused = start(&mut books, "mill", &first, "worker", "worker-2");
        assert!(matches!(refused, Err(Refusal::Key(_))), "{refused:?}");

        let second = start(&mut books, "mill", &key(), "worker", "worker-1").unwrap();
        assert_ne!(second, name);
        assert!(books.revoked.contains_key(&first), "what the process had before counts no more");
        assert_eq!(books.issued.iter().filter(|one| one.host() == Some(&id("mill"))).count(), 1);
        assert_eq!(renew(&books, &id("mill"), &host), Ok(()));
        assert_eq!(renew(&books, &id("mill"), &first), Err(Refusal::NotJoined));
        assert_eq!(renew(&books, &id("guest-1"), &host), Err(Refusal::NotJoined));
    }

    #[test]
    fn a_machine_has_so_many_processes_and_no_more() {
        let mut books = invited(1);
        ask(&mut books, &key(), "mill").unwrap();
        for n in 0..MOST_OF_A_HOST {
            start(&mut books, "mill", &key(), "worker", &format!("worker-{n}")).unwrap();
        }
        assert_eq!(start(&mut books, "mill", &key(), "worker", "one-more"), Err(Refusal::TooMany));
        assert!(start(&mut books, "mill", &key(), "worker", "worker-0").is_ok(), "one in place of another");
    }

    #[test]
    fn names_of_machines_are_made_of_what_they_are_called() {
        let books = Books::default();
        let long = "x".repeat(100);
        for (machine, name) in [
            ("", "host"),
            ("...", "host"),
            ("a.*.>", "a"),
            ("Müh le\n", "mhle"),
            ("*>", "host"),
            (long.as_str(), &long[..40]),
        ] {
            assert_eq!(free_name(&books, machine, ""), id(name), "{machine:?}");
        }
    }
}
