//! What a database says of itself.

use crate::error::Error;
use crate::storage::segment::Counts;
use crate::storage::{StoreStats, Verification as StoreVerification};

/// Sizes and counts of a database, read in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Live episodes of all users.
    pub episodes: u64,
    /// Live episodes with a vector. The others are not found by vector.
    pub episodes_with_vector: u64,
    /// Bytes of the texts of live episodes.
    pub text_bytes: u64,
    /// Users with at least one live episode.
    pub users: u64,
    /// Rows that are deleted or superseded and still lie in segments, as of the last checkpoint.
    pub dead_rows: u64,
    /// Name of the vector space.
    pub space_name: String,
    /// Values of one vector.
    pub space_dimension: u32,
    /// Bytes of all files: the sum of the four parts below.
    pub bytes: u64,
    /// Bytes of the log files.
    pub log_bytes: u64,
    /// Bytes of the segment files.
    pub segment_bytes: u64,
    /// Bytes of the catalog.
    pub catalog_bytes: u64,
    /// Bytes of everything else in the bundle.
    pub other_bytes: u64,
    /// Files of the bundle.
    pub files: u64,
    /// Log files.
    pub logs: u64,
    /// Segment files.
    pub segments: u64,
}

impl Stats {
    pub(super) fn new(stats: &StoreStats, space_name: &str, space_dimension: u32) -> Stats {
        let parts = [stats.log_bytes, stats.segment_bytes, stats.catalog_bytes, stats.other_bytes];
        let counts = UserStats::new(stats.counts);
        Stats {
            episodes: counts.episodes,
            episodes_with_vector: counts.episodes_with_vector,
            text_bytes: counts.text_bytes,
            users: stats.users,
            dead_rows: stats.dead_rows,
            space_name: space_name.to_owned(),
            space_dimension,
            bytes: parts.iter().sum(),
            log_bytes: stats.log_bytes,
            segment_bytes: stats.segment_bytes,
            catalog_bytes: stats.catalog_bytes,
            other_bytes: stats.other_bytes,
            files: stats.files,
            logs: stats.logs,
            segments: stats.segments,
        }
    }
}

/// Counts of one user's live episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserStats {
    /// Live episodes. One that has expired counts until it is deleted.
    pub episodes: u64,
    /// Live episodes with a vector.
    pub episodes_with_vector: u64,
    /// Bytes of their texts.
    pub text_bytes: u64,
}

impl UserStats {
    pub(super) fn new(counts: Counts) -> UserStats {
        // Counts of live rows are sums of additions and their negations: never below zero in a whole database.
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        UserStats {
            episodes: count(counts.rows),
            episodes_with_vector: count(counts.vectors),
            text_bytes: count(counts.text_bytes),
        }
    }
}

/// What [`crate::Db::verify`] found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Verification {
    /// Rows read and checked.
    pub rows: u64,
    /// Bytes read and checked.
    pub bytes: u64,
    /// Everything that is wrong, each with its place. Empty: the database is whole.
    pub problems: Vec<Error>,
}

impl Verification {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn new(found: StoreVerification) -> Verification {
        Verification { rows: found.rows, bytes: found.bytes, problems: found.problems }
    }
}
