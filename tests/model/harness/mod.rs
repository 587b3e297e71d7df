//! The harness of the model test: operations, the memory that is known to be right, and the run that holds a database
//! against it.
//!
//! The fuzz targets include this folder by its path, so that a sequence found by one is understood by the other.

// Every user of the folder needs another part of it.
#![allow(dead_code)]

pub mod bytes;
pub mod check;
pub mod embedder;
pub mod op;
pub mod oracle;
pub mod pools;
pub mod world;
