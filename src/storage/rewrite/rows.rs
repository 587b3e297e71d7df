//! The rows of several segments as one segment's writer takes them.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::RowKind;
use crate::simd::codec::Codec;
use crate::storage::catalog::CatalogView;
use crate::storage::segment::{PassageLength, PutTerm, RowHead, RowSource, Segment, Tombstone};
use crate::storage::snapshot::Snapshot;

use super::terms;

/// The rows that stay, in segment order, and what goes with them.
pub struct MergedRows<'a> {
    inputs: Vec<Arc<Segment>>,
    rows: Vec<MergedRow>,
    tombstones: Vec<Tombstone>,
    /// Deleted episodes of which no row is left in any segment: their catalog tombstones go.
    forgotten: Vec<EpisodeId>,
    dropped: HashSet<EpisodeId>,
    /// The codec whose codes the inputs hold, one an input.
    codecs: Vec<Option<(Vec<f32>, u64)>>,
    _snapshot: std::marker::PhantomData<&'a Snapshot>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MergedRow {
    user: UserNumber,
    kind: RowKind,
    cluster: u32,
    id: EpisodeId,
    version: u32,
    input: u32,
    row: u32,
}

impl<'a> MergedRows<'a> {
    /// # Errors
    /// `Corrupt`, `Io`: an input cannot be read.
    pub fn new(before: &'a Snapshot, inputs: &[SegmentId]) -> Result<MergedRows<'a>> {
        let base = &before.view().base;
        let mut merged = MergedRows {
            inputs: Vec::new(),
            rows: Vec::new(),
            tombstones: Vec::new(),
            forgotten: Vec::new(),
            dropped: HashSet::new(),
            codecs: Vec::new(),
            _snapshot: std::marker::PhantomData,
        };
        for (number, input) in inputs.iter().enumerate() {
            let view = base.segment(*input).ok_or_else(|| {
                Error::corrupt("segment to rewrite is not listed").of(input.get())
            })?;
            for row in view.dead.rows() {
                let id = view.segment.id_of(row)?;
                if matches!(before.read().tombstone(id)?, Some((_, false))) {
                    merged.dropped.insert(id);
                }
            }
            merged.codecs.push(view.segment.codec()?.map(|codec| (codec.mean, codec.seed)));
            merged.inputs.push(view.segment.clone());
            for row in 0..view.row.rows {
                let head = view.segment.head(row)?;
                merged.rows.push(MergedRow {
                    user: head.user,
                    kind: head.kind,
                    cluster: head.cluster,
                    id: head.id,
                    version: head.version,
                    input: number as u32,
                    row,
                });
            }
        }
        let dropped = std::mem::take(&mut merged.dropped);
        merged.rows.retain(|row| !dropped.contains(&row.id));
        merged.rows.sort_unstable();
        merged.keep_tombstones(before, inputs, &dropped)?;
        merged.dropped = dropped;
        Ok(merged)
    }

    /// Keeps the tombstones of episodes that still have a row somewhere.
    fn keep_tombstones(
        &mut self,
        before: &Snapshot,
        inputs: &[SegmentId],
        dropped: &HashSet<EpisodeId>,
    ) -> Result<()> {
        let kept: HashSet<EpisodeId> = self.rows.iter().map(|row| row.id).collect();
        let elsewhere = |id: EpisodeId| -> Result<bool> {
            for view in &before.view().base.segments {
                if !inputs.contains(&view.row.segment) && view.segment.find(id)?.len() > 0 {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        for input in &self.inputs {
            for tombstone in input.tombstones()? {
                if kept.contains(&tombstone.id) || elsewhere(tombstone.id)? {
                    self.tombstones.push(tombstone);
                }
            }
        }
        self.tombstones.sort_by_key(|tombstone| (tombstone.id, tombstone.version));
        for id in dropped {
            if !elsewhere(*id)? {
                self.forgotten.push(*id);
            }
        }
        self.forgotten.sort_unstable();
        Ok(())
    }

    /// Neither rows nor tombstones stay.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.tombstones.is_empty()
    }

    /// The hull of the inputs' logs.
    pub fn logs(&self) -> (LogId, LogId) {
        let ranges = self.inputs.iter().map(|input| input.logs());
        let hull = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        hull.expect("a rewrite has inputs")
    }

    pub fn users(&self) -> Result<Vec<(UserNumber, Arc<[u8]>)>> {
        let mut wanted: HashSet<UserNumber> = self.rows.iter().map(|row| row.user).collect();
        wanted.extend(self.tombstones.iter().map(|tombstone| tombstone.user));
        let mut users = BTreeMap::new();
        for input in &self.inputs {
            users.extend(input.users()?.into_iter().filter(|(number, _)| wanted.contains(number)));
        }
        Ok(users.into_iter().collect())
    }

    pub fn sessions(&self) -> Result<Vec<(SessionNumber, UserNumber, String)>> {
        let mut wanted = HashSet::new();
        for row in 0..self.rows.len() {
            wanted.insert(self.head(row)?.session);
        }
        let mut sessions = BTreeMap::new();
        for input in &self.inputs {
            for (number, user, name) in input.sessions()? {
                if wanted.contains(&number) {
                    sessions.insert(number, (user, name));
                }
            }
        }
        let sessions = sessions.into_iter();
        Ok(sessions.map(|(number, (user, name))| (number, user, name)).collect())
    }

    pub fn tombstones(&self) -> &[Tombstone] {
        &self.tombstones
    }

    pub fn forgotten(&self) -> &[EpisodeId] {
        &self.forgotten
    }

    /// Id and version of a row of an input, when it stays.
    pub fn name_of(&self, input: SegmentId, row: u32) -> Result<Option<(EpisodeId, u32)>> {
        let Some(segment) = self.inputs.iter().find(|segment| segment.id() == input) else {
            return Ok(None);
        };
        let id = segment.id_of(row)?;
        Ok((!self.dropped.contains(&id)).then_some((id, segment.version(row)?)))
    }

    fn at(&self, row: usize) -> (&Segment, u32) {
        let row = self.rows[row];
        (&self.inputs[row.input as usize], row.row)
    }
}

impl RowSource for MergedRows<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn head(&self, row: usize) -> Result<RowHead> {
        let (segment, row) = self.at(row);
        segment.head(row)
    }

    fn vector(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let (segment, row) = self.at(row);
        out.extend_from_slice(segment.vector(row)?.unwrap_or_default());
        Ok(())
    }

    fn code(&self, row: usize, codec: &Codec, out: &mut Vec<u8>) -> Result<Option<f32>> {
        let known = &self.codecs[self.rows[row].input as usize];
        if !known
            .as_ref()
            .is_some_and(|(mean, seed)| mean[..] == *codec.mean() && *seed == codec.seed())
        {
            return Ok(None);
        }
        let (segment, row) = self.at(row);
        let (Some(code), Some(factor)) =
            (segment.codes(row..row + 1)?, segment.factors(row..row + 1)?)
        else {
            return Ok(None);
        };
        out.extend_from_slice(code);
        Ok(Some(f32::from_le_bytes(factor[0])))
    }

    fn body(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let (segment, row) = self.at(row);
        segment.body(row, out)
    }

    fn speaker(&self, row: usize) -> Result<Option<&str>> {
        let user = self.rows[row].user;
        let (segment, row) = self.at(row);
        Ok(segment.speaker_of(row, user)?.map(|speaker| &*speaker.name))
    }

    fn passages(&self, row: usize, out: &mut Vec<PassageLength>) -> Result<()> {
        let (segment, place) = self.at(row);
        let passages = segment.passages_of(place..place + 1)?;
        if !passages.is_empty() && self.rows[row].kind != RowKind::Episode {
            let error = Error::corrupt("passages of a row that is no episode");
            return Err(error.in_file(segment.path()).of(self.rows[row].id.get()));
        }
        let lengths = segment.passage_lengths(passages)?.iter();
        out.extend(lengths.map(|length| PassageLength::decode(*length)));
        Ok(())
    }

    fn terms(&self, rows: Range<usize>, starts: &[u32], put: &mut PutTerm<'_>) -> Result<()> {
        let Some(first) = self.rows.get(rows.start) else { return Ok(()) };
        let user = first.user;
        let inputs = self.inputs.iter().map(|segment| terms::Input::new(segment, user));
        let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
        for row in rows {
            let (segment, place) = self.at(row);
            let old = segment.passages_of(place..place + 1)?;
            inputs[self.rows[row].input as usize].renumber(old, starts[row])?;
        }
        terms::merge(inputs, put)
    }
}
