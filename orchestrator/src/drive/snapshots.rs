//! States of runs that are kept aside in the object store, so that taking a run over does not cost more the longer
//! its record is. A cache: whatever is wrong with one, the record is folded instead.
//!
//! What is kept is folded from the record, not taken from an actor: an actor may hear of an agent's entry after it has
//! written a decision with a higher position.

use std::sync::Arc;

use muster_bus::{BusError, RecordFilter};
use muster_shared::ids::{RunId, Seq};
use muster_shared::run::Snapshot;
use muster_shared::wire::Encoding;
use muster_shared::wire::codec::{CodecError, decode_unbounded, encode};

use super::context::OrchestratorContext;
use super::turn::read_log;
use crate::turn::{Failure, RunLog};

/// Why a state could not be kept.
#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error(transparent)]
    Read(#[from] Failure),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Keeps the state of a run aside, in the background.
pub(super) fn keep(context: Arc<OrchestratorContext>, run: RunId) {
    tokio::spawn(async move {
        if let Err(error) = keep_now(&context, run).await {
            tracing::warn!(%run, %error, "the state of a run could not be kept aside; its record is whole");
        }
    });
}

async fn keep_now(context: &OrchestratorContext, run: RunId) -> Result<(), KeepError> {
    let log = read_log(context, run).await?;
    let chain = log.chain().clone();
    let Some(state) = log.run.filter(|state| !state.status.is_ended()) else { return Ok(()) };
    let store = context.bus.store();
    let before = store.get(&newest_name(run)).await?.and_then(|bytes| seq_in(&bytes));
    let at = state.folded;
    let bytes =
        encode(&Snapshot::of(&state, log.created, log.author).with_chain(chain), Encoding::MessagePack)?;
    store.put_named(&name(run, at), bytes.into()).await?;
    store.put_named(&newest_name(run), at.to_string().into()).await?;
    if let Some(before) = before.filter(|before| *before != at) {
        store.delete(&name(run, before)).await?;
    }
    Ok(())
}

/// The newest state that was kept of a run, if this build can use it.
pub(super) async fn newest(context: &OrchestratorContext, run: RunId) -> Option<RunLog> {
    match find(context, run).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%run, %error, "a kept state cannot be used; the whole record is folded");
            None
        }
    }
}

async fn find(context: &OrchestratorContext, run: RunId) -> Result<Option<RunLog>, KeepError> {
    let store = context.bus.store();
    let Some(at) = store.get(&newest_name(run)).await?.and_then(|bytes| seq_in(&bytes)) else {
        return Ok(None);
    };
    let Some(bytes) = store.get(&name(run, at)).await? else { return Ok(None) };
    let snapshot: Snapshot = decode_unbounded(&bytes, Encoding::MessagePack)?;
    if !snapshot.is_usable() {
        return Ok(None);
    }
    let created = snapshot.created();
    let before = Seq(created.0.saturating_sub(1));
    let Some(first) = context.bus.record().first(&RecordFilter::Decisions(run), before).await? else {
        return Ok(None);
    };
    let chain = snapshot.chain().clone();
    let restored = snapshot.restore(&first).filter(|(state, _)| state.folded == at);
    Ok(restored.map(|(state, author)| RunLog::restored(state, author, created, chain)))
}

fn name(run: RunId, at: Seq) -> String {
    format!("snap/{run}/{at}")
}

/// Names the newest: the store has no order of names.
fn newest_name(run: RunId) -> String {
    format!("snap/{run}/newest")
}

fn seq_in(bytes: &[u8]) -> Option<Seq> {
    std::str::from_utf8(bytes).ok()?.parse().ok().map(Seq)
}
