//! Operations. Every field may hold any value: it is read modulo what there is, so that every list of operations
//! means something and a shrinker may lower each number on its own.

/// One step of a run. `handle` and `user` choose who acts and for whom; `target` an id that was ever given out.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Adds turns as one batch.
    Add { handle: u8, user: u8, turns: Vec<TurnSpec> },
    /// Writes the next version of an episode.
    Update { handle: u8, user: u8, target: u8, patch: PatchSpec },
    /// Deletes an episode.
    Delete { handle: u8, user: u8, target: u8 },
    /// Deletes a session.
    DeleteSession { handle: u8, user: u8, session: u8 },
    /// Moves the log into segments.
    Checkpoint { handle: u8 },
    /// Joins segments.
    Merge { handle: u8 },
    /// Adds a turn and checkpoints, several times, so that there is something to merge.
    Churn { handle: u8, user: u8, rounds: u8 },
    /// Closes a handle and opens it again.
    Reopen { handle: u8 },
    /// Closes all handles, then opens them again: the first one recovers.
    ReopenAll,
    /// Asks with a vector, or with the text of that number.
    Search { handle: u8, user: u8, query: QuerySpec },
    /// Reads a listing, page by page.
    Timeline { handle: u8, user: u8, listing: ListingSpec },
    /// Compares all that a handle answers.
    Check { handle: u8 },
}

/// A turn to add. 0 stands for "not given" where a part may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnSpec {
    pub text: u8,
    pub key: u8,
    pub session: u8,
    pub speaker: u8,
    pub time: u8,
    pub ordinal: u8,
    pub vector: u8,
    pub extra: u8,
}

/// A change. 0 stands for "stays".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PatchSpec {
    pub text: u8,
    pub session: u8,
    pub speaker: u8,
    pub time: u8,
    pub ordinal: u8,
    pub vector: u8,
    pub extra: u8,
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuerySpec {
    /// A vector below 128, a text from there on; 255 is the empty text.
    pub what: u8,
    pub top_k: u8,
    pub since: u8,
    pub until: u8,
    pub session: u8,
    pub exact: bool,
}

/// A listing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListingSpec {
    pub since: u8,
    pub until: u8,
    pub session: u8,
    pub limit: u8,
    pub descending: bool,
}
