//! The sections of a segment: numbers, names and item sizes (format-spec.md 3).

use super::format::{
    BLOCK_ENTRY_BYTES, CELL_BYTES, CLUSTER_BYTES, LEXICON_BYTES, PASSAGE_LENGTH_BYTES, PLACE_BYTES,
    TOMBSTONE_BYTES,
};

macro_rules! sections {
    ($($name:ident = $number:literal, $width:literal, $text:literal;)*) => {
        /// What a section holds. Numbers are fixed for good.
        ///
        /// Reserved: 35 codes of 8 bits, 48 tag postings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Section { $($name = $number,)* }

        impl Section {
            /// All sections, in the order of the file.
            pub const ALL: &[Section] = &[$(Section::$name,)*];

            /// The name, for messages.
            pub fn name(self) -> &'static str {
                match self { $(Section::$name => $text,)* }
            }

            /// Bytes of one item; 0 where items have no fixed size or one that depends on the vector space.
            pub const fn item_bytes(self) -> usize {
                match self { $(Section::$name => $width,)* }
            }
        }
    };
}

sections! {
    Info = 1, 0, "info";
    Cells = 2, 64, "cell directory";
    Names = 3, 0, "names";
    Tombstones = 4, 72, "tombstones";
    Codec = 5, 0, "codec";
    Ids = 16, 8, "ids";
    Versions = 17, 4, "versions";
    SortedIds = 18, 8, "sorted ids";
    IdOrder = 19, 4, "id order";
    Times = 20, 8, "times";
    RecordTimes = 21, 8, "record times";
    FirstRecordTimes = 22, 8, "first record times";
    Expires = 23, 8, "expiries";
    Sessions = 24, 8, "sessions";
    Ordinals = 25, 8, "ordinals";
    Offsets = 26, 2, "offsets";
    TextBytes = 27, 4, "text bytes";
    Flags = 28, 1, "flags";
    Words = 29, 4, "words";
    ContentWords = 30, 4, "content words";
    Speakers = 31, 4, "speakers";
    Codes = 32, 0, "codes";
    Factors = 33, 4, "factors";
    Vectors = 34, 0, "vectors";
    Clusters = 6, 48, "clusters";
    Centroids = 36, 0, "centroids";
    ClusterRows = 37, 4, "cluster rows";
    ClusterCodes = 38, 0, "cluster codes";
    ClusterFactors = 39, 4, "cluster factors";
    TextBlocks = 40, 0, "text blocks";
    BlockTable = 41, 24, "block table";
    BodyPlaces = 42, 12, "body places";
    Postings = 49, 0, "postings";
    PassageStarts = 50, 4, "passage starts";
    PassageLengths = 51, 6, "passage lengths";
    SpeakerNames = 52, 0, "speaker names";
    Lexicons = 53, 32, "lexicons";
    Terms = 54, 0, "terms";
}

/// The sections that come with clusters, all or none.
pub const CLUSTER_SECTIONS: [Section; 5] = [
    Section::Clusters,
    Section::Centroids,
    Section::ClusterRows,
    Section::ClusterCodes,
    Section::ClusterFactors,
];

const _: () = assert!(Section::Cells.item_bytes() == CELL_BYTES);
const _: () = assert!(Section::Clusters.item_bytes() == CLUSTER_BYTES);
const _: () = assert!(Section::Tombstones.item_bytes() == TOMBSTONE_BYTES);
const _: () = assert!(Section::BlockTable.item_bytes() == BLOCK_ENTRY_BYTES);
const _: () = assert!(Section::BodyPlaces.item_bytes() == PLACE_BYTES);
const _: () = assert!(Section::PassageLengths.item_bytes() == PASSAGE_LENGTH_BYTES);
const _: () = assert!(Section::Lexicons.item_bytes() == LEXICON_BYTES);

impl Section {
    /// Whether the section has exactly one item a row.
    pub fn is_column(self) -> bool {
        let number = self as u16;
        (Section::Ids as u16..=Section::Vectors as u16).contains(&number)
            || self == Section::BodyPlaces
    }

    /// Whether every segment has the section. The others come with codes or clusters.
    pub fn is_required(self) -> bool {
        let of_codes = matches!(self, Section::Codec | Section::Codes | Section::Factors);
        !of_codes && !CLUSTER_SECTIONS.contains(&self)
    }
}
