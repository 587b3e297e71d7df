//! The definition of a search with words: every live episode is read whole, its text analysed anew, and every score made
//! by the formulas from nothing but that.
//!
//! Reads no posting, length or count that the database keeps, and knows no order but that of the session's turns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::analysis::analyse;
use crate::error::Result;
use crate::index::Speakers;
use crate::model::{Record, RowTerms, VectorSpace};
use crate::storage::{Part, Snapshot};
use crate::time::civil_date;

use super::super::explain::Explain;
use super::super::formula::{
    Facts, Held, ScoreParts, blended_cosine, idf, length_norm, lent, openness, possible_maximum,
    term_score,
};
use super::super::found::{Found, Source};
use super::super::plan::{Filters, Words};
use super::super::question::day_of;
use super::super::rows::ExactScorer;

/// A live episode, read and analysed.
struct Turn<'s> {
    record: Arc<Record>,
    source: Source<'s>,
    terms: RowTerms,
    /// The turns before and after it in its session, by their places in the list.
    previous: Option<usize>,
    next: Option<usize>,
}

/// All rows that pass the filters, best first.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(in super::super) fn words<'s>(
    snapshot: &Snapshot,
    parts: &[Part<'s>],
    words: &Words,
    filters: &Filters,
    space: &VectorSpace,
    explain: &mut Explain,
) -> Result<Vec<Found<'s>>> {
    let turns = read(snapshot, parts, explain)?;
    let lexical = lexical(&turns, words);
    let mut found = Vec::new();
    if words.alone {
        for (turn, (score, passage)) in turns.iter().zip(lexical) {
            if score > 0.0 && filters.pass(&turn.record)? {
                let parts = ScoreParts { lexical: score, ..ScoreParts::default() };
                found.push(turn.found(score, parts, passage));
            }
        }
    } else {
        let parts = own_parts(&turns, &lexical, words, space, explain)?;
        let own: Vec<f32> = parts.iter().map(ScoreParts::own).collect();
        for (at, mut parts) in parts.into_iter().enumerate() {
            let turn = &turns[at];
            if filters.pass(&turn.record)? {
                let of = |place: Option<usize>| place.map(|place| own[place]);
                let open = openness(turn.terms.words, &words.weights);
                parts.neighbours =
                    lent(own[at], of(turn.previous), of(turn.next), open, &words.weights);
                found.push(turn.found(own[at] + parts.neighbours, parts, lexical[at].1));
            }
        }
    }
    found.sort_by(Found::order);
    Ok(found)
}

impl<'s> Turn<'s> {
    fn found(&self, score: f32, parts: ScoreParts, passage: u32) -> Found<'s> {
        let source = self.source.clone();
        Found { score, id: self.record.id.get(), parts, passage: Some(passage), source }
    }

    fn last_passage(&self) -> usize {
        self.terms.passages.len() - 1
    }
}

/// Every live episode, each linked to its neighbours.
fn read<'s>(
    snapshot: &Snapshot,
    parts: &[Part<'s>],
    explain: &mut Explain,
) -> Result<Vec<Turn<'s>>> {
    let mut turns = Vec::new();
    let mut add = |record: Arc<Record>, source: Source<'s>| {
        let day = civil_date(record.time, record.offset_minutes);
        let terms = analyse(record.body.speaker.as_deref(), &record.body.text, day);
        turns.push(Turn { record, source, terms, previous: None, next: None });
    };
    for part in parts {
        match part {
            Part::Cell { segment, rows, dead, .. } => {
                explain.cells_visited += 1;
                for row in rows.clone().filter(|row| !dead.contains(*row)) {
                    let record = Arc::new(snapshot.record(segment, row)?);
                    add(record, Source::Stored(segment, row));
                }
            }
            Part::Log { records } => {
                explain.log_rows += records.len() as u64;
                for record in records {
                    add(Arc::clone(record), Source::Log(Arc::clone(record)));
                }
            }
        }
    }
    explain.bytes_touched +=
        turns.iter().map(|turn: &Turn<'_>| turn.record.body.text.len() as u64).sum::<u64>();
    let mut sessions: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, turn) in turns.iter().enumerate() {
        if let Some(session) = &turn.record.body.session {
            sessions.entry(session.clone()).or_default().push(at);
        }
    }
    for mut session in sessions.into_values() {
        session.sort_by_key(|at| {
            let record = &turns[*at].record;
            (record.time, record.ordinal, record.id)
        });
        for pair in session.windows(2) {
            turns[pair[0]].next = Some(pair[1]);
            turns[pair[1]].previous = Some(pair[0]);
        }
    }
    Ok(turns)
}

/// The lexical score and best passage of each turn.
fn lexical(turns: &[Turn<'_>], words: &Words) -> Vec<(f32, u32)> {
    let weights = &words.weights;
    let shapes = turns.iter().map(|turn| turn.terms.shape());
    let (passages, halves) = shapes.fold((0_u64, 0_u64), |(passages, halves), shape| {
        (passages + u64::from(shape.passages), halves + shape.half_terms)
    });
    let average = (halves as f64 / 2.0 / passages.max(1) as f64) as f32;
    // Terms with their weights; those that nobody says are left out.
    let mut known: Vec<(&str, f32)> = Vec::new();
    for (term, count) in &words.question.terms {
        let of = |turn: &Turn<'_>| {
            let holds = |passage: &usize| own_halves(turn, *passage, term) > 0;
            (0..turn.terms.passages.len()).filter(holds).count() as u64
        };
        let df: u64 = turns.iter().map(of).sum();
        if df > 0 {
            known.push((term, idf(passages, df) * *count as f32));
        }
    }
    let mut weight_sum = 0.0;
    for (_, weight) in &known {
        weight_sum += weight;
    }
    let maximum = possible_maximum(weight_sum, weights);
    let score = |turn: &Turn<'_>| {
        let mut best = (0.0, 0);
        for passage in 0..turn.terms.passages.len() {
            let length = held(turns, turn, passage, |turn, passage| {
                RowTerms::text_length(&turn.terms.passages[passage])
            });
            let own = length.own_halves * 2 + turn.terms.head_half_terms();
            let length = Held { own_halves: own, ..length };
            let norm = length_norm(length.weighted(weights), average, weights);
            let mut sum = 0.0;
            for (term, weight) in &known {
                let text = |turn: &Turn<'_>, passage: usize| text_frequency(turn, passage, term);
                let borrowed = held(turns, turn, passage, text);
                let own_halves = own_halves(turn, passage, term);
                let frequency = Held { own_halves, ..borrowed }.weighted(weights);
                if frequency > 0.0 {
                    sum += term_score(*weight, frequency, norm, weights);
                }
            }
            if sum > best.0 {
                best = (sum, passage as u32);
            }
        }
        (best.0 / maximum, best.1)
    };
    turns.iter().map(score).collect()
}

/// What a passage has and borrows of something that texts hold; its own share in whole numbers.
fn held(
    turns: &[Turn<'_>],
    turn: &Turn<'_>,
    passage: usize,
    of: impl Fn(&Turn<'_>, usize) -> u32,
) -> Held {
    let mut held = Held { own_halves: of(turn, passage), ..Held::default() };
    if passage == 0
        && let Some(previous) = turn.previous.map(|at| &turns[at])
    {
        held.previous = of(previous, previous.last_passage());
        if let Some(before) = previous.previous.map(|at| &turns[at]) {
            held.before_previous = of(before, before.last_passage());
        }
    }
    if passage == turn.last_passage()
        && let Some(next) = turn.next.map(|at| &turns[at])
    {
        held.next = of(next, 0);
    }
    held
}

fn text_frequency(turn: &Turn<'_>, passage: usize, term: &str) -> u32 {
    let passage = &turn.terms.passages[passage];
    let found = passage.iter().find(|text| text.term == term);
    found.map_or(0, |text| text.frequency.into())
}

/// What a passage holds of a term by itself, in halves of a term.
fn own_halves(turn: &Turn<'_>, passage: usize, term: &str) -> u32 {
    let head = turn.terms.head.iter().find(|head| head.term == term);
    let head = head.map_or(0, |head| 2 * u32::from(head.speaker) + u32::from(head.date));
    2 * text_frequency(turn, passage, term) + head
}

/// The parts of each turn's score, but for what its neighbours lend.
fn own_parts(
    turns: &[Turn<'_>],
    lexical: &[(f32, u32)],
    words: &Words,
    space: &VectorSpace,
    explain: &mut Explain,
) -> Result<Vec<ScoreParts>> {
    let weights = &words.weights;
    let mut cosines = vec![0.0; turns.len()];
    if let Ok(vector) = &words.vector {
        let mut scorer = ExactScorer::new(vector, space);
        for (turn, cosine) in turns.iter().zip(&mut cosines) {
            if !turn.record.vector.is_empty() {
                let scored = scorer.score(&turn.record.vector);
                *cosine = scored.map_err(|error| error.of(turn.record.id.get()))?;
                explain.rows_exact += 1;
            }
        }
        explain.rows_exact_at_once = explain.rows_exact;
        explain.bytes_touched += explain.rows_exact * space.vector_bytes() as u64;
    }
    let mut speakers: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for name in turns.iter().filter_map(|turn| turn.record.body.speaker.as_deref()) {
        *speakers.entry(name.into()).or_default() += 1;
    }
    let named = words.question.named(&Speakers::new(speakers, None), turns.len() as u64);
    let parts = turns.iter().enumerate().map(|(at, turn)| {
        let of = |place: Option<usize>| place.map(|place| cosines[place]);
        let open = openness(turn.terms.words, weights);
        let cosine = blended_cosine(cosines[at], of(turn.previous), of(turn.next), open, weights);
        let speaker = turn.record.body.speaker.as_deref();
        let day = day_of(turn.record.time, turn.record.offset_minutes);
        let facts = Facts {
            words: turn.terms.words,
            content_words: turn.terms.content_words,
            named: speaker.is_some_and(|speaker| named.contains(speaker)),
            when: words.question.asks_when && turn.terms.has_time,
            in_range: words.question.in_range(day),
        };
        ScoreParts::new(lexical[at].0, cosine, facts, weights)
    });
    Ok(parts.collect())
}
