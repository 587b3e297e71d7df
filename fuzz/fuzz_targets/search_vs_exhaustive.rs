//! See `bodies/search_vs_exhaustive.rs`.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::search_vs_exhaustive::run(data));
