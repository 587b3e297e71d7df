//! The commands that read one user's memory: search, timeline, get, history, count; and the list of users.

use loomdb::{
    Cursor, Direction, Episode, EpisodeId, Explain, Hit, Query, Result, TimelineOptions, Timestamp,
};
use serde_json::{Map, Value, json};

use crate::args::{self, Filter};
use crate::database;
use crate::failure::Failure;
use crate::output::{self, Output};

/// `loomdb search`.
pub fn search(arguments: args::Search, output: &mut Output) -> std::result::Result<(), Failure> {
    let args::Search { whose, query, top_k, filter, explain, exact, vector } = arguments;
    let mut question = match vector {
        Some(vector) => Query::vector(database::vector("vector", &vector)?),
        None => Query::text(query.unwrap_or_default()),
    };
    question = question.top_k(top_k).exact(exact);
    let (since, until) = times(&filter)?;
    if let Some(since) = since {
        question = question.since(since);
    }
    if let Some(until) = until {
        question = question.until(until);
    }
    if let Some(session) = filter.session {
        question = question.session(session);
    }
    let recall = database::memory_to_read(&whose)?.search(question)?;
    if recall.hits.is_empty() {
        for leg in recall.explain.legs.iter().filter(|leg| !leg.ran) {
            eprintln!("loomdb: {} search did not run: {}", leg.name, leg.reason);
        }
    }
    let mut value = json!({ "hits": recall.hits.iter().map(hit).collect::<Vec<_>>() });
    if explain {
        value["explain"] = explanation(&recall.explain);
    }
    output.answer(value, || {
        let mut lines = String::new();
        for hit in &recall.hits {
            lines.push_str(&format!("{:>6.3}  {}", hit.score, output::episode_line(&hit.episode)));
        }
        if explain {
            lines.push_str(&format!("\n{}\n", recall.explain));
        }
        lines
    })?;
    Ok(())
}

/// A hit as a JSON object: score, reason, and the episode.
pub fn hit(hit: &Hit) -> Map<String, Value> {
    let mut value = Map::new();
    value.insert("score".into(), json!(hit.score));
    value.insert("why".into(), json!(hit.why));
    value.extend(output::episode(&hit.episode));
    value
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
        "bytes_touched": explain.bytes_touched,
        "cells_visited": explain.cells_visited,
        "cells_skipped": explain.cells_skipped,
        "segments_visited": explain.segments_visited,
        "segments_skipped": explain.segments_skipped,
        "microseconds": {
            "embed": micros.embed,
            "snapshot": micros.snapshot,
            "scan": micros.scan,
            "rerank": micros.rerank,
            "fetch": micros.fetch,
            "total": micros.total,
        },
    })
}

/// `loomdb timeline`.
pub fn timeline(
    arguments: &args::Timeline,
    output: &mut Output,
) -> std::result::Result<(), Failure> {
    let args::Timeline { whose, limit, filter, reverse, cursor } = arguments;
    let mut options = TimelineOptions::new().limit(*limit).direction(match reverse {
        true => Direction::Descending,
        false => Direction::Ascending,
    });
    let (since, until) = times(filter)?;
    if let Some(since) = since {
        options = options.since(since);
    }
    if let Some(until) = until {
        options = options.until(until);
    }
    if let Some(session) = &filter.session {
        options = options.session(session);
    }
    if let Some(cursor) = cursor {
        options = options.cursor(cursor.parse::<Cursor>()?);
    }
    let page = database::memory_to_read(whose)?.timeline(options)?;
    let next = page.next.map(|cursor| cursor.to_string());
    let value = json!({ "episodes": episodes(&page.episodes), "next": next });
    output.answer(value, || page.episodes.iter().map(output::episode_line).collect())?;
    if let (false, Some(next)) = (output.json, next) {
        output.flush()?;
        output::say(&format!("there is more: --cursor {next}"));
    }
    Ok(())
}

/// `loomdb get`.
pub fn get(arguments: &args::One, output: &mut Output) -> std::result::Result<(), Failure> {
    let episode = database::memory_to_read(&arguments.whose)?.get(EpisodeId::new(arguments.id))?;
    let value = Value::Object(output::episode(&episode));
    output.answer(value, || output::episode_lines(&episode))?;
    Ok(())
}

/// `loomdb history`.
pub fn history(arguments: &args::One, output: &mut Output) -> std::result::Result<(), Failure> {
    let versions =
        database::memory_to_read(&arguments.whose)?.history(EpisodeId::new(arguments.id))?;
    output.answer(json!({ "episodes": episodes(&versions) }), || {
        versions.iter().map(output::episode_lines).collect::<Vec<_>>().join("\n")
    })?;
    Ok(())
}

/// `loomdb count`.
pub fn count(arguments: &args::Whose, output: &mut Output) -> std::result::Result<(), Failure> {
    let count = database::memory_to_read(arguments)?.count()?;
    output.answer(json!({ "count": count }), || format!("{count}\n"))?;
    Ok(())
}

/// `loomdb users`.
pub fn users(arguments: &args::Database, output: &mut Output) -> std::result::Result<(), Failure> {
    let users = database::open_to_read(arguments)?.users()?;
    let named: Vec<_> = users.iter().map(|name| output::user(name)).collect();
    output.answer(json!({ "users": named }), || {
        let line = |name: &Vec<u8>| output::name(&String::from_utf8_lossy(name)) + "\n";
        users.iter().map(line).collect()
    })?;
    Ok(())
}

fn episodes(episodes: &[Episode]) -> Vec<Map<String, Value>> {
    episodes.iter().map(output::episode).collect()
}

/// The times that a filter names.
fn times(filter: &Filter) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let read = |name, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => {
            database::time(name, text, filter.zone.as_deref()).map(|zoned| Some(zoned.time))
        }
    };
    Ok((read("since", &filter.since)?, read("until", &filter.until)?))
}
