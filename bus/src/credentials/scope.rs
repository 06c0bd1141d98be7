//! One signing key of the fleet's account for each kind of holder. What its holders may do stands in the account, as a
//! template; the credentials of one holder say only who he is.

use muster_shared::ids::{AgentId, Role};

use super::CredentialsError;
use super::holder::{Holder, HolderKind};
use super::rights::{Rights, consumer_names};
use crate::partition::Partitions;

/// Stand for a holder's own role and name where rights are made into a template: no subject has them otherwise.
const ANY_ROLE: &str = "muster_role";
const ANY_NAME: &str = "muster-name";
/// What the server puts in for them.
const OWN_ROLE: &str = "{{tag(role)}}";
const OWN_NAME: &str = "{{name()}}";
/// The consumers' names, one after the other: a server replaces whole tokens only, so each name is a tag.
const OWN_CONSUMER: &str = "{{tag(consumer)}}";

/// What a signing key may vouch for, and nothing else.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Scope {
    /// Those who run the fleet.
    Operator,
    /// People who have a say in runs.
    Person,
    /// Those who watch.
    Observer,
    /// Orchestrators.
    Orchestrator,
    /// Agents of all roles.
    Agent,
    /// Programs of all roles.
    Program,
    /// Guards of all names.
    Guard,
    /// Tool servers of all names.
    ToolServer,
    /// Machines that joined.
    Host,
    /// Whoever holds an invitation.
    Guest,
}

impl Scope {
    /// All there are.
    pub const ALL: [Self; 10] = [
        Self::Operator,
        Self::Person,
        Self::Observer,
        Self::Orchestrator,
        Self::Agent,
        Self::Program,
        Self::Guard,
        Self::ToolServer,
        Self::Host,
        Self::Guest,
    ];

    /// What it is called in an account.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whose key signs for holders of a kind; nobody's for those of the server's own account.
    #[must_use]
    pub const fn of(kind: &HolderKind) -> Option<Self> {
        match kind {
            HolderKind::Operator => Some(Self::Operator),
            HolderKind::Person => Some(Self::Person),
            HolderKind::Observer => Some(Self::Observer),
            HolderKind::Orchestrator => Some(Self::Orchestrator),
            HolderKind::Agent(_) => Some(Self::Agent),
            HolderKind::Program(_) => Some(Self::Program),
            HolderKind::Guard(_) => Some(Self::Guard),
            HolderKind::ToolServer(_) => Some(Self::ToolServer),
            HolderKind::Host => Some(Self::Host),
            HolderKind::Guest => Some(Self::Guest),
            HolderKind::Presence => None,
        }
    }

    /// A holder of this kind.
    #[must_use]
    pub fn holder(self, role: Role, name: AgentId) -> Holder {
        match self {
            Self::Operator => Holder::Operator { name },
            Self::Person => Holder::Person { name },
            Self::Observer => Holder::Observer { name },
            Self::Orchestrator => Holder::Orchestrator { id: name },
            Self::Agent => Holder::Agent { role, id: name },
            Self::Program => Holder::Program { role, id: name },
            Self::Guard => Holder::Guard { guard: role.to_string(), id: name },
            Self::ToolServer => Holder::ToolServer { server: role.to_string(), id: name },
            Self::Host => Holder::Host { name },
            Self::Guest => Holder::Guest { name },
        }
    }

    /// What any of its holders may do, on a bus whose record is parted in one of these ways.
    pub(super) fn template(self, ways: &[Partitions]) -> Result<Rights, CredentialsError> {
        let role: Role = ANY_ROLE.parse().map_err(CredentialsError::key)?;
        let name: AgentId = ANY_NAME.parse().map_err(CredentialsError::key)?;
        let holder = self.holder(role, name.clone());
        let all = ways.iter().map(|&parts| holder.rights(parts)).reduce(Rights::and);
        // No rights at all would be read as all rights.
        let all = all.ok_or_else(|| CredentialsError::key("there is no way to part the record"))?;
        let consumers: Vec<String> = consumer_names(&name).collect();
        let own = |subject: String| {
            let consumer =
                consumers.iter().fold(subject, |subject, name| subject.replace(name, OWN_CONSUMER));
            consumer.replace(ANY_ROLE, OWN_ROLE).replace(ANY_NAME, OWN_NAME)
        };
        // The consumers' subjects are the same now: each stays once.
        Ok(Rights::default().and(all.renamed(own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_way() -> Vec<Partitions> {
        Partitions::every().collect()
    }

    /// What the server makes of a template.
    fn filled(template: Rights, role: &str, name: &str) -> Rights {
        let own = |subject: String| subject.replace(OWN_ROLE, role).replace(OWN_NAME, name);
        let each = |subject: String| match subject.contains(OWN_CONSUMER) {
            true => consumer_names(&name.parse().unwrap())
                .map(|one| subject.replace(OWN_CONSUMER, &one))
                .collect(),
            false => vec![subject],
        };
        let Rights { publish, .. } = template.clone();
        Rights { publish: publish.into_iter().flat_map(each).collect(), ..template }.renamed(own)
    }

    #[test]
    fn a_filled_template_is_what_the_table_says() {
        let (role, name) = ("worker", "worker-5f3a9c21");
        for (scope, parts) in
            Scope::ALL.into_iter().flat_map(|scope| every_way().into_iter().map(move |w| (scope, w)))
        {
            let table = scope.holder(role.parse().unwrap(), name.parse().unwrap()).rights(parts);
            let sorted = |mut rights: Rights| {
                rights.publish.sort();
                rights
            };
            let template = filled(scope.template(&[parts]).unwrap(), role, name);
            assert_eq!(sorted(template), sorted(table), "{scope:?} {parts:?}");
        }
    }

    #[test]
    fn a_template_for_every_way_to_part_the_record_has_each_subject_once() {
        for scope in Scope::ALL {
            let all = filled(scope.template(&every_way()).unwrap(), "worker", "w-1");
            let mut publish = all.publish.clone();
            publish.sort();
            publish.dedup();
            assert_eq!(publish.len(), all.publish.len(), "{scope:?}");
            for parts in every_way() {
                let one = scope.holder("worker".parse().unwrap(), "w-1".parse().unwrap()).rights(parts);
                assert!(
                    one.publish.iter().all(|subject| all.publish.contains(subject)),
                    "{scope:?} {parts:?}"
                );
                assert!(one.never_publish.iter().all(|subject| all.never_publish.contains(subject)));
                assert!(one.subscribe.iter().all(|subject| all.subscribe.contains(subject)));
            }
        }
    }

    #[test]
    fn without_a_way_to_part_the_record_nobody_may_do_all() {
        for scope in Scope::ALL {
            assert!(scope.template(&[]).is_err());
        }
    }

    #[test]
    fn nobody_is_called_as_the_templates_stand_ins() {
        for scope in Scope::ALL {
            let template = scope.template(&every_way()).unwrap();
            let rest = format!("{template:?}");
            // A server refuses a template that names a tag which the credentials lack.
            let holder = scope.holder("worker".parse().unwrap(), "w-1".parse().unwrap());
            let tags = crate::credentials::keys::tags(&holder);
            assert_eq!(rest.contains(OWN_CONSUMER), tags.contains(&"consumer:w-1-8".to_owned()), "{tags:?}");
            assert!(!rest.contains(ANY_ROLE) && !rest.contains(ANY_NAME), "{rest}");
        }
    }
}
