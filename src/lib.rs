//! LoomDB: an embedded on-disk database for the memory of agents.
//!
//! A program opens a local database, hands it the turns of a conversation, and asks questions; it gets back the turns
//! that hold the answer, with the reason each was found. There is no server and no language model in the way.
//!
//! ```
//! use loomdb::{Db, Turn};
//!
//! # fn main() -> loomdb::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("agent.loom");
//! let db = Db::open(&path)?;
//! let alice = db.user("alice");
//! alice.add(Turn::new("We moved to Lisbon in March").speaker("Alice").session("spring"))?;
//!
//! for hit in alice.search("which city do they live in?")?.hits {
//!     println!("{} {} ({})", hit.episode.time, hit.episode.text, hit.why);
//! }
//! # Ok(())
//! # }
//! ```
// With `internals` everything inside is public; only what users see is held to full documentation.
#![cfg_attr(feature = "internals", allow(missing_docs))]

#[cfg_attr(
    not(feature = "internals"),
    allow(dead_code, unused_imports, reason = "terms wait for the lexical leg, and are tested")
)]
mod analysis;
#[cfg_attr(
    not(feature = "internals"),
    allow(
        dead_code,
        unused_imports,
        reason = "a custom model file is loaded only from outside so far"
    )
)]
mod encode;
mod engine;
mod error;
mod ids;
mod index;
mod ingest;
mod model;
mod options;
mod recall;
#[cfg_attr(
    not(feature = "internals"),
    allow(
        dead_code,
        unused_imports,
        reason = "whole scans and kernel names are asked for by benches and fuzzing"
    )
)]
mod simd;
#[cfg_attr(
    not(feature = "internals"),
    allow(
        dead_code,
        unused_imports,
        reason = "neighbours, names and listings wait for the next read paths, and are tested"
    )
)]
mod storage;
mod time;

pub use encode::Embedder;
pub use engine::{Db, Embedding, Memory, OpenOptions, Stats, UserStats, Verification};
pub use error::{Error, ErrorKind, Result};
pub use ids::{CommitSeq, EpisodeId};
pub use ingest::{Added, Outcome, Patch, Turn};
pub use model::Episode;
pub use options::{Durability, Maintenance, RecallOptions, RoutingOptions, VectorElement};
pub use recall::{
    Cursor, Explain, Hit, Leg, MetadataField, MetadataFilter, Omitted, Page, Query, Recall,
    ScoreParts, SearchMode, StageMicros, TimelineOptions,
};
pub use serde_json::Value;
pub use storage::Direction;
pub use time::{Timestamp, Zone, ZonedTime};

/// The distinct terms under which a search by words files `text`, ascending: words in their stems, without stop words;
/// what holds digits or stands for a name or a path also as a whole. Cost: about a microsecond a word.
pub fn terms(text: &str) -> Vec<String> {
    analysis::query_terms(text).into_iter().map(|(term, _)| term).collect()
}

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// White-box access for fuzz targets, crash tests and benches. No promise of stability.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub mod analysis {
        pub use crate::analysis::*;
    }
    pub mod encode {
        pub use crate::encode::*;
    }
    pub mod ids {
        pub use crate::ids::*;
    }
    pub mod model {
        pub use crate::model::*;
    }
    pub mod options {
        pub use crate::options::*;
    }
    pub mod simd {
        pub use crate::simd::*;
    }
    pub mod storage {
        pub use crate::storage::*;
    }
}
