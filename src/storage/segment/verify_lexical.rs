//! Says what is wrong with passages, speakers, lexicons and posting lists.
//!
//! Invariants: each list is decoded once; memory grows with the passages of one user.

use super::Cell;
use super::passages::PassageLength;
use super::reader::Segment;
use super::section::Section;
use super::verify::Findings;
use crate::error::Result;
use crate::ids::UserNumber;
use crate::model::RowKind;

/// What the postings of one passage add up to.
#[derive(Clone, Copy, Default)]
struct Sum {
    text: u64,
    head_halves: u64,
}

impl Segment {
    /// Compares the columns of the analysis with one another, and the postings with them.
    pub(super) fn verify_lexical(&self, findings: &mut Findings) {
        let whole = self.verify_passages(findings);
        self.verify_speakers(findings);
        if !whole || !self.verify_directory(findings) {
            return;
        }
        for user in self.episode_users() {
            let checked = self.verify_lexicon(user, findings);
            findings.note(checked, 0..0);
        }
    }

    /// Users with episodes, each once.
    fn episode_users(&self) -> impl Iterator<Item = UserNumber> {
        let is_episodes = |cell: &&Cell| cell.kind == RowKind::Episode;
        let mut last = None;
        let users = self.cells.iter().filter(is_episodes).map(|cell| cell.user);
        users.filter(move |user| last.replace(*user) != Some(*user))
    }

    /// Passages tile the rows of episodes.
    fn verify_passages(&self, findings: &mut Findings) -> bool {
        let mut next = 0;
        for cell in &self.cells {
            for row in cell.rows.clone() {
                let Some(passages) = findings.note(self.passages_of(row..row + 1), row..row + 1)
                else {
                    return false;
                };
                let is_allowed = passages.is_empty() || cell.kind == RowKind::Episode;
                if passages.start != next || !is_allowed {
                    let error = self.disagree("passage numbers", Section::PassageStarts);
                    findings.add(error, row..row + 1);
                    return false;
                }
                next = passages.end;
            }
        }
        let is_whole = next == self.passage_count();
        if !is_whole {
            let error = self.disagree("passage without a row", Section::PassageLengths);
            findings.add(error, 0..0);
        }
        is_whole
    }

    /// Each number is of the row's user, and each entry counts its rows.
    fn verify_speakers(&self, findings: &mut Findings) {
        let Some(speakers) = findings.note(self.all_speakers(), 0..0) else { return };
        let mut counts = vec![0; speakers.all().len()];
        for cell in &self.cells {
            for row in cell.rows.clone() {
                let speaker = findings.note(self.speaker_of(row, cell.user), row..row + 1);
                if let Some(Some(speaker)) = speaker {
                    counts[speaker.number as usize - 1] += 1;
                }
            }
        }
        let counted = speakers.all().iter().map(|(_, speaker)| speaker.rows);
        if !counted.eq(counts) {
            findings.add(self.disagree("speaker count", Section::SpeakerNames), 0..0);
        }
    }

    /// The directory ascends, starts at the start of both sections, and names users with episodes.
    fn verify_directory(&self, findings: &mut Findings) -> bool {
        let mut before = None;
        for place in 0..self.lexicon_count() {
            let Some(entry) = findings.note(self.directory_entry(place), 0..0) else {
                return false;
            };
            let starts = place > 0 || (entry.terms_at, entry.postings_at) == (0, 0);
            let has_rows = !self.cells_of(entry.user, RowKind::Episode).is_empty();
            let ascends = before.is_none_or(|before| before < entry.user);
            if !starts || !has_rows || !ascends {
                let error = self.disagree("directory of lexicons", Section::Lexicons);
                findings.add(error.of(entry.user.get()), 0..0);
                return false;
            }
            before = Some(entry.user);
        }
        let lengths = [Section::Terms, Section::Postings]
            .map(|section| self.columns.place(section).map_or(0, |place| place.len));
        let is_whole = before.is_some() || lengths == [0, 0];
        if !is_whole {
            findings.add(self.disagree("terms without a user", Section::Terms), 0..0);
        }
        is_whole
    }

    /// The postings of one user are in order and add up to the lengths of the passages.
    fn verify_lexicon(&self, user: UserNumber, findings: &mut Findings) -> Result<()> {
        let passages = self.passages_of_user(user)?;
        let mut sums = vec![Sum::default(); (passages.end - passages.start) as usize];
        if let Some(lexicon) = self.lexicon(user)? {
            let (mut terms, mut block) = (lexicon.terms(), Vec::new());
            while let Some((_, postings)) = terms.next()? {
                let mut next = passages.start;
                for number in 0..postings.block_count() {
                    postings.decode(number, &mut block)?;
                    for posting in &block {
                        if posting.passage < next {
                            return Err(self.disagree("posting list", Section::Postings));
                        }
                        next = posting.passage + 1;
                        let sum = &mut sums[(posting.passage - passages.start) as usize];
                        let frequencies = posting.frequencies;
                        sum.text += u64::from(frequencies.text);
                        sum.head_halves +=
                            2 * u64::from(frequencies.speaker) + u64::from(frequencies.date);
                    }
                }
            }
        }
        for cell in self.cells_of(user, RowKind::Episode) {
            for row in cell.rows.clone() {
                let range = self.passages_of(row..row + 1)?;
                for (passage, length) in range.clone().zip(self.passage_lengths(range)?) {
                    let length = PassageLength::decode(*length);
                    let sum = sums[(passage - passages.start) as usize];
                    if (sum.text, sum.head_halves)
                        != (length.text.into(), length.head_halves.into())
                    {
                        let error = self.disagree("passage length", Section::PassageLengths);
                        findings.add(error.of(self.id_of(row)?.get()), row..row + 1);
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
