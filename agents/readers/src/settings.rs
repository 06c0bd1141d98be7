//! Settings of reading documents.

use muster_shared::settings;
use serde::{Deserialize, Serialize};

use crate::limits::ReadLimits;
use crate::pool::PoolLimits;

settings! {
    /// Documents that are no text: what reading one of them may take, and the processes that do it.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct DocumentSettings {
        /// What the reading of one document may take. A document that takes more is left out, or cut, and that is said.
        pub reading: ReadLimits = ReadLimits::default() => internal(),
        /// The processes that read documents: how many, and what must keep them in.
        pub readers: PoolLimits = PoolLimits::default() => group(PoolLimits::SETTINGS),
    }
}
