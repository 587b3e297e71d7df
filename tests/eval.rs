//! `loomdb eval retrieval` on a set so small that every figure can be computed by hand.
//!
//! The figures hold for any ranking that finds every turn of a conversation and puts a turn first when the question
//! is its own text.

#![cfg(all(feature = "cli", feature = "builtin-model"))]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What eight people did at the harbour: with the filler below, 115 words each, which makes 150 tokens.
const DEEDS: [&str; 8] = [
    "repaired the green fishing boat",
    "photographed seven hungry seagulls",
    "lost a silver wedding ring",
    "bought smoked mackerel for grandmother",
    "met the new customs officer",
    "painted the lighthouse door yellow",
    "learned to tie sailor knots",
    "missed the last evening ferry",
];
const NAMES: [&str; 8] = ["Ana", "Ben", "Chloe", "David", "Elif", "Farid", "Grace", "Hugo"];

fn turn(conversation: &str, number: usize, text: &str) -> String {
    let turn = json!({
        "conv_id": conversation, "session_id": "S1", "turn_id": format!("D1:{number}"), "idx": number,
        "time": "2025-01-01T10:00:00", "speaker": NAMES[number % 8], "text": text,
    });
    format!("{turn}\n")
}

/// Two conversations: eight long turns, and four short ones.
fn turns() -> String {
    let long = (0..8).map(|number| {
        let words = format!("At the harbour {} {}", NAMES[number], DEEDS[number]);
        let filler = 115 - words.split(' ').count();
        let text = format!("{words}{}", format!(" {}{number}", NAMES[number]).repeat(filler));
        assert_eq!(text.split(' ').count(), 115);
        turn("long", number, &text)
    });
    let short = [
        "My sister adopted a grey kitten",
        "The dentist moved my appointment to Friday",
        "We had ramen for dinner",
        "Grandfather plays chess in the park",
    ];
    let short = short.iter().enumerate().map(|(number, text)| turn("short", number, text));
    long.chain(short).collect()
}

fn question(conversation: &str, category: &str, text: &str, evidence: &[usize]) -> String {
    let evidence: Vec<String> = evidence.iter().map(|number| format!("D1:{number}")).collect();
    let question = json!({
        "query_id": "q", "conv_id": conversation, "question": text, "answer": "a",
        "category": category, "evidence": evidence,
    });
    format!("{question}\n")
}

fn questions() -> String {
    [
        question("long", "multi-hop", "What happened at the harbour?", &[0, 1, 2, 3, 4, 5, 6, 7]),
        question("short", "single-hop", "The dentist moved my appointment to Friday", &[1]),
        question("short", "adversarial", "We had ramen for dinner", &[2]),
        question("short", "open-domain", "Who is nobody?", &[]),
    ]
    .concat()
}

fn folder(turns: &str, questions: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("tiny");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("turns.jsonl"), turns).unwrap();
    let file = std::fs::File::create(data.join("queries.jsonl.gz")).unwrap();
    let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    writer.write_all(questions.as_bytes()).unwrap();
    writer.finish().unwrap();
    folder
}

fn run(folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loomdb"));
    command.args(["eval", "retrieval", "--data", "tiny"]).args(more).current_dir(folder);
    // The database of the run goes here, so that the test can see that it is gone.
    let temporary = folder.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let output = command.env("TMPDIR", &temporary).output().unwrap();
    if cfg!(unix) {
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "nothing stays behind");
    }
    output
}

#[track_caller]
fn near(value: &Value, expected: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
}

#[test]
fn figures_are_those_computed_by_hand() {
    let folder = folder(&turns(), &questions());
    let output = run(folder.path(), &["--compare", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&value["set"], &value["turns"]), (&json!("tiny"), &json!(12)));
    // The question without evidence is not asked.
    assert_eq!(value["queries"], 3);
    assert!(value["embedder"].as_str().unwrap().starts_with("memstatic-en"));
    for figure in ["p50", "p99", "mean"] {
        assert!(value["latency_us"][figure].as_f64().unwrap() > 0.0);
    }

    let blocks = [&value, &value["plain_bm25"], &value["plain_vectors"], &value["rank_fusion"]];
    for block in blocks {
        // All eight turns are gold, so five hold 5/8 of them and ten hold all, in whatever order.
        let multi = &block["by_category"]["multi-hop"];
        assert_eq!(multi["n"], 1);
        near(&multi["recall@5"], 0.625);
        near(&multi["recall@10"], 1.0);
        for figure in ["all@10", "all@20", "all@50", "ndcg@10", "mrr"] {
            near(&multi[figure], 1.0);
            // A turn stands first when its own words are the question.
            near(&block["by_category"]["single-hop"][figure], 1.0);
            near(&block["by_category"]["adversarial"][figure], 1.0);
        }
        // (5/8 + 1 + 1) / 3, and without the adversarial one (5/8 + 1) / 2.
        assert_eq!(
            (&block["all"]["n"], &block["all_but_adversarial"]["n"]),
            (&json!(3), &json!(2))
        );
        near(&block["all"]["recall@5"], 0.875);
        near(&block["all_but_adversarial"]["recall@5"], 0.8125);
        // Of 150 tokens each, 500 hold three of eight turns, 1,000 six, 2,000 all; the short question is always met.
        let budgets =
            [("500", 0.6875, 0.5), ("1000", 0.875, 0.5), ("2000", 1.0, 1.0), ("4000", 1.0, 1.0)];
        for (budget, recall, all) in budgets {
            for kind in ["budget", "budget_whole_turns"] {
                near(&block[kind][budget]["recall"], recall);
                near(&block[kind][budget]["all"], all);
            }
        }
    }
    assert!(value["by_category"].get("open-domain").is_none());
}

#[test]
fn people_get_a_table_and_no_yardsticks_unasked() {
    let folder = folder(&turns(), &questions());
    let output = run(folder.path(), &[]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("tiny: 3 questions about 12 turns"), "{table}");
    assert!(table.contains("all but adversarial") && !table.contains("plain bm25"), "{table}");
    let json = run(folder.path(), &["--json"]).stdout;
    assert!(!String::from_utf8(json).unwrap().contains("plain_"));
}

#[test]
fn faults_of_a_data_set_are_named_by_file_line_and_field() {
    #[track_caller]
    fn check(turns: &str, questions: &str, code: i32, parts: &[&str]) {
        let folder = folder(turns, questions);
        let output = run(folder.path(), &["--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
        assert!(output.stdout.is_empty() && !said.contains("harbour"));
    }
    let unknown = question("short", "x", "harbour", &[9]);
    check(&turns(), &unknown, 2, &["queries.jsonl.gz", "line 1", "\"evidence\""]);
    let cut = format!("{}{{\"conv_id\": \"long\"}}\n", questions());
    check(&turns(), &cut, 2, &["line 5", "\"question\""]);
    let twice = turns() + &turn("long", 0, "harbour");
    check(&twice, &questions(), 2, &["turns.jsonl", "line 13", "\"turn_id\""]);
    check("", &questions(), 2, &["turns.jsonl", "no turns"]);
    check(&turns(), "", 2, &["queries.jsonl.gz", "no question"]);

    let empty = tempfile::tempdir().unwrap();
    let output = run(empty.path(), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("turns.jsonl"), "{said}");
}
