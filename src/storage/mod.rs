//! Bytes: files, log, segments, catalog, commit, checkpoint, snapshot, recovery, rewrite (design 2).
//!
//! Invariant: only this module knows where an episode lies. What leaves it names episodes by id.

mod active_log;
pub mod bundle;
pub mod catalog;
mod checkpoint;
mod clean;
mod clusters;
mod commit;
mod create;
pub mod dead;
mod inspect;
mod lock;
pub mod log;
mod masks;
mod pending;
mod place;
mod queue;
mod recovery;
pub mod report;
mod rewrite;
pub mod segment;
mod segment_file;
pub mod snapshot;
pub mod state;
pub mod store;
pub mod transaction;
mod trust;
pub mod verify;
pub mod vfs;
mod view;
pub mod wire;
mod worker;

pub use catalog::SessionEntry;
pub use inspect::inspect;
pub use report::StoreStats;
pub use snapshot::{Direction, Part, Snapshot};
pub use store::{SpaceChoice, Store};
pub use transaction::{Draft, EncodedRow, Transaction};
pub use verify::Verification;

#[cfg(test)]
mod tests;
