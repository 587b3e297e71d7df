//! Merges the lexicons of a rewrite's inputs, term by term, without a new analysis.
//!
//! Invariant: what comes out is what the rows' own terms would give; memory holds one number a passage of one user, and
//! the postings of one term.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::ids::UserNumber;
use crate::storage::segment::{Posting, PutTerm, Segment, Terms};

/// Stands for a passage of a row that is left out.
const DROPPED: u32 = u32::MAX;

/// One input: its passages of the user, and what becomes of them.
pub struct Input<'a> {
    segment: &'a Segment,
    terms: Option<Terms<'a>>,
    first: u32,
    /// New numbers, one a passage.
    numbers: Vec<u32>,
}

impl<'a> Input<'a> {
    /// The terms of `user` in `segment`; every passage is left out until it is given a number.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn new(segment: &'a Segment, user: UserNumber) -> Result<Input<'a>> {
        let passages = segment.passages_of_user(user)?;
        let terms = segment.lexicon(user)?.map(|lexicon| lexicon.terms());
        let numbers = vec![DROPPED; (passages.end - passages.start) as usize];
        Ok(Input { segment, terms, first: passages.start, numbers })
    }

    /// Numbers the passages `old` from `new` on.
    ///
    /// # Errors
    /// `Corrupt` when they are not the user's.
    pub fn renumber(&mut self, old: Range<u32>, new: u32) -> Result<()> {
        let start = old.start.checked_sub(self.first);
        let end = old.end.checked_sub(self.first);
        let numbers = start
            .zip(end)
            .and_then(|(start, end)| self.numbers.get_mut(start as usize..end as usize));
        let numbers = numbers.ok_or_else(|| damaged(self.segment))?;
        numbers.iter_mut().zip(new..).for_each(|(number, new)| *number = new);
        Ok(())
    }
}

#[cold]
fn damaged(segment: &Segment) -> Error {
    Error::corrupt("passages of a row that are not its user's").in_file(segment.path())
}

/// Gives `put` each term of the inputs of which a passage stays, ascending, with its postings under their new numbers.
///
/// # Errors
/// `Corrupt`; those of `put`.
pub fn merge(mut inputs: Vec<Input<'_>>, put: &mut PutTerm<'_>) -> Result<()> {
    // The next term of each input; equal ones come out one after the other.
    let mut heap: BinaryHeap<Reverse<(String, usize)>> = BinaryHeap::new();
    // The postings of the term that each input is at.
    let mut waiting: Vec<Vec<Posting>> = vec![Vec::new(); inputs.len()];
    for number in 0..inputs.len() {
        if let Some(term) = advance(&mut inputs[number], String::new(), &mut waiting[number])? {
            heap.push(Reverse((term, number)));
        }
    }
    let mut postings: Vec<Posting> = Vec::new();
    while let Some(Reverse((term, number))) = heap.pop() {
        postings.append(&mut waiting[number]);
        let goes_on = heap.peek().is_some_and(|Reverse((next, _))| *next == term);
        if !goes_on {
            if !postings.is_sorted_by_key(|posting| posting.passage) {
                postings.sort_unstable_by_key(|posting| posting.passage);
            }
            if !postings.is_empty() {
                put(&term, &postings)?;
            }
            postings.clear();
        }
        if let Some(term) = advance(&mut inputs[number], term, &mut waiting[number])? {
            heap.push(Reverse((term, number)));
        }
    }
    Ok(())
}

/// Reads the next term of `input`, in the memory of an earlier one, and its postings that stay.
fn advance(
    input: &mut Input<'_>,
    mut buffer: String,
    out: &mut Vec<Posting>,
) -> Result<Option<String>> {
    let Some(terms) = &mut input.terms else { return Ok(None) };
    let Some((term, postings)) = terms.next()? else { return Ok(None) };
    buffer.clear();
    buffer.push_str(term);
    let mut block = Vec::new();
    let mut last = None;
    for number in 0..postings.block_count() {
        postings.decode(number, &mut block)?;
        for posting in &block {
            // A list's blocks follow one another; a reader of one block cannot tell.
            if last.is_some_and(|last| last >= posting.passage) {
                return Err(damaged(input.segment));
            }
            last = Some(posting.passage);
            let place = posting.passage.checked_sub(input.first);
            match place.and_then(|place| input.numbers.get(place as usize)) {
                Some(&DROPPED) => {}
                Some(&passage) => out.push(Posting { passage, ..*posting }),
                None => return Err(damaged(input.segment)),
            }
        }
    }
    Ok(Some(buffer))
}
