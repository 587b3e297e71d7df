//! One user's rows as a search goes through them, wherever they lie: one numbering over segments and logs, the
//! neighbours of a turn in its session, the postings of a term.
//!
//! Invariants: numbers of rows and passages hold as long as a snapshot, and nothing of them is stored; episodes are
//! named by id outside. What is kept between searches is only a cache: equal snapshots give equal answers.

mod cache;
mod log_rows;
mod neighbours;
mod passages;
mod rows;
mod run;
mod speakers;

pub(crate) use cache::IndexCache;
pub(crate) use rows::{At, NO_ROW, UserRows};
pub(crate) use run::Run;
pub(crate) use speakers::Speakers;
