//! Bytes: files, log, segments, catalog, commit, checkpoint, snapshot, recovery, rewrite (design 2).
//!
//! Invariant: only this module knows where an episode lies. What leaves it names episodes by id.

pub mod catalog;
pub mod segment;
pub mod snapshot;
pub mod store;
pub mod transaction;
pub mod vfs;

pub use snapshot::{Direction, Part, Snapshot};
pub use store::{SpaceChoice, Store};
pub use transaction::{Draft, EncodedRow, Transaction};
