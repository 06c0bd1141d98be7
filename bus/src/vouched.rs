//! What tasks may use, vouched for: whoever appends an offer signs its rights, and whoever takes it looks before anything
//! is done for it. Where no keys of a fleet are known, nothing is demanded.

use std::fmt::Display;

use muster_shared::flow::rights::Statement;
use muster_shared::flow::{TaskOffered, Voucher};
use muster_shared::ids::{RunId, TaskId};
use muster_shared::time::Millis;
use muster_shared::wire::tool_server::ToolCall;

use crate::backend::Message;
use crate::bus::Core;
use crate::credentials::HolderKind;
use crate::signatures::{Purpose, Signature, SignatureError};

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
        self.vouches(message.headers.get(RIGHTS), &Statement::of(offer), at)
    }

    /// The same of a call of a tool that an agent makes for a task.
    pub(crate) fn vouched_call(&self, call: &ToolCall, at: Millis) -> Result<(), String> {
        if !self.signatures.demanded() {
            return Ok(());
        }
        let (run, task) = (call.run.parse::<RunId>(), call.task.parse::<TaskId>());
        let (run, task) = (run.map_err(wrong)?, task.map_err(wrong)?);
        let voucher = call.voucher.as_ref().ok_or_else(|| wrong(SignatureError::Missing))?;
        let Voucher { generation, budget, signature } = voucher;
        let said = Statement { run, task: &task, generation: *generation, rights: &call.rights, budget };
        self.vouches(Some(signature), &said, at).map(|_| ())
    }

    fn vouches(
        &self,
        signature: Option<&str>,
        said: &Statement<'_>,
        at: Millis,
    ) -> Result<Option<Signature>, String> {
        let signature = signature.map(str::parse::<Signature>).transpose().map_err(wrong)?;
        let who = self.signatures.verify(Purpose::Rights, signature.as_ref(), &said.bytes(), at);
        match who.map_err(wrong)? {
            Some(who) if !decides(&who.kind) => {
                Err(wrong(format!("it is signed by {}, who decides nothing", who.name)))
            }
            Some(_) | None => Ok(signature),
        }
    }
}

fn wrong(why: impl Display) -> String {
    format!("nobody vouches for what the task may use: {why}")
}

/// Whether holders of this kind decide what tasks may use.
const fn decides(kind: &HolderKind) -> bool {
    matches!(kind, HolderKind::Operator | HolderKind::Orchestrator)
}
