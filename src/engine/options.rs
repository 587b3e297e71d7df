//! What a database is opened with.

use std::time::Duration;

use crate::options::{Durability, Maintenance, StorageOptions, VectorElement};

use super::embedding::Embedding;

/// Settings of one handle.
///
/// ```
/// use std::time::Duration;
///
/// use loomdb::{Db, Embedding, OpenOptions};
///
/// # fn main() -> loomdb::Result<()> {
/// let options = OpenOptions::new()
///     .busy_timeout(Duration::from_secs(1))
///     .embedding(Embedding::External { name: "my-model-v2".into(), dimension: 3 });
/// let db = Db::open_with(":memory:", options)?;
/// # let _ = db;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(super) storage: StorageOptions,
    pub(super) embedding: Embedding,
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident => $field:ident: $type:ty;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> OpenOptions {
            self.storage.$field = $name.into();
            self
        })*
    };
}

impl OpenOptions {
    /// The defaults.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Where vectors come from. Default: [`Embedding::Auto`].
    #[must_use]
    pub fn embedding(mut self, embedding: Embedding) -> OpenOptions {
        self.embedding = embedding;
        self
    }

    settings! {
        /// Create the database when there is none. Default: true.
        create => create: bool;
        /// Refuse every write. Default: false.
        read_only => read_only: bool;
        /// When a commit is acknowledged. Default: [`Durability::Synced`].
        durability => durability: Durability;
        /// How long a writer or an opener waits for another process. Default: 5 s.
        busy_timeout => busy_timeout: Duration;
        /// Time between two syncs under [`Durability::Relaxed`]. Default: 100 ms.
        relaxed_sync_interval => relaxed_sync_interval: Duration;
        /// Bytes of the active log that trigger a checkpoint. Default: 4 MiB, range 64 KiB to 1 GiB.
        checkpoint_bytes => checkpoint_bytes: u64;
        /// Episodes of the active log that trigger a checkpoint. Default: 4,096, range 1 to 1,048,576.
        checkpoint_rows => checkpoint_rows: u64;
        /// How vectors are kept: used when the database is created, and checked against the record otherwise.
        /// Default: 32-bit floats for a new database.
        vector_element => element: VectorElement;
        /// Bytes of the catalog's page cache. Default: 32 MiB, range 1 MiB to 4 GiB.
        catalog_cache_bytes => catalog_cache_bytes: usize;
        /// Bytes of decompressed text kept in memory. Default: 4 MiB, range 0 (none) to 1 GiB.
        text_cache_bytes => text_cache_bytes: usize;
        /// Allow a database on a network file system, where locks and maps may not work. Default: false.
        allow_remote_fs => allow_remote_fs: bool;
        /// Who runs checkpoints and merges. Default: [`Maintenance::Background`].
        maintenance => maintenance: Maintenance;
    }
}
