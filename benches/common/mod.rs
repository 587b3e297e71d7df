//! What the benches share: percentiles, the machine they ran on, and data.

#![allow(dead_code, unused_imports, reason = "each bench uses its part")]

mod data;
mod machine;
mod stats;

pub use data::{DIMENSION, FIRST_TIME, Random, SESSION, Turns, USER, build, embed_queries, remove};
pub use machine::{SYNC_MICROS_MIN, bench_dir, print_machine, sync_micros};
pub use stats::{Spread, micros};
