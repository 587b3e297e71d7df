//! From text to vector.
//!
//! Pure: an embedder of ours reads no file, no clock and no random number, and equal text gives equal bits on every
//! machine. A caller's own [`Embedder`] may do more.

mod static_model;
mod wordpiece;

use std::borrow::Cow;

use crate::error::Result;

pub use static_model::StaticModel;
#[cfg(feature = "builtin-model")]
pub use static_model::builtin;

/// Turns texts into vectors of one space.
///
/// Vectors of differently named embedders are never compared; the name is recorded in the database.
pub trait Embedder: Send + Sync {
    /// Names the model, its version and its dimension, such as `memstatic-en-v1-256d`.
    fn name(&self) -> &str;

    /// Values of one vector.
    fn dimension(&self) -> usize;

    /// Appends one row of [`Embedder::dimension`] values a text to `out`, in order: a vector of unit length, or zeros
    /// when the model knows no token of the text. Returns one flag a text: whether it has a vector.
    ///
    /// # Errors
    /// Whatever the model meets, a remote one say; the built-in model never fails. After an error what was appended
    /// to `out` has no meaning.
    fn embed(&self, texts: &[&str], out: &mut Vec<f32>) -> Result<Vec<bool>>;

    /// The vector of one text, `None` when the model knows no token of it.
    ///
    /// # Errors
    /// Those of [`Embedder::embed`].
    fn embed_one(&self, text: &str) -> Result<Option<Vec<f32>>> {
        let mut vector = Vec::with_capacity(self.dimension());
        let known = self.embed(&[text], &mut vector)?;
        Ok((known == [true]).then_some(vector))
    }
}

/// The text that stands for an episode when it is embedded: `Speaker: text`. Without the speaker's name a third of
/// the recall of vectors is lost (LoCoMo development questions, all@10 44.4 with it and 30.9 without).
pub fn episode_text<'a>(speaker: Option<&str>, text: &'a str) -> Cow<'a, str> {
    match speaker {
        Some(name) if !name.is_empty() => Cow::Owned(format!("{name}: {text}")),
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_embedded_with_its_speaker() {
        assert_eq!(episode_text(Some("Ada"), "hello"), "Ada: hello");
        assert_eq!(episode_text(Some(""), "hello"), "hello");
        assert_eq!(episode_text(None, "hello"), "hello");
    }
}
