//! A simulated disk: it records what is done to it, builds the disks that a crash may leave, fails on demand, and
//! runs several processes interleaved call by call.
//!
//! Invariants: for running code it behaves as the memory layer does. Operations (what changes the disk or makes
//! changes durable) and calls (whatever may fail) are counted from 0 over the life of one value; a crash image is
//! a value of its own that starts with none. Time and random bytes are virtual. Equal seeds give equal disks and runs.

mod fault;
mod file;
mod log;
mod model;
mod random;
#[cfg(test)]
mod redb_tests;
mod replay;
mod schedule;
#[cfg(test)]
mod tests;

pub use fault::{Fault, FaultKind, is_killed};
pub use replay::Replay;
pub use schedule::{Interleaving, Run, Task, TaskEnd};

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::inode::{Inode, OpenInode};
use super::locks::Owner;
use super::map::Map;
use super::tree::Tree;
use super::{FileIdentity, OpenMode, PlantedBug, Vfs, VfsFile};
use fault::{Call, Faults, Verdict, killed};
use file::SimFile;
use log::Operation;
use model::Model;
use random::Random;
use schedule::{CALL_NANOS, Scheduler, Turn, Want, current_task, end_of_pause};

/// The device of every simulated disk: an image is the same disk, later.
const DEVICE: u64 = 0x51;
/// What a disk's clock starts at: microseconds since the Unix epoch (2025-01-01).
const EPOCH_MICROS: i64 = 1_735_689_600_000_000;

/// A handle of a simulated disk, held by one simulated process. Clones are the same process.
#[derive(Clone)]
pub struct SimVfs {
    disk: Arc<Disk>,
    process: u32,
}

/// The disk that all processes share.
struct Disk {
    state: Mutex<State>,
    clock: Arc<AtomicU64>,
    scheduler: Mutex<Option<Arc<Scheduler>>>,
    /// One bit a planted bug.
    planted: AtomicU32,
}

struct State {
    tree: Tree,
    base: Model,
    log: Vec<Operation>,
    faults: Faults,
    open: HashMap<Owner, (u32, Arc<Inode>)>,
    killed: HashSet<u32>,
    next_process: u32,
    deaf_to: Vec<String>,
    random: Random,
}

impl Default for SimVfs {
    fn default() -> SimVfs {
        SimVfs::new()
    }
}

impl SimVfs {
    /// A disk with an empty root directory, which is durable. The handle is process 1.
    pub fn new() -> SimVfs {
        SimVfs::on(Model::empty(), Random::new(0, 0), 0, 0)
    }

    /// A disk that starts as `base` at `clock` nanoseconds; `random` is what [`Vfs::random`] draws from.
    fn on(base: Model, random: Random, clock: u64, planted: u32) -> SimVfs {
        let state = State {
            tree: base.tree(),
            base,
            log: Vec::new(),
            faults: Faults::default(),
            open: HashMap::new(),
            killed: HashSet::new(),
            next_process: 2,
            deaf_to: Vec::new(),
            random,
        };
        let disk = Disk {
            state: Mutex::new(state),
            clock: Arc::new(AtomicU64::new(clock)),
            scheduler: Mutex::new(None),
            planted: AtomicU32::new(planted),
        };
        SimVfs { disk: Arc::new(disk), process: 1 }
    }

    /// Operations recorded so far.
    pub fn op_count(&self) -> usize {
        self.disk.state().log.len()
    }

    /// Calls made so far, by all processes, that a fault could have hit: every call but locks, waits and questions
    /// about the machine.
    pub fn call_count(&self) -> u64 {
        self.disk.state().faults.calls
    }

    /// An operation in words, with the last name of its file, for messages of tests.
    pub fn operation(&self, at: usize) -> Option<String> {
        let state = self.disk.state();
        let operation = state.log.get(at)?;
        let subject = operation.subject();
        let earlier = state.log[..=at].iter().rev().filter(|one| one.subject() == subject);
        let given = earlier.filter_map(Operation::given_name).next().cloned();
        let name = given.or_else(|| state.base.name(subject)).unwrap_or_else(|| "/".into());
        Some(format!("{name}: {operation}"))
    }

    /// A cursor at operation 0, for many images at many places.
    pub fn replay(&self) -> Replay {
        Replay::new(self.disk.clone())
    }

    /// A disk that a power cut after the first `at` operations may leave; see [`Replay::crash_image`].
    pub fn crash_image(&self, at: usize, seed: u64) -> SimVfs {
        let mut replay = self.replay();
        replay.advance_to(at);
        replay.crash_image(seed)
    }

    /// The disk after all processes were killed after `at` operations; see [`Replay::kill_image`].
    pub fn kill_image(&self, at: usize) -> SimVfs {
        let mut replay = self.replay();
        replay.advance_to(at);
        replay.kill_image()
    }

    /// Plans a fault. Several may wait at once.
    pub fn inject(&self, fault: Fault) {
        self.disk.state().faults.add(fault);
    }

    /// Forgets all planned faults.
    pub fn clear_faults(&self) {
        self.disk.state().faults.clear();
    }

    /// The index of the first call that failed by a planned fault.
    pub fn fault_fired(&self) -> Option<u64> {
        self.disk.state().faults.fired
    }

    /// Plants a lost sync: from now on, syncing a file or directory whose name contains `part` answers that all is
    /// well and does nothing. Shows that a test can see a missing sync.
    pub fn ignore_syncs_of(&self, part: &str) {
        self.disk.state().deaf_to.push(part.to_owned());
    }

    /// Plants a bug for the code that runs on this disk and on every image taken of it from now on.
    pub fn plant(&self, bug: PlantedBug) {
        self.disk.planted.fetch_or(1 << bug as u32, Ordering::Relaxed);
    }

    /// The same disk, as the process of this number. [`SimVfs::new`] gives out 1, runs and [`SimVfs::new_process`]
    /// count up from 2.
    pub fn as_process(&self, process: u32) -> SimVfs {
        SimVfs { disk: self.disk.clone(), process }
    }

    /// The same disk, as a process that nobody was yet.
    pub fn new_process(&self) -> SimVfs {
        let mut state = self.disk.state();
        let process = state.next_process;
        state.next_process += 1;
        drop(state);
        self.as_process(process)
    }

    /// Kills a process: its calls fail from now on, its locks are free at once, its files stay as they are.
    pub fn kill(&self, process: u32) {
        let mut state = self.disk.state();
        state.killed.insert(process);
        for (owner, (holder, inode)) in &state.open {
            if *holder == process {
                inode.release(*owner);
            }
        }
        drop(state);
        self.disk.locks_freed();
    }

    /// Whether this handle's process was killed.
    pub fn is_process_killed(&self) -> bool {
        self.disk.state().killed.contains(&self.process)
    }

    /// Prepares a run of several tasks on this disk, one at a time, each a process of its own, in an order that
    /// `seed` decides at every call.
    pub fn interleaving(&self, seed: u64) -> Interleaving {
        Interleaving::new(self.clone(), seed)
    }

    /// Hands over to the scheduler, if this thread runs a task; an error when the process does not live.
    fn hand_over(&self, wants: Want) -> io::Result<()> {
        let turn = match self.disk.task() {
            Some((scheduler, index)) => scheduler.turn(index, wants),
            None => {
                self.disk.clock.fetch_add(CALL_NANOS, Ordering::Relaxed);
                Turn::Go
            }
        };
        match turn {
            Turn::Stop => return Err(killed()),
            Turn::Die => self.kill(self.process),
            Turn::Go => {}
        }
        match self.is_process_killed() {
            true => Err(killed()),
            false => Ok(()),
        }
    }

    /// Begins a call that faults may hit.
    fn enter(&self, call: Call) -> io::Result<MutexGuard<'_, State>> {
        let (state, verdict) = self.enter_judged(call)?;
        match verdict {
            Verdict::Fail(error) => Err(error),
            Verdict::Proceed | Verdict::Short => Ok(state),
        }
    }

    /// Begins a call that has to do something when it fails.
    fn enter_judged(&self, call: Call) -> io::Result<(MutexGuard<'_, State>, Verdict)> {
        self.hand_over(Want::Turn)?;
        let mut state = self.disk.state();
        let verdict = state.faults.judge(call);
        Ok((state, verdict))
    }
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_scheduler(&self, scheduler: Option<Arc<Scheduler>>) -> Option<Arc<Scheduler>> {
        let mut current = self.scheduler.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, scheduler)
    }

    fn scheduler(&self) -> Option<Arc<Scheduler>> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The task that this thread runs on this disk.
    fn task(&self) -> Option<(Arc<Scheduler>, usize)> {
        let scheduler = self.scheduler()?;
        let index = current_task(&scheduler)?;
        Some((scheduler, index))
    }

    fn locks_freed(&self) {
        if let Some(scheduler) = self.scheduler() {
            scheduler.locks_freed();
        }
    }
}

impl State {
    /// Whether a planted bug swallows the sync of this file or directory.
    fn is_deaf(&self, number: u64) -> bool {
        !self.deaf_to.is_empty() && {
            let name = self.tree.name(number).unwrap_or_default();
            self.deaf_to.iter().any(|part| name.contains(part.as_str()))
        }
    }
}

impl fmt::Debug for SimVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimVfs(process {})", self.process)
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let makes = matches!(mode, OpenMode::Create | OpenMode::CreateNew);
        let mut state = self.enter(if makes { Call::Create } else { Call::Other })?;
        let (inode, made) = state.tree.open(path, mode)?;
        state.log.extend(made.map(Operation::CreateFile));
        let open = OpenInode::new(inode.clone(), mode != OpenMode::Read);
        state.open.insert(open.owner, (self.process, inode));
        drop(state);
        Ok(Arc::new(SimFile::new(self.clone(), open)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Create)?;
        let entry = state.tree.create_dir(path)?;
        state.log.push(Operation::CreateDirectory(entry));
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.enter(Call::Other)?.tree.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Other)?;
        let (from, to) = state.tree.rename(from, to)?;
        state.log.push(Operation::Rename { from, to });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Other)?;
        let entry = state.tree.remove_file(path)?;
        state.log.push(Operation::Unlink(entry));
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Other)?;
        let removed = state.tree.remove_dir_all(path)?;
        state.log.extend(removed.into_iter().map(Operation::Unlink));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let (mut state, verdict) = self.enter_judged(Call::Sync)?;
        let directory = state.tree.directory_number(path)?;
        let result = match verdict {
            Verdict::Fail(error) => Err(error),
            Verdict::Proceed | Verdict::Short => Ok(()),
        };
        if result.is_err() || !state.is_deaf(directory) {
            state.log.push(Operation::SyncDirectory { directory, done: result.is_ok() });
        }
        result
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        let state = self.enter(Call::Other)?;
        Ok(FileIdentity { device: DEVICE, inode: state.tree.number(path)? })
    }

    fn map(&self, path: &Path, len: u64) -> io::Result<Map> {
        // No signal interrupts a map.
        let (inode, _) = self.enter(Call::Other)?.tree.open(path, OpenMode::Read)?;
        inode.map(len)
    }

    fn remote_kind(&self, path: &Path) -> io::Result<Option<&'static str>> {
        self.hand_over(Want::Turn)?;
        self.disk.state().tree.number(path).map(|_| None)
    }

    fn machine_id(&self) -> Option<String> {
        Some("sim".to_owned())
    }

    fn available_space(&self, path: &Path) -> io::Result<u64> {
        self.hand_over(Want::Turn)?;
        self.disk.state().tree.number(path).map(|_| u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        // Reading the clock takes time, so that a loop around it ends.
        let before = self.disk.clock.fetch_add(CALL_NANOS, Ordering::Relaxed);
        Duration::from_nanos(before)
    }

    fn pause(&self, duration: Duration) {
        let until = end_of_pause(&self.disk.clock, duration);
        match self.disk.task() {
            None => {
                self.disk.clock.fetch_max(until, Ordering::Relaxed);
                std::thread::yield_now();
            }
            Some((scheduler, index)) => match scheduler.turn(index, Want::Time(until)) {
                Turn::Go => {}
                Turn::Die => self.kill(self.process),
                // A loop of waits would not end by errors, as there are none to return here.
                Turn::Stop if !std::thread::panicking() => panic!("the interleaved run has failed"),
                Turn::Stop => {}
            },
        }
    }

    fn process_id(&self) -> u32 {
        self.process
    }

    fn planted(&self, bug: PlantedBug) -> bool {
        self.disk.planted.load(Ordering::Relaxed) & (1 << bug as u32) != 0
    }

    fn now(&self) -> i64 {
        EPOCH_MICROS + (self.disk.clock.load(Ordering::Relaxed) / 1_000) as i64
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        bytes.fill_with(|| state.random.next() as u8);
        Ok(())
    }
}
