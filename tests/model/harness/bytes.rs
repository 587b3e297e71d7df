//! Operations from arbitrary bytes, for the fuzz targets. Any bytes are a list of operations; equal bytes are equal
//! lists, so that a stored input means the same for good.

use super::op::{ListingSpec, Op, PatchSpec, QuerySpec, TurnSpec};

/// Operations of one run, at most: a run is to take milliseconds.
const OPS_MAX: usize = 24;
/// Turns of one batch, at most.
const TURNS_MAX: u8 = 5;

/// Reads bytes from front to back; zeros behind the end.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// The next byte.
    pub fn next(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// The next two bytes.
    pub fn next_u16(&mut self) -> u16 {
        u16::from_le_bytes([self.next(), self.next()])
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The operations that the rest of the bytes stand for.
    pub fn ops(&mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        while !self.is_empty() && ops.len() < OPS_MAX {
            ops.push(self.op());
        }
        ops
    }

    fn op(&mut self) -> Op {
        let (what, who) = (self.next(), self.next());
        let (handle, user) = (who & 15, who >> 4);
        match what % 16 {
            0..=4 => {
                let count = 1 + self.next() % TURNS_MAX;
                Op::Add { handle, user, turns: (0..count).map(|_| self.turn()).collect() }
            }
            5 | 6 => Op::Update { handle, user, target: self.next(), patch: self.patch() },
            7 => Op::Delete { handle, user, target: self.next() },
            8 => Op::DeleteSession { handle, user, session: self.next() },
            9 => Op::Checkpoint { handle },
            10 => Op::Merge { handle },
            11 => Op::Churn { handle, user, rounds: self.next() },
            12 => match who % 4 {
                0 => Op::ReopenAll,
                _ => Op::Reopen { handle },
            },
            13 => Op::Search { handle, user, query: self.query() },
            14 => Op::Timeline { handle, user, listing: self.listing() },
            _ => Op::Check { handle },
        }
    }

    fn turn(&mut self) -> TurnSpec {
        TurnSpec {
            text: self.next(),
            key: self.next(),
            session: self.next(),
            speaker: self.next(),
            time: self.next(),
            ordinal: self.next(),
            vector: self.next(),
            extra: self.next(),
        }
    }

    fn patch(&mut self) -> PatchSpec {
        PatchSpec {
            text: self.next(),
            session: self.next(),
            speaker: self.next(),
            time: self.next(),
            ordinal: self.next(),
            vector: self.next(),
            extra: self.next(),
        }
    }

    fn query(&mut self) -> QuerySpec {
        QuerySpec {
            what: self.next(),
            top_k: self.next(),
            since: self.next(),
            until: self.next(),
            session: self.next(),
            exact: self.next() % 2 == 1,
        }
    }

    fn listing(&mut self) -> ListingSpec {
        ListingSpec {
            since: self.next(),
            until: self.next(),
            session: self.next(),
            limit: self.next(),
            descending: self.next() % 2 == 1,
        }
    }
}
