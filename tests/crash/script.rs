//! Scripts: what a workload does, run once on a simulated disk that records it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loomdb::Result;
use loomdb::internals::model::VectorSpace;
use loomdb::internals::options::{Durability, Maintenance, StorageOptions, VectorElement};
use loomdb::internals::storage::vfs::sim::SimVfs;
use loomdb::internals::storage::{SpaceChoice, Store};

use crate::check;
use crate::model::{DIMENSION, Model, Write, commit};

/// Where every database of these tests lies.
pub const PATH: &str = "/db.loom";

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    Commit(Vec<Write>),
    Checkpoint,
    Merge,
    /// Makes durable what relaxed durability only showed.
    Flush,
    /// Closes the handle and opens another.
    Reopen,
}

/// A workload.
pub struct Script {
    pub name: &'static str,
    pub durability: Durability,
    /// Not crashed in: what the steps to be tested stand on.
    pub setup: Vec<Step>,
    pub steps: Vec<Step>,
}

pub fn space() -> SpaceChoice {
    SpaceChoice::Recorded(VectorSpace {
        name: "test".into(),
        dimension: DIMENSION,
        element: VectorElement::F32,
    })
}

pub fn options(durability: Durability) -> StorageOptions {
    StorageOptions {
        maintenance: Maintenance::Manual,
        durability,
        // Never by the timer: that runs on the machine's clock.
        relaxed_sync_interval: Duration::from_secs(3600),
        catalog_cache_bytes: 1 << 20,
        ..StorageOptions::default()
    }
}

/// Opens or creates the database as ordinary programs do.
pub fn open(vfs: &SimVfs) -> Result<Store> {
    open_with(vfs, Durability::Synced)
}

pub fn open_with(vfs: &SimVfs, durability: Durability) -> Result<Store> {
    Store::open(Arc::new(vfs.clone()), Path::new(PATH), options(durability), space())
}

/// A script that was run on a disk, and when each of its batches counted.
pub struct Recording {
    pub vfs: SimVfs,
    /// The first operation to crash at.
    pub from: usize,
    /// The model after each number of batches.
    pub models: Vec<Model>,
    /// For each batch: operations done when it began, when it was acknowledged, when it was promised to be durable.
    begun: Vec<usize>,
    shown: Vec<usize>,
    durable: Vec<usize>,
}

impl Recording {
    /// Runs `script` from an empty disk.
    pub fn new(script: &Script) -> Recording {
        Recording::on(SimVfs::new(), script)
    }

    /// Runs `script` on an empty disk, on which a bug may be planted.
    pub fn on(vfs: SimVfs, script: &Script) -> Recording {
        let mut recording = Recording {
            vfs,
            from: 0,
            models: vec![Model::new()],
            begun: Vec::new(),
            shown: Vec::new(),
            durable: Vec::new(),
        };
        let open = |vfs: &SimVfs| open_with(vfs, script.durability).expect(script.name);
        let mut store = None;
        if !script.setup.is_empty() {
            store = Some(open(&recording.vfs));
        }
        for step in &script.setup {
            recording.step(step, script, &mut store);
        }
        recording.from = recording.vfs.op_count();
        if store.is_none() {
            store = Some(open(&recording.vfs));
        }
        for step in &script.steps {
            recording.step(step, script, &mut store);
        }
        drop(store.take());
        recording.settle();
        recording
    }

    fn step(&mut self, step: &Step, script: &Script, store: &mut Option<Store>) {
        let open = store.as_ref().expect("opened before the first step");
        match step {
            Step::Commit(writes) => {
                self.begun.push(self.vfs.op_count());
                commit(open, writes).expect(script.name);
                self.shown.push(self.vfs.op_count());
                if script.durability == Durability::Synced {
                    self.settle();
                }
                self.models.push(self.models[self.models.len() - 1].with(writes));
            }
            Step::Checkpoint => {
                assert!(open.checkpoint().expect(script.name), "{}: nothing to do", script.name);
                self.settle();
            }
            Step::Merge => {
                assert!(open.merge().expect(script.name) > 0, "{}: nothing to merge", script.name);
            }
            Step::Flush => {
                open.flush().expect(script.name);
                self.settle();
            }
            Step::Reopen => {
                drop(store.take());
                self.settle();
                *store = Some(open_with(&self.vfs, script.durability).expect(script.name));
            }
        }
        let snapshot = store.as_ref().expect("opened above").snapshot().expect(script.name);
        check::contents(&snapshot, self.models.last().expect("never empty")).expect(script.name);
    }

    /// Everything shown by now is durable by now.
    fn settle(&mut self) {
        self.durable.resize(self.shown.len(), self.vfs.op_count());
    }

    /// The numbers of batches that a disk may hold after a crash behind the first `at` operations.
    pub fn allowed(&self, at: usize, power_cut: bool) -> std::ops::RangeInclusive<usize> {
        let promised = if power_cut { &self.durable } else { &self.shown };
        promised.partition_point(|op| *op <= at)..=self.begun.partition_point(|op| *op < at)
    }
}
