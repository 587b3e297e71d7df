//! Who spoke in a memory, and by which first name a question calls them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::analysis;

/// The speakers of one user's live rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Speakers {
    /// Live rows of each speaker that has any.
    rows: BTreeMap<Arc<str>, u64>,
    /// The speakers by first name, ascending.
    by_first_name: Arc<HashMap<String, Vec<Arc<str>>>>,
}

impl Speakers {
    /// `rows`: live rows of each speaker that has any. First names are read anew only when there are other speakers than
    /// in `before`.
    pub fn new(rows: BTreeMap<Arc<str>, u64>, before: Option<&Speakers>) -> Speakers {
        if let Some(before) = before
            && before.rows.keys().eq(rows.keys())
        {
            return Speakers { rows, by_first_name: Arc::clone(&before.by_first_name) };
        }
        let mut by_first_name: HashMap<String, Vec<Arc<str>>> = HashMap::new();
        for speaker in rows.keys() {
            if let Some(name) = analysis::first_name(speaker) {
                by_first_name.entry(name).or_default().push(Arc::clone(speaker));
            }
        }
        Speakers { rows, by_first_name: Arc::new(by_first_name) }
    }

    /// The speakers with this first name, in small letters, and how many live rows each has.
    pub fn called(&self, first_name: &str) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let speakers = self.by_first_name.get(first_name).map_or(&[][..], Vec::as_slice);
        speakers.iter().map(|speaker| (speaker, self.rows[speaker]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(list: &[(&str, u64)]) -> BTreeMap<Arc<str>, u64> {
        list.iter().map(|(name, rows)| (Arc::from(*name), *rows)).collect()
    }

    fn called(speakers: &Speakers, name: &str) -> Vec<(String, u64)> {
        speakers.called(name).map(|(speaker, rows)| (speaker.to_string(), rows)).collect()
    }

    #[test]
    fn counts_change_and_first_names_follow_the_speakers() {
        let first = Speakers::new(rows(&[("Ann Lee", 3), ("Ann", 1), ("?", 1)]), None);
        assert_eq!(called(&first, "ann"), [("Ann".into(), 1), ("Ann Lee".into(), 3)]);
        assert!(called(&first, "lee").is_empty());
        let same = Speakers::new(rows(&[("Ann Lee", 4), ("Ann", 1), ("?", 1)]), Some(&first));
        assert!(Arc::ptr_eq(&first.by_first_name, &same.by_first_name));
        assert_eq!(called(&same, "ann")[1], ("Ann Lee".into(), 4));
        let other = Speakers::new(rows(&[("Ann Lee", 4), ("Bob", 1), ("?", 1)]), Some(&same));
        assert_eq!(called(&other, "bob"), [("Bob".into(), 1)]);
        assert_eq!(called(&other, "ann"), [("Ann Lee".into(), 4)]);
    }
}
