//! What tasks may use, vouched for: whoever appends an offer signs its rights, and whoever takes it looks before anything
//! is done for it. Where no keys of a fleet are known, nothing is demanded.

use muster_shared::flow::TaskOffered;
use muster_shared::flow::rights::statement;
use muster_shared::time::Millis;

use crate::backend::Message;
use crate::bus::Core;
use crate::credentials::HolderKind;
use crate::signatures::{Purpose, Signature};

/// The header of an offer that the signature of its rights travels in.
pub const RIGHTS: &str = "Muster-Rights";

impl Core {
    /// Signs what the task of an offer may use, where there is something to sign with.
    pub(crate) fn vouch(&self, statement: &[u8], message: &mut Message) {
        if let Some(signature) = self.signatures.sign(Purpose::Rights, statement) {
            message.headers.add(RIGHTS, &signature.to_string());
        }
    }

    /// The signature of what the task of an offer may use.
    ///
    /// # Errors
    /// Says why it proves nothing: nobody who may decide has vouched for these rights.
    pub(crate) fn vouched(
        &self,
        message: &Message,
        offer: &TaskOffered,
        at: Millis,
    ) -> Result<Option<Signature>, String> {
        if !self.signatures.demanded() {
            return Ok(None);
        }
        let wrong = |why: String| format!("nobody vouches for what the task may use: {why}");
        let signature = message.headers.get(RIGHTS).map(str::parse::<Signature>).transpose();
        let signature = signature.map_err(|error| wrong(error.to_string()))?;
        let said = statement(offer);
        let who = self.signatures.verify(Purpose::Rights, signature.as_ref(), &said, at);
        match who.map_err(|error| wrong(error.to_string()))? {
            Some(who) if !decides(&who.kind) => {
                Err(wrong(format!("it is signed by {}, who decides nothing", who.name)))
            }
            Some(_) | None => Ok(signature),
        }
    }
}

/// Whether holders of this kind decide what tasks may use.
const fn decides(kind: &HolderKind) -> bool {
    match kind {
        HolderKind::Operator | HolderKind::Orchestrator => true,
        HolderKind::Person
        | HolderKind::Observer
        | HolderKind::Agent(_)
        | HolderKind::Program(_)
        | HolderKind::Guard(_)
        | HolderKind::ToolServer(_)
        | HolderKind::Host
        | HolderKind::Guest
        | HolderKind::Presence => false,
    }
}
