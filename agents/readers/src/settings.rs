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
        pub reading: ReadLimits = ReadLimits::default() => group(ReadLimits::SETTINGS),
        /// The processes that read documents: how many, and what must keep them in.
        pub readers: PoolLimits = PoolLimits::default() => group(PoolLimits::SETTINGS),
        /// Pictures among the documents, which models that can see are shown.
        pub pictures: PictureLimits = PictureLimits::default() => group(PictureLimits::SETTINGS),
    }
}

settings! {
    /// Pictures among the documents: how large they may be, and how many.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct PictureLimits {
        /// Largest picture; larger ones are left out. Providers of models have limits of their own.
        pub max_bytes: u64 = 4 * MIB => bytes(KIB, 16 * MIB),
        /// Most pictures of a run; further ones are left out.
        pub max_pictures: u64 = 200 => whole(0, 10_000),
    }
}
