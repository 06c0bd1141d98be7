//! What the owner of the keys lets other machines do: invite them, let them in, give their processes credentials.

use muster_shared::ids::{AgentId, Role};
use muster_shared::time::Millis;
use nkeys::KeyPair;
use secrecy::SecretString;
use uuid::Uuid;

use super::holder::Holder;
use super::joining::{Equipping, Joined, Joining, Refusal, equip, join, renew};
use super::ledger::{Issued, Ledger, Place};
use super::line::{Fingerprint, Invitation, NAMED};
use super::{Credentials, CredentialsError, FleetKeys};

/// Whom an invitation lets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invited {
    /// Of which roles a machine may start agents that joins by it.
    pub roles: Vec<Role>,
    /// How many machines may join by it.
    pub uses: u16,
    /// Until when they may.
    pub until: Millis,
}

impl FleetKeys {
    /// Makes an invitation, and takes note of it.
    ///
    /// # Errors
    /// When a key cannot be used, or the list not be written.
    pub fn invite(
        &self,
        invited: &Invited,
        addresses: Vec<String>,
        authority: Option<Fingerprint>,
    ) -> Result<Invitation, CredentialsError> {
        let Invited { roles, uses, until } = invited.clone();
        let (token, ..) = Uuid::new_v4().as_fields();
        let (name, user, now) = (AgentId::new(NAMED, token), KeyPair::new_user(), crate::bus::now());
        let holder = Holder::Guest { name: name.clone() };
        let jwt = self.vouch(&user, &holder, (now, Some(until)), Vec::new())?;
        let seed = SecretString::from(user.seed().map_err(CredentialsError::key)?);
        let credentials = Credentials { jwt, seed, fleet: None };
        let invitation = Invitation { name: name.clone(), addresses, authority, until, credentials };
        // One that cannot be written down is none.
        invitation.to_line()?;
        let (kind, key) = (holder.kind(), user.public_key());
        let place = Some(Place::Invitation { roles, uses, left: uses });
        let issued = Issued { name, kind, key, issued: now, until: Some(until), file: None, place };
        Ledger::of(&self.folder).note(issued, now)?;
        Ok(invitation)
    }

    /// Lets a machine in by an invitation; gives what it is from now on, and what is said of its key.
    ///
    /// # Errors
    /// When the list cannot be read or written. Whoever may not join gets a refusal.
    pub fn let_join(
        &self,
        asked: &Joining<'_>,
    ) -> Result<Result<(Joined, String), Refusal>, CredentialsError> {
        let now = crate::bus::now();
        let joined = Ledger::of(&self.folder).change(now, |books| join(books, asked, now))?;
        joined.map_or_else(
            |refusal| Ok(Err(refusal)),
            |joined| {
                let jwt = self.vouch_for(asked.key, &Holder::Host { name: joined.host.clone() }, now)?;
                Ok(Ok((joined, jwt)))
            },
        )
    }

    /// Gives a process of a machine credentials of its own; says what it is called, and what is said of its key. `name` is what
    /// it is called where it is a new one.
    ///
    /// # Errors
    /// When the list cannot be read or written. Who may not have them gets a refusal.
    pub fn let_start(
        &self,
        asked: &Equipping<'_>,
        name: AgentId,
    ) -> Result<Result<(AgentId, String), Refusal>, CredentialsError> {
        let now = crate::bus::now();
        let named = Ledger::of(&self.folder).change(now, |books| equip(books, asked, name, now))?;
        named.map_or_else(
            |refusal| Ok(Err(refusal)),
            |id| {
                let holder = Holder::Agent { role: asked.role.clone(), id: id.clone() };
                let jwt = self.vouch_for(asked.key, &holder, now)?;
                Ok(Ok((id, jwt)))
            },
        )
    }

    /// Vouches for a machine again, by the keys of now.
    ///
    /// # Errors
    /// When the list cannot be read. Who was thrown out gets a refusal.
    pub fn let_stay(&self, host: &AgentId, key: &str) -> Result<Result<String, Refusal>, CredentialsError> {
        let now = crate::bus::now();
        match Ledger::of(&self.folder).change(now, |books| renew(books, host, key))? {
            Ok(()) => self.vouch_for(key, &Holder::Host { name: host.clone() }, now).map(Ok),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    fn vouch_for(&self, key: &str, holder: &Holder, now: Millis) -> Result<String, CredentialsError> {
        let user = KeyPair::from_public_key(key).map_err(CredentialsError::key)?;
        self.vouch(&user, holder, (now, None), Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::claims::Claims;
    use crate::credentials::{HolderKind, OwnKey, identity};

    fn id(name: &str) -> AgentId {
        name.parse().unwrap()
    }

    #[test]
    fn a_machine_joins_starts_its_processes_and_is_thrown_out_with_all_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        let until = Millis(crate::bus::now().0 + 60_000);
        let roles: Vec<Role> = vec!["worker".parse().unwrap()];
        let invited = Invited { roles: roles.clone(), uses: 1, until };
        let invitation = keys.invite(&invited, vec!["127.0.0.1:1".to_owned()], None).unwrap();

        let (machine, process) = (OwnKey::new(), OwnKey::new());
        let key = machine.public();
        let asked = Joining { invitation: &invitation.name, key: &key, machine: "mill", here: "" };
        let (joined, jwt) = keys.let_join(&asked).unwrap().unwrap();
        assert_eq!(joined, Joined { host: id("mill"), roles: roles.clone() });
        let file = folder.path().join("x.creds");
        Credentials::of_own(&machine, jwt.clone(), None).unwrap().write(&file).unwrap();
        let who = identity(&file).unwrap().unwrap();
        assert_eq!((who.name, who.kind), (id("mill"), HolderKind::Host));
        assert!(Credentials::of_own(&process, jwt, None).is_err(), "said of another key");
        let other = OwnKey::new().public();
        let asked = Joining { key: &other, ..asked };
        assert_eq!(keys.let_join(&asked).unwrap().unwrap_err(), Refusal::UsedUp);

        let (host, key, member) = (id("mill"), process.public(), id("worker-1"));
        let equipping = Equipping { host: &host, key: &key, role: &roles[0], member: &member };
        let (name, jwt) = keys.let_start(&equipping, id("worker-0000abcd")).unwrap().unwrap();
        Credentials::of_own(&process, jwt.clone(), None).unwrap().write(&file).unwrap();
        let who = identity(&file).unwrap().unwrap();
        assert_eq!((&who.name, who.kind), (&name, HolderKind::Agent(roles[0].clone())));

        assert_eq!(keys.issued().unwrap().len(), 3);
        // After a rotation the new keys vouch for the same.
        let issuer = |jwt: &str| Claims::read(jwt).unwrap().iss;
        let (stays, before) = (machine.public(), issuer(&jwt));
        let keys = FleetKeys::rotate(keys.folder(), Millis(crate::bus::now().0 + 60_000)).unwrap();
        let host_jwt = keys.let_stay(&host, &stays).unwrap().unwrap();
        let (same, jwt) = keys.let_start(&equipping, id("worker-0000abcf")).unwrap().unwrap();
        assert!(same == name && issuer(&jwt) != before);
        Credentials::of_own(&machine, host_jwt, None).unwrap();

        assert_eq!(keys.issued().unwrap().len(), 3);
        assert_eq!(keys.revoke(&host).unwrap(), 2);
        let left = keys.issued().unwrap();
        assert_eq!((left.len(), &left[0].name), (1, &invitation.name));
        let refused = keys.let_start(&equipping, id("worker-0000abce")).unwrap().unwrap_err();
        assert_eq!(refused, Refusal::NotJoined);
        assert_eq!(keys.let_stay(&host, &stays).unwrap().unwrap_err(), Refusal::NotJoined);
        let revoked = keys.public().unwrap().revoked;
        assert!(revoked.contains_key(&machine.public()) && revoked.contains_key(&process.public()));
        assert_eq!(keys.revoke(&invitation.name).unwrap(), 1, "withdrawn");
    }

    #[test]
    fn an_invitation_that_ended_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let keys = FleetKeys::open_or_make(&folder.path().join("keys")).unwrap();
        let invited = Invited { roles: vec!["worker".parse().unwrap()], uses: 1, until: Millis(1_000) };
        let invitation = keys.invite(&invited, vec!["127.0.0.1:1".to_owned()], None).unwrap();
        let key = OwnKey::new().public();
        let asked = Joining { invitation: &invitation.name, key: &key, machine: "mill", here: "" };
        assert_eq!(keys.let_join(&asked).unwrap().unwrap_err(), Refusal::NoInvitation);
        assert!(keys.invite(&invited, vec!["nonsense".to_owned()], None).is_err());
        assert_eq!(keys.issued().unwrap(), []);
    }
}
