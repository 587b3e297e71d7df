//! The append-only commit log (design 2.2; format-spec.md 2).
//!
//! Invariants: a log is never overwritten, and cut only of an append that failed for want of space, before any sync; a batch counts only with its commit mark; where a log ends
//! is told by the next log's header, or, for the last one, by `locks/state`.

pub mod format;
pub mod frame;
pub mod reader;
pub mod writer;

pub use format::LogHeader;
pub use frame::{EndFrame, Op, RowFrame};
pub use reader::{Batch, LogFile, Tail};
pub use writer::BatchWriter;
