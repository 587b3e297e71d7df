//! A cursor over what was done to a simulated disk, which builds the disks that a crash may leave.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::model::Model;
use super::random::Random;
use super::{Disk, SimVfs};

/// Steps through the operations of a [`SimVfs`] and answers, at each place, what a crash there may leave.
///
/// Position `n` means: the first `n` operations were issued. Building an image costs the changes that are not durable
/// and a few allocations a file; contents are shared.
pub struct Replay {
    disk: Arc<Disk>,
    model: Model,
    position: usize,
}

impl Replay {
    pub(super) fn new(disk: Arc<Disk>) -> Replay {
        let model = disk.state().base.clone();
        Replay { disk, model, position: 0 }
    }

    /// Operations taken in so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Takes in the next operation; `false` when there is none (yet).
    pub fn step(&mut self) -> bool {
        let state = self.disk.state();
        let Some(operation) = state.log.get(self.position) else { return false };
        self.model.apply(operation);
        self.position += 1;
        true
    }

    /// Goes forward to a position.
    ///
    /// # Panics
    /// When the cursor is past it, or fewer operations were recorded.
    pub fn advance_to(&mut self, position: usize) {
        assert!(self.position <= position, "a replay does not go back");
        while self.position < position {
            assert!(self.step(), "operation {} was not recorded", self.position);
        }
    }

    /// Changes that a power cut here may lose. With 0, every seed gives the same image.
    pub fn pending(&self) -> usize {
        self.model.pending()
    }

    /// A disk that a power cut here may leave. Seed 0 loses all that is not durable, seed 1 keeps all of it, every
    /// other seed is a choice that also depends on the position. All of the image is durable.
    pub fn crash_image(&self, seed: u64) -> SimVfs {
        self.image(self.model.crash(seed, self.position as u64), seed)
    }

    /// The disk after all processes were killed here while the machine lives: nothing is lost, no lock is held, and
    /// what was not durable still is not.
    pub fn kill_image(&self) -> SimVfs {
        self.image(self.model.clone(), u64::MAX)
    }

    /// A disk that goes on later, with random bytes of its own: salts must not come twice.
    fn image(&self, model: Model, seed: u64) -> SimVfs {
        // Apart from what this disk has drawn, and from what other images draw.
        let drawn = self.disk.state().random.clone().next();
        let random = Random::new(seed ^ drawn, self.position as u64);
        let clock = self.disk.clock.load(Ordering::Relaxed);
        SimVfs::on(model, random, clock, self.disk.planted.load(Ordering::Relaxed))
    }
}
