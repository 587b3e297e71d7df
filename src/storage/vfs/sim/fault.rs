//! Faults that the simulated disk is told to make.

use std::error::Error;
use std::fmt;
use std::io;

/// A fault and when it happens. Calls are counted from 0 over the life of one [`SimVfs`](super::SimVfs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The first call, from this index on, that the kind applies to fails.
    pub at_call: u64,
    /// How it fails.
    pub kind: FaultKind,
    /// Whether all calls after it that the kind applies to fail as well.
    pub sticky: bool,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Any call: an input/output error. A sync that fails so behaves as under [`FaultKind::SyncEio`].
    Eio,
    /// A write stores half of its bytes and says so; the next write is an input/output error.
    ShortWriteThenEio,
    /// A write stores half of its bytes and says so; for the next write the disk is full.
    ShortWriteThenEnospc,
    /// A write, an extension or the making of a name: the disk is full.
    Enospc,
    /// A sync fails, and what was to be synced is called clean: no later sync makes it durable, reads still see it.
    SyncEio,
    /// A read or write is interrupted by a signal before it did anything. Meant to be retried.
    Eintr,
}

/// What a call does, as far as faults care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    Write,
    SetLen,
    Sync,
    Create,
    Other,
}

impl FaultKind {
    fn applies_to(self, call: Call) -> bool {
        match self {
            FaultKind::Eio => true,
            FaultKind::ShortWriteThenEio | FaultKind::ShortWriteThenEnospc => call == Call::Write,
            FaultKind::Enospc => matches!(call, Call::Write | Call::SetLen | Call::Create),
            FaultKind::SyncEio => call == Call::Sync,
            FaultKind::Eintr => matches!(call, Call::Read | Call::Write),
        }
    }
}

/// What a call is to do.
#[derive(Debug)]
pub(super) enum Verdict {
    Proceed,
    /// Write half of the bytes.
    Short,
    Fail(io::Error),
}

/// Counts calls and decides which fail.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) calls: u64,
    waiting: Vec<Fault>,
    /// The next write fails: the second half of a short write.
    next_write_fails: Option<fn() -> io::Error>,
    /// Index of the first call that failed.
    pub(super) fired: Option<u64>,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.waiting.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.next_write_fails = None;
    }

    /// Counts a call and decides on it.
    pub(super) fn judge(&mut self, call: Call) -> Verdict {
        let index = self.calls;
        self.calls += 1;
        if call == Call::Write
            && let Some(error) = self.next_write_fails.take()
        {
            return Verdict::Fail(error());
        }
        let due = |fault: &Fault| fault.at_call <= index && fault.kind.applies_to(call);
        let Some(at) = self.waiting.iter().position(due) else {
            return Verdict::Proceed;
        };
        let fault = self.waiting[at];
        if !fault.sticky {
            self.waiting.remove(at);
        }
        self.fired.get_or_insert(index);
        match fault.kind {
            FaultKind::Eio | FaultKind::SyncEio => Verdict::Fail(eio()),
            FaultKind::Enospc => Verdict::Fail(enospc()),
            FaultKind::Eintr => Verdict::Fail(io::ErrorKind::Interrupted.into()),
            FaultKind::ShortWriteThenEio => {
                self.next_write_fails = Some(eio);
                Verdict::Short
            }
            FaultKind::ShortWriteThenEnospc => {
                self.next_write_fails = Some(enospc);
                Verdict::Short
            }
        }
    }
}

/// The system's own input/output error.
fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

fn enospc() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

/// The error of every call of a process that was killed.
#[derive(Debug)]
pub(super) struct Killed;

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("process was killed")
    }
}

impl Error for Killed {}

pub(super) fn killed() -> io::Error {
    io::Error::other(Killed)
}

/// Whether an error comes from a call of a process that was killed, however deep it is wrapped. redb's errors do not
/// hand out their causes; for what went through it, ask [`SimVfs::is_process_killed`](super::SimVfs::is_process_killed).
pub fn is_killed(error: &(dyn Error + 'static)) -> bool {
    let mut at = Some(error);
    while let Some(error) = at {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if error.is::<Killed>() || inner.is_some_and(|inner| is_killed(inner)) {
            return true;
        }
        at = error.source();
    }
    false
}
