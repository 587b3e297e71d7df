//! The threads of one handle that wait for a commit, and the one that leads them (design 2.2).
//!
//! The first thread to find nobody leading becomes the leader: it commits everything that waits as one group, answers
//! everyone, and hands the lead to the first of those who came meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread::Thread;

use crate::error::{Error, Result};
use crate::ids::CommitSeq;

use super::store::Shared;
use super::transaction::Transaction;

/// Work to do under the writer lock; what it returns reaches its caller by another way.
pub type Work = Box<dyn FnOnce(&mut Transaction<'_>) -> Result<()> + Send>;

/// The threads of this handle that wait for a commit.
#[derive(Default)]
pub struct Queue(Mutex<QueueState>);

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<(Work, Arc<Ticket>)>,
    leading: bool,
}

struct Ticket {
    thread: Thread,
    answer: Mutex<Option<Answer>>,
}

enum Answer {
    Lead,
    Done(Result<Option<CommitSeq>>),
}

impl Ticket {
    fn answer(&self, answer: Answer) {
        *self.answer.lock().expect("no panic holds it") = Some(answer);
        self.thread.unpark();
    }
}

impl Queue {
    /// Queues `work`, leads or waits, and returns the number of its batch (`None` when it wrote nothing).
    pub fn commit(&self, shared: &Shared, work: Work) -> Result<Option<CommitSeq>> {
        let ticket = Arc::new(Ticket { thread: std::thread::current(), answer: Mutex::new(None) });
        let mut lead = {
            let mut state = self.0.lock().expect("no panic holds it");
            state.waiting.push_back((work, ticket.clone()));
            !std::mem::replace(&mut state.leading, true)
        };
        loop {
            if lead {
                self.lead(shared);
            }
            // A statement of its own: in the match, the guard would be held while this thread is parked.
            let answer = ticket.answer.lock().expect("no panic holds it").take();
            match answer {
                Some(Answer::Done(result)) => return result,
                Some(Answer::Lead) => lead = true,
                None => {
                    lead = false;
                    std::thread::park();
                }
            }
        }
    }

    /// Threads that wait for a leader to take their work.
    #[cfg(any(test, feature = "internals"))]
    pub fn waiting(&self) -> usize {
        self.0.lock().expect("no panic holds it").waiting.len()
    }

    /// Commits everything that waits as one group, and hands the lead on.
    fn lead(&self, shared: &Shared) {
        let waiting = std::mem::take(&mut self.0.lock().expect("no panic holds it").waiting);
        let (works, tickets): (Vec<Work>, Vec<Arc<Ticket>>) = waiting.into_iter().unzip();
        let handover = Handover { queue: self, tickets };
        let results = shared.commit_group(works);
        for (ticket, result) in handover.tickets.iter().zip(results) {
            ticket.answer(Answer::Done(result));
        }
    }
}

/// Hands the lead on, also when the leader panics; who was not answered by then learns that the handle is unusable.
struct Handover<'a> {
    queue: &'a Queue,
    tickets: Vec<Arc<Ticket>>,
}

impl Drop for Handover<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for ticket in &self.tickets {
                let error = Error::poisoned("the thread that led this commit panicked");
                ticket.answer(Answer::Done(Err(error)));
            }
        }
        let mut state = self.queue.0.lock().expect("no panic holds it");
        match state.waiting.front() {
            Some((_, ticket)) => ticket.answer(Answer::Lead),
            None => state.leading = false,
        }
    }
}
