//! `loomdb search`: from its arguments to a question, and from the answer to JSON or lines.

use loomdb::{Explain, Hit, MetadataFilter, Query, Recall, RecallOptions, Result, SearchMode};
use serde_json::{Map, Value, json};

use crate::args::{self, Mode};
use crate::database;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::read::times;

/// `loomdb search`.
pub fn search(arguments: args::Search, output: &mut Output) -> std::result::Result<(), Failure> {
    let (explain, max_tokens) = (arguments.explain, arguments.max_tokens);
    let question = question(&arguments)?;
    let recall = database::memory_to_read(&arguments.whose)?.search(question)?;
    // An empty answer is no news about the memory when nothing was compared.
    if recall.hits.is_empty() && !recall.explain.legs.iter().any(|leg| leg.ran) {
        for leg in &recall.explain.legs {
            output::say(&format!("{} search did not run: {}", leg.name, leg.reason));
        }
    }
    let mut value = json!({
        "hits": recall.hits.iter().map(hit).collect::<Vec<_>>(),
        "omitted": omitted(&recall),
    });
    if explain {
        value["explain"] = explanation(&recall.explain);
    }
    output.answer(value, || lines(&recall, explain, max_tokens))?;
    Ok(())
}

/// What the arguments ask.
fn question(arguments: &args::Search) -> Result<Query> {
    let vector = arguments.vector.as_deref().map(|text| database::vector("vector", text));
    let mut question = match (&arguments.query, vector.transpose()?) {
        (Some(text), Some(vector)) => Query::text(text.as_str()).with_vector(vector),
        (None, Some(vector)) => Query::vector(vector),
        (text, None) => Query::text(text.as_deref().unwrap_or_default()),
    };
    question = question.exact(arguments.exact).fold(arguments.fold);
    if let Some(top_k) = arguments.top_k {
        question = question.top_k(top_k);
    }
    if let Some(max_tokens) = arguments.max_tokens {
        question = question.max_tokens(max_tokens);
    }
    if let Some(mode) = arguments.mode {
        question = question.mode(match mode {
            Mode::Hybrid => SearchMode::Hybrid,
            Mode::Vector => SearchMode::Vector,
            Mode::Lexical => SearchMode::Lexical,
        });
    }
    let (since, until) = times(&arguments.filter)?;
    if let Some(since) = since {
        question = question.since(since);
    }
    if let Some(until) = until {
        question = question.until(until);
    }
    if let Some(session) = &arguments.filter.session {
        question = question.session(session);
    }
    if let Some(speaker) = &arguments.speaker {
        question = question.speaker(speaker);
    }
    if let Some(filter) = &arguments.metadata {
        let filter = Value::Object(database::json_object("filter", filter)?);
        question = question.filter(MetadataFilter::from_json(&filter)?);
    }
    if let Some(time) = &arguments.query_time {
        let zone = arguments.filter.zone.as_deref();
        question = question.query_time(database::time("query-time", time, zone)?);
    }
    if let Some(weights) = &arguments.weights {
        question = question.weights(self::weights(weights)?);
    }
    Ok(question)
}

/// The weights of `NAME=VALUE,..`; what is not named keeps its default.
fn weights(text: &str) -> Result<RecallOptions> {
    let mut weights = RecallOptions::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| wrong("is not NAME=VALUE,.."))?;
        match name.trim() {
            "range_days_before" => weights.range_days_before = number(value)?,
            "range_days_after" => weights.range_days_after = number(value)?,
            name => *weight(&mut weights, name)? = number(value)?,
        }
    }
    Ok(weights)
}

fn weight<'a>(weights: &'a mut RecallOptions, name: &str) -> Result<&'a mut f32> {
    Ok(match name {
        "lexical" => &mut weights.lexical,
        "vector" => &mut weights.vector,
        "speaker" => &mut weights.speaker,
        "when" => &mut weights.when,
        "range" => &mut weights.range,
        "length" => &mut weights.length,
        "concise" => &mut weights.concise,
        "concise_words" => &mut weights.concise_words,
        "spread" => &mut weights.spread,
        "long_words" => &mut weights.long_words,
        "vector_previous" => &mut weights.vector_previous,
        "vector_next" => &mut weights.vector_next,
        "words_previous" => &mut weights.words_previous,
        "words_before_previous" => &mut weights.words_before_previous,
        "words_next" => &mut weights.words_next,
        "k1" => &mut weights.k1,
        "b" => &mut weights.b,
        _ => return Err(wrong("names an unknown weight; search --help lists them")),
    })
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.trim().parse().map_err(|_| wrong("has a value that is no such number"))
}

fn wrong(what: &str) -> loomdb::Error {
    loomdb::Error::invalid(format!("--weights {what}"))
}

/// A hit as a JSON object: score, reason, what of the text is shown, and the episode.
pub fn hit(hit: &Hit) -> Map<String, Value> {
    let parts = &hit.parts;
    let passage = hit.passage.as_ref().map(|range| {
        let text = &hit.episode.text[range.clone()];
        json!({ "start": range.start, "end": range.end, "text": text })
    });
    let fields = json!({
        "score": hit.score,
        "why": hit.why,
        "parts": {
            "lexical": parts.lexical,
            "vector": parts.vector,
            "speaker": parts.speaker,
            "when": parts.when,
            "range": parts.range,
            "length": parts.length,
            "concise": parts.concise,
            "neighbours": parts.neighbours,
        },
        "tokens": hit.tokens,
        "passage": passage,
        "cut": hit.cut,
        "folded": hit.folded,
    });
    let Value::Object(mut value) = fields else { unreachable!("built as an object") };
    value.extend(output::episode(&hit.episode));
    value
}

fn omitted(recall: &Recall) -> Vec<Value> {
    let one =
        |omitted: &loomdb::Omitted| json!({ "id": omitted.id.get(), "tokens": omitted.tokens });
    recall.omitted.iter().map(one).collect()
}

/// How an answer came about, as JSON.
pub fn explanation(explain: &Explain) -> Value {
    let leg = |leg: &loomdb::Leg| json!({ "name": leg.name, "ran": leg.ran, "reason": leg.reason });
    let micros = &explain.micros;
    json!({
        "legs": explain.legs.iter().map(leg).collect::<Vec<_>>(),
        "rows_by_code": explain.rows_by_code,
        "rows_exact": explain.rows_exact,
        "rows_distinct": explain.rows_distinct(),
        "log_rows": explain.log_rows,
        "terms": explain.terms,
        "postings": explain.postings,
        "unseen": explain.unseen,
        "bytes_touched": explain.bytes_touched,
        "blocks_read": explain.blocks_read,
        "cells_scored": explain.cells_scored,
        "cells_visited": explain.cells_visited,
        "cells_widened": explain.cells_widened,
        "cells_passed_over": explain.cells_passed_over,
        "cells_skipped": explain.cells_skipped,
        "segments_visited": explain.segments_visited,
        "segments_skipped": explain.segments_skipped,
        "microseconds": {
            "embed": micros.embed,
            "snapshot": micros.snapshot,
            "lexical": micros.lexical,
            "scan": micros.scan,
            "rerank": micros.rerank,
            "fetch": micros.fetch,
            "total": micros.total,
        },
    })
}

/// The answer for people.
fn lines(recall: &Recall, explain: bool, max_tokens: Option<usize>) -> String {
    let mut lines = String::new();
    for hit in &recall.hits {
        let line = output::episode_line_of(&hit.episode, hit.shown());
        lines.push_str(&format!("{:>6.3}  {line}", hit.score));
        let notes = notes(hit, explain);
        if !notes.is_empty() {
            lines.push_str(&format!("        ({})\n", notes.join("; ")));
        }
    }
    if let Some(max_tokens) = max_tokens {
        let tokens: usize = recall.hits.iter().map(|hit| hit.tokens).sum();
        lines.push_str(&format!("{tokens} of {max_tokens} tokens\n"));
    }
    for omitted in &recall.omitted {
        lines.push_str(&format!("no room  {:>6}  {} tokens\n", omitted.id, omitted.tokens));
    }
    if explain {
        lines.push_str(&format!("\n{}\n", recall.explain));
    }
    lines
}

/// What is to be said of a hit besides its text.
pub fn notes(hit: &Hit, why: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if hit.cut {
        notes.push(format!("best passage, {} tokens", hit.tokens));
    }
    if hit.folded > 0 {
        notes.push(format!("{} more like it", hit.folded));
    }
    if why {
        notes.push(hit.why.clone());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_by_name_and_the_rest_stays() {
        let read = weights("lexical=0, k1=1.2,range_days_after=30").unwrap();
        let expected = {
            let mut weights = RecallOptions::default();
            (weights.lexical, weights.k1, weights.range_days_after) = (0.0, 1.2, 30);
            weights
        };
        assert_eq!(read, expected);
        for wrong in ["", "lexical", "words=1", "lexical=much", "range_days_after=1.5"] {
            let error = weights(wrong).unwrap_err();
            assert!(error.to_string().contains("--weights"), "{error}");
        }
    }

    #[test]
    fn every_weight_has_a_name() {
        // `Debug` names every field, also one that is new.
        let debug = format!("{:?}", RecallOptions::default());
        let fields = debug.split_once('{').unwrap().1.trim_end_matches('}').split(',');
        for field in fields {
            let name = field.split(':').next().unwrap().trim();
            assert!(weights(&format!("{name}=1")).is_ok(), "{name}");
        }
    }
}
