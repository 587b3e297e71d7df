//! Percentiles of measured times.

use std::fmt;
use std::time::{Duration, Instant};

/// Microseconds of many runs of one thing.
#[derive(Clone, Debug, Default)]
pub struct Spread(Vec<f64>);

impl Spread {
    pub fn push(&mut self, micros: f64) {
        self.0.push(micros);
    }

    /// Runs `work` and keeps its time.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let value = work();
        self.push(micros(started.elapsed()));
        value
    }

    pub fn extend(&mut self, other: Spread) {
        self.0.extend(other.0);
    }

    pub fn p50(&self) -> f64 {
        self.at(0.5)
    }

    pub fn p99(&self) -> f64 {
        self.at(0.99)
    }

    /// The value below which `share` of the runs lie; 0 without runs.
    pub fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => 0.0,
            runs => sorted[((runs - 1) as f64 * share).round() as usize],
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, p50, high, p99] = [0.1, 0.5, 0.9, 0.99].map(|share| self.at(share));
        let runs = self.0.len();
        write!(f, "p50 {p50:8.0} us   p99 {p99:8.0} us   (p10 {low:.0}, p90 {high:.0}, n {runs})")
    }
}

pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
