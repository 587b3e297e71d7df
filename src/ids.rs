//! Ids: newtypes that grow in commit order and are never reused.

use std::fmt;

/// Numbers on disk (ids, sequence numbers, generations, positions) stay below this. A larger one is damage, and is
/// refused where it is read, so that counting on from any accepted number cannot overflow.
pub const NUMBER_END: u64 = 1 << 62;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The id with this number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number behind the id.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// Names one episode for the life of the database. Ids grow in commit order and are never reused.
    EpisodeId
}
id! {
    /// Names one segment file. Never reused once published.
    SegmentId
}
id! {
    /// Names one log file.
    LogId
}
id! {
    /// Numbers the commits of a database: each durable batch has the next one.
    CommitSeq
}
id! {
    /// A user's number inside the catalog and the segments, given at the first checkpoint that meets the user.
    UserNumber
}
id! {
    /// A session's number inside the catalog and the segments. 0 stands for "no session".
    SessionNumber
}

impl SessionNumber {
    /// The number of rows that belong to no session.
    pub const NONE: SessionNumber = SessionNumber(0);
}
