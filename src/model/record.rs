//! One version of one stored thing, as the log, the table of unapplied rows and the segments pass it on.

use std::sync::Arc;

use bincode::{Decode, Encode};

use crate::ids::EpisodeId;

use super::terms::{RowTerms, Shape};

/// The version of a row when it is first written.
pub const VERSION_FIRST: u32 = 1;

/// What a row of a segment stands for (design 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RowKind {
    /// A stored turn, note or chunk.
    Episode = 0,
    /// A topic box.
    Box = 1,
    /// An event of a box.
    Event = 2,
    /// A tag of the DAG.
    Tag = 3,
}

impl RowKind {
    /// The kind stored as `number`.
    pub fn from_number(number: u8) -> Option<RowKind> {
        match number {
            0 => Some(RowKind::Episode),
            1 => Some(RowKind::Box),
            2 => Some(RowKind::Event),
            3 => Some(RowKind::Tag),
            _ => None,
        }
    }
}

/// The part of an episode that is read only to show it: encoded once (bincode, format-spec.md 2), and the same bytes
/// in the log and in a segment's text blocks.
#[derive(Clone, PartialEq, Encode, Decode)]
pub struct Body {
    /// The text as given.
    pub text: String,
    /// The session's name.
    pub session: Option<String>,
    /// Who said it.
    pub speaker: Option<String>,
    /// The agent that stored it.
    pub agent: Option<String>,
    /// The caller's key, unique per user.
    pub key: Option<String>,
    /// Metadata as JSON text; empty for none.
    pub metadata: String,
    /// Tags given by the caller.
    pub tags: Vec<String>,
}

/// Redacted: a record's text must never reach a log line or an error.
impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Body {{ text: {} bytes, tags: {} }}", self.text.len(), self.tags.len())
    }
}

/// One version of one episode, whole.
#[derive(Clone, PartialEq)]
pub struct Record {
    /// The episode's id.
    pub id: EpisodeId,
    /// The version, from [`VERSION_FIRST`] up.
    pub version: u32,
    /// The user's name, opaque bytes.
    pub user: Arc<[u8]>,
    /// When it was said: microseconds since the epoch.
    pub time: i64,
    /// The offset from UTC that `time` was given with, in minutes.
    pub offset_minutes: i16,
    /// When this version was written: microseconds since the epoch.
    pub record_time: i64,
    /// When the first version was written.
    pub first_record_time: i64,
    /// The place among turns of one session and time, given by the caller or the importer.
    pub ordinal: u64,
    /// When it expires: microseconds since the epoch; `i64::MAX` for never.
    pub expires: i64,
    /// The stored vector: little-endian values in the database's element type; empty for none.
    pub vector: Arc<[u8]>,
    /// The text's analysis in numbers.
    pub shape: Shape,
    /// The text's analysis itself. `None` for a row read from a segment, whose postings hold it.
    pub terms: Option<Arc<RowTerms>>,
    /// The rest.
    pub body: Body,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Record {{ id: {}, version: {}, body: {:?} }}", self.id, self.version, self.body)
    }
}
