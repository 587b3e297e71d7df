//! Every tunable number: unit, default, range, and where the number comes from.

use std::time::Duration;

mod recall;
mod routing;

pub use recall::RecallOptions;
pub use routing::RoutingOptions;

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// After the sync: an acknowledged commit survives a power cut. The default.
    #[default]
    Synced,
    /// After the append; a timer syncs (`relaxed_sync_interval`). A power cut may take back what
    /// was acknowledged and already shown since the last sync; a killed process loses nothing.
    Relaxed,
}

/// How the values of a stored vector are kept. Fixed when the database is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum VectorElement {
    /// 32-bit floats. The default: exact, and the fastest to score on common processors.
    #[default]
    F32,
    /// 16-bit floats: half the bytes; scores move in the fourth decimal.
    F16,
}

impl VectorElement {
    /// Bytes of one value.
    pub const fn bytes(self) -> usize {
        match self {
            VectorElement::F32 => 4,
            VectorElement::F16 => 2,
        }
    }
}

/// Who runs checkpoints and merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Maintenance {
    /// A thread of the handle, started at the first threshold crossed. The default.
    #[default]
    Background,
    /// The thread whose commit crossed the threshold, before its call returns. Deterministic: for tests.
    Inline,
    /// Nobody: only explicit calls, and writers once four sealed logs wait.
    Manual,
}

/// Settings of one storage handle.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    /// Create the database when there is none. Default: true, as SQLite does.
    pub create: bool,
    /// Refuse every write. Default: false.
    pub read_only: bool,
    /// When a commit is acknowledged. Default: [`Durability::Synced`].
    pub durability: Durability,
    /// How long a writer or an opener waits for another process. Default: 5 s, SQLite's customary busy timeout.
    pub busy_timeout: Duration,
    /// Time between two syncs under [`Durability::Relaxed`]. Default: 100 ms, a stated guess: the work of a tenth of a
    /// second is at stake.
    pub relaxed_sync_interval: Duration,
    /// Bytes of the active log that trigger a checkpoint. Default: 4 MiB, range 64 KiB to 1 GiB: bounds the memory of
    /// the table of unapplied rows and the time that an open takes to read the log (design 2.3).
    pub checkpoint_bytes: u64,
    /// Episodes of the active log that trigger a checkpoint. Default: 4,096, range 1 to 1,048,576 (design 2.3).
    pub checkpoint_rows: u64,
    /// How vectors are kept; used at creation, recorded, and checked against the record if given. Default: f32.
    pub element: Option<VectorElement>,
    /// Bytes of the catalog's page cache, a handle. Default: 32 MiB, range 1 MiB to 4 GiB (design 2.6; redb's own
    /// default of 1 GiB is too much for an embedded handle).
    pub catalog_cache_bytes: usize,
    /// Bytes of decompressed text kept, a handle. Default: 4 MiB, range 0 (none) to 1 GiB: about a thousand blocks, so
    /// that the texts which one conversation's questions find again and again are decompressed once.
    pub text_cache_bytes: usize,
    /// Allow a database on a network file system, where locks and maps may not work. Default: false.
    pub allow_remote_fs: bool,
    /// Who runs checkpoints and merges. Default: [`Maintenance::Background`].
    pub maintenance: Maintenance,
}

impl Default for StorageOptions {
    fn default() -> Self {
        StorageOptions {
            create: true,
            read_only: false,
            durability: Durability::Synced,
            busy_timeout: Duration::from_secs(5),
            relaxed_sync_interval: Duration::from_millis(100),
            checkpoint_bytes: 4 << 20,
            checkpoint_rows: 4096,
            element: None,
            catalog_cache_bytes: 32 << 20,
            text_cache_bytes: 4 << 20,
            allow_remote_fs: false,
            maintenance: Maintenance::Background,
        }
    }
}

/// Sealed logs above `log_applied` at which a writer checkpoints in line (design 2.3).
pub const UNAPPLIED_LOGS_MAX: usize = 4;
/// Segments of one size class that are merged into one (design 2.3: factor 8).
pub const MERGE_FACTOR: usize = 8;
/// Bytes above which a segment is not merged further. The notes on maps ask for segments of at most 64 MiB where
/// possible, and a few hundred maps at most; a stated guess between the two.
pub const MERGE_SEGMENT_BYTES_MAX: u64 = 256 << 20;
/// Share of dead rows above which a segment is rewritten alone (the usual quarter).
pub const REWRITE_DEAD_SHARE: f64 = 0.25;

/// Dimension of a vector, at most (design 8).
pub const DIMENSION_MAX: usize = 4096;
/// Bytes of an episode's text, at most (design 8).
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Bytes of a user, session, speaker, agent or key, at most (design 8).
pub const NAME_BYTES_MAX: usize = 64 << 10;
/// Bytes of an episode's metadata as JSON, at most. A stated guess: metadata describes, text tells.
pub const METADATA_BYTES_MAX: usize = 1 << 20;
/// Tags of an episode, at most (design 8).
pub const TAGS_MAX: usize = 64;
/// Episodes of a batch, at most (design 8).
pub const BATCH_EPISODES_MAX: usize = 65_536;
/// Encoded bytes of a batch, at most (design 8).
pub const BATCH_BYTES_MAX: usize = 64 << 20;
/// Length of a vector before normalisation, at least and at most (storage notes on simsimd: cosines of vectors
/// beyond 1e18 or below 1e-23 are wrong; this range leaves a wide margin).
pub const NORM_RANGE: std::ops::RangeInclusive<f32> = 1e-6..=1e6;

/// Rows that the 1-bit scan hands to exact re-ranking, at least. Measured on 100,000 short chat turns of 256 values
/// (`cargo bench --bench codes`): 400 hold 99.1 % of the exact top 10, 500 hold 99.6 %.
pub const RERANK_ROWS_MIN: usize = 500;
/// The rows of that measurement. Out of other numbers the fourth root of their share is re-ranked (`benches/filtered`).
pub const RERANK_MEASURED_ROWS: usize = 100_000;
/// Rows, of a user or of those in a cell that pass the filters, below which a scan reads full vectors and no codes: about as
/// many would be re-ranked.
pub const EXACT_SCAN_ROWS_MAX: usize = 512;
/// Vectors that must be at hand before the mean of a vector space is fixed and codes are written. Below, rows are
/// scored exactly. A stated guess: the mean of 1,024 unit vectors is off by about 3 % of their spread.
pub const CODEC_SAMPLE_MIN: usize = 1024;
/// Re-ranked rows for each row asked for, where that is more than [`RERANK_ROWS_MIN`]. From the same measurement:
/// 400 rows for the top 10 and 20.
pub const RERANK_ROWS_PER_HIT: usize = 40;

/// Turns below which a batch is embedded by one thread: starting a thread costs about as much as embedding a few
/// turns with the built-in model. A stated guess.
pub const EMBED_TURNS_PER_THREAD: usize = 64;
/// Texts handed to an embedder in one call, at most: bounds what a batch holds besides its rows. A stated guess.
pub const EMBED_TURNS_PER_CALL: usize = 256;
/// Tries of an update whose episode is changed by others between reading and writing it, at most. A stated guess.
pub const UPDATE_TRIES_MAX: usize = 32;

/// Ranked answers of a search, when not said.
pub const TOP_K_DEFAULT: usize = 10;
/// Ranked answers of a search, at most. A stated guess: more is a listing.
pub const TOP_K_MAX: usize = 10_000;
/// Episodes of one page of a listing, when not said.
pub const LISTING_LIMIT_DEFAULT: usize = 100;
/// Episodes of one page of a listing, at most: a batch's worth.
pub const LISTING_LIMIT_MAX: usize = BATCH_EPISODES_MAX;

/// Levels of a metadata filter, at most: deeper ones are made by mistake or malice. A stated guess.
pub const FILTER_DEPTH_MAX: usize = 32;
/// Conditions of a metadata filter, at most, each value of a list counting as one: every row that is looked at pays for
/// all of them. A stated guess.
pub const FILTER_CONDITIONS_MAX: usize = 1_000;

/// Tokens above which an episode enters a token budget as its best passage. Measured on long assistant answers (BEAM-100k
/// development questions): with turns of over 150 tokens cut to their best passage, the share of questions with all
/// their gold turns within 500 to 4,000 tokens is 2 to 6 points higher than with whole turns.
pub const PASSAGE_ABOVE_TOKENS: usize = 150;
/// Tokens left of a budget below which nothing more is tried: hardly a turn is that short. From the same measurement.
pub const BUDGET_TOKENS_LEFT_MIN: usize = 5;
/// Ranks that are looked at to fill a token budget, at most. From the same measurement.
pub const BUDGET_RANKS_MAX: usize = 400;
/// Overlap (Jaccard, of sets of terms) from which two texts are near-duplicates. A stated guess: of twenty different
/// terms one may differ.
pub const NEAR_DUPLICATE_OVERLAP: f64 = 0.9;

/// Rows up to which a user's memory is scored whole: no candidates are chosen, nothing can be missed (design 4).
pub const WHOLE_ROWS_MAX: u32 = 20_000;
/// Rows of the best by words alone out of which that list is taken once priors are added: priors rarely lift a row over
/// more than that. Of 600 and 800 BEAM-100k's top 20 has 0.4 % more found by 800.
pub const LEXICAL_POOL_ROWS: usize = 800;
/// Answers above which a memory is scored whole: the candidates are chosen for short answers and token budgets.
pub const ROUTED_TOP_K_MAX: usize = BUDGET_RANKS_MAX;
/// Candidates that are scored exactly, at least: the best by an estimate that takes the cosine from the codes.
pub const EXACT_ROWS_MIN: usize = 128;
/// The same for each answer asked for.
pub const EXACT_ROWS_PER_HIT: usize = 4;
/// The best of these whose neighbours are scored too, and lend, at least. The reference of the pipeline takes 64.
pub const SPREAD_ROWS_MIN: usize = 64;
/// Days of a range that a question names, at most, to count as one: longer ones set nothing apart. From the reference of
/// the pipeline.
pub const QUESTION_RANGE_DAYS_MAX: i64 = 400;
/// Users of whom a handle keeps what searches need between them: 12 bytes a stored row, and the rows of the logs. A stated
/// guess: an agent serves a few users at a time.
pub const INDEX_CACHE_USERS: usize = 16;
/// Passages that hold a term, above which it only scores and proposes no candidates; a question's two rarest terms always
/// do. At 100,000 rows 1,000 lose nothing and 500 lose 0.7 points of all@10.
pub const PROPOSING_TERM_PASSAGES_MAX: u64 = 1_000;

/// Vectors of one user in one segment from which on they are clustered: fewer are scanned in some microseconds.
pub const CLUSTERED_ROWS_MIN: usize = 4096;
/// Rows that a cell should have: a scan of that many codes takes about as long as comparing a centroid costs to prepare.
/// A stated guess, see `benches/scale.rs`.
pub const CELL_ROWS: usize = 512;
/// Rows above which a cell is split.
pub const CELL_ROWS_MAX: usize = 1024;
/// Rows below which a cell joins its neighbours.
pub const CELL_ROWS_MIN: usize = 64;
/// How many times as far as a normal distribution says the rows of a cell are taken to lie from its mean, when a search
/// decides which cells to pass over: real vectors spread along few directions. See `loomdb eval routing
/// --vectors`.
pub const CELL_SPREAD: f32 = 2.0;
/// Rows of an answer that passing over cells may be expected to miss, as a share of the answers asked for.
pub const EXPECTED_MISS_MAX: f32 = 0.01;
/// Rows with a lexical score below which words are too few to go by, and rank whose score a cell must be able to beat
/// (recall pipeline, section 7).
pub const CONFIDENT_ROWS: usize = 20;
/// Share of the cells that a search by vectors alone scans before it decides about the others: one in so many.
pub const FIRST_CELLS_SHARE: usize = 16;
/// Candidates that are scored with the words of their neighbours and all cosines estimated, at least: the best of the
/// lists by rough scores.
pub const CANDIDATE_ROWS_MIN: usize = 300;
/// The same for each answer asked for.
pub const CANDIDATE_ROWS_PER_HIT: usize = 8;
/// How many times as many of the rows best by words and by codes are looked at when a search was not sure and scanned further
/// cells.
pub const WIDENED_LIST_TIMES: usize = 5;
/// How many times as many of them are scored with their neighbours then.
pub const WIDENED_CANDIDATE_TIMES: usize = 3;
/// Share of the question that the best row covers with its words, roughly, below which words are too few to go by; a row
/// that has each word once covers about half. Of the signals tried coverage tells best whether routing misses (recall pipeline, section 7).
pub const CONFIDENT_COVERAGE: f32 = 0.45;
