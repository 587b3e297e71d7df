//! The write path: `Turn -> Encoded -> Batch -> Appended`.
//!
//! Invariants: everything given by a caller is checked here, before a lock is taken and before anything is written;
//! text is embedded and rows are encoded outside the writer lock. Under it only keys are looked up, contents compared
//! and ids given.

mod encode;
mod limits;
mod patch;
mod remove;
mod turn;
mod write;

pub(crate) use encode::{Encoder, encode_batch};
pub(crate) use limits::check_user;
pub use patch::Patch;
pub(crate) use patch::update;
pub(crate) use remove::{delete, delete_session};
pub use turn::Turn;
pub(crate) use write::append;
pub use write::{Added, Outcome};
