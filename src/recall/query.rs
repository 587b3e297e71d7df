//! What a caller asks.

use crate::options::TOP_K_DEFAULT;
use crate::time::Timestamp;

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
#[derive(Clone)]
pub struct Query {
    pub(super) what: What,
    pub(super) top_k: usize,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    pub(super) session: Option<String>,
    pub(super) exact: bool,
}

#[derive(Clone)]
pub(super) enum What {
    Text(String),
    Vector(Vec<f32>),
}

impl Query {
    /// Asks with a text. An empty one, or white space only, lists the newest episodes.
    pub fn text(text: impl Into<String>) -> Query {
        Query::new(What::Text(text.into()))
    }

    /// Asks with a vector of the database's space; scaled to unit length.
    pub fn vector(vector: impl Into<Vec<f32>>) -> Query {
        Query::new(What::Vector(vector.into()))
    }

    fn new(what: What) -> Query {
        Query { what, top_k: TOP_K_DEFAULT, since: None, until: None, session: None, exact: false }
    }

    /// Answers, at most: 1 to 10,000. Default: 10.
    #[must_use]
    pub fn top_k(mut self, top_k: usize) -> Query {
        self.top_k = top_k;
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

    /// Scores every episode exactly instead of choosing candidates first: the definition of the answer, for
    /// comparison. Cost: reads every vector of the user. Default: false.
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
        match &self.what {
            What::Text(text) => write!(f, "Query {{ text: {} bytes", text.len())?,
            What::Vector(vector) => write!(f, "Query {{ vector: {} values", vector.len())?,
        }
        write!(f, ", top_k: {} }}", self.top_k)
    }
}
