//! Holds everything that a database answers against the oracle.
//!
//! A difference is returned, not thrown, so that a crash test may ask which of two states it has before it.

use std::path::Path;
use std::sync::Arc;

use loomdb::internals::options::StorageOptions;
use loomdb::internals::storage::vfs::Vfs;
use loomdb::internals::storage::{Part, SpaceChoice, Store};
use loomdb::internals::{ids, model};
use loomdb::{
    Db, Direction, Episode, EpisodeId, ErrorKind, Maintenance, Memory, Query, SearchMode,
    TimelineOptions, Value, VectorElement,
};

use super::embedder;
use super::op::{ListingSpec, QuerySpec};
use super::oracle::{Content, Oracle};
use super::pools;

/// A difference in words, or none.
pub type Same = Result<(), String>;

/// Fails with `what` and both sides when they differ.
pub fn same<T: PartialEq + std::fmt::Debug>(got: T, wanted: T, what: &str) -> Same {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{what}: got {got:?}, wanted {wanted:?}"))
}

/// The answer of a call, or what it failed with.
pub fn answer<T>(result: loomdb::Result<T>, what: &str) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// Compares all that `db` answers. `highest`: the highest id that was ever given out.
pub fn everything(db: &Db, oracle: &Oracle, highest: u64) -> Same {
    let mut users: Vec<Vec<u8>> = (0..pools::USERS.len())
        .filter(|user| oracle.live(*user).next().is_some())
        .map(|user| pools::USERS[user].to_vec())
        .collect();
    users.sort();
    same(answer(db.users(), "users")?, users, "users")?;
    let mut total = 0;
    for (user, name) in pools::USERS.iter().enumerate() {
        let memory = db.user(name);
        total += oracle.live(user).count() as u64;
        counts(&memory, oracle, user)?;
        by_id(&memory, oracle, user, highest)?;
        for session in 0..=pools::SESSIONS.len() as u8 {
            for descending in [false, true] {
                let spec = ListingSpec { session, descending, limit: 2, ..Default::default() };
                listing(&memory, oracle, user, &spec)?;
            }
        }
        for (what, exact) in [(0, true), (19, false), (255, false)] {
            let spec = QuerySpec { what, exact, top_k: 6, ..Default::default() };
            search(&memory, oracle, user, &spec)?;
        }
    }
    let stats = answer(db.stats(), "stats")?;
    same(stats.episodes, total, "episodes of all users")
}

/// Compares the counts of one user.
pub fn counts(memory: &Memory, oracle: &Oracle, user: usize) -> Same {
    let stats = answer(memory.stats(), "stats of a user")?;
    let (mut rows, mut vectors, mut bytes) = (0, 0, 0);
    for (_, row) in oracle.live(user) {
        rows += 1;
        vectors += u64::from(row.vector.is_some());
        bytes += row.text.len() as u64;
    }
    let got = (stats.episodes, stats.episodes_with_vector, stats.text_bytes);
    same(got, (rows, vectors, bytes), "counts")
}

/// Compares `get` and `history` of every id that was ever given out, and of one that was not.
fn by_id(memory: &Memory, oracle: &Oracle, user: usize, highest: u64) -> Same {
    for number in 1..=highest + 1 {
        let id = EpisodeId::new(number);
        let row = oracle
            .rows
            .get(&number)
            .filter(|row| row.user == user && !pools::is_expired(row.latest().expires));
        match (row, memory.get(id)) {
            (None, Err(error)) if error.kind() == ErrorKind::NotFound => {}
            (Some(row), Ok(read)) => {
                episode(&read, number, row.latest())?;
                same(read.user.as_slice(), pools::USERS[user], "user")?;
                same(read.version as usize, row.versions.len(), "version")?;
            }
            (row, got) => {
                let wanted = row.is_some();
                return Err(format!("get {number}: got {got:?}, wanted an episode: {wanted}"));
            }
        }
        match (row, memory.history(id)) {
            (None, Err(error)) if error.kind() == ErrorKind::NotFound => {}
            (Some(row), Ok(read)) => {
                same(read.len(), row.versions.len(), "versions")?;
                for (place, (read, wanted)) in read.iter().zip(&row.versions).enumerate() {
                    episode(read, number, wanted)?;
                    same(read.version as usize, place + 1, "version in the history")?;
                    same(read.record_time, read_first(&row.versions, memory, id)?, "record time")?;
                }
            }
            (_, got) => return Err(format!("history of {number}: got {got:?}")),
        }
    }
    Ok(())
}

/// The time at which the first version was recorded.
fn read_first(
    versions: &[Content],
    memory: &Memory,
    id: EpisodeId,
) -> Result<loomdb::Timestamp, String> {
    let read = answer(memory.get(id), "get")?;
    let is_first = versions.len() == 1;
    if is_first && read.record_time != read.updated {
        return Err(format!("the only version of {id} was updated"));
    }
    Ok(read.record_time)
}

/// Compares an episode with what it is to hold.
pub fn episode(read: &Episode, id: u64, wanted: &Content) -> Same {
    same(read.id.get(), id, "id")?;
    let got = Content {
        text: read.text.clone(),
        session: read.session.clone(),
        speaker: read.speaker.clone(),
        agent: read.agent.clone(),
        key: read.key.clone(),
        tags: read.tags.clone(),
        metadata: Value::Object(read.metadata.clone()),
        time: read.time.time.micros(),
        offset_minutes: read.time.offset_minutes,
        ordinal: read.ordinal,
        expires: read.expires.map(|time| time.micros()),
        // What an episode shows of its vector is whether there is one; searches compare the rest.
        vector: wanted.vector,
    };
    same(&got, wanted, "episode")?;
    same(read.has_vector, wanted.vector.is_some(), "has_vector")
}

/// Compares a listing, read in pages.
pub fn listing(memory: &Memory, oracle: &Oracle, user: usize, spec: &ListingSpec) -> Same {
    let limit = 1 + usize::from(spec.limit % 9);
    let mut options = TimelineOptions::new().limit(limit).direction(match spec.descending {
        true => Direction::Descending,
        false => Direction::Ascending,
    });
    let (since, until) = (pools::bound(spec.since), pools::bound(spec.until));
    if let Some(since) = since {
        options = options.since(since);
    }
    if let Some(until) = until {
        options = options.until(until);
    }
    if let Some(session) = pools::maybe(&pools::SESSIONS, spec.session) {
        options = options.session(session);
    }
    if is_backward(spec.since, spec.until) {
        return refused(memory.timeline(options).map(drop), ErrorKind::Invalid, "backward range");
    }
    let wanted = oracle.listing(user, spec);
    let mut got = Vec::new();
    loop {
        let page = answer(memory.timeline(options.clone()), "timeline")?;
        for read in &page.episodes {
            let number = read.id.get();
            let row = oracle.rows.get(&number);
            let row = row.ok_or_else(|| format!("timeline lists {number}, which is not there"))?;
            episode(read, number, row.latest())?;
            got.push(number);
        }
        let Some(next) = page.next else { break };
        same(page.episodes.len(), limit, "length of a page with a next one")?;
        if got.len() > wanted.len() {
            break;
        }
        options = options.cursor(next);
    }
    same(got, wanted, "timeline")
}

/// Compares the answer to a question.
pub fn search(memory: &Memory, oracle: &Oracle, user: usize, spec: &QuerySpec) -> Same {
    let (mut query, vector) = match spec.what {
        255 => (Query::text(" \n"), None),
        text @ 128.. => {
            let text = pools::text(text);
            let vector = embedder::vector_of(&text);
            if vector.is_none() {
                return Ok(());
            }
            // Words and priors are held against the exhaustive definition elsewhere; the oracle knows cosines.
            (Query::text(text).mode(SearchMode::Vector), vector)
        }
        vector => {
            let number = usize::from(vector) % embedder::VECTORS;
            // Any length but zero: the direction counts.
            let scaled = embedder::vector(number).map(|value| value * 4.0);
            (Query::vector(scaled), Some(number))
        }
    };
    let top_k = usize::from(spec.top_k % 16);
    query = query.top_k(top_k).exact(spec.exact);
    if let Some(since) = pools::bound(spec.since) {
        query = query.since(since);
    }
    if let Some(until) = pools::bound(spec.until) {
        query = query.until(until);
    }
    if let Some(session) = pools::maybe(&pools::SESSIONS, spec.session) {
        query = query.session(session);
    }
    if is_backward(spec.since, spec.until) || top_k == 0 {
        return refused(memory.search(query).map(drop), ErrorKind::Invalid, "impossible question");
    }
    let recall = answer(memory.search(query), "search")?;
    let mut wanted = match vector {
        Some(vector) => oracle.nearest(user, vector, spec),
        None => {
            let spec = ListingSpec {
                since: spec.since,
                until: spec.until,
                session: spec.session,
                descending: true,
                limit: 0,
            };
            oracle.listing(user, &spec).into_iter().map(|id| (id, 0.0)).collect()
        }
    };
    wanted.truncate(top_k);
    let got: Vec<(u64, f32)> =
        recall.hits.iter().map(|hit| (hit.episode.id.get(), hit.score)).collect();
    same(got, wanted, "search")?;
    for hit in &recall.hits {
        let number = hit.episode.id.get();
        episode(&hit.episode, number, oracle.rows[&number].latest())?;
    }
    Ok(())
}

/// Whether the range ends before it starts.
fn is_backward(since: u8, until: u8) -> bool {
    matches!((pools::bound(since), pools::bound(until)), (Some(since), Some(until)) if since > until)
}

/// Checks that a call was refused, and how.
pub fn refused(result: loomdb::Result<()>, kind: ErrorKind, what: &str) -> Same {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        other => Err(format!("{what}: got {other:?}, wanted {kind:?}")),
    }
}

/// Compares what only the storage layer tells: neighbours, keys, sessions, and the rows that a scan meets.
pub fn storage(vfs: &Arc<dyn Vfs>, path: &Path, oracle: &Oracle) -> Same {
    let space = model::VectorSpace {
        name: "exact-4d".into(),
        dimension: embedder::DIMENSION as u32,
        element: VectorElement::F32,
    };
    let options = StorageOptions {
        maintenance: Maintenance::Manual,
        read_only: true,
        ..StorageOptions::default()
    };
    let opened = Store::open(vfs.clone(), path, options, SpaceChoice::Exactly(space));
    let store = answer(opened, "open the store")?;
    let snapshot = answer(store.snapshot(), "snapshot")?;
    for (user, name) in pools::USERS.iter().enumerate() {
        for key in pools::KEYS {
            let got = answer(snapshot.key(name, key), "key")?.map(ids::EpisodeId::get);
            same(got, oracle.key(user, key), "id of a key")?;
        }
        for session in pools::SESSIONS {
            let mut wanted: Vec<_> = oracle
                .live(user)
                .filter(|(_, row)| row.session.as_deref() == Some(session))
                .map(|(id, row)| (row.time, row.ordinal, id))
                .collect();
            wanted.sort_unstable();
            let wanted: Vec<u64> = wanted.into_iter().map(|(_, _, id)| id).collect();
            let got = answer(snapshot.session(name, session), "session")?;
            let got: Vec<u64> = got.into_iter().map(ids::EpisodeId::get).collect();
            same(&got, &wanted, "session")?;
            for (place, id) in wanted.iter().enumerate() {
                let got = answer(snapshot.neighbours(EpisodeId::new(*id)), "neighbours")?;
                let got = (got.0.map(EpisodeId::get), got.1.map(EpisodeId::get));
                let before = place.checked_sub(1).map(|place| wanted[place]);
                same(got, (before, wanted.get(place + 1).copied()), "neighbours")?;
            }
        }
        let mut met = Vec::new();
        for part in answer(snapshot.parts(name), "parts")? {
            match part {
                Part::Cell { segment, rows, dead, .. } => {
                    for row in rows.filter(|row| !dead.contains(*row)) {
                        met.push(answer(segment.id_of(row), "id of a row")?.get());
                    }
                }
                Part::Log { records } => met.extend(records.iter().map(|row| row.id.get())),
            }
        }
        met.sort_unstable();
        same(met, oracle.live(user).map(|(id, _)| id).collect(), "rows that a scan meets")?;
    }
    Ok(())
}
