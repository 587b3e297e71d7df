//! See `bodies/bundle_open.rs`. Half of the mutations are followed by a repair of the checksums of logs and state.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|data: &[u8]| bodies::bundle_open::run(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if seed.is_multiple_of(2) {
        let repaired = bodies::repair::image(&data[..size]);
        if let Some(place) = data.get_mut(..repaired.len().min(max_size)) {
            place.copy_from_slice(&repaired[..place.len()]);
            return place.len();
        }
    }
    size
});
