//! What a caller asks.

use crate::options::{RecallOptions, RoutingOptions};
use crate::time::{Timestamp, ZonedTime};

use super::filter::MetadataFilter;

/// A question to one user's memory: a text or a vector, and what bounds the answer.
///
/// ```
/// use loomdb::{Query, ZonedTime};
///
/// # fn main() -> loomdb::Result<()> {
/// let query = Query::text("where did she move?")
///     .top_k(5)
///     .since(ZonedTime::parse("2024-01-01T00:00:00Z")?.time);
/// # let _ = query;
/// # Ok(())
/// # }
/// ```
///
/// `Debug` shows sizes only.
#[derive(Clone, Default)]
pub struct Query {
    pub(super) text: Option<String>,
    pub(super) vector: Option<Vec<f32>>,
    pub(super) mode: Option<SearchMode>,
    pub(super) top_k: Option<usize>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    pub(super) session: Option<String>,
    pub(super) speaker: Option<String>,
    pub(super) filter: Option<MetadataFilter>,
    pub(super) query_time: Option<ZonedTime>,
    pub(super) max_tokens: Option<usize>,
    pub(super) fold: bool,
    pub(super) weights: RecallOptions,
    pub(super) exact: bool,
    pub(super) routing: RoutingOptions,
    pub(super) list_candidates: bool,
}

/// By what an answer is ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SearchMode {
    /// By words, vectors and small priors together. The default for a text.
    Hybrid,
    /// By the cosine of the vectors alone. Episodes without a vector are not found. The default for a vector alone.
    Vector,
    /// By words alone (BM25, with the context of the neighbouring turns). Only episodes that share a word with the
    /// question, or whose neighbours do, are found.
    Lexical,
}

impl SearchMode {
    /// As the command line and errors call it.
    pub fn name(self) -> &'static str {
        match self {
            SearchMode::Hybrid => "hybrid",
            SearchMode::Vector => "vector",
            SearchMode::Lexical => "lexical",
        }
    }
}

impl Query {
    /// Asks with a text. An empty one, or white space only, lists the newest episodes. It is text and nothing else: no
    /// character of it has a meaning to the search.
    pub fn text(text: impl Into<String>) -> Query {
        Query { text: Some(text.into()), ..Query::default() }
    }

    /// Asks with a vector of the database's space; scaled to unit length.
    pub fn vector(vector: impl Into<Vec<f32>>) -> Query {
        Query { vector: Some(vector.into()), ..Query::default() }
    }

    /// The vector of the text, for a database whose vectors come from the caller: in place of the embedder's.
    #[must_use]
    pub fn with_vector(mut self, vector: impl Into<Vec<f32>>) -> Query {
        self.vector = Some(vector.into());
        self
    }

    /// By what the answer is ranked. Default: by all there is.
    #[must_use]
    pub fn mode(mut self, mode: SearchMode) -> Query {
        self.mode = Some(mode);
        self
    }

    /// Answers, at most: 1 to 10,000. Default: 10; with [`Query::max_tokens`] as many as are looked at, 400.
    #[must_use]
    pub fn top_k(mut self, top_k: usize) -> Query {
        self.top_k = Some(top_k);
        self
    }

    /// Only episodes said at this time or later. A hard filter.
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> Query {
        self.since = Some(since);
        self
    }

    /// Only episodes said before this time. A hard filter.
    #[must_use]
    pub fn until(mut self, until: Timestamp) -> Query {
        self.until = Some(until);
        self
    }

    /// Only episodes of this session.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Query {
        self.session = Some(session.into());
        self
    }

    /// Only episodes of this speaker. The name as stored, whole.
    #[must_use]
    pub fn speaker(mut self, speaker: impl Into<String>) -> Query {
        self.speaker = Some(speaker.into());
        self
    }

    /// Only episodes whose metadata matches.
    #[must_use]
    pub fn filter(mut self, filter: MetadataFilter) -> Query {
        self.filter = Some(filter);
        self
    }

    /// When the question is asked, for days such as "yesterday" in it. Default: now, in UTC.
    #[must_use]
    pub fn query_time(mut self, query_time: impl Into<ZonedTime>) -> Query {
        self.query_time = Some(query_time.into());
        self
    }

    /// Tokens of the whole answer, at most, where a word counts 1.3. Filled in the order of rank; an episode that does
    /// not fit is listed in [`crate::Recall::omitted`] and the next is tried. One of more than 150 tokens enters as its
    /// best passage. Default: no bound.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: usize) -> Query {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Folds near-duplicates: an episode whose terms are nearly those of a better one is counted there
    /// ([`crate::Hit::folded`]) and not listed. Default: false.
    #[must_use]
    pub fn fold(mut self, fold: bool) -> Query {
        self.fold = fold;
        self
    }

    /// Other weights than the defaults.
    #[must_use]
    pub fn weights(mut self, weights: RecallOptions) -> Query {
        self.weights = weights;
        self
    }

    /// How candidates of a large memory are chosen. A score does not depend on it; an episode may be missed.
    #[must_use]
    pub fn routing(mut self, routing: RoutingOptions) -> Query {
        self.routing = routing;
        self
    }

    /// Episodes of the user above which candidates are chosen: [`RoutingOptions::whole_rows`] alone.
    #[must_use]
    pub fn route_above(mut self, episodes: u32) -> Query {
        self.routing.whole_rows = episodes;
        self
    }

    /// Lists the candidates in [`crate::Explain::candidates`]. Default: false.
    #[must_use]
    pub fn list_candidates(mut self, list: bool) -> Query {
        self.list_candidates = list;
        self
    }

    /// Scores every episode exactly instead of choosing candidates first: the definition of the answer, for
    /// comparison. Cost: reads every text and vector of the user. Default: false.
    #[must_use]
    pub fn exact(mut self, exact: bool) -> Query {
        self.exact = exact;
        self
    }
}

impl From<&str> for Query {
    fn from(text: &str) -> Query {
        Query::text(text)
    }
}

impl From<String> for Query {
    fn from(text: String) -> Query {
        Query::text(text)
    }
}

impl From<&String> for Query {
    fn from(text: &String) -> Query {
        Query::text(text.as_str())
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query")
            .field("text_bytes", &self.text.as_ref().map(String::len))
            .field("vector_values", &self.vector.as_ref().map(Vec::len))
            .field("mode", &self.mode)
            .field("top_k", &self.top_k)
            .finish_non_exhaustive()
    }
}
