//! From ranked rows to the answer: near-duplicates folded, the budget filled, the episodes read.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::analysis;
use crate::error::Result;
use crate::ids::EpisodeId;
use crate::model::Episode;
use crate::storage::Snapshot;

use super::answer::{Hit, Omitted};
use super::assemble::{Kept, Size, fold, pack};
use super::found::Found;
use super::plan::Plan;

/// The answer's episodes, and those that did not fit into the budget.
#[derive(Default)]
pub(super) struct Served {
    pub hits: Vec<Hit>,
    pub omitted: Vec<Omitted>,
    /// Ranked episodes that the filling of the budget did not look at.
    pub unseen: u64,
    /// Bytes of text that were read.
    pub bytes: u64,
}

/// A ranked row, read.
struct Read {
    hit: Hit,
    /// Tokens of the best passage, if that is less than the whole.
    passage_tokens: Option<usize>,
}

/// Ranked rows that are asked for first: when near-duplicates are folded, some to spare.
pub(super) fn first_depth(plan: &Plan) -> usize {
    if plan.fold { plan.top_k.saturating_add(plan.top_k / 4 + 1) } else { plan.top_k }
}

/// Serves the best of what `rank` gives, which is asked for more rows as long as folding leaves too few and there are
/// more. `rank`: the best rows, at most so many, best first.
///
/// # Errors
/// `Corrupt`, `Io`; those of `rank`.
pub(super) fn serve<'s>(
    snapshot: &Snapshot,
    plan: &Plan,
    why: impl Fn(&Hit) -> String,
    mut rank: impl FnMut(usize) -> Result<Vec<Found<'s>>>,
) -> Result<Served> {
    let mut served = Served::default();
    let mut read: Vec<Read> = Vec::new();
    let mut depth = first_depth(plan);
    loop {
        let found = rank(depth)?;
        let is_all = found.len() < depth;
        // A deeper ranking may name rows that the one before had missed, in the midst of those that were read.
        let same = |(found, read): &(&Found<'_>, &Read)| found.id == read.hit.episode.id.get();
        let known = found.iter().zip(&read).take_while(same).count();
        read.truncate(known);
        for found in found.into_iter().skip(known) {
            let one = read_one(snapshot, plan, &found)?;
            served.bytes += one.hit.episode.text.len() as u64;
            read.push(one);
        }
        let kept = match plan.fold {
            true => kept(&read),
            false => (0..read.len()).map(|rank| Kept { rank, folded: 0 }).collect(),
        };
        if kept.len() >= plan.top_k || is_all {
            finish(read, kept, plan, &mut served);
            for hit in &mut served.hits {
                hit.why = why(hit);
            }
            return Ok(served);
        }
        depth = depth.saturating_mul(2);
    }
}

/// Those that stay when near-duplicates are folded.
fn kept(read: &[Read]) -> Vec<Kept> {
    let terms: Vec<Vec<u64>> = read
        .iter()
        .map(|read| {
            let mut terms = Vec::new();
            analysis::terms(&read.hit.episode.text, |term, _| {
                let mut hasher = DefaultHasher::new();
                term.hash(&mut hasher);
                terms.push(hasher.finish());
            });
            terms.sort_unstable();
            terms.dedup();
            terms
        })
        .collect();
    fold(terms.iter().map(Vec::as_slice))
}

fn finish(read: Vec<Read>, kept: Vec<Kept>, plan: &Plan, served: &mut Served) {
    let mut read: Vec<Option<Read>> = read.into_iter().map(Some).collect();
    let kept = kept.into_iter().take(plan.top_k).filter_map(|Kept { rank, folded }| {
        let mut one = read[rank].take()?;
        one.hit.folded = folded;
        Some(one)
    });
    let mut kept: Vec<Option<Read>> = kept.map(Some).collect();
    let Some(max_tokens) = plan.max_tokens else {
        served.hits = kept.into_iter().flatten().map(|read| read.hit).collect();
        return;
    };
    let sizes = kept
        .iter()
        .flatten()
        .map(|read| Size { tokens: read.hit.tokens, passage_tokens: read.passage_tokens });
    let packed = pack(sizes, max_tokens);
    for portion in &packed.taken {
        served.hits.extend(kept[portion.rank].take().map(|mut read| {
            read.hit.tokens = portion.tokens;
            read.hit.cut = portion.passage;
            read.hit
        }));
    }
    served.omitted.extend(packed.omitted.iter().filter_map(|portion| {
        let id = kept[portion.rank].as_ref()?.hit.episode.id;
        Some(Omitted { id, tokens: portion.tokens })
    }));
    served.unseen = packed.unseen as u64;
}

fn read_one(snapshot: &Snapshot, plan: &Plan, found: &Found<'_>) -> Result<Read> {
    let record = found.source.record(snapshot)?;
    let episode = Episode::from_record(&record)?;
    let passage = found.passage.and_then(|number| best_passage(&episode.text, number));
    let tokens_of = |text: &str| analysis::tokens(analysis::words(text)) as usize;
    let passage_tokens = match &passage {
        Some(range) if plan.max_tokens.is_some() => Some(tokens_of(&episode.text[range.clone()])),
        _ => None,
    };
    let hit = Hit {
        tokens: analysis::tokens(record.shape.words) as usize,
        score: found.score,
        why: String::new(),
        parts: found.parts,
        passage,
        cut: false,
        folded: 0,
        episode,
    };
    debug_assert_eq!(hit.episode.id, EpisodeId::new(found.id), "the row is that of the id");
    Ok(Read { hit, passage_tokens })
}

/// The bytes of a passage, if the text has more than one.
fn best_passage(text: &str, number: u32) -> Option<Range<usize>> {
    let passages = analysis::passages(text);
    if passages.len() < 2 {
        return None;
    }
    passages.into_iter().nth(number as usize)
}
