//! Words that say nothing of what a text is about.

/// Stop words by length in bytes, each list ascending: the 157 words that the recall pipeline was measured with.
const BY_LENGTH: [&[&str]; 8] = [
    &[],
    &["a", "d", "i", "m", "s", "t"],
    &[
        "am", "an", "as", "at", "be", "by", "do", "he", "hi", "if", "in", "is", "it", "ll", "me",
        "my", "no", "of", "oh", "ok", "on", "or", "re", "so", "to", "up", "us", "ve", "we",
    ],
    &[
        "all", "and", "any", "are", "but", "can", "did", "don", "few", "for", "get", "got", "had",
        "has", "her", "hey", "him", "his", "how", "i'm", "isn", "its", "may", "nor", "not", "off",
        "our", "out", "own", "she", "the", "too", "was", "who", "why", "won", "wow", "yes", "you",
    ],
    &[
        "also", "aren", "been", "both", "didn", "does", "done", "down", "each", "else", "from",
        "hadn", "hasn", "have", "here", "hers", "i've", "into", "it's", "just", "lets", "mine",
        "more", "most", "must", "okay", "only", "ours", "over", "same", "some", "such", "than",
        "that", "them", "then", "they", "this", "very", "wasn", "were", "what", "when", "whom",
        "will", "with", "yeah", "your",
    ],
    &[
        "about", "after", "again", "being", "can't", "could", "doesn", "doing", "haven", "let's",
        "might", "other", "shall", "their", "there", "these", "those", "under", "we're", "weren",
        "where", "which", "whose", "would", "yours",
    ],
    &["before", "couldn", "having", "really", "should", "that's", "theirs", "wouldn", "you're"],
    &["shouldn"],
];

/// Whether `word`, in small letters and with straight apostrophes, is a stop word.
pub(super) fn is_stop(word: &str) -> bool {
    BY_LENGTH.get(word.len()).is_some_and(|words| words.binary_search(&word).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order_and_of_one_length() {
        for (length, words) in BY_LENGTH.iter().enumerate() {
            assert!(words.is_sorted_by(|a, b| a < b), "{words:?}");
            assert!(words.iter().all(|word| word.len() == length), "{words:?}");
        }
    }

    #[test]
    fn small_words_stop_and_others_do_not() {
        for word in ["a", "the", "let's", "themselves"] {
            assert_eq!(is_stop(word), word != "themselves", "{word}");
        }
        assert!(!is_stop("") && !is_stop("lisbon") && !is_stop("The"));
    }
}
