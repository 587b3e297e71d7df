//! The thread of a handle that checkpoints and merges when a threshold is crossed, and syncs under relaxed durability.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use crate::error::{ErrorKind, Result};
use crate::options::{Durability, Maintenance, UNAPPLIED_LOGS_MAX};

use super::store::Shared;

/// What a handle asks of its worker.
#[derive(Debug, Default)]
pub struct Bell {
    asked: Mutex<Asked>,
    rung: Condvar,
    /// A threshold was crossed and nobody has checkpointed since.
    due: AtomicBool,
}

#[derive(Debug, Default)]
struct Asked {
    checkpoint: bool,
    stop: bool,
}

/// The running thread.
#[derive(Debug)]
pub struct Worker(JoinHandle<()>);

impl Worker {
    /// Starts the thread when the options ask for one.
    pub fn start(shared: &Arc<Shared>) -> Option<Worker> {
        let options = &shared.options;
        let wanted = options.maintenance == Maintenance::Background
            || options.durability == Durability::Relaxed;
        if options.read_only || !wanted {
            return None;
        }
        let shared = shared.clone();
        let thread = std::thread::Builder::new().name("loomdb".into());
        // Without a thread writers checkpoint in line, which is slower and nothing worse.
        thread.spawn(move || run(&shared)).ok().map(Worker)
    }

    /// Asks the thread to end after the step it is at, and waits for it.
    pub fn stop(self, shared: &Shared) {
        shared.bell.ask(|asked| asked.stop = true);
        // A panic there has been printed by the runtime; there is nothing to add.
        let _ = self.0.join();
    }
}

impl Bell {
    fn ask(&self, change: impl FnOnce(&mut Asked)) {
        change(&mut self.asked.lock().unwrap_or_else(|poison| poison.into_inner()));
        self.rung.notify_one();
    }

    pub fn is_due(&self) -> bool {
        self.due.load(Ordering::Acquire)
    }

    pub fn set_due(&self, due: bool) {
        self.due.store(due, Ordering::Release);
    }
}

fn run(shared: &Shared) {
    let relaxed = shared.options.durability == Durability::Relaxed;
    let mut asked = shared.bell.asked.lock().unwrap_or_else(|poison| poison.into_inner());
    loop {
        if asked.stop {
            return;
        }
        if std::mem::take(&mut asked.checkpoint) {
            drop(asked);
            // What fails here is tried again at the next threshold, and in line when logs pile up; an explicit call
            // reports the error.
            let _ = maintain(shared);
        } else if relaxed {
            let interval = shared.options.relaxed_sync_interval;
            let (guard, waited) = shared
                .bell
                .rung
                .wait_timeout(asked, interval)
                .unwrap_or_else(|poison| poison.into_inner());
            drop(guard);
            if waited.timed_out() {
                // A failed sync has poisoned the handle, which tells the next writer.
                let _ = shared.sync_visible();
            }
        } else {
            drop(shared.bell.rung.wait(asked).unwrap_or_else(|poison| poison.into_inner()));
        }
        asked = shared.bell.asked.lock().unwrap_or_else(|poison| poison.into_inner());
    }
}

fn maintain(shared: &Shared) -> Result<()> {
    shared.bell.set_due(false);
    shared.checkpoint()?;
    shared.merge()?;
    Ok(())
}

impl Shared {
    /// Called after a commit that the view has taken in: the log ends at `end` now.
    pub fn note_growth(&self, end: u64) {
        let seen = self.view.lock().unwrap_or_else(|poison| poison.into_inner());
        let rows = seen.as_ref().map_or(0, |view| view.log_rows);
        drop(seen);
        if end < self.options.checkpoint_bytes && rows < self.options.checkpoint_rows {
            return;
        }
        self.bell.set_due(true);
        if self.options.maintenance == Maintenance::Background {
            self.bell.ask(|asked| asked.checkpoint = true);
        }
    }

    /// Checkpoints on this thread when the options say so and a threshold was crossed. The commit before it is
    /// acknowledged already: an error is left to the next checkpoint.
    pub fn maintain_in_line(&self) {
        if self.options.maintenance == Maintenance::Inline && self.bell.is_due() {
            let _ = maintain(self);
        }
    }

    /// Checkpoints before a commit when too many logs wait (design 2.3), so that memory stays bounded when nobody
    /// else does it.
    pub fn checkpoint_in_line(&self) -> Result<()> {
        let seen = self.view.lock().unwrap_or_else(|poison| poison.into_inner());
        let waiting = seen.as_ref().map_or(0, |view| view.log_count);
        drop(seen);
        if waiting <= UNAPPLIED_LOGS_MAX {
            return Ok(());
        }
        match self.checkpoint_sealed() {
            // Somebody else is at it, or it cannot be done now: the commit itself is not in the way.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Poisoned => Err(error),
            Err(_) => Ok(()),
        }
    }
}
