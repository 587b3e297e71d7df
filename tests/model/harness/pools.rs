//! The values that operations choose from: few, so that operations meet, and awkward, so that a mix-up shows.

use loomdb::{Timestamp, Value};

/// Names of users: prefixes of one another, a separator, a wildcard.
pub const USERS: [&[u8]; 4] = [b"u", b"u\0", b"u\0v", b"%*\xff"];

/// Sessions.
pub const SESSIONS: [&str; 3] = ["s", "s\0", "t"];
/// Keys.
pub const KEYS: [&str; 4] = ["k", "k\0", "kk", "\u{1f600}"];
/// Speakers.
pub const SPEAKERS: [&str; 2] = ["Ada", "Bob: "];

/// Texts; the third has nothing that an embedder knows, the last fills more than one block.
pub fn text(choice: u8) -> String {
    match choice % 7 {
        0 => "alpha".into(),
        1 => "beta \0 gamma".into(),
        2 => "\u{2026} ?!".into(),
        3 => "O'Brien's POL-358 \u{1f600}".into(),
        4 => "alpha".repeat(60),
        5 => "delta".into(),
        _ => "epsilon zeta ".repeat(800),
    }
}

/// One of `pool`, or none for 0.
pub fn maybe(pool: &[&str], choice: u8) -> Option<String> {
    let place = usize::from(choice) % (pool.len() + 1);
    place.checked_sub(1).map(|place| pool[place].to_owned())
}

/// Times with the offset that they are given in; microseconds and minutes. Few, so that many are equal.
pub fn time(choice: u8) -> (i64, i16) {
    const TIMES: [i64; 10] = [
        0,
        1,
        -1,
        1_700_000_000_000_000,
        1_700_000_000_000_001,
        1_700_000_060_000_000,
        1_800_000_000_000_000,
        -62_000_000_000_000_000,
        250_000_000_000_000_000,
        5,
    ];
    (TIMES[usize::from(choice) % TIMES.len()], if choice.is_multiple_of(3) { 0 } else { 90 })
}

/// A bound of a range: open for 0.
pub fn bound(choice: u8) -> Option<Timestamp> {
    let micros = time(choice.checked_sub(1)?).0;
    Some(Timestamp::from_micros(micros).expect("times of the pool lie in the calendar"))
}

/// When an episode expires. The past is far enough back, and the future far enough ahead, of any clock.
pub fn expires(choice: u8) -> Option<i64> {
    match choice % 4 {
        0 | 1 => None,
        2 => Some(1_000_000),
        _ => Some(200_000_000_000_000_000),
    }
}

/// Whether an episode is past its expiry.
pub fn is_expired(expires: Option<i64>) -> bool {
    expires == Some(1_000_000)
}

/// Metadata of a new episode.
pub fn metadata(choice: u8) -> Value {
    let text = match choice % 4 {
        0 => r"{}",
        1 => r#"{"a":1}"#,
        2 => r#"{"b":[2,null],"a":1}"#,
        _ => r#"{"a":{"c":"\u0000","d":1}}"#,
    };
    text.parse().expect("valid JSON")
}

/// A change of metadata, by RFC 7396.
pub fn metadata_patch(choice: u8) -> Option<Value> {
    let text = match choice % 4 {
        0 => return None,
        1 => r#"{"a":null}"#,
        2 => r#"{"a":{"d":null,"e":2}}"#,
        _ => r#"{"a":1}"#,
    };
    Some(text.parse().expect("valid JSON"))
}

/// Tags.
pub fn tags(choice: u8) -> Vec<String> {
    let tags: &[&str] = match choice % 3 {
        0 => &[],
        1 => &["x"],
        _ => &["y", "x"],
    };
    tags.iter().map(|tag| (*tag).to_owned()).collect()
}
