//! Where vectors come from: the choice made at open, against what the database records.

use std::sync::Arc;

use crate::encode::Embedder;
use crate::error::{Error, Result};
use crate::model::VectorSpace;
use crate::options::VectorElement;
use crate::storage::SpaceChoice;

/// Where a database's vectors come from. The space is recorded when the database is created; opening with another one
/// is an error that names both.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Embedding {
    /// Whatever the database records; a new one gets the built-in model. A database that was created with another
    /// embedder opens too, and takes its vectors from the caller. The default.
    #[default]
    Auto,
    /// An embedder of the caller's.
    Custom(Arc<dyn Embedder>),
    /// No embedder: the caller gives the vector of every episode and every query.
    External {
        /// Names what makes the vectors, such as a model and its version.
        name: String,
        /// Values of one vector, 1 to 4,096.
        dimension: u32,
    },
}

impl std::fmt::Debug for Embedding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Embedding::Auto => write!(f, "Auto"),
            Embedding::Custom(embedder) => {
                write!(f, "Custom({}, {})", embedder.name(), embedder.dimension())
            }
            Embedding::External { name, dimension } => write!(f, "External({name}, {dimension})"),
        }
    }
}

impl Embedding {
    /// What the store may open. `None`: there is nothing that a new database could record, so none can be made.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] for a space without a name; [`crate::ErrorKind::Limit`] for an impossible
    /// dimension.
    pub(super) fn choice(&self, element: Option<VectorElement>) -> Result<Option<SpaceChoice>> {
        let element = element.unwrap_or_default();
        let space = |name: &str, dimension: u32| {
            let space = VectorSpace { name: name.to_owned(), dimension, element };
            space.check()?;
            if name.is_empty() {
                return Err(Error::invalid("embedding: the name is empty"));
            }
            Ok(space)
        };
        Ok(match self {
            Embedding::Auto => match builtin_space() {
                Some((name, dimension)) => {
                    Some(SpaceChoice::Recorded(space(name, dimension as u32)?))
                }
                None => None,
            },
            Embedding::Custom(embedder) => {
                let dimension = u32::try_from(embedder.dimension()).unwrap_or(u32::MAX);
                Some(SpaceChoice::Exactly(space(embedder.name(), dimension)?))
            }
            Embedding::External { name, dimension } => {
                Some(SpaceChoice::Exactly(space(name, *dimension)?))
            }
        })
    }

    /// The embedder for a database that records `space`; `None` when the vectors come from the caller.
    pub(super) fn embedder(&self, space: &VectorSpace) -> Option<Arc<dyn Embedder>> {
        match self {
            Embedding::Auto => {
                let recorded = (space.name.as_str(), space.dimension as usize);
                (builtin_space() == Some(recorded)).then(builtin)
            }
            Embedding::Custom(embedder) => Some(Arc::clone(embedder)),
            Embedding::External { .. } => None,
        }
    }
}

/// Name and dimension of the built-in model, known without opening it.
#[cfg(feature = "builtin-model")]
fn builtin_space() -> Option<(&'static str, usize)> {
    Some(("memstatic-en-v1-256d", 256))
}

#[cfg(not(feature = "builtin-model"))]
fn builtin_space() -> Option<(&'static str, usize)> {
    None
}

fn builtin() -> Arc<dyn Embedder> {
    Arc::new(Builtin)
}

/// The built-in model, opened at the first text: a handle that is given vectors never pays for it.
struct Builtin;

impl Embedder for Builtin {
    fn name(&self) -> &str {
        builtin_space().map_or("", |(name, _)| name)
    }

    fn dimension(&self) -> usize {
        builtin_space().map_or(0, |(_, dimension)| dimension)
    }

    #[cfg(feature = "builtin-model")]
    fn embed(&self, texts: &[&str], out: &mut Vec<f32>) -> Result<Vec<bool>> {
        crate::encode::builtin().embed(texts, out)
    }

    #[cfg(not(feature = "builtin-model"))]
    fn embed(&self, _texts: &[&str], _out: &mut Vec<f32>) -> Result<Vec<bool>> {
        Err(Error::invalid("this build has no built-in model"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "builtin-model")]
    #[test]
    fn the_builtin_space_is_that_of_the_model() {
        let model = crate::encode::builtin();
        assert_eq!(builtin_space(), Some((model.name(), model.dimension())));
    }

    #[test]
    fn auto_gives_an_embedder_only_to_its_own_space() {
        let mut space =
            VectorSpace { name: "other".into(), dimension: 256, element: VectorElement::F32 };
        assert!(Embedding::Auto.embedder(&space).is_none());
        if let Some((name, dimension)) = builtin_space() {
            space.name = name.into();
            assert_eq!(Embedding::Auto.embedder(&space).unwrap().dimension(), dimension);
            space.dimension = 3;
            assert!(Embedding::Auto.embedder(&space).is_none());
        }
    }

    #[test]
    fn a_space_without_a_name_or_with_an_impossible_dimension_is_refused() {
        let external = |name: &str, dimension| Embedding::External { name: name.into(), dimension };
        assert!(external("", 3).choice(None).is_err());
        assert!(external("m", 0).choice(None).is_err());
        assert!(external("m", 4097).choice(None).is_err());
        assert!(matches!(
            external("m", 4096).choice(Some(VectorElement::F16)).unwrap(),
            Some(SpaceChoice::Exactly(space)) if space.element == VectorElement::F16
        ));
    }
}
