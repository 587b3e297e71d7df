//! Writes lexicons and posting lists, and turns the terms of new rows into them.
//!
//! Invariants: one user at a time; equal terms and passages give equal bytes, whether they come from rows or from other
//! segments.

use std::collections::HashMap;
use std::ops::Range;

use super::PutTerm;
use super::lexicon::{BLOCK_TERMS, DirectoryEntry};
use super::postings::{Posting, encode_list, put_varint};
use crate::error::{Error, Result};
use crate::ids::UserNumber;
use crate::model::{Frequencies, RowTerms, TERM_BYTES_MAX};

/// Builds the sections of terms and lexicons; lists go out as they come.
#[derive(Default)]
pub struct LexiconWriter {
    directory: Vec<u8>,
    terms: Vec<u8>,
    /// Bytes of the lists that were put.
    postings_at: u64,
}

/// The lexicon of one user that is being written.
struct Open {
    passages: Range<u32>,
    count: u32,
    /// Where each block starts among the blocks, and the list of its first term among the user's.
    table: Vec<u8>,
    blocks: Vec<u8>,
    before: String,
    list: Vec<u8>,
    lists: u64,
}

impl LexiconWriter {
    /// Writes what `terms` gives for one user, whose episodes have `passages`; lists go to `put`.
    ///
    /// # Errors
    /// Those of `terms` and `put`; `Limit` for a lexicon of more than 4 GiB.
    pub fn user(
        &mut self,
        user: UserNumber,
        passages: Range<u32>,
        terms: impl FnOnce(&mut PutTerm<'_>) -> Result<()>,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut open = Open {
            passages,
            count: 0,
            table: Vec::new(),
            blocks: Vec::new(),
            before: String::new(),
            list: Vec::new(),
            lists: 0,
        };
        terms(&mut |term, postings| {
            open.add(term, postings)?;
            put(&open.list)
        })?;
        if open.count > 0 {
            let entry = DirectoryEntry {
                user,
                terms: open.count,
                terms_at: self.terms.len() as u64,
                postings_at: self.postings_at,
            };
            self.directory.extend(entry.encode());
            self.terms.append(&mut open.table);
            self.terms.append(&mut open.blocks);
            self.postings_at += open.lists;
        }
        Ok(())
    }

    /// The sections of lexicons and terms.
    pub fn finish(self) -> (Vec<u8>, Vec<u8>) {
        (self.directory, self.terms)
    }
}

impl Open {
    /// Takes a term; its list is in `list` afterwards.
    fn add(&mut self, term: &str, postings: &[Posting]) -> Result<()> {
        let limit = || Error::limit("terms of one user of more than 4 GiB in one segment");
        assert!(
            (1..=TERM_BYTES_MAX).contains(&term.len()) && (self.count == 0 || *self.before < *term),
            "terms come in ascending order, each once and within the limit"
        );
        let last = postings.last().expect("a term has postings").passage;
        assert!(last < self.passages.end, "postings are of the user's passages");
        self.list.clear();
        encode_list(self.passages.start, postings, &mut self.list).ok_or_else(limit)?;
        let mut shared = 0;
        if (self.count as usize).is_multiple_of(BLOCK_TERMS) {
            let start = u32::try_from(self.blocks.len()).map_err(|_| limit())?;
            let list = u32::try_from(self.lists).map_err(|_| limit())?;
            self.table.extend(start.to_le_bytes());
            self.table.extend(list.to_le_bytes());
        } else {
            let pairs = self.before.bytes().zip(term.bytes());
            shared = pairs.take_while(|(a, b)| a == b).count();
        }
        let own = &term.as_bytes()[shared..];
        self.blocks.extend([shared as u8, own.len() as u8]);
        self.blocks.extend(own);
        put_varint(postings.len() as u64, &mut self.blocks);
        put_varint(self.list.len() as u64, &mut self.blocks);
        self.lists += self.list.len() as u64;
        self.count = self.count.checked_add(1).ok_or_else(limit)?;
        self.before.clear();
        self.before.push_str(term);
        Ok(())
    }
}

/// Gives `put` the terms of `rows`, ascending, with their postings. A row is the number of its first passage and its
/// terms; numbers ascend.
///
/// # Errors
/// Those of `put`.
pub fn invert<'t>(
    rows: impl Iterator<Item = (u32, &'t RowTerms)>,
    put: &mut PutTerm<'_>,
) -> Result<()> {
    let mut numbers: HashMap<&'t str, usize> = HashMap::new();
    let mut lists: Vec<Vec<Posting>> = Vec::new();
    let mut number = |term: &'t str, lists: &mut Vec<Vec<Posting>>| {
        *numbers.entry(term).or_insert_with(|| {
            lists.push(Vec::new());
            lists.len() - 1
        })
    };
    let mut head = Vec::new();
    for (first, terms) in rows {
        head.clear();
        for term in &terms.head {
            head.push((number(&term.term, &mut lists), term.speaker, term.date));
        }
        for (passage, texts) in (first..).zip(&terms.passages) {
            for term in texts {
                let list = number(&term.term, &mut lists);
                let frequencies = Frequencies { text: term.frequency, ..Frequencies::default() };
                lists[list].push(Posting { passage, frequencies });
            }
            for (list, speaker, date) in &head {
                let list = &mut lists[*list];
                if list.last().is_none_or(|last| last.passage != passage) {
                    list.push(Posting { passage, frequencies: Frequencies::default() });
                }
                let last = list.last_mut().expect("one was pushed");
                (last.frequencies.speaker, last.frequencies.date) = (*speaker, *date);
            }
        }
    }
    let mut terms: Vec<(&str, usize)> = numbers.into_iter().collect();
    terms.sort_unstable();
    for (term, list) in terms {
        put(term, &std::mem::take(&mut lists[list]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::segment::example::simple_terms;

    #[test]
    fn a_term_of_text_and_speaker_is_one_posting() {
        let rows = [(4, simple_terms("ann saw ann", Some("Ann"))), (5, simple_terms("bob", None))];
        let mut seen = Vec::new();
        let taken = invert(rows.iter().map(|(first, terms)| (*first, terms)), &mut |term, list| {
            seen.push((term.to_owned(), list.to_vec()));
            Ok(())
        });
        taken.unwrap();
        let posting = |passage, text, speaker, date| Posting {
            passage,
            frequencies: Frequencies { text, speaker, date },
        };
        let expected = [
            ("2024", vec![posting(4, 0, 0, 1), posting(5, 0, 0, 1)]),
            ("ann", vec![posting(4, 2, 1, 0)]),
            ("bob", vec![posting(5, 1, 0, 0)]),
            ("saw", vec![posting(4, 1, 0, 0)]),
        ];
        assert_eq!(seen, expected.map(|(term, list)| (term.to_owned(), list)));
    }

    #[test]
    #[ignore = "prints what a hundred thousand short turns take"]
    fn time_and_bytes_of_short_turns() {
        let mut state = 1_u64;
        let mut word = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // About as uneven as talk: small numbers are common.
            let share = (state >> 40) as f64 / (1_u64 << 24) as f64;
            format!(
                "w{:x} ",
                (20_000_f64.powf(share) as u64).wrapping_mul(2_654_435_761) % (1 << 20)
            )
        };
        let rows: Vec<RowTerms> = (0..100_000)
            .map(|_| simple_terms(&(0..8).map(|_| word()).collect::<String>(), Some("Ann Lee")))
            .collect();
        let clock = std::time::Instant::now();
        let (mut writer, mut lists) = (LexiconWriter::default(), 0);
        let terms = |put: &mut PutTerm<'_>| invert((0..).zip(&rows), put);
        let put = &mut |list: &[u8]| {
            lists += list.len();
            Ok(())
        };
        writer.user(UserNumber::new(1), 0..100_000, terms, put).unwrap();
        let (_, terms) = writer.finish();
        println!("{:?}: {lists} bytes of lists, {} of terms", clock.elapsed(), terms.len());
    }
}
