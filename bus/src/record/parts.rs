//! The streams of the record. Here, and nowhere else, the number of a part is put into subjects and taken out of them.

use std::collections::VecDeque;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use muster_shared::ids::{RunId, Seq};

use crate::backend::{Appended, Begin, Fence, Message, Pace, Stored, StreamState, WriteOptions};
use crate::bus::Core;
use crate::error::{AppendError, BusError};
use crate::partition::{Part, Partitions, plain};
use crate::places::Places;

impl Core {
    /// How the record is parted: as it is found, since whoever reads it need not know by its settings. Where there is no
    /// record yet, by the settings.
    pub(crate) async fn parted(&self) -> Result<Partitions, BusError> {
        Ok(self.backend.parted().await?.unwrap_or_else(|| self.settings.parted()))
    }

    /// The part that holds a run.
    pub(crate) async fn part_of(&self, run: RunId) -> Result<Part, BusError> {
        Ok(self.parted().await?.part_of(run))
    }

    /// The part that holds a run, or all.
    pub(super) async fn parts(&self, run: Option<RunId>) -> Result<Vec<Part>, BusError> {
        let parted = self.parted().await?;
        Ok(run.map_or_else(|| parted.parts().collect(), |run| vec![parted.part_of(run)]))
    }

    pub(super) async fn append_to(
        &self,
        part: Part,
        mut messages: Vec<Message>,
        fence: Fence,
    ) -> Result<Appended, AppendError> {
        if !part.is_whole() {
            for message in &mut messages {
                message.subject = part.subject(std::mem::take(&mut message.subject));
            }
        }
        let fence = Fence { filter: part.subject(fence.filter), ..fence };
        let options = WriteOptions { fence: Some(fence), ..WriteOptions::default() };
        self.backend.append(part.stream(), messages, options).await
    }

    /// All messages on the filters, of several parts in the order of their stamps.
    pub(crate) async fn scan_record(
        &self,
        run: Option<RunId>,
        filters: &[String],
        after: &Places,
    ) -> Result<Vec<Stored>, BusError> {
        let mut found = Vec::new();
        for part in self.parts(run).await? {
            let filters = within(part, filters);
            found.push(self.backend.scan(part.stream(), &filters, after.in_part(part)).await?);
        }
        let mut merged = match <[Vec<Stored>; 1]>::try_from(found) {
            Ok([only]) => only,
            Err(several) => by_time(several),
        };
        merged.iter_mut().for_each(take_out);
        Ok(merged)
    }

    /// The heads of all messages on a filter in one part.
    pub(super) async fn heads_of(
        &self,
        part: Part,
        filter: &str,
        after: Seq,
    ) -> Result<Vec<Stored>, BusError> {
        let filters = within(part, &[filter.to_owned()]);
        let mut found = self.backend.heads(part.stream(), &filters, after).await?;
        found.iter_mut().for_each(take_out);
        Ok(found)
    }

    /// Messages on the filters as they come; those of one part in order.
    pub(super) async fn follow_record(
        &self,
        run: Option<RunId>,
        filters: &[String],
        after: &Places,
        pace: Pace,
    ) -> Result<BoxStream<'static, Stored>, BusError> {
        let mut all = stream::SelectAll::new();
        for part in self.parts(run).await? {
            let begin = Begin::After(after.in_part(part));
            all.push(self.backend.follow(part.stream(), within(part, filters), begin, pace).await?);
        }
        let taken_out = |mut stored| {
            take_out(&mut stored);
            stored
        };
        Ok(all.map(taken_out).boxed())
    }

    pub(super) async fn last_of(&self, run: RunId, subject: String) -> Result<Option<Stored>, BusError> {
        let part = self.part_of(run).await?;
        let mut found = self.backend.last(part.stream(), &part.subject(subject)).await?;
        found.iter_mut().for_each(take_out);
        Ok(found)
    }

    pub(crate) async fn entry_at(&self, run: RunId, seq: Seq) -> Result<Option<Stored>, BusError> {
        let mut found = self.backend.get(self.part_of(run).await?.stream(), seq).await?;
        found.iter_mut().for_each(take_out);
        Ok(found)
    }

    /// What the parts hold; with a filter, also how many messages each subject has.
    pub(super) async fn states(
        &self,
        run: Option<RunId>,
        subjects: Option<&str>,
    ) -> Result<Vec<StreamState>, BusError> {
        let mut states = Vec::new();
        for part in self.parts(run).await? {
            let filter = subjects.map(|filter| part.subject(filter.to_owned()));
            let mut state = self.backend.state(part.stream(), filter.as_deref()).await?;
            if !part.is_whole() {
                let found = std::mem::take(&mut state.subjects);
                state.subjects =
                    found.into_iter().map(|(subject, count)| (plain(&subject).into_owned(), count)).collect();
            }
            states.push(state);
        }
        Ok(states)
    }
}

fn within(part: Part, filters: &[String]) -> Vec<String> {
    filters.iter().cloned().map(|filter| part.subject(filter)).collect()
}

fn take_out(stored: &mut Stored) {
    if let std::borrow::Cow::Owned(subject) = plain(&stored.message.subject) {
        stored.message.subject = subject;
    }
}

/// Of several parts the next is always the one that was stored first. The order of each stays, whatever its stamps say.
fn by_time(parts: Vec<Vec<Stored>>) -> Vec<Stored> {
    let mut parts: Vec<VecDeque<Stored>> = parts.into_iter().map(VecDeque::from).collect();
    let mut merged = Vec::with_capacity(parts.iter().map(VecDeque::len).sum());
    while let Some(next) = parts
        .iter_mut()
        .filter(|part| !part.is_empty())
        .min_by_key(|part| part.front().map(|stored| stored.at))
        .and_then(VecDeque::pop_front)
    {
        merged.push(next);
    }
    merged
}

#[cfg(test)]
mod tests {
    use muster_shared::time::Millis;

    use super::*;
    use crate::backend::Headers;

    fn stored(seq: u64, at: u64) -> Stored {
        let message =
            Message { subject: String::new(), headers: Headers::default(), payload: bytes::Bytes::new() };
        Stored { seq: Seq(seq), at: Millis(at), message }
    }

    #[test]
    fn parts_come_in_one_order_and_each_keeps_its_own() {
        let one = vec![stored(1, 10), stored(2, 40), stored(3, 39)];
        let other = vec![stored(7, 20), stored(8, 50)];
        let merged: Vec<u64> = by_time(vec![one, other]).iter().map(|stored| stored.seq.0).collect();
        assert_eq!(merged, [1, 7, 2, 3, 8], "a clock that was set back changes no order within a part");
    }
}
