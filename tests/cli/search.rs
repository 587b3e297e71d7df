//! `loomdb search`: every flag changes the answer as it says.

use super::*;

/// Adds turns of the user `u` and returns their ids: text, and further arguments.
fn talk(place: &Place) -> Vec<u64> {
    let turns: [(&str, &[&str]); 4] = [
        (
            "The kitchen worktop is order POL-358",
            &[
                "--speaker",
                "Ruth",
                "--session",
                "one",
                "--metadata",
                r#"{"price":1980,"room":"kitchen"}"#,
            ],
        ),
        ("The boiler man comes on Friday", &["--speaker", "Owen", "--session", "one"]),
        (
            "I ran ten kilometres today",
            &["--speaker", "Owen", "--session", "two", "--metadata", r#"{"km":10}"#],
        ),
        ("We painted the hall blue", &["--speaker", "Ruth", "--session", "two"]),
    ];
    let add = |(day, (text, more)): (usize, &(&str, &[&str]))| {
        let time = format!("2025-03-0{}T10:00:00Z", day + 1);
        place.add(text, &[more, &["--time", &time][..]].concat())
    };
    turns.iter().enumerate().map(add).collect()
}

#[track_caller]
fn answer(place: &Place, more: &[&str]) -> Value {
    place.run(&[&["search", "db", "-u", "u", "--json"], more].concat()).ok().json()
}

fn ids(answer: &Value) -> Vec<u64> {
    let hits = answer["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["id"].as_u64().unwrap()).collect()
}

#[test]
fn a_mode_says_by_what_is_ranked() {
    let place = Place::new();
    let ids_of = talk(&place);
    let lexical = answer(&place, &["POL-358", "--mode", "lexical", "--explain"]);
    assert_eq!(ids(&lexical)[0], ids_of[0]);
    assert_eq!(lexical["explain"]["legs"][1]["ran"], false);
    assert!(lexical["explain"]["terms"].as_u64().unwrap() >= 1);
    assert!(lexical["explain"]["microseconds"]["lexical"].is_u64());

    let vector = answer(&place, &["the worktop", "--mode", "vector", "--explain"]);
    assert_eq!(vector["explain"]["legs"][0]["ran"], false);
    assert_eq!(vector["hits"][0]["parts"]["lexical"], 0.0);

    let hybrid = answer(&place, &["POL-358 worktop", "--explain"]);
    let best = &hybrid["hits"][0];
    assert_eq!(best["id"], json!(ids_of[0]));
    assert!(best["parts"]["lexical"].as_f64().unwrap() > 0.0);
    assert!(best["parts"]["vector"].as_f64().unwrap() > 0.0);
    assert_eq!(answer(&place, &["POL-358 worktop", "--mode", "hybrid"])["hits"], hybrid["hits"]);
    assert_eq!(place.run(&["search", "db", "-u", "u", "x", "--mode", "both"]).code, 2);
}

#[test]
fn an_empty_query_lists_the_newest() {
    let place = Place::new();
    let mut expected = talk(&place);
    expected.reverse();
    assert_eq!(ids(&answer(&place, &[""])), expected);
    assert_eq!(ids(&answer(&place, &[" ", "-k", "2"])), expected[..2]);
}

#[test]
fn filters_leave_out_what_does_not_pass() {
    let place = Place::new();
    let all = talk(&place);
    let found = |more: &[&str]| {
        let mut ids = ids(&answer(&place, &[&["what about the kitchen?"], more].concat()));
        ids.sort_unstable();
        ids
    };
    assert_eq!(found(&[]), all);
    assert_eq!(found(&["--speaker", "Owen"]), all[1..3]);
    assert_eq!(found(&["--session", "one", "--speaker", "Owen"]), all[1..2]);
    assert!(found(&["--speaker", "owen"]).is_empty(), "a name is taken as it is stored");
    assert_eq!(found(&["--filter", r#"{"room":"kitchen"}"#]), all[..1]);
    assert_eq!(found(&["--filter", r#"{"OR":[{"km":{"gte":10}},{"price":{"gt":1}}]}"#]).len(), 2);
    assert_eq!(
        found(&["--since", "2025-03-02", "--until", "2025-03-04", "--zone", "UTC"]),
        all[1..3]
    );

    for (filter, words) in
        [("[]", "--filter"), (r#"{"a":1,"a":2}"#, "--filter"), (r#"{"km":{"$above":3}}"#, "$above")]
    {
        let refused = place.run(&["search", "db", "-u", "u", "x", "--filter", filter]);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains(words), "{}", refused.err);
    }
}

#[test]
fn the_time_of_the_question_decides_what_yesterday_is() {
    let place = Place::new();
    let all = talk(&place);
    let in_range = |time: &str| {
        let answer = answer(&place, &["what was said yesterday?", "--query-time", time]);
        let hits = answer["hits"].as_array().unwrap().clone();
        let hit = hits.into_iter().find(|hit| hit["id"] == json!(all[2])).unwrap();
        hit["parts"]["range"].as_f64().unwrap() > 0.0
    };
    assert!(in_range("2025-03-04T10:00:00Z"));
    assert!(!in_range("2026-03-04T10:00:00Z"));
    let refused = place.run(&["search", "db", "-u", "u", "x", "--query-time", "yesterday"]);
    assert!(refused.code == 2 && refused.err.contains("--query-time"), "{}", refused.err);
}

#[test]
fn a_budget_takes_long_turns_as_passages_and_names_what_has_no_room() {
    let place = Place::new();
    let filler = "The weather was mild and we walked along the river for a while. ".repeat(30);
    let long = format!("{filler}\n\nThe passport lies in the blue drawer.\n\n{filler}");
    let long = place.add(&long, &[]);
    let short = place.add("Where is the passport of Ana?", &[]);
    let budget = ["where is the passport?", "--max-tokens", "200"];
    let found = answer(&place, &budget);
    let hits = found["hits"].as_array().unwrap();
    let of = |id: u64| hits.iter().find(|hit| hit["id"] == json!(id)).unwrap();
    assert_eq!((of(long)["cut"].as_bool(), of(short)["cut"].as_bool()), (Some(true), Some(false)));
    let passage = of(long)["passage"]["text"].as_str().unwrap();
    assert!(passage.contains("blue drawer"), "{passage}");
    let (start, end) = (&of(long)["passage"]["start"], &of(long)["passage"]["end"]);
    assert_eq!((end.as_u64().unwrap() - start.as_u64().unwrap()) as usize, passage.len());
    let tokens: u64 = hits.iter().map(|hit| hit["tokens"].as_u64().unwrap()).sum();
    assert!(tokens <= 200, "{tokens}");
    let lines = place.run(&[&["search", "db", "-u", "u"], &budget[..]].concat()).ok().out;
    assert!(lines.contains("blue drawer") && !lines.contains(&filler), "{lines}");
    assert!(lines.contains("best passage") && lines.contains(&format!("{tokens} of 200 tokens")));

    let tight = answer(&place, &["where is the passport?", "--max-tokens", "9"]);
    assert_eq!(ids(&tight), [short]);
    assert_eq!(tight["omitted"][0]["id"], json!(long));
    assert!(tight["omitted"][0]["tokens"].as_u64().unwrap() > 9);
    let lines =
        place.run(&["search", "db", "-u", "u", "where is the passport?", "--max-tokens", "9"]);
    assert!(lines.ok().out.contains(&format!("no room  {long:>6}")));
}

#[test]
fn near_duplicates_fold_into_the_best_and_are_counted() {
    let place = Place::new();
    for _ in 0..3 {
        place.add("The boiler man comes on Friday", &[]);
    }
    assert_eq!(ids(&answer(&place, &["boiler"])).len(), 3);
    let folded = answer(&place, &["boiler", "--fold"]);
    assert_eq!((ids(&folded).len(), &folded["hits"][0]["folded"]), (1, &json!(2)));
    let lines = place.run(&["search", "db", "-u", "u", "boiler", "--fold"]).ok().out;
    assert!(lines.contains("2 more like it"), "{lines}");
}

#[test]
fn weights_and_the_definition_are_for_comparison() {
    let place = Place::new();
    talk(&place);
    let weighed = answer(&place, &["worktop", "--weights", "lexical=0,vector=0,spread=0"]);
    let parts = &weighed["hits"][0]["parts"];
    assert_eq!((&parts["lexical"], &parts["vector"]), (&json!(0.0), &json!(0.0)));
    for wrong in ["words=1", "lexical", "b=2", "vector=-1"] {
        assert_eq!(place.run(&["search", "db", "-u", "u", "x", "--weights", wrong]).code, 2);
    }
    let ordinary = answer(&place, &["kitchen worktop"]);
    assert_eq!(answer(&place, &["kitchen worktop", "--exact"])["hits"], ordinary["hits"]);
}

#[test]
fn an_explanation_shows_ways_counts_bytes_times_and_the_parts_of_scores() {
    let place = Place::new();
    talk(&place);
    let out = place.run(&["search", "db", "-u", "u", "kitchen worktop", "--explain"]).ok().out;
    for part in
        ["leg lexical ran", "leg vector ran", "rows:", "bytes touched", "postings", "us: embed"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(
        out.contains("words ") && out.contains("+ vector ") && out.contains("concise "),
        "{out}"
    );
}

#[test]
fn a_text_has_its_vector_beside_it_where_there_is_no_embedder() {
    let place = Place::new();
    place.run(&["init", "db", "--embedder", "none", "--dimension", "2"]).ok();
    let east = place.add("the sun rises", &["--vector", "[1, 0]"]);
    let north = place.add("the compass", &["--vector", "[0, 1]"]);
    let without = place.run(&["search", "db", "-u", "u", "sun", "--mode", "vector"]).ok();
    assert!(without.out.is_empty() && without.err.contains("vector search did not run"));
    assert_eq!(ids(&answer(&place, &["sun"]))[0], east);
    assert_eq!(ids(&answer(&place, &["moon", "--vector", "[0.1, 1]"]))[0], north);
    assert_eq!(ids(&answer(&place, &["--vector", "[1, 0.1]", "-k", "1"])), [east]);
}
