//! Names that people make up of several parts: ticket numbers, versions, addresses, paths. They are found whole and by
//! their parts.

use super::characters::{is_ignorable, is_mark, is_spaced_word, push_small};
use super::words::push_bounded;

/// Joins the parts of an identifier.
pub(super) fn is_connector(c: char) -> bool {
    matches!(c, '-' | '_' | '.' | '/' | '\\' | '@' | ':' | '#' | '+')
}

/// A connector that no pair of plain words has between them.
fn is_telling(c: char) -> bool {
    matches!(c, '_' | '.' | '/' | '\\' | '@')
}

/// A run of letters, numbers and connectors, as far as it has been read.
#[derive(Default)]
struct Run {
    /// Where the first and behind the last letter or number stand.
    range: Option<(usize, usize)>,
    /// Connectors since then, and whether one of them tells.
    waiting: usize,
    waiting_tells: bool,
    /// Whether a single connector joins two letters or numbers, and whether something tells it from plain words.
    joined: bool,
    tells: bool,
}

/// Hands the identifiers of `text`, a text without separators, to `visit`: in small letters, from their first letter or
/// number to the last. Two dots or hyphens in a row are punctuation, and so is all that is no connector, but for the
/// comma within a number. `whole` is scratch.
pub(super) fn identifiers(text: &str, whole: &mut String, visit: &mut impl FnMut(&str)) {
    let mut run = Run::default();
    let mut previous = '\0';
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let behind = at + c.len_utf8();
        if is_spaced_word(c) {
            run.joined |= run.waiting == 1;
            run.tells |= run.waiting_tells || c.is_numeric();
            let start = run.range.map_or(at, |(start, _)| start);
            run = Run { range: Some((start, behind)), waiting: 0, waiting_tells: false, ..run };
        } else if is_mark(c) || is_ignorable(c) {
            if let (Some((_, end)), 0) = (&mut run.range, run.waiting) {
                *end = behind;
            }
        } else if is_connector(c) && !(c == previous && matches!(c, '.' | '-')) {
            if run.range.is_some() {
                run.waiting += 1;
                run.waiting_tells |= is_telling(c);
            }
        } else if !(c == ','
            && previous.is_ascii_digit()
            && characters.peek().is_some_and(|(_, next)| next.is_ascii_digit()))
        {
            hand_over(&run, text, whole, visit);
            run = Run::default();
        }
        previous = c;
    }
    hand_over(&run, text, whole, visit);
}

fn hand_over(run: &Run, text: &str, whole: &mut String, visit: &mut impl FnMut(&str)) {
    let Some((start, end)) = run.range else { return };
    if run.joined && run.tells {
        whole.clear();
        let mut open = true;
        for c in text[start..end].chars().filter(|c| !is_ignorable(*c)) {
            push_small(c, |small| open = open && push_bounded(whole, small));
            if !open {
                break;
            }
        }
        visit(whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        identifiers(text, &mut String::new(), &mut |whole| found.push(whole.to_owned()));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn identifiers_are_found_whole() {
        for text in ["POL-358", "gpt-4o", "a.b@c.org", "foo_bar", "v1.2.3", "10:30", "1,000.5"] {
            check(text, &[&text.to_lowercase()]);
        }
        check("/usr/lib/x.so", &["usr/lib/x.so"]);
        check("\"POL-358's\"", &["pol-358"]);
        check("(POL-358,POL-359)", &["pol-358", "pol-359"]);
        check("https://a.org/b?c=1", &["https://a.org/b"]);
        check("C:\\Users\\ada", &["c:\\users\\ada"]);
        check("STRA\u{df}E_1", &["stra\u{df}e_1"]);
    }

    #[test]
    fn plain_words_are_no_identifiers() {
        for text in
            ["mother-in-law", "end.", "wait...what", "3rd", "so:what", "1,000", "_a_", "a--1"]
        {
            check(text, &[]);
        }
    }
}
