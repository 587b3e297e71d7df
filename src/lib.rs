//! LoomDB: an embedded on-disk database for the memory of agents.
#![allow(dead_code, missing_docs)]

mod error;
mod ids;
mod model;
mod options;
mod simd;
mod storage;
mod time;

pub use error::{Error, ErrorKind, Result};
pub use ids::{CommitSeq, EpisodeId};
pub use time::{Timestamp, Zone, ZonedTime};
