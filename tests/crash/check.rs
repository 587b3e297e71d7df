//! Holds everything that a snapshot answers against the oracle, and against itself.

use std::fmt::Debug;

use loomdb::internals::ids::EpisodeId;
use loomdb::internals::model::Record;
use loomdb::internals::storage::{Direction, Part, Snapshot};
use loomdb::{Error, ErrorKind};

use crate::model::{KEYS, Model, Row, SESSIONS, USERS};

/// Why an image or a run is wrong.
pub type Verdict<T = ()> = Result<T, String>;

/// Names the call that failed.
pub fn told<T>(what: &str, result: loomdb::Result<T>) -> Verdict<T> {
    result.map_err(|error| format!("{what}: {}", chain(&error)))
}

/// An error with its causes.
pub fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut at = std::error::Error::source(error);
    while let Some(cause) = at {
        text += &format!(": {cause}");
        at = cause.source();
    }
    text
}

fn equal<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Verdict {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: found {found:?}, expected {expected:?}")),
    }
}

/// Every answer of the snapshot is the model's.
pub fn contents(snapshot: &Snapshot, model: &Model) -> Verdict {
    let mut users = Vec::new();
    for user in USERS {
        if model.of_user(user).next().is_some() {
            users.push(user.as_bytes().into());
        }
        one_user(snapshot, model, user)?;
    }
    equal("users", &told("users", snapshot.users())?, &users)?;
    for (id, versions) in &model.live {
        let found = told("versions", snapshot.versions(EpisodeId::new(*id)))?;
        equal("number of versions", &found.len(), &versions.len())?;
        for (at, (found, expected)) in found.iter().zip(versions).enumerate() {
            same(found, *id, at as u32 + 1, expected)?;
        }
        let found = told("get", snapshot.get(EpisodeId::new(*id)))?;
        let found = found.ok_or_else(|| format!("episode {id} is missing"))?;
        same(&found, *id, versions.len() as u32, versions.last().expect("never empty"))?;
    }
    for id in model.deleted.iter().copied().chain([model.next_id, model.next_id + 1]) {
        let id = EpisodeId::new(id);
        equal("get of a deleted episode", &told("get", snapshot.get(id))?.is_some(), &false)?;
        equal("its versions", &told("versions", snapshot.versions(id))?.len(), &0)?;
        let neighbours = snapshot.neighbours(id).map_err(|error| error.kind());
        equal("its neighbours", &neighbours, &Err(ErrorKind::NotFound))?;
    }
    Ok(())
}

fn same(found: &Record, id: u64, version: u32, expected: &Row) -> Verdict {
    let holds = found.id.get() == id
        && found.version == version
        && *found.user == *expected.user.as_bytes()
        && found.time == expected.time
        && found.offset_minutes == 60
        && found.ordinal == expected.ordinal
        && found.expires == i64::MAX
        && found.first_record_time <= found.record_time
        && *found.vector == *expected.vector_bytes()
        && found.body.text == expected.text
        && found.body.session.as_deref() == expected.session
        && found.body.key.as_deref() == expected.key
        && found.body.speaker.as_deref() == Some("speaker")
        && found.body.metadata == "{}"
        && found.body.tags == ["tag"];
    match holds {
        true => Ok(()),
        false => Err(format!("episode {id} version {version} reads as {found:?}")),
    }
}

fn one_user(snapshot: &Snapshot, model: &Model, user: &str) -> Verdict {
    let name = user.as_bytes();
    let live: Vec<(u64, &Row)> = model.of_user(user).collect();
    let counts = told("counts", snapshot.counts(name))?;
    let expected = [
        live.len() as i64,
        live.iter().filter(|(_, row)| row.vector).count() as i64,
        live.iter().map(|(_, row)| row.text.len() as i64).sum(),
    ];
    equal("counts", &[counts.rows, counts.vectors, counts.text_bytes], &expected)?;

    let mut timeline: Vec<_> =
        live.iter().map(|(id, row)| (row.time, EpisodeId::new(*id))).collect();
    timeline.sort_unstable();
    let all = i64::MIN..i64::MAX;
    let forward = snapshot.timeline(name, all.clone(), None, Direction::Ascending, 1000);
    equal("timeline", &told("timeline", forward)?, &timeline)?;
    let mut backward = Vec::new();
    loop {
        let after = backward.last().copied();
        let page = snapshot.timeline(name, all.clone(), after, Direction::Descending, 5);
        let page = told("timeline", page)?;
        backward.extend(page.iter().copied());
        if page.len() < 5 {
            break;
        }
    }
    timeline.reverse();
    equal("timeline backwards", &backward, &timeline)?;

    for key in KEYS {
        let expected = live.iter().find(|(_, row)| row.key == Some(key)).map(|(id, _)| *id);
        let found = told("key", snapshot.key(name, key))?.map(EpisodeId::get);
        equal("key", &found, &expected)?;
    }
    for session in SESSIONS {
        let mut rows: Vec<_> =
            live.iter().filter(|(_, row)| row.session == Some(session)).collect();
        rows.sort_by_key(|(id, row)| (row.time, row.ordinal, *id));
        let ids: Vec<EpisodeId> = rows.iter().map(|(id, _)| EpisodeId::new(*id)).collect();
        equal("session", &told("session", snapshot.session(name, session))?, &ids)?;
        for (at, id) in ids.iter().enumerate() {
            let expected = (at.checked_sub(1).map(|at| ids[at]), ids.get(at + 1).copied());
            equal("neighbours", &told("neighbours", snapshot.neighbours(*id))?, &expected)?;
        }
    }
    let mut expected: Vec<(u64, u32)> =
        live.iter().map(|(id, _)| (*id, model.live[id].len() as u32)).collect();
    expected.sort_unstable();
    equal("rows that a scan meets", &scan(snapshot, name)?, &expected)
}

/// Id and version of every live row that a scan of the user meets, sorted.
pub fn scan(snapshot: &Snapshot, user: &[u8]) -> Verdict<Vec<(u64, u32)>> {
    let mut met = Vec::new();
    for part in told("parts", snapshot.parts(user))? {
        match part {
            Part::Cell { segment, rows, dead, .. } => {
                for row in rows.filter(|row| !dead.contains(*row)) {
                    let id = told("id of a row", segment.id_of(row))?;
                    met.push((id.get(), told("version of a row", segment.version(row))?));
                }
            }
            Part::Log { records } => {
                met.extend(records.iter().map(|record| (record.id.get(), record.version)));
            }
        }
    }
    met.sort_unstable();
    Ok(met)
}
