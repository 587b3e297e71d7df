//! Tests of the importer against a host that only remembers what it was given.

use super::*;
use loomdb::ErrorKind;

#[derive(Default)]
struct Recorder {
    batches: Vec<(String, usize)>,
    notes: Vec<String>,
    fail_at: Option<usize>,
}

impl Host for Recorder {
    fn write(&mut self, user: &[u8], turns: Vec<Turn>) -> Result<Counts> {
        if self.fail_at == Some(self.batches.len()) {
            return Err(Error::new(ErrorKind::Locked, "held"));
        }
        self.batches.push((String::from_utf8_lossy(user).into_owned(), turns.len()));
        Ok(Counts { stored: turns.len() as u64, ..Counts::default() })
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.into());
    }

    fn progress(&mut self, _: &Counts) {}
}

fn settings() -> Settings<'static> {
    Settings { user: None, zone: None, format: Format::Auto, captions: false }
}

fn run(recorder: &mut Recorder, settings: Settings<'_>, input: &str) -> (Counts, Result<()>) {
    let mut importer = Importer::new(settings, recorder).unwrap();
    let result = importer.read("some/turns.jsonl", input.as_bytes());
    (importer.counts(), result)
}

fn turn(conversation: &str, number: usize) -> String {
    format!(
        "{{\"conv_id\":\"{conversation}\",\"turn_id\":{number},\"text\":\"x\",\"time\":\"2025-01-01T10:00:00Z\"}}\n"
    )
}

fn chat(messages: usize) -> String {
    let message = r#"{"role":"user","content":"x","timestamp":5}"#;
    format!("{{\"id\":\"c\",\"messages\":[{}]}}\n", vec![message; messages].join(","))
}

#[track_caller]
fn refused(result: Result<()>, kind: ErrorKind, parts: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    assert!(text.contains("(turns.jsonl)"), "{text}");
    for part in parts {
        assert!(text.contains(part), "{text} lacks {part}");
    }
}

#[test]
fn batches_hold_4096_turns_and_one_user_each() {
    let mut input: String = (0..5000).map(|number| turn("a", number)).collect();
    input += &turn("b", 0);
    input += "\n  \n";
    input += &turn("a", 5000);
    let mut recorder = Recorder::default();
    let (counts, result) = run(&mut recorder, settings(), &input);
    result.unwrap();
    assert_eq!(counts.turns(), 5002);
    let expected = [("a", 4096), ("a", 904), ("b", 1), ("a", 1)];
    assert_eq!(recorder.batches, expected.map(|(user, turns)| (user.to_owned(), turns)));
}

#[test]
fn a_user_that_is_named_takes_every_conversation() {
    let mut recorder = Recorder::default();
    let user = Some(OsStr::new("me"));
    let input = turn("a", 0) + &turn("b", 0);
    run(&mut recorder, Settings { user, ..settings() }, &input).1.unwrap();
    assert_eq!(recorder.batches, [("me".to_owned(), 2)]);
}

#[test]
fn a_bad_line_names_itself_and_the_last_stored_line() {
    let mut input: String = (0..4100).map(|number| turn("a", number)).collect();
    input += "\nsecret-marker\n";
    let mut recorder = Recorder::default();
    let (counts, result) = run(&mut recorder, settings(), &input);
    refused(result, ErrorKind::Invalid, &["line 4102", "last stored line: 4096"]);
    assert_eq!((counts.stored, recorder.batches.len()), (4096, 1));

    let input: String = (0..4096).map(|number| turn("a", number)).collect();
    let (_, result) = run(&mut Recorder::default(), settings(), &(input + "secret-marker"));
    refused(result, ErrorKind::Invalid, &["line 4097", "last stored line: 4096"]);

    for (line, part) in [
        ("[1]", "not a JSON object"),
        ("{\"conv_id\":\"a\"", "cut off"),
        ("{\"conv_id\":\"a\",\"turn_id\":1,\"time\":\"2025-01-01T10:00:00Z\"}", "no \"text\""),
        ("{}", "no \"conv_id\""),
    ] {
        let mut recorder = Recorder::default();
        let input = turn("a", 0) + line;
        let (_, result) = run(&mut recorder, settings(), &input);
        refused(result, ErrorKind::Invalid, &["line 2", part, "last stored line: 0"]);
        assert!(recorder.batches.is_empty());
    }
}

#[test]
fn bytes_that_are_no_text_name_their_line() {
    let mut recorder = Recorder::default();
    let mut importer = Importer::new(settings(), &mut recorder).unwrap();
    let mut input = turn("a", 0).into_bytes();
    input.extend(b"\xff\n");
    let result = importer.read("turns.jsonl", input.as_slice());
    refused(result, ErrorKind::Invalid, &["line 2", "last stored line: 0"]);
}

#[test]
fn what_the_database_refuses_keeps_its_kind_and_names_the_lines() {
    let mut recorder = Recorder { fail_at: Some(1), ..Recorder::default() };
    let input = turn("a", 0) + "\n" + &turn("b", 0) + &turn("b", 1);
    let (counts, result) = run(&mut recorder, settings(), &input);
    refused(result, ErrorKind::Locked, &["lines 3 to 4", "last stored line: 1"]);
    assert_eq!(counts.stored, 1);
}

#[test]
fn nothing_of_a_failed_input_leaks_into_the_next() {
    let mut recorder = Recorder::default();
    let mut importer = Importer::new(settings(), &mut recorder).unwrap();
    importer.read("a", (turn("a", 0) + "bad").as_bytes()).unwrap_err();
    importer.read("b", turn("b", 0).as_bytes()).unwrap();
    assert_eq!(recorder.batches, [("b".to_owned(), 1)]);
}

#[test]
fn a_zone_that_is_assumed_is_said_once() {
    let naive = |number| turn("a", number).replace("00Z", "00");
    let mut recorder = Recorder::default();
    run(&mut recorder, settings(), &(naive(0) + &naive(1))).1.unwrap();
    assert_eq!(recorder.notes, ["times without a zone are read in UTC"]);
    let mut recorder = Recorder::default();
    run(&mut recorder, settings(), &turn("a", 0)).1.unwrap();
    assert!(recorder.notes.is_empty());
    let nowhere = Settings { zone: Some("Nowhere/Land"), ..settings() };
    assert!(Importer::new(nowhere, &mut recorder).is_err());
}

#[test]
fn chats_come_one_a_line_or_one_over_several_lines() {
    let mut recorder = Recorder::default();
    let (counts, result) = run(&mut recorder, settings(), &(chat(2) + &chat(3) + &turn("a", 0)));
    result.unwrap();
    assert_eq!(counts.turns(), 6);

    let pretty = chat(2).replace(',', ",\n");
    run(&mut recorder, settings(), &pretty).1.unwrap();
    let only_turns = Settings { format: Format::Turns, ..settings() };
    refused(run(&mut recorder, only_turns, &pretty).1, ErrorKind::Invalid, &["line 1", "cut off"]);
    let only_chat = Settings { format: Format::Chat, ..settings() };
    let result = run(&mut recorder, only_chat, &turn("a", 0)).1;
    refused(result, ErrorKind::Invalid, &["line 1", "no \"messages\""]);
}

#[test]
fn a_long_chat_is_no_stored_line_before_its_end() {
    let bad = r#"{"role":"user","content":"x"}"#;
    let input = turn("a", 0) + &chat(5000).replace("]}", &format!(",{bad}]}}"));
    let mut recorder = Recorder::default();
    let (counts, result) = run(&mut recorder, settings(), &input);
    let parts = ["line 2", "message 5001", "\"timestamp\"", "last stored line: 1"];
    refused(result, ErrorKind::Invalid, &parts);
    assert_eq!(counts.stored, 4096);
}

#[test]
fn a_chat_without_an_id_needs_a_user() {
    let anonymous = chat(1).replace("\"id\":\"c\",", "");
    let mut recorder = Recorder::default();
    let result = run(&mut recorder, settings(), &anonymous).1;
    refused(result, ErrorKind::Invalid, &["--user"]);
    let user = Some(OsStr::new("me"));
    run(&mut recorder, Settings { user, ..settings() }, &anonymous).1.unwrap();
}

#[test]
fn every_line_of_the_bundled_conversation_is_taken() {
    let input = include_str!("../../../../assets/demo/turns.jsonl");
    let mut recorder = Recorder::default();
    let (counts, result) = run(&mut recorder, settings(), input);
    result.unwrap();
    assert!(counts.stored >= 300 && recorder.notes.is_empty());
    assert_eq!(recorder.batches.len(), 1);
}

#[test]
fn a_time_is_refused_with_its_line_and_the_reason() {
    let good = turn("a", 0);
    for (time, why) in [
        ("2025-01-01T10:00:00[Europe/Paris]", "no offset"),
        ("2025-01-01T10:00:00+25:00", "offset"),
        ("9999-12-31T23:59:59Z", "out of range"),
        ("monday", "not RFC 3339"),
    ] {
        let bad = turn("a", 1).replace("2025-01-01T10:00:00Z", time);
        let (_, result) = run(&mut Recorder::default(), settings(), &(good.clone() + &bad));
        refused(result, ErrorKind::Invalid, &["line 2", "\"time\"", why]);
        let bad = chat(1).replace("\"timestamp\":5", &format!("\"timestamp\":\"{time}\""));
        let (_, result) = run(&mut Recorder::default(), settings(), &(good.clone() + &bad));
        refused(result, ErrorKind::Invalid, &["line 2", "\"timestamp\"", why]);
    }
}

#[test]
fn a_field_that_stands_twice_is_refused_with_its_line() {
    let good = turn("a", 0);
    let bad = turn("a", 1).replace("\"text\":\"x\"", "\"text\":\"x\",\"text\":\"y\"");
    let (_, result) = run(&mut Recorder::default(), settings(), &(good.clone() + &bad));
    refused(result, ErrorKind::Invalid, &["line 2", "twice"]);
    let bad = chat(2).replacen("\"role\":\"user\"", "\"role\":\"user\",\"role\":\"tool\"", 1);
    let (_, result) = run(&mut Recorder::default(), settings(), &(good + &bad));
    refused(result, ErrorKind::Invalid, &["line 2", "twice"]);
}

#[test]
fn an_input_of_nothing_but_empty_lines_comes_to_an_end() {
    let (mut recorder, mut empty) = (Recorder::default(), "\n".repeat(EMPTY_LINES_MAX as usize));
    let whole = turn("a", 0) + &empty + &turn("a", 1) + &empty;
    run(&mut recorder, settings(), &whole).1.unwrap();
    empty.push('\n');
    let (_, result) = run(&mut recorder, settings(), &empty);
    refused(result, ErrorKind::Invalid, &["line 1048577", "empty lines"]);
}
