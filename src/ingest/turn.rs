//! One message handed to the writer.

use serde_json::{Map, Value};

use crate::time::{Timestamp, ZonedTime};

/// One message, note or chunk on its way in. Only the text is required.
///
/// ```
/// use loomdb::{Turn, ZonedTime};
///
/// # fn main() -> loomdb::Result<()> {
/// let turn = Turn::new("I moved to Lisbon last week")
///     .speaker("Ana")
///     .session("2024-03-02")
///     .time(ZonedTime::parse("2024-03-02T09:30:00+01:00")?)
///     .key("chat-17/4")
///     .tag("moving");
/// # let _ = turn;
/// # Ok(())
/// # }
/// ```
///
/// `Debug` shows sizes only.
#[derive(Clone, Default)]
pub struct Turn {
    pub(crate) text: String,
    pub(crate) session: Option<String>,
    pub(crate) speaker: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) time: Option<ZonedTime>,
    pub(crate) ordinal: Option<u64>,
    pub(crate) vector: Option<Vec<f32>>,
    pub(crate) tags: Vec<String>,
    pub(crate) metadata: Value,
    pub(crate) key: Option<String>,
    pub(crate) expires: Option<Timestamp>,
}

impl Turn {
    /// A turn with this text, up to 16 MiB. Stored whole and unchanged.
    pub fn new(text: impl Into<String>) -> Turn {
        Turn { text: text.into(), metadata: Value::Object(Map::new()), ..Turn::default() }
    }

    /// The session: a conversation, a document, a run. Its turns are each other's neighbours.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Turn {
        self.session = Some(session.into());
        self
    }

    /// Who said it.
    #[must_use]
    pub fn speaker(mut self, speaker: impl Into<String>) -> Turn {
        self.speaker = Some(speaker.into());
        self
    }

    /// The agent that stores it.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Turn {
        self.agent = Some(agent.into());
        self
    }

    /// When it was said or happened. Default: now. Listings and recency follow it, whatever the order of writing.
    #[must_use]
    pub fn time(mut self, time: impl Into<ZonedTime>) -> Turn {
        self.time = Some(time.into());
        self
    }

    /// The place among turns of one session and time; lower comes first. Default: 0, and turns equal in session, time
    /// and ordinal stand in the order in which they were written.
    #[must_use]
    pub fn ordinal(mut self, ordinal: u64) -> Turn {
        self.ordinal = Some(ordinal);
        self
    }

    /// The vector, in the space of the database: finite values, any length but zero; scaled to unit length. Wins over
    /// the database's embedder.
    #[must_use]
    pub fn vector(mut self, vector: impl Into<Vec<f32>>) -> Turn {
        self.vector = Some(vector.into());
        self
    }

    /// One more tag.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Turn {
        self.tags.push(tag.into());
        self
    }

    /// These tags and no others.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Turn {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Metadata: a JSON object.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Turn {
        self.metadata = metadata.into();
        self
    }

    /// A key of the caller's, unique per user. Writing the same key with the same content again changes nothing and
    /// says so; with other content it writes a new version of the same episode.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Turn {
        self.key = Some(key.into());
        self
    }

    /// When it expires. From then on no read returns it; counts hold it until it is deleted.
    #[must_use]
    pub fn expires(mut self, expires: Timestamp) -> Turn {
        self.expires = Some(expires);
        self
    }
}

impl From<&str> for Turn {
    fn from(text: &str) -> Turn {
        Turn::new(text)
    }
}

impl From<String> for Turn {
    fn from(text: String) -> Turn {
        Turn::new(text)
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Turn {{ text: {} bytes, tags: {} }}", self.text.len(), self.tags.len())
    }
}
