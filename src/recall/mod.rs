//! The read path: `Query -> Plan -> Candidates -> Ranked -> Recall`, and the plain reads beside it.
//!
//! Invariants: every read names a user, and goes through one snapshot. What is returned as evidence is always the
//! stored episodes. [`exhaustive`] is the definition: the ordinary path may miss, it never scores otherwise.

mod answer;
mod assemble;
mod by_words;
mod exact;
mod exhaustive;
mod explain;
mod filter;
mod formula;
mod found;
mod lexical;
mod nearest;
mod numbers;
mod plan;
mod query;
mod question;
mod rank;
mod read;
mod routed;
mod row_test;
mod rows;
mod scan;
mod scorer;
mod serve;
mod slots;
mod timeline;

pub use answer::{Hit, Omitted, Recall};
pub(crate) use answer::{SearchCache, search};
pub use explain::{Explain, Leg, StageMicros};
pub use filter::{MetadataField, MetadataFilter};
pub use formula::ScoreParts;
pub use query::{Query, SearchMode};
pub(crate) use read::{get, history};
pub(crate) use timeline::timeline;
pub use timeline::{Cursor, Page, TimelineOptions};
