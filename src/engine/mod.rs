//! The public handles: a database, one user's memory in it, and what they are opened with.
//!
//! Invariant: the three paths (writing, reading, maintenance) meet here and nowhere else.

mod db;
mod embedding;
mod memory;
mod options;
mod stats;

pub use db::Db;
pub use embedding::Embedding;
pub use memory::Memory;
pub use options::OpenOptions;
pub use stats::{Stats, UserStats, Verification};
