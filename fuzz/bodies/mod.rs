//! What the fuzz targets do with their bytes, as plain functions: the targets call them on nightly, `tests/seeds.rs`
//! replays the stored inputs through them on stable.
//!
//! Contract of every `run`: any bytes give an answer or an error, never a panic, never much memory; a wrong answer is
//! a panic of the body itself.

// The targets use one body each, the replay no mutator.
#![allow(dead_code)]

pub mod analyse_text;
pub mod bundle_open;
pub mod crash_ops;
pub mod embed_text;
#[path = "../../tests/model/harness/mod.rs"]
pub mod harness;
pub mod image;
pub mod log_open;
pub mod ops_vs_model;
pub mod record_decode;
pub mod repair;
pub mod search_vs_exhaustive;
pub mod segment_open;
pub mod steady;

/// The database that the bytes of single files claim to belong to.
pub const DATABASE: [u8; 16] = *b"0123456789abcdef";

/// A body.
pub type Body = fn(&[u8]);

/// All targets by name.
pub const ALL: [(&str, Body); 9] = [
    ("analyse_text", analyse_text::run),
    ("bundle_open", bundle_open::run),
    ("crash_ops", crash_ops::run),
    ("embed_text", embed_text::run),
    ("log_open", log_open::run),
    ("ops_vs_model", ops_vs_model::run),
    ("record_decode", record_decode::run),
    ("search_vs_exhaustive", search_vs_exhaustive::run),
    ("segment_open", segment_open::run),
];
