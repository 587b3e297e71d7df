//! What a search did, for the caller to look at.

use std::fmt;
use std::time::Instant;

use crate::ids::EpisodeId;

/// How an answer came about. Always made: it costs a few counters and clock reads.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Explain {
    /// The ways of finding that were considered.
    pub legs: Vec<Leg>,
    /// Rows whose score was estimated from their code.
    pub rows_by_code: u64,
    /// Rows whose score was computed from their vector.
    pub rows_exact: u64,
    /// Those of [`Explain::rows_exact`] that were scored without looking at a code first.
    pub(super) rows_exact_at_once: u64,
    /// Rows that only the log holds yet, filtered ones included.
    pub log_rows: u64,
    /// Terms of the question that a live passage of the user holds.
    pub terms: u64,
    /// Postings of those terms, one for each passage that holds one.
    pub postings: u64,
    /// Blocks of text that were decompressed; those that a cache still holds are not.
    pub blocks_read: u64,
    /// Ranked episodes beyond those that a token budget looks at.
    pub unseen: u64,
    /// Bytes of codes, vectors and texts that were read.
    pub bytes_touched: u64,
    /// Cells that were scanned.
    pub cells_visited: u64,
    /// Cells whose centroids were compared with the question's vector.
    pub cells_scored: u64,
    /// Those of [`Explain::cells_visited`] that were scanned because the nearest ones left a doubt.
    pub cells_widened: u64,
    /// Cells that were not scanned: too far from the question.
    pub cells_passed_over: u64,
    /// Cells that the filters ruled out as a whole.
    pub cells_skipped: u64,
    /// Segments that had a cell scanned.
    pub segments_visited: u64,
    /// Segments with rows of this user of which no cell was scanned.
    pub segments_skipped: u64,
    /// The episodes that were candidates, where [`crate::Query::list_candidates`] asked for them; `None` also when every
    /// episode that passes the filters was one.
    pub candidates: Option<Vec<EpisodeId>>,
    /// Time spent.
    pub micros: StageMicros,
}

/// One way of finding: whether it ran, and why or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leg {
    /// Its name: `lexical`, `vector` or `newest`.
    pub name: &'static str,
    /// Whether it ran.
    pub ran: bool,
    /// Why, or why not.
    pub reason: &'static str,
}

impl Leg {
    pub(super) fn new(name: &'static str, ran: bool, reason: &'static str) -> Leg {
        Leg { name, ran, reason }
    }
}

/// Microseconds of each stage of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageMicros {
    /// From text to terms and vector.
    pub embed: u64,
    /// Taking the view of the database.
    pub snapshot: u64,
    /// Scoring by words.
    pub lexical: u64,
    /// Choosing candidates by code, or comparing all vectors.
    pub scan: u64,
    /// Scoring exactly, and ordering.
    pub rerank: u64,
    /// Reading the episodes of the answer.
    pub fetch: u64,
    /// The whole call.
    pub total: u64,
}

impl Explain {
    /// Rows that were scored in any way, each counted once.
    pub fn rows_distinct(&self) -> u64 {
        self.rows_by_code + self.rows_exact_at_once
    }
}

/// A few lines for people.
impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for leg in &self.legs {
            let ran = if leg.ran { "ran" } else { "did not run" };
            writeln!(f, "leg {} {ran}: {}", leg.name, leg.reason)?;
        }
        writeln!(
            f,
            "rows: {} by code, {} exactly, {} distinct ({} in the log); {} bytes touched",
            self.rows_by_code,
            self.rows_exact,
            self.rows_distinct(),
            self.log_rows,
            self.bytes_touched
        )?;
        writeln!(
            f,
            "cells: {} scored, {} visited ({} in doubt), {} passed over, {} skipped; segments: {} visited, {} skipped",
            self.cells_scored,
            self.cells_visited,
            self.cells_widened,
            self.cells_passed_over,
            self.cells_skipped,
            self.segments_visited,
            self.segments_skipped
        )?;
        writeln!(
            f,
            "words: {} terms known, {} postings; {} blocks of text read",
            self.terms, self.postings, self.blocks_read
        )?;
        if self.unseen > 0 {
            writeln!(f, "budget: {} ranked episodes not looked at", self.unseen)?;
        }
        let StageMicros { embed, snapshot, lexical, scan, rerank, fetch, total } = self.micros;
        write!(
            f,
            "us: embed {embed}, snapshot {snapshot}, lexical {lexical}, scan {scan}, rerank {rerank}, fetch {fetch}, \
             total {total}"
        )
    }
}

/// Measures stages one after the other.
pub(super) struct Stopwatch {
    start: Instant,
    last: Instant,
}

impl Stopwatch {
    pub fn start() -> Stopwatch {
        let start = Instant::now();
        Stopwatch { start, last: start }
    }

    /// Microseconds since the last call, or the start.
    pub fn lap(&mut self) -> u64 {
        let now = Instant::now();
        let lap = now.duration_since(self.last);
        self.last = now;
        micros(lap)
    }

    /// Microseconds since the start.
    pub fn total(&self) -> u64 {
        micros(self.start.elapsed())
    }
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
