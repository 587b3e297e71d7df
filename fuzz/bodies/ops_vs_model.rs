//! Arbitrary operations on several handles give what the model gives.

use std::sync::Arc;

use loomdb::internals::storage::vfs::MemoryVfs;

use super::harness::bytes::Bytes;
use super::harness::world::World;

/// The bytes are operations.
pub fn run(data: &[u8]) {
    let ops = Bytes(data).ops();
    let world = World::new(Arc::new(MemoryVfs::new()), "/f.loom");
    if let Err(difference) = world.and_then(|mut world| world.run(&ops)) {
        panic!("{difference}\noperations: {ops:?}");
    }
}
