//! What the bytes of a segment are spent on.

use super::reader::Segment;
use super::section::Section;

/// Bytes of segments by what they hold; together they are the whole files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentParts {
    /// Vectors, their codes and factors.
    pub vectors: u64,
    /// Text blocks, and where each body lies.
    pub text: u64,
    /// Passages, lexicons, posting lists and speakers.
    pub lexical: u64,
    /// The other columns, tables, checksums and padding.
    pub other: u64,
}

impl Segment {
    /// What the file's bytes are spent on.
    pub fn parts(&self) -> SegmentParts {
        let of = |sections: &[Section]| -> u64 {
            sections.iter().filter_map(|section| self.columns.place(*section)).map(|p| p.len).sum()
        };
        let vectors = of(&[Section::Vectors, Section::Codes, Section::Factors]);
        let text = of(&[Section::TextBlocks, Section::BlockTable, Section::BodyPlaces]);
        let lexical = of(&[
            Section::Words,
            Section::ContentWords,
            Section::Speakers,
            Section::SpeakerNames,
            Section::PassageStarts,
            Section::PassageLengths,
            Section::Postings,
            Section::Lexicons,
            Section::Terms,
        ]);
        // Sections do not overlap, so that their sum stays below the file's length.
        SegmentParts { vectors, text, lexical, other: self.bytes() - vectors - text - lexical }
    }
}

impl std::iter::Sum for SegmentParts {
    fn sum<I: Iterator<Item = SegmentParts>>(parts: I) -> SegmentParts {
        parts.fold(SegmentParts::default(), |a, b| SegmentParts {
            vectors: a.vectors + b.vectors,
            text: a.text + b.text,
            lexical: a.lexical + b.lexical,
            other: a.other + b.other,
        })
    }
}
