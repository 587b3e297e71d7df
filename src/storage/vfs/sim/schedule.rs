//! Runs several tasks on one simulated disk, one at a time, in an order that a seed decides.
//!
//! Invariants: between two calls of the file layer exactly one task runs, so equal seeds give equal runs as long as the
//! tasks share nothing but the disk. A task must not wait for another by any means but the disk: its thread would never
//! come back to hand over.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::SimVfs;
use super::random::Random;

/// Virtual time of one call. A stated guess: about a system call.
pub(super) const CALL_NANOS: u64 = 1_000;
/// Calls of all tasks after which a run is taken for one that makes no progress.
const STEPS_MAX: u64 = 1_000_000;

/// A task of a run: gets a handle of the disk that is a process of its own.
pub type Task<'a, T> = Box<dyn FnOnce(SimVfs) -> T + Send + 'a>;

/// How a task ended.
#[derive(Debug, PartialEq, Eq)]
pub enum TaskEnd<T> {
    /// Its code ran to the end.
    Done(T),
    /// Its process was killed; what its code returned all the same, unless it panicked on the errors it got.
    Killed(Option<T>),
}

/// What came of a run.
#[derive(Debug)]
pub struct Run<T> {
    /// One end a task, in the order given.
    pub ends: Vec<TaskEnd<T>>,
    /// Calls of each task, which a later run may use to choose when to kill.
    pub calls: Vec<u64>,
}

/// A run to be: see [`SimVfs::interleaving`].
pub struct Interleaving {
    vfs: SimVfs,
    seed: u64,
    steps_max: u64,
    kills: Vec<(usize, u64)>,
}

impl Interleaving {
    pub(super) fn new(vfs: SimVfs, seed: u64) -> Interleaving {
        Interleaving { vfs, seed, steps_max: STEPS_MAX, kills: Vec::new() }
    }

    /// Calls of all tasks after which the run fails. Default: 1,000,000.
    pub fn steps_max(mut self, steps: u64) -> Interleaving {
        self.steps_max = steps;
        self
    }

    /// Kills a task's process at its own call of this index (from 1): that call and all later ones fail with an error
    /// that [`is_killed`](super::is_killed) knows, its locks are free at once, its files stay as they are.
    pub fn kill_at(mut self, task: usize, call: u64) -> Interleaving {
        self.kills.push((task, call));
        self
    }

    /// Runs the tasks to their ends.
    ///
    /// # Panics
    /// With the seed, when the steps run out or all tasks wait for locks; with a task's own panic, unless the task was
    /// killed.
    pub fn run<T: Send>(self, tasks: Vec<Task<'_, T>>) -> Run<T> {
        let disk = self.vfs.disk.clone();
        let count = tasks.len();
        let scheduler = Arc::new(Scheduler::new(&self, count, disk.clock.clone()));
        let before = disk.set_scheduler(Some(scheduler.clone()));
        assert!(before.is_none(), "one run at a time on a simulated disk");
        let handles: Vec<SimVfs> = tasks.iter().map(|_| self.vfs.new_process()).collect();
        let ends: Vec<Result<T, Box<dyn Any + Send>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = tasks
                .into_iter()
                .zip(handles.iter().cloned())
                .enumerate()
                .map(|(index, (task, vfs))| {
                    let scheduler = scheduler.clone();
                    scope.spawn(move || {
                        CURRENT.set(Some((scheduler.clone(), index)));
                        scheduler.wait(index);
                        let end = catch_unwind(AssertUnwindSafe(|| task(vfs)));
                        CURRENT.set(None);
                        scheduler.finish(index);
                        end
                    })
                })
                .collect();
            scheduler.start();
            let join =
                |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(Err);
            threads.into_iter().map(join).collect()
        });
        disk.set_scheduler(None);
        let schedule = scheduler.schedule();
        if let Some(failure) = &schedule.failure {
            panic!("interleaving seed {}: {failure}", self.seed);
        }
        let calls = schedule.tasks.iter().map(|task| task.calls).collect();
        let ends =
            ends.into_iter().zip(&handles).map(|(end, vfs)| match (end, vfs.is_process_killed()) {
                (end, true) => TaskEnd::Killed(end.ok()),
                (Ok(value), false) => TaskEnd::Done(value),
                (Err(panic), false) => {
                    eprintln!("a task panicked under interleaving seed {}", self.seed);
                    resume_unwind(panic)
                }
            });
        Run { ends: ends.collect(), calls }
    }
}

thread_local! {
    /// The task that this thread runs.
    static CURRENT: RefCell<Option<(Arc<Scheduler>, usize)>> = const { RefCell::new(None) };
}

/// The task that this thread runs for `scheduler`.
pub(super) fn current_task(scheduler: &Arc<Scheduler>) -> Option<usize> {
    CURRENT.with_borrow(|current| {
        let (own, index) = current.as_ref()?;
        Arc::ptr_eq(own, scheduler).then_some(*index)
    })
}

/// Decides who runs.
pub(super) struct Scheduler {
    schedule: Mutex<Schedule>,
    wake: Vec<Condvar>,
    clock: Arc<AtomicU64>,
}

struct Schedule {
    tasks: Vec<TaskState>,
    running: Option<usize>,
    random: Random,
    /// Chance in 256 that the running task goes on at a call: runs of calls and fine grain each show other bugs.
    stay: u64,
    steps_left: u64,
    failure: Option<String>,
}

struct TaskState {
    wants: Want,
    calls: u64,
    kill_at: Option<u64>,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Its turn.
    Turn,
    /// A virtual time, in nanoseconds.
    Time(u64),
    /// Any lock to be given up.
    Lock,
    /// Nothing more.
    Nothing,
}

/// What a task is told when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Go,
    /// Its process dies here.
    Die,
    /// The run has failed.
    Stop,
}

impl Scheduler {
    fn new(run: &Interleaving, count: usize, clock: Arc<AtomicU64>) -> Scheduler {
        let mut random = Random::new(run.seed, 0x5C4E_D01E);
        let stay = [0, 128, 224, 250][random.below(4) as usize];
        let tasks = (0..count).map(|index| {
            let mut kills = run.kills.iter().filter(|kill| kill.0 == index);
            TaskState { wants: Want::Turn, calls: 0, kill_at: kills.next().map(|kill| kill.1) }
        });
        let schedule = Schedule {
            tasks: tasks.collect(),
            running: None,
            random,
            stay,
            steps_left: run.steps_max,
            failure: None,
        };
        let wake = (0..count).map(|_| Condvar::new()).collect();
        Scheduler { schedule: Mutex::new(schedule), wake, clock }
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) {
        self.hand_over(&mut self.schedule());
    }

    /// Hands over at a call and comes back when it is the task's turn again.
    pub(super) fn turn(&self, index: usize, wants: Want) -> Turn {
        let mut schedule = self.schedule();
        if schedule.failure.is_some() {
            return Turn::Stop;
        }
        if schedule.steps_left == 0 {
            self.fail(&mut schedule, "the tasks spin without an end");
            return Turn::Stop;
        }
        schedule.steps_left -= 1;
        self.clock.fetch_add(CALL_NANOS, Ordering::Relaxed);
        let task = &mut schedule.tasks[index];
        task.wants = wants;
        task.calls += 1;
        let dies = task.kill_at == Some(task.calls);
        let stays = wants == Want::Turn && {
            let stay = schedule.stay;
            schedule.random.chance(stay)
        };
        if !stays {
            self.hand_over(&mut schedule);
        }
        while schedule.running != Some(index) && schedule.failure.is_none() {
            schedule = self.wake[index].wait(schedule).unwrap_or_else(PoisonError::into_inner);
        }
        match (schedule.failure.is_some(), dies) {
            (true, _) => Turn::Stop,
            (false, true) => Turn::Die,
            (false, false) => Turn::Go,
        }
    }

    /// Waits for the first turn.
    fn wait(&self, index: usize) {
        let mut schedule = self.schedule();
        while schedule.running != Some(index) && schedule.failure.is_none() {
            schedule = self.wake[index].wait(schedule).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, index: usize) {
        let mut schedule = self.schedule();
        schedule.tasks[index].wants = Want::Nothing;
        self.hand_over(&mut schedule);
    }

    /// Lets those who wait for a lock try again.
    pub(super) fn locks_freed(&self) {
        for task in &mut self.schedule().tasks {
            if task.wants == Want::Lock {
                task.wants = Want::Turn;
            }
        }
    }

    /// Chooses who runs next, moving the clock on when all who are left sleep.
    fn hand_over(&self, schedule: &mut Schedule) {
        loop {
            let now = self.clock.load(Ordering::Relaxed);
            let mut ready = Vec::new();
            let mut earliest = None;
            for (index, task) in schedule.tasks.iter_mut().enumerate() {
                match task.wants {
                    Want::Time(until) if until > now => {
                        earliest = Some(earliest.map_or(until, |other: u64| other.min(until)));
                    }
                    Want::Time(_) | Want::Turn => ready.push(index),
                    Want::Lock | Want::Nothing => {}
                }
            }
            if !ready.is_empty() {
                let chosen = ready[schedule.random.below(ready.len() as u64) as usize];
                schedule.tasks[chosen].wants = Want::Turn;
                schedule.running = Some(chosen);
                self.wake[chosen].notify_one();
                return;
            }
            if let Some(earliest) = earliest {
                self.clock.fetch_max(earliest, Ordering::Relaxed);
                continue;
            }
            schedule.running = None;
            if schedule.tasks.iter().any(|task| task.wants == Want::Lock) {
                self.fail(schedule, "all tasks wait for locks");
            }
            return;
        }
    }

    fn fail(&self, schedule: &mut Schedule, failure: &str) {
        schedule.failure.get_or_insert_with(|| failure.to_owned());
        self.wake.iter().for_each(Condvar::notify_all);
    }
}

/// The virtual time at which a pause from now ends.
pub(super) fn end_of_pause(clock: &AtomicU64, duration: Duration) -> u64 {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    clock.load(Ordering::Relaxed).saturating_add(nanos)
}
