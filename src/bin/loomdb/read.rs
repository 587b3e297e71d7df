//! The commands that read what is stored: timeline, get, history, count; and the list of users.

use loomdb::{Cursor, Direction, Episode, EpisodeId, Result, TimelineOptions, Timestamp};
use serde_json::{Map, Value, json};

use crate::args::{self, Filter};
use crate::database;
use crate::failure::Failure;
use crate::output::{self, Output};

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
pub fn times(filter: &Filter) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let read = |name, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => {
            database::time(name, text, filter.zone.as_deref()).map(|zoned| Some(zoned.time))
        }
    };
    Ok((read("since", &filter.since)?, read("until", &filter.until)?))
}
