//! Bugs that a test can plant, to prove that the crash harness would notice them. Only a simulated disk ever answers
//! yes; every other file layer keeps the trait's default.

/// A step of a protocol that is left out or done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlantedBug {
    /// A segment is published without being synced.
    NoSegmentSync,
    /// The catalog is published before the segment is written out.
    PublishBeforeSync,
    /// `locks/state` is written before the log is synced.
    StateBeforeSync,
    /// The directory of a new log is not synced.
    NoLogDirSync,
    /// Bytes behind the log's end are overwritten instead of excluded.
    TailOverwritten,
    /// A failed sync is tried again, and believed.
    SyncRetried,
    /// A batch counts although its mark does not match it.
    TornBatchAccepted,
    /// Leftovers are removed without the files lock.
    CleanWithoutLock,
    /// A snapshot does not look at the catalog a second time.
    NoSecondRead,
    /// A checkpoint does not take the checkpoint lock.
    TwoCheckpointers,
}
