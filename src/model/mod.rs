//! Plain data: what a record is, in memory and on its way to disk. No files, no clock.

mod episode;
mod record;
mod terms;
mod vector;

pub use episode::{Episode, parse_metadata, print_metadata};
pub use record::{Body, Record, RowKind, VERSION_FIRST};
pub use terms::{
    ANALYSER, FREQUENCY_MAX, Frequencies, HEAD_HALF_TERMS_MAX, HeadTerm, RowTerms, Shape,
    TERM_BYTES_MAX, TextTerm,
};
pub use vector::{VectorSpace, normalise, pack_vector, unpack_vector};
