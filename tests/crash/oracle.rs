//! The oracle of runs with several processes: who tried which batch, what was acknowledged, what anyone has seen.

use std::collections::BTreeMap;

use loomdb::Result;
use loomdb::internals::ids::EpisodeId;
use loomdb::internals::storage::vfs::sim::SimVfs;
use loomdb::internals::storage::{Snapshot, Store};
use std::sync::{Arc, Mutex};

use crate::check::{Verdict, contents};
use crate::faults::Candidates;
use crate::model::{Model, Write, encode, run};

/// What one run has done so far. Shared by its tasks, of which only one runs at a time.
pub struct Oracle {
    vfs: SimVfs,
    start: (u64, Model),
    history: Mutex<History>,
}

#[derive(Default)]
struct History {
    /// For each batch number, who tried it: the operation at which it began, and what it writes.
    tried: BTreeMap<u64, Vec<(usize, Vec<Write>)>>,
    /// For each acknowledged batch the operation count then, and which of the tries it was.
    acknowledged: BTreeMap<u64, (usize, usize)>,
    /// The highest batch that anyone was shown or told of.
    floor: u64,
}

impl History {
    /// The model after batch `seq`, if only the last try of each batch counts.
    fn model(&self, start: &(u64, Model), seq: u64) -> Option<Model> {
        let mut model = start.1.clone();
        for number in start.0 + 1..=seq {
            let tries = self.tried.get(&number)?;
            let at = self.acknowledged.get(&number).map_or(tries.len() - 1, |(_, at)| *at);
            model = model.with(&tries[at].1);
        }
        Some(model)
    }
}

impl Oracle {
    /// A run on `vfs`, which holds `model` after batch `seq`.
    pub fn new(vfs: &SimVfs, seq: u64, model: Model) -> Oracle {
        let history = Mutex::new(History { floor: seq, ..History::default() });
        Oracle { vfs: vfs.clone(), start: (seq, model), history }
    }

    fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().expect("no panic holds it")
    }

    /// What a snapshot that begins now must show at least.
    pub fn floor(&self) -> u64 {
        self.history().floor
    }

    /// Commits `writes` and notes it, before and after.
    ///
    /// # Errors
    /// What the store answers.
    pub fn commit(self: &Arc<Self>, store: &Store, writes: &[Write]) -> Result<()> {
        let steps = encode(writes)?;
        let (oracle, own) = (self.clone(), writes.to_vec());
        let (number, seq) = store.commit(move |transaction| {
            let seq = transaction.before()?.seq().get() + 1;
            let begun = oracle.vfs.op_count();
            let number = {
                let mut history = oracle.history();
                let tries = history.tried.entry(seq).or_default();
                tries.push((begun, own));
                tries.len() - 1
            };
            run(transaction, steps)?;
            Ok((seq, number))
        })?;
        let mut history = self.history();
        match seq {
            Some(seq) => {
                assert_eq!(seq.get(), number.0, "the batch before is the one that was read");
                let ended = self.vfs.op_count();
                history.acknowledged.insert(seq.get(), (ended, number.1));
                history.floor = history.floor.max(seq.get());
            }
            // Nothing was left to write.
            None => {
                history.tried.get_mut(&number.0).expect("noted above").remove(number.1);
            }
        }
        Ok(())
    }

    /// Holds a snapshot that began when the floor was `floor` against the batches tried by now.
    pub fn observe(&self, snapshot: &Snapshot, floor: u64) -> Verdict {
        let seq = snapshot.seq().get();
        if seq < floor {
            return Err(format!("shows {seq} batches after {floor} were shown or acknowledged"));
        }
        let model = {
            let mut history = self.history();
            let model = history.model(&self.start, seq);
            history.floor = history.floor.max(seq);
            model.ok_or_else(|| format!("shows {seq} batches, which nobody tried"))?
        };
        contents(snapshot, &model)
    }

    /// What a disk may hold after a power cut behind the first `at` operations.
    pub fn candidates(&self, at: usize) -> Candidates {
        let history = self.history();
        let promised = history.acknowledged.iter().rev().find(|(_, (ended, _))| *ended <= at);
        let promised = promised.map_or(self.start.0, |(seq, _)| *seq);
        let model = history.model(&self.start, promised).expect("acknowledged batches were tried");
        let mut candidates = Candidates::one(promised, model);
        for (seq, tries) in history.tried.range(promised + 1..) {
            for (_, writes) in tries.iter().filter(|(begun, _)| *begun < at) {
                candidates.may_be_followed_by(*seq, writes);
            }
        }
        candidates
    }

    /// An id that may or may not be live, chosen by `number`.
    pub fn some_id(&self, number: u64) -> EpisodeId {
        EpisodeId::new(1 + number % (self.start.1.next_id + 8))
    }
}
