//! The command line, driven as a person or a script drives it: the built program, files, pipes and exit codes.

#![cfg(feature = "cli")]

mod import;
mod refusals;
mod search;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().expect("ended by itself"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    fn ok(self) -> Ran {
        assert_eq!(self.code, 0, "{}", self.err);
        self
    }

    /// The answer, which must be one JSON object on one line.
    #[track_caller]
    fn json(self) -> Value {
        let line = self.out.strip_suffix('\n').expect("a whole line");
        assert!(!line.contains('\n'), "one line: {line}");
        let value: Value = serde_json::from_str(line).expect("JSON");
        assert!(value.is_object());
        value
    }
}

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loomdb"));
        command.args(arguments).current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that refuses its arguments does not read.
        let _ = child.stdin.take().unwrap().write_all(input);
        Ran::of(child.wait_with_output().unwrap())
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.dir.path().join(name), contents).unwrap();
    }

    /// Adds a turn of the user `u` and returns its id.
    #[track_caller]
    fn add(&self, text: &str, more: &[&str]) -> u64 {
        let arguments = [&["add", "db", "--json", "--user", "u", text], more].concat();
        self.run(&arguments).ok().json()["id"].as_u64().unwrap()
    }

    #[track_caller]
    fn texts(&self) -> Vec<String> {
        let page = self.run(&["timeline", "db", "--user", "u", "--json"]).ok().json();
        let episodes = page["episodes"].as_array().unwrap();
        episodes.iter().map(|episode| episode["text"].as_str().unwrap().to_owned()).collect()
    }
}

fn turns(count: usize) -> String {
    let line = |number: usize| {
        json!({
            "conv_id": "c", "session_id": "S1", "turn_id": format!("D1:{number}"), "idx": number,
            "time": "2025-01-01T10:00:00Z", "speaker": "Ana", "text": format!("turn {number}"),
        })
        .to_string()
    };
    (0..count).map(|number| line(number) + "\n").collect()
}

fn gzip(input: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(input).unwrap();
    writer.finish().unwrap()
}

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let place = Place::new();
    let help = place.run(&["--help"]).ok().out;
    let commands = "demo eval audit init add import search timeline get history update delete count users stats verify checkpoint";
    for command in commands.split(' ') {
        assert!(help.contains(&format!("  {command} ")), "{command}");
        let own = place.run(&[command, "--help"]).ok();
        assert!(own.out.contains("Usage: loomdb"), "{command}");
    }
    assert!(help.contains("Exit codes:") && help.contains("Examples:"));
    assert!(place.run(&["import", "--help"]).ok().out.contains("turn_time"));
}

#[test]
fn a_turn_goes_through_every_command() {
    let place = Place::new();
    let more = ["--key", "k", "--session", "s", "--speaker", "Ana", "--tag", "move", "--metadata"];
    let time = ["{\"a\":1}", "--time", "2025-03-01T09:30:00+01:00"];
    let id = place.add("I moved to Lisbon", &[&more[..], &time].concat());
    let id_text = id.to_string();

    let got = place.run(&["get", "db", "--user", "u", &id_text, "--json"]).ok().json();
    for (field, value) in [
        ("id", json!(id)),
        ("version", json!(1)),
        ("user", json!("u")),
        ("key", json!("k")),
        ("session", json!("s")),
        ("speaker", json!("Ana")),
        ("time", json!("2025-03-01T09:30:00+01:00")),
        ("tags", json!(["move"])),
        ("metadata", json!({ "a": 1 })),
        ("text", json!("I moved to Lisbon")),
    ] {
        assert_eq!(got[field], value, "{field}");
    }

    let update = ["update", "db", "--user", "u", &id_text, "--text", "I moved to Porto", "--json"];
    let updated = place.run(&update).ok().json();
    assert_eq!(updated, json!({ "id": id, "version": 2, "outcome": "new_version" }));
    let again = place.run(&update).ok().json();
    assert_eq!(again["outcome"], "unchanged");
    let history = place.run(&["history", "db", "--user", "u", &id_text, "--json"]).ok().json();
    let versions = history["episodes"].as_array().unwrap();
    assert_eq!((versions.len(), &versions[0]["text"]), (2, &json!("I moved to Lisbon")));

    let found =
        place.run(&["search", "db", "-u", "u", "where?", "--explain", "--json"]).ok().json();
    assert_eq!(found["hits"][0]["text"], "I moved to Porto");
    assert!(found["hits"][0]["score"].is_number() && found["explain"].is_object());
    assert_eq!(place.run(&["count", "db", "-u", "u", "--json"]).ok().json(), json!({ "count": 1 }));
    let users = place.run(&["users", "db", "--json"]).ok().json();
    assert_eq!(users, json!({ "users": [{ "user": "u" }] }));
    let stats = place.run(&["stats", "db", "-u", "u", "--json"]).ok().json();
    assert_eq!((&stats["episodes"], &stats["user"]["episodes"]), (&json!(1), &json!(1)));
    place.run(&["checkpoint", "db", "--json"]).ok().json();
    assert_eq!(place.run(&["verify", "db", "--json"]).ok().json()["whole"], true);

    let deleted = place.run(&["delete", "db", "-u", "u", &id_text, "--json"]).ok().json();
    assert_eq!(deleted, json!({ "deleted": 1 }));
    assert_eq!(place.run(&["get", "db", "-u", "u", &id_text]).code, 3);
    place.add("again", &["--session", "s"]);
    let deleted = place.run(&["delete", "db", "-u", "u", "--session", "s", "--json"]).ok().json();
    assert_eq!(deleted, json!({ "deleted": 1 }));
    assert!(place.texts().is_empty());
}

#[test]
fn without_json_the_answer_is_for_people() {
    let place = Place::new();
    let id = place.add("clear \u{1b}[2J me", &["--session", "s", "--speaker", "Ana"]).to_string();
    for command in [
        &["timeline", "db", "-u", "u"][..],
        &["get", "db", "-u", "u", &id],
        &["search", "db", "-u", "u", "clear", "--explain"],
        &["history", "db", "-u", "u", &id],
    ] {
        let out = place.run(command).ok().out;
        assert!(out.contains("clear \\u{1b}[2J me") && out.contains("Ana"), "{out}");
    }
    for command in ["users", "stats", "verify", "checkpoint"] {
        assert!(!place.run(&[command, "db"]).ok().out.is_empty());
    }
}

#[test]
fn a_timeline_is_paged_in_both_directions_and_between_times() {
    let place = Place::new();
    for hour in ["08", "09", "10", "11"] {
        place.add(hour, &["--time", &format!("2025-03-01T{hour}:00:00Z")]);
    }
    let list = |more: &[&str]| {
        let arguments = [&["timeline", "db", "-u", "u", "--json"], more].concat();
        let page = place.run(&arguments).ok().json();
        let episodes = page["episodes"].as_array().unwrap().clone();
        let texts: Vec<String> =
            episodes.iter().map(|episode| episode["text"].as_str().unwrap().into()).collect();
        (texts, page["next"].clone())
    };
    let (texts, next) = list(&["--limit", "3"]);
    assert_eq!(texts, ["08", "09", "10"]);
    let (texts, next) = list(&["--limit", "3", "--cursor", next.as_str().unwrap()]);
    assert_eq!((texts, next), (vec!["11".to_owned()], Value::Null));
    assert_eq!(list(&["--reverse", "--limit", "2"]).0, ["11", "10"]);
    let between = ["--since", "2025-03-01T09:00:00Z", "--until", "2025-03-01T12:00:00+01:00"];
    assert_eq!(list(&between).0, ["09", "10"]);
    let named = ["--since", "2025-03-01T12:00:00", "--zone", "+02:00"];
    assert_eq!(list(&named).0, ["10", "11"]);
    assert_eq!(place.run(&["timeline", "db", "-u", "u", "--cursor", "?"]).code, 2);
}

#[test]
fn users_do_not_see_each_other() {
    let place = Place::new();
    let id = place.add("mine", &[]).to_string();
    for other in ["U", "u ", "u/", "*", "%"] {
        assert_eq!(place.run(&["get", "db", "-u", other, &id]).code, 3);
        assert_eq!(place.run(&["delete", "db", "-u", other, &id]).code, 3);
        let found = place.run(&["search", "db", "-u", other, "mine", "--json"]).ok().json();
        assert_eq!(found["hits"], json!([]));
    }
    assert_eq!(place.texts(), ["mine"]);
}

#[test]
fn text_comes_from_stdin_whole() {
    let place = Place::new();
    let text = "first line\nsecond: \"quoted\" --not-an-option \u{1f3bb}";
    place.run_with(&["add", "db", "-u", "u", "-"], format!("{text}\n").as_bytes()).ok();
    place.run(&["add", "db", "-u", "u", "--", "--dashes"]).ok();
    assert_eq!(place.texts(), [text, "--dashes"]);
    assert_eq!(place.run_with(&["add", "db", "-u", "u", "-"], b"\xff").code, 2);
}

#[test]
fn a_database_without_an_embedder_takes_vectors() {
    let place = Place::new();
    let init = ["init", "db", "--embedder", "none", "--dimension", "3", "--json"];
    assert_eq!(place.run(&init).ok().json(), json!({ "space": "external", "dimension": 3 }));
    place.add("east", &["--vector", "[1, 0, 0]"]);
    place.add("north", &["--vector", "[0, 1, 0]"]);
    assert_eq!(place.run(&["add", "db", "-u", "u", "x", "--vector", "[1, 0]"]).code, 2);
    let search = ["search", "db", "-u", "u", "--vector", "[0.1, 0.9, 0]", "-k", "1", "--json"];
    assert_eq!(place.run(&search).ok().json()["hits"][0]["text"], "north");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let place = Place::new();
    place.file("turns.jsonl", turns(2000));
    place.run(&["import", "db", "turns.jsonl", "--user", "u"]).ok();
    let mut command = place.command(&["timeline", "db", "-u", "u", "-n", "2000", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn the_demo_runs_anywhere_twice_and_leaves_nothing() {
    let place = Place::new();
    let temporary = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = place.command(&["demo", "--json"]).env("TMPDIR", temporary.path()).output();
        let answer = Ran::of(output.unwrap()).ok().json();
        assert!(answer["imported"]["stored"].as_u64().unwrap() >= 300);
        let questions = answer["questions"].as_array().unwrap();
        assert_eq!(questions.len(), 6);
        assert!(questions.iter().all(|asked| !asked["hits"].as_array().unwrap().is_empty()));
        assert!(questions.iter().all(|asked| asked["microseconds"].is_u64()));
    }
    assert!(is_empty(temporary.path()) && is_empty(place.dir.path()));

    let kept = place.run(&["demo", "--db", "kept.loom"]).ok();
    assert!(kept.out.contains("POL-358"));
    let again = place.run(&["demo", "--db", "kept.loom", "--json"]).ok().json();
    assert_eq!(again["imported"]["stored"], 0);
    assert!(place.dir.path().join("kept.loom").exists());
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}
