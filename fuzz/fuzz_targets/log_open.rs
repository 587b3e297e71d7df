//! See `bodies/log_open.rs`. Three mutations in four are followed by a repair of the checksums.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|data: &[u8]| bodies::log_open::run(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if !seed.is_multiple_of(4) {
        bodies::repair::log(&mut data[..size]);
    }
    size
});
