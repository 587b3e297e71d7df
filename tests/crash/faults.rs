//! A failing disk: at every call of every workload an input/output error, a short write, a full disk, a failed sync or
//! an interrupted call, once or from then on. Nothing panics, nothing acknowledged is lost, and the database goes on:
//! for another process of the same machine, and after a power cut.

use std::sync::Mutex;

use loomdb::internals::options::Durability;
use loomdb::internals::storage::vfs::PlantedBug;
use loomdb::internals::storage::vfs::sim::{Fault, FaultKind, SimVfs};
use loomdb::internals::storage::{Snapshot, Store};

use crate::check::{Verdict, contents, told};
use crate::images::{Tally, one_more};
use crate::model::{Model, Write, commit};
use crate::script::{Recording, Script, Step, open, open_with};

/// What a database may hold: its last batch and its contents, for each possibility.
#[derive(Clone)]
pub struct Candidates(Vec<(u64, Model)>);

impl Candidates {
    pub fn one(seq: u64, model: Model) -> Candidates {
        Candidates(vec![(seq, model)])
    }

    /// `writes` may or may not have been committed.
    pub fn may_add(&mut self, writes: &[Write]) {
        let with = self.0.iter().map(|(seq, model)| (seq + 1, model.with(writes)));
        self.0.extend(with.collect::<Vec<_>>());
    }

    /// `writes` were committed.
    pub fn add(&mut self, writes: &[Write]) {
        for (seq, model) in &mut self.0 {
            *seq += 1;
            *model = model.with(writes);
        }
    }

    /// Batch `seq` may be `writes`, on top of every possibility that ends before it.
    pub fn may_be_followed_by(&mut self, seq: u64, writes: &[Write]) {
        let before = self.0.iter().filter(|(number, _)| number + 1 == seq);
        let with = before.map(|(_, model)| (seq, model.with(writes)));
        self.0.extend(with.collect::<Vec<_>>());
    }

    /// Keeps the possibility that the snapshot shows.
    pub fn settle(&mut self, snapshot: &Snapshot) -> Verdict {
        let seq = snapshot.seq().get();
        let mut why = format!("holds {seq} batches");
        let found = self.0.iter().find(|(number, model)| {
            *number == seq && contents(snapshot, model).map_err(|error| why = error).is_ok()
        });
        self.0 = vec![found.cloned().ok_or(why)?];
        Ok(())
    }

    /// The only possibility left.
    fn model(&self) -> &Model {
        assert_eq!(self.0.len(), 1, "settled before");
        &self.0[0].1
    }
}

/// A script under a fault, up to the step that failed.
struct Faulty<'a> {
    script: &'a Script,
    vfs: SimVfs,
    store: Option<Store>,
    /// What every process of this machine must find.
    live: Candidates,
    /// What a power cut may leave.
    durable: Candidates,
}

impl Faulty<'_> {
    /// Runs the script; `Some`: the step that failed.
    fn run(&mut self) -> Option<String> {
        match open_with(&self.vfs, self.script.durability) {
            Ok(store) => self.store = Some(store),
            Err(error) => return Some(format!("open: {error}")),
        }
        for step in &self.script.steps {
            let store = self.store.as_ref().expect("opened above");
            let result = match step {
                Step::Commit(writes) => {
                    let result = commit(store, writes);
                    if self.script.durability == Durability::Relaxed || result.is_err() {
                        self.durable.may_add(writes);
                    } else {
                        self.durable.add(writes);
                    }
                    match result {
                        Ok(()) => self.live.add(writes),
                        Err(_) => self.live.may_add(writes),
                    }
                    result
                }
                Step::Checkpoint => store.checkpoint().map(drop),
                Step::Merge => store.merge().map(drop),
                Step::Flush => store.flush(),
                Step::Reopen => {
                    self.store = None;
                    open_with(&self.vfs, self.script.durability)
                        .map(|store| self.store = Some(store))
                }
            };
            match result {
                Err(error) => {
                    // Relaxed durability may take back what it showed.
                    self.live.0.extend(self.durable.0.iter().cloned());
                    return Some(format!("{step:?}: {}", crate::check::chain(&error)));
                }
                Ok(()) if matches!(step, Step::Checkpoint | Step::Flush) => {
                    self.durable = self.live.clone();
                }
                Ok(()) => {}
            }
        }
        None
    }

    /// The failed handle under a fault that stays: whatever it answers must be right.
    fn poke(&mut self) -> Verdict {
        let Some(store) = &self.store else { return Ok(()) };
        if let Ok(snapshot) = store.snapshot() {
            self.live.clone().settle(&snapshot)?;
        }
        let _ = store.checkpoint();
        let _ = store.merge();
        let _ = store.flush();
        Ok(())
    }

    /// Power cuts now, one a seed: each image holds one of `candidates` and goes on.
    fn cut(&self, candidates: &Candidates, seeds: &[u64], when: &str) -> Verdict {
        let mut replay = self.vfs.replay();
        replay.advance_to(self.vfs.op_count());
        for seed in seeds {
            let image = replay.crash_image(*seed);
            go_on(&image, candidates.clone(), false)
                .map_err(|why| format!("power cut {seed} {when}: {why}"))?;
            if replay.pending() == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Everything that must hold once the disk works again.
    fn aftermath(&mut self) -> Verdict {
        self.cut(&self.durable, &[0, 1, 2], "after the fault")?;
        let killed = self.vfs.kill_image(self.vfs.op_count());
        go_on(&killed, self.live.clone(), true).map_err(|why| format!("kill: {why}"))?;

        // Another process of the same machine, while the failed handle is still open.
        let other = self.vfs.new_process();
        let store = told("open by another process", open(&other))?;
        self.live.settle(&told("snapshot", store.snapshot())?)?;
        let (more, _) = one_more(self.live.model());
        told("commit by another process", commit(&store, &more))?;
        self.live.add(&more);
        self.live.settle(&told("snapshot", store.snapshot())?)?;
        self.cut(&self.live, &[0, 3], "after another process went on")?;

        // The failed handle sees that, or says that it is of no use.
        if let Some(failed) = &self.store {
            if let Ok(snapshot) = failed.snapshot() {
                self.live.settle(&snapshot).map_err(|why| format!("failed handle: {why}"))?;
            }
            let (more, _) = one_more(self.live.model());
            if commit(failed, &more).is_ok() {
                self.live.add(&more);
            }
        }
        // It never gives wrong bytes to anyone: relaxed batches become durable here, or when it is closed.
        self.store = None;
        self.live.settle(&told("snapshot", store.snapshot())?)?;
        told("checkpoint by another process", store.checkpoint())?;
        self.live.settle(&told("snapshot", store.snapshot())?)?;
        self.cut(&self.live, &[0], "after a checkpoint by another process")?;
        drop(store);
        go_on(&self.vfs.new_process(), self.live.clone(), true)
    }
}

/// Opens, finds one of `candidates`, commits once more, and if `deep` checkpoints and opens again.
pub fn go_on(vfs: &SimVfs, mut candidates: Candidates, deep: bool) -> Verdict {
    let store = told("open", open(vfs))?;
    candidates.settle(&told("snapshot", store.snapshot())?)?;
    let (more, _) = one_more(candidates.model());
    told("one more commit", commit(&store, &more))?;
    candidates.add(&more);
    candidates.settle(&told("snapshot", store.snapshot())?)?;
    if deep {
        told("checkpoint", store.checkpoint())?;
        candidates.settle(&told("snapshot", store.snapshot())?)?;
        drop(store);
        candidates.settle(&told("snapshot", told("open again", open(vfs))?.snapshot())?)?;
    }
    Ok(())
}

/// Runs `script` on `vfs`, where its setup was run, under a fault. `None`: the fault never fired.
fn one_fault(
    script: &Script,
    vfs: SimVfs,
    start: &Candidates,
    fault: Fault,
    fired: &mut Option<u64>,
) -> Verdict {
    vfs.inject(fault);
    let (live, durable) = (start.clone(), start.clone());
    let mut faulty = Faulty { script, vfs, store: None, live, durable };
    let failed = faulty.run();
    *fired = faulty.vfs.fault_fired();
    if fired.is_none() {
        return Ok(());
    }
    if let (Some(step), FaultKind::Eintr) = (&failed, fault.kind) {
        return Err(format!("an interrupted call failed {step}"));
    }
    if fault.sticky {
        faulty.poke()?;
    }
    if fault.kind == FaultKind::Eio && fault.sticky && script.setup.is_empty() && failed.is_some() {
        // A directory whose sync failed and that takes no rename either: a name in it can no longer be made durable,
        // whatever a later sync says. Nothing was acknowledged; it is enough that the machine itself goes on.
        faulty.vfs.clear_faults();
        return go_on(&faulty.vfs.kill_image(faulty.vfs.op_count()), faulty.live, true);
    }
    faulty.vfs.clear_faults();
    faulty.aftermath().map_err(|why| format!("{why} (failed step: {failed:?})"))
}

/// Every fault at every call of a script's steps that it applies to, with or without a planted bug.
pub fn fail_everywhere(
    script: &Script,
    kinds: &[(FaultKind, bool)],
    bug: Option<PlantedBug>,
    tally: &Tally,
) {
    let setup = Script { steps: vec![], setup: script.setup.clone(), ..*script };
    let setup = Recording::new(&setup);
    let setup_ops = if script.setup.is_empty() { 0 } else { setup.vfs.op_count() };
    let start = Candidates::one(
        setup.models.len() as u64 - 1,
        setup.models.last().expect("never empty").clone(),
    );
    let work: Mutex<Vec<(FaultKind, bool)>> = Mutex::new(kinds.to_vec());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(8) {
            scope.spawn(|| {
                while let Some((kind, sticky)) = { work.lock().expect("no panic holds it").pop() } {
                    let mut replay = setup.vfs.replay();
                    replay.advance_to(setup_ops);
                    let mut at_call = 0;
                    loop {
                        let fault = Fault { at_call, kind, sticky };
                        let mut fired = None;
                        let name = || format!("{}, {fault:?}", script.name);
                        tally.judge(&name, || {
                            let vfs = replay.kill_image();
                            bug.inspect(|bug| vfs.plant(*bug));
                            one_fault(script, vfs, &start, fault, &mut fired)
                        });
                        match fired {
                            Some(call) => at_call = call + 1,
                            None => break,
                        }
                    }
                }
            });
        }
    });
}
