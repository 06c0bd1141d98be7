//! Task tokens: by one of them a program names the task that it was given. Pure.
//!
//! A token says which attempt at which generation of which task is meant, by where its `started` stands, and at which
//! gateway it was begun. It is signed with the run's secret, which is in the record: every gateway can check it, nobody else
//! can make one, and it ends with the run.

use hmac::{Hmac, Mac};
use muster_shared::ids::{AgentId, Generation, Role, RunId, Seq, TaskId};
use sha2::Sha256;

/// How every token begins: the version of its form.
const MARK: &str = "mt1-";
/// Bytes of the signature: nobody gets more than a few tries.
const SIGNED: usize = 16;
/// Longest token that is looked at, in bytes.
const LONGEST: usize = 2048;

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) run: RunId,
    pub(crate) task: TaskId,
    pub(crate) generation: Generation,
    pub(crate) role: Role,
    pub(crate) agent: AgentId,
    /// Where the `started` of the attempt stands.
    pub(crate) started: Seq,
    /// The gateway that had the task at hand when the token was made.
    pub(crate) home: AgentId,
}

/// What a text says that has the form of a token. Whether it may say so is not known yet.
#[derive(Debug)]
pub(crate) struct Unproven {
    said: String,
    signature: Vec<u8>,
    token: Token,
}

impl Token {
    /// The token as programs have it.
    pub(crate) fn signed(&self, secret: &str) -> String {
        let Self { run, task, generation, role, agent, started, home } = self;
        let said = format!("{run} {task} {generation} {role} {agent} {started} {home}");
        let signature = mac(secret, &said).finalize().into_bytes();
        format!("{MARK}{}-{}", hex::encode(&said), hex::encode(&signature[..SIGNED]))
    }

    /// Reads the form of a token.
    pub(crate) fn read(text: &str) -> Option<Unproven> {
        let rest = text.strip_prefix(MARK).filter(|_| text.len() <= LONGEST)?;
        let (said, signature) = rest.split_once('-')?;
        let said = String::from_utf8(hex::decode(said).ok()?).ok()?;
        let signature = hex::decode(signature).ok().filter(|bytes| bytes.len() == SIGNED)?;
        let parts: Vec<&str> = said.split(' ').collect();
        let [run, task, generation, role, agent, started, home] = parts.as_slice() else { return None };
        let token = Self {
            run: run.parse().ok()?,
            task: task.parse().ok()?,
            generation: Generation(generation.parse().ok()?),
            role: role.parse().ok()?,
            agent: agent.parse().ok()?,
            started: Seq(started.parse().ok()?),
            home: home.parse().ok()?,
        };
        Some(Unproven { said, signature, token })
    }
}

impl Unproven {
    /// The run that it says it is of.
    pub(crate) const fn run(&self) -> RunId {
        self.token.run
    }

    /// What it says, if whoever knows the secret made it.
    pub(crate) fn proven(self, secret: &str) -> Option<Token> {
        mac(secret, &self.said).verify_truncated_left(&self.signature).ok()?;
        Some(self.token)
    }
}

fn mac(secret: &str, said: &str) -> Hmac<Sha256> {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes any key");
    mac.update(b"task token\n");
    mac.update(said.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token {
            run: "0190a1b2c3d4700080000000000000aa".parse().unwrap(),
            task: "1-2~a".parse().unwrap(),
            generation: Generation(3),
            role: "word_counter".parse().unwrap(),
            agent: "word_counter-1".parse().unwrap(),
            started: Seq(17),
            home: "orchestrator-1".parse().unwrap(),
        }
    }

    #[test]
    fn a_token_says_what_it_was_made_of_to_whoever_knows_the_secret() {
        let text = token().signed("secret");
        assert_eq!(Token::read(&text).unwrap().proven("secret"), Some(token()));
        assert_eq!(Token::read(&text).unwrap().proven("another"), None);
        assert_eq!(muster_shared::secret::Redactor::default().redact(&text), "[redacted]");
        assert_ne!(text, Token { started: Seq(18), ..token() }.signed("secret"));
    }

    #[test]
    fn what_was_changed_or_made_up_is_no_token() {
        let text = token().signed("secret");
        let (said, signature) = text.strip_prefix(MARK).unwrap().split_once('-').unwrap();
        let other =
            hex::encode(String::from_utf8(hex::decode(said).unwrap()).unwrap().replace("1-2~a", "1-3~a"));
        let forged = Token::read(&format!("{MARK}{other}-{signature}")).unwrap();
        assert_eq!(forged.proven("secret"), None, "another task");
        let long = "a".repeat(LONGEST + 1);
        for text in ["", "mt1-", "mt1--", "mt1-zz-00", &text[..text.len() - 2], &text[4..], &long] {
            assert!(Token::read(text).is_none(), "{text}");
        }
    }
}
