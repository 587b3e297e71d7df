//! `loomdb eval routing` and `loomdb audit` on a made memory: the figures have their shape, are exact where every turn is
//! a candidate, and show a routing that loses turns.

#![cfg(all(feature = "cli", feature = "builtin-model"))]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

const WHO: [&str; 7] = ["Ana", "Ben", "Chloe", "David", "Elif", "Farid", "Grace"];
const DID: [&str; 11] = [
    "repaired",
    "photographed",
    "lost",
    "bought",
    "met",
    "painted",
    "missed",
    "borrowed",
    "carried",
    "sold",
    "described",
];
const WHAT: [&str; 13] = [
    "fishing boat",
    "hungry seagull",
    "wedding ring",
    "smoked mackerel",
    "customs officer",
    "lighthouse door",
    "sailor knot",
    "evening ferry",
    "kitchen table",
    "piano lesson",
    "mountain bicycle",
    "garden fence",
    "train ticket",
];
const HOW: [&str; 5] =
    ["before breakfast", "during the storm", "with grandmother", "last Tuesday", "in the old town"];

/// Turns of a conversation, no two alike. Each has many that share its words.
fn turns(conversation: &str, count: usize) -> String {
    let turn = |number: usize| {
        let (who, did) = (WHO[number % WHO.len()], DID[number / 3 % DID.len()]);
        let (what, how) = (WHAT[number * 5 / 7 % WHAT.len()], HOW[number / 11 % HOW.len()]);
        let turn = json!({
            "conv_id": conversation, "session_id": format!("S{}", number / 20), "turn_id": number.to_string(),
            "idx": number, "time": "2025-01-01T10:00:00Z", "speaker": who,
            "text": format!("{who} {did} the {what} {how}, place {}", number % 17),
        });
        format!("{turn}\n")
    };
    (0..count).map(turn).collect()
}

fn question(conversation: &str, text: &str, evidence: &[usize]) -> String {
    let evidence: Vec<String> = evidence.iter().map(usize::to_string).collect();
    let question = json!({
        "conv_id": conversation, "question": text, "category": "x", "evidence": evidence,
    });
    format!("{question}\n")
}

fn questions() -> String {
    [
        question("a", "Who repaired the fishing boat?", &[0]),
        question("a", "What did Ben photograph during the storm?", &[15, 16]),
        question("b", "Which ring was lost?", &[6]),
        // No word of it is left without those of its turn.
        question("b", "Ana repaired the fishing boat before breakfast", &[0]),
    ]
    .concat()
}

/// A data set of two conversations and a file of distractors, in which one conversation has the name of one of the two.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("made");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("turns.jsonl"), turns("a", 60) + &turns("b", 40)).unwrap();
    std::fs::write(data.join("queries.jsonl"), questions()).unwrap();
    std::fs::write(folder.path().join("more.jsonl"), turns("c", 900) + &turns("a", 100)).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let temporary = folder.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_loomdb"));
    let output =
        command.args(arguments).current_dir(folder).env("TMPDIR", &temporary).output().unwrap();
    if cfg!(unix) {
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "nothing stays behind");
    }
    output
}

#[track_caller]
fn answer(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} is a number in {value}"))
}

const ROUTING: [&str; 4] = ["eval", "routing", "--data", "made"];

#[test]
fn nothing_is_lost_where_every_turn_is_a_candidate() {
    let folder = folder();
    let all = ["--route-above", "0", "--lexical-rows", "10000", "--code-rows", "10000"];
    let value = answer(folder.path(), &[&ROUTING[..], &["--pool"], &all].concat());
    assert_eq!(
        (&value["rows"], &value["queries"], &value["unasked"]),
        (&json!(100), &json!(4), &json!(0))
    );
    for k in [10, 20, 50] {
        assert!((0.0..=1.0).contains(&number(&value["exhaustive"], &format!("all@{k}"))));
        assert_eq!(number(&value, &format!("loss_all@{k}")), 0.0);
        assert_eq!(number(&value, &format!("overlap@{k}")), 1.0);
    }
    assert!(number(&value["exhaustive"], "all@50") >= 0.5, "{value}");
    for share in ["candidate_share_p50", "candidate_share_p95"] {
        assert!(number(&value, share) > 0.3, "{value}");
    }
    assert!((0.0..=1.0).contains(&number(&value, "bits_share_p50")));
    for side in ["routed", "exhaustive"] {
        for figure in ["p50", "p99", "mean"] {
            assert!(number(&value["latency_us"][side], figure) > 0.0);
        }
    }
}

#[test]
fn distractors_fill_each_memory_and_change_no_turn_of_it() {
    let folder = folder();
    let arguments =
        [&ROUTING[..], &["--distractors", "more.jsonl", "--rows", "950", "--route-above", "0"]]
            .concat();
    // Each conversation by itself is filled; those of the other user are not counted.
    let apart = answer(folder.path(), &arguments);
    assert_eq!((&apart["rows"], &apart["queries"]), (&json!(950), &json!(4)));
    assert!(number(&apart, "candidate_share_p95") <= 1.0);
    let pooled = answer(folder.path(), &[&arguments[..], &["--pool"]].concat());
    assert_eq!(pooled["rows"], 950);
    // All distractors, one of whose conversations has the name of a conversation that is asked about.
    let whole =
        answer(folder.path(), &[&ROUTING[..], &["--pool", "--distractors", "more.jsonl"]].concat());
    assert_eq!(whole["rows"], 1100);
    // Scored whole: nothing is chosen, so nothing can be lost.
    assert_eq!((number(&whole, "overlap@50"), number(&whole, "loss_all@10")), (1.0, 0.0));
    assert_eq!(number(&whole, "bits_share_p50"), 0.0);
}

#[test]
fn said_words_are_taken_out_and_vectors_are_compared_alone() {
    let folder = folder();
    let unsaid =
        answer(folder.path(), &[&ROUTING[..], &["--unsaid", "--route-above", "0"]].concat());
    let (asked, unasked) = (number(&unsaid, "queries"), number(&unsaid, "unasked"));
    assert!(asked + unasked == 4.0 && unasked >= 1.0, "{unsaid}");
    assert!((0.0..=1.0).contains(&number(&unsaid, "top20_found")));
    let vectors = answer(folder.path(), &[&ROUTING[..], &["--vectors"]].concat());
    // So few vectors are all compared.
    assert_eq!(number(&vectors, "top20_found"), 1.0);
    assert_eq!(vectors["missed@10"]["ranked_out"], Value::Null);
    let table = String::from_utf8(run(folder.path(), &ROUTING).stdout).unwrap();
    assert!(table.contains("4 questions") && table.contains("all, lost"), "{table}");
}

/// A database with the user `u` of so many turns, in segments: those of a log are all compared.
fn database(count: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("turns.jsonl"), turns("c", count)).unwrap();
    let output = run(folder.path(), &["import", "db", "turns.jsonl", "--user", "u"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(run(folder.path(), &["checkpoint", "db"]).status.success());
    folder
}

#[test]
fn an_audit_says_that_small_memories_are_scored_whole() {
    let folder = database(30);
    for more in [&[][..], &["--user", "u"]] {
        let value = answer(folder.path(), &[&["audit", "db"], more].concat());
        assert_eq!((&value["whole_rows"], &value["users"]), (&json!(20_000), &json!([])));
        assert!(value["recommendation"].as_str().unwrap().contains("--route-above 0"));
    }
    let none = run(folder.path(), &["audit", "db", "--user", "nobody"]);
    assert_eq!((none.status.code(), none.stdout.len()), (Some(3), 0));
}

#[test]
fn an_audit_of_sampled_turns_repeats_and_shows_a_routing_that_loses() {
    let folder = database(1500);
    let audit = ["audit", "db", "--route-above", "0", "--sample", "200"];
    let user = |more: &[&str]| {
        let value = answer(folder.path(), &[&audit[..], more].concat());
        value["users"][0].clone()
    };
    let whole = user(&["--lexical-rows", "10000", "--code-rows", "10000"]);
    assert_eq!(
        (&whole["user"], &whole["rows"], &whole["queries"]),
        (&json!("u"), &json!(1500), &json!(200))
    );
    for k in [10, 20, 50] {
        assert_eq!(number(&whole, &format!("recall@{k}")), 1.0);
        assert_eq!(number(&whole, &format!("overlap@{k}")), 1.0);
        assert_eq!(number(&whole, &format!("not_a_candidate@{k}")), 0.0);
        assert_eq!(number(&whole, &format!("ranked_out@{k}")), 0.0);
    }
    assert!(whole["recommendation"].as_str().unwrap().starts_with("Nothing is lost at 10"));

    let narrow = ["--lexical-rows", "1", "--code-rows", "1", "--cells", "1"];
    let lost = user(&narrow);
    println!("{lost}");
    assert!(number(&lost, "not_a_candidate@50") > 0.0, "{lost}");
    assert!(number(&lost, "overlap@50") < 1.0 && number(&lost, "recall@50") < 1.0);
    assert!(number(&lost, "candidate_share_p50") < number(&whole, "candidate_share_p50"));
    let again = user(&narrow);
    assert_eq!(again["overlap@50"], lost["overlap@50"]);
    assert_ne!(user(&[&narrow[..], &["--seed", "9"]].concat())["overlap@50"], lost["overlap@50"]);
}

#[test]
fn an_audit_takes_questions_of_a_file_and_sweeps() {
    let folder = database(300);
    let questions =
        "Who lost a ring?\n{\"question\": \"Which boat was painted?\", \"category\": \"x\"}\n\n";
    std::fs::write(folder.path().join("q.jsonl"), questions).unwrap();
    let audit = ["audit", "db", "--user", "u", "--route-above", "0", "--queries", "q.jsonl"];
    let value = answer(folder.path(), &[&audit[..], &["--sweep"]].concat());
    let user = &value["users"][0];
    assert_eq!(user["queries"], 2);
    let sweep = user["sweep"].as_array().unwrap();
    let tried = |name: &str| -> Vec<u64> {
        sweep.iter().map(|line| line[name].as_u64().unwrap()).collect()
    };
    assert_eq!(sweep.len(), 20);
    assert_eq!(tried("lexical_rows")[..6], [50, 50, 50, 50, 50, 100]);
    assert_eq!(tried("cells")[..6], [1, 2, 4, 8, 16, 1]);
    for line in sweep {
        for figure in ["overlap@10", "loss@10", "loss@50", "candidate_share_p50"] {
            assert!((0.0..=1.0).contains(&number(line, figure)));
        }
        assert!(number(line, "routed_us_p50") > 0.0);
    }
    let table =
        String::from_utf8(run(folder.path(), &[&audit[..], &["--sweep"]].concat()).stdout).unwrap();
    for part in ["u: 2 questions to 300 turns", "not a candidate", "lexical  cells"] {
        assert!(table.contains(part), "{table}");
    }
    std::fs::write(folder.path().join("q.jsonl"), "{\"text\": \"secret\"}\n").unwrap();
    let refused = run(folder.path(), &audit);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && said.contains("line 1") && !said.contains("secret"),
        "{said}"
    );
}
