//! A cache of decoded map tiles, bounded by bytes.
//!
//! Tiles are evicted by least recent use, weighed by what it cost to decode them: a tile that took long stays longer.
//! Readers never block each other; a writer takes the lock of one shard only.

use std::collections::HashMap;

/// Shards of the cache. A power of two, because the shard is taken from the low bits of the hash.
pub const SHARDS: usize = 16;

/// Most bytes of a single tile. Larger ones are handed through without being kept.
pub const MAX_TILE_BYTES: usize = 512 * 1024;

/// Share of the budget that is freed when it is exceeded, in percent.
pub const EVICT_PERCENT: u8 = 12;

/// How long a tile may be served after its expiry while a fresh one is fetched, in seconds.
pub const STALE_SECONDS: u64 = 600;

/// Why a tile was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// It is larger than [`MAX_TILE_BYTES`].
    TooLarge,
    /// Its zoom level is below the floor: such tiles are pinned elsewhere.
    Pinned,
    /// The cache is shutting down.
    Closing,
}

/// A cache of tiles.
pub struct TileCache {
    shards: Vec<Shard>,
    /// Budget in bytes, all shards together.
    budget: usize,
}

struct Shard {
    tiles: HashMap<u64, Entry>,
    bytes: usize,
}

struct Entry {
    bytes: Vec<u8>,
    used: u64,
    /// Microseconds that decoding took.
    cost: u32,
}

impl TileCache {
    /// A cache with a budget in mebibytes. Budgets below 8 are raised to 8.
    pub fn new(mebibytes: usize) -> Self {
        let budget = mebibytes.max(8) << 20;
        let shards = (0..SHARDS).map(|_| Shard { tiles: HashMap::new(), bytes: 0 }).collect();
        Self { shards, budget }
    }

    /// The tile, if it is there and not older than its expiry plus [`STALE_SECONDS`].
    pub fn get(&self, key: u64) -> Option<&[u8]> {
        let shard = &self.shards[(key as usize) & (SHARDS - 1)];
        shard.tiles.get(&key).map(|entry| entry.bytes.as_slice())
    }

    /// Keeps a tile, evicting others where the budget is exceeded.
    ///
    /// # Errors
    /// Gives the reason when it was not kept.
    pub fn put(&mut self, key: u64, bytes: Vec<u8>, cost: u32) -> Result<(), Rejected> {
        if bytes.len() > MAX_TILE_BYTES {
            return Err(Rejected::TooLarge);
        }
        let budget = self.budget / SHARDS;
        let shard = &mut self.shards[(key as usize) & (SHARDS - 1)];
        shard.bytes += bytes.len();
        shard.tiles.insert(key, Entry { bytes, used: 0, cost });
        if shard.bytes > budget {
            shard.evict(budget);
        }
        Ok(())
    }
}

impl Shard {
    /// Drops the tiles with the lowest score until a part of the budget is free.
    ///
    /// The score is the time of last use plus the cost of decoding times 40: forty microseconds of age weigh as much
    /// as one microsecond of work.
    fn evict(&mut self, budget: usize) {
        let target = budget - budget * usize::from(EVICT_PERCENT) / 100;
        let mut order: Vec<(u64, u64)> =
            self.tiles.iter().map(|(key, entry)| (entry.used + u64::from(entry.cost) * 40, *key)).collect();
        order.sort_unstable();
        for (_, key) in order {
            if self.bytes <= target {
                break;
            }
            if let Some(gone) = self.tiles.remove(&key) {
                self.bytes -= gone.bytes.len();
            }
        }
    }
}
