//! Importing files.

use super::*;

#[test]
fn a_second_import_stores_nothing_and_a_changed_line_makes_a_version() {
    let place = Place::new();
    place.file("turns.jsonl", turns(20));
    let import = ["import", "db", "turns.jsonl", "--user", "u", "--json"];
    let first = place.run(&import).ok().json();
    let counts = |stored, unchanged, new_versions| json!({ "stored": stored, "unchanged": unchanged, "new_versions": new_versions, "without_text": 0 });
    assert_eq!(first, counts(20, 0, 0));
    assert_eq!(place.run(&import).ok().json(), counts(0, 20, 0));
    place.file("turns.jsonl", turns(21).replace("turn 3\"", "turn three\""));
    assert_eq!(place.run(&import).ok().json(), counts(1, 19, 1));
    let texts = place.texts();
    assert_eq!((texts.len(), texts[3].as_str()), (21, "turn three"));
    let page = place.run(&["timeline", "db", "-u", "u", "--json", "-n", "1"]).ok().json();
    assert_eq!(page["episodes"][0]["key"], "c/D1:0");
    assert_eq!(page["episodes"][0]["session"], "c/S1");
}

#[test]
fn a_conversation_is_its_own_user_unless_one_is_named() {
    let place = Place::new();
    place.file("turns.jsonl", turns(2));
    place.run(&["import", "db", "turns.jsonl"]).ok();
    let users = place.run(&["users", "db", "--json"]).ok().json();
    assert_eq!(users, json!({ "users": [{ "user": "c" }] }));
}

#[test]
fn a_bad_line_is_named_with_the_last_stored_one() {
    let place = Place::new();
    place.file("turns.jsonl", turns(4096) + "{\"secret-marker\":\n");
    let ran = place.run(&["import", "db", "turns.jsonl", "--user", "u", "--json"]);
    assert_eq!(ran.code, 2);
    for part in ["turns.jsonl", "line 4097", "last stored line: 4096"] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    assert!(!ran.err.contains("secret-marker"));
    assert_eq!(ran.json()["stored"], 4096);
    let count = place.run(&["count", "db", "-u", "u", "--json"]).ok().json();
    assert_eq!(count, json!({ "count": 4096 }));
    assert_eq!(place.run(&["import", "db", "nowhere.jsonl"]).code, 3);
}

#[test]
fn gzip_and_stdin_are_read_like_files() {
    let place = Place::new();
    place.file("turns.jsonl.gz", gzip(turns(3).as_bytes()));
    let import = ["import", "db", "turns.jsonl.gz", "--user", "u", "--json"];
    assert_eq!(place.run(&import).ok().json()["stored"], 3);
    let import = ["import", "db", "-", "--user", "u", "--json"];
    let piped = place.run_with(&import, turns(4).as_bytes()).ok().json();
    assert_eq!((&piped["stored"], &piped["unchanged"]), (&json!(1), &json!(3)));
    let piped = place.run_with(&import, &gzip(turns(5).as_bytes())).ok().json();
    assert_eq!((&piped["stored"], &piped["unchanged"]), (&json!(1), &json!(4)));
    let windows = format!("\u{feff}{}", turns(6).replace('\n', "\r\n"));
    assert_eq!(place.run_with(&import, windows.as_bytes()).ok().json()["stored"], 1);
}

#[test]
fn times_without_a_zone_are_read_in_the_zone_and_that_is_said_once() {
    let place = Place::new();
    let naive = turns(3).replace("00Z", "00");
    let import = ["import", "db", "-", "--user", "u", "--zone", "Europe/Berlin"];
    let ran = place.run_with(&import, naive.as_bytes()).ok();
    assert_eq!(ran.err.matches("Europe/Berlin").count(), 1, "{}", ran.err);
    let page = place.run(&["timeline", "db", "-u", "u", "--json", "-n", "1"]).ok().json();
    assert_eq!(page["episodes"][0]["time"], "2025-01-01T10:00:00+01:00");
    let whole = place.run_with(&["import", "db", "-", "--user", "v"], turns(3).as_bytes()).ok();
    assert!(whole.err.is_empty(), "{}", whole.err);
}

#[test]
fn chats_are_imported_with_and_without_an_id_and_skipped_the_second_time() {
    let place = Place::new();
    let mut chat = json!({ "messages": [
        { "role": "user", "content": "hello", "timestamp": "2025-01-01T10:00:00Z" },
        { "role": "assistant", "content": null, "timestamp": "2025-01-01T10:00:01Z" },
        { "role": "assistant", "content": [{ "type": "text", "text": "hi" }], "timestamp": 1735725602 },
    ]});
    place.file("chat.json", serde_json::to_string_pretty(&chat).unwrap());
    assert_eq!(place.run(&["import", "db", "chat.json"]).code, 2);
    let import = ["import", "db", "chat.json", "--user", "u", "--json"];
    let first = place.run(&import).ok().json();
    assert_eq!((&first["stored"], &first["without_text"]), (&json!(2), &json!(1)));
    assert_eq!(place.run(&import).ok().json()["unchanged"], 2);
    assert_eq!(place.texts(), ["hello", "hi"]);
    chat["id"] = json!("chat/7");
    place.file("chats.jsonl", format!("{chat}\n"));
    let import = ["import", "db", "chats.jsonl", "--format", "chat", "--json"];
    assert_eq!(place.run(&import).ok().json()["stored"], 2);
    let page = place.run(&["timeline", "db", "-u", "chat/7", "--json"]).ok().json();
    assert_eq!(page["episodes"][1]["key"], "chat%2F7/2");
    assert_eq!(page["episodes"][1]["session"], "chat/7");
    assert_eq!(page["episodes"][1]["time"], "2025-01-01T10:00:02Z");
}

#[test]
fn an_import_of_what_is_not_there_creates_no_database() {
    let place = Place::new();
    for (file, code) in [("missing.jsonl", 3), (".", 2)] {
        assert_eq!(place.run(&["import", "new", file]).code, code);
        assert!(!place.dir.path().join("new").exists());
    }
}

#[test]
fn a_large_import_is_checkpointed_before_the_command_ends() {
    let place = Place::new();
    place.file("turns.jsonl", turns(9000));
    place.run(&["import", "db", "turns.jsonl"]).ok();
    let stats = place.run(&["stats", "db", "--json"]).ok().json();
    assert!(stats["segments"].as_u64().unwrap() > 0, "{stats}");
    assert!(stats["log_bytes"].as_u64().unwrap() < 8 << 20, "{stats}");
}
