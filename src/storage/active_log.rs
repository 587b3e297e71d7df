//! The active log: opened for writing, and begun anew when anything stands behind its end (format-spec.md 6.2).
//!
//! Invariants: a log is never overwritten. `locks/state` says `rotating` from before a new log exists until it
//! names that log, so that no two logs are ever both appended to.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::LogId;

use super::commit::WriterLock;
use super::log::format::{HEADER_BYTES, KIND_END, KIND_ROW, LogHeader};
use super::log::frame::{encode_end, encode_row};
use super::log::{Batch, BatchWriter, LogFile, Op};
use super::state::State;
use super::store::Shared;
use super::vfs::{OpenMode, PlantedBug, VfsFile};

impl Shared {
    /// Opens the active log for writing; begins a new one when anything lies behind the end that the state names.
    /// Returns the state and the first id that no row has.
    pub fn prepare_log(&self, held: &mut WriterLock<'_>, state: State) -> Result<(State, u64)> {
        let view = self.refresh(state)?;
        let next_id = view.next_id;
        drop(view);
        let writer = &mut *held.writer;
        if writer.log.as_ref().is_none_or(|log| log.id() != state.log) {
            let bundle = &self.follower.bundle;
            let database = &self.follower.database;
            writer.log = Some(LogFile::open(bundle, state.log, OpenMode::ReadWrite, database)?);
        }
        let log = writer.log.as_ref().expect("opened above");
        let length = log.len()?;
        if length < state.visible_end {
            return Err(Error::corrupt("log is shorter than its end")
                .in_file(log.path())
                .at_byte(length));
        }
        let planted = self.follower.bundle.vfs.planted(PlantedBug::TailOverwritten);
        if (length > state.visible_end && !planted) || state.rotating {
            let state = self.exclude_tail(held, state)?;
            return Ok((state, next_id));
        }
        Ok((state, next_id))
    }

    /// Begins a new log whose header names the durable end; batches that were only visible are copied, since the
    /// pages that hold them may be lost.
    fn exclude_tail(&self, held: &mut WriterLock<'_>, state: State) -> Result<State> {
        let log = held.writer.log.as_ref().expect("opened by the caller");
        let batches = log.read_to(state.durable_end, state.visible_end, state.durable_seq)?;
        self.begin_log(held, &state, state.durable_end, state.durable_seq, &batches)
    }

    /// Begins a new log after `state.log`, which ends at `previous_end` with batch `previous_seq`, with copies of
    /// `batches` at its head. Everything is durable before the state names it. A crash before that leaves a log that
    /// no header names as its previous one: a leftover.
    pub fn begin_log(
        &self,
        held: &mut WriterLock<'_>,
        state: &State,
        previous_end: u64,
        previous_seq: u64,
        batches: &[Batch],
    ) -> Result<State> {
        let view = self.refresh(*state)?;
        let next_id = view.next_id;
        drop(view);
        let begun = State { generation: state.generation + 1, rotating: true, ..*state };
        self.write_state(&begun)?;
        let (log, end, seq) =
            self.create_log(state.log, previous_end, previous_seq, next_id, batches)?;
        let state = State {
            generation: begun.generation + 1,
            log: log.id(),
            visible_end: end,
            durable_end: end,
            visible_seq: seq,
            durable_seq: seq,
            rotating: false,
        };
        self.write_state(&state)?;
        held.writer.log = Some(log);
        Ok(state)
    }

    /// Writes and syncs a new log file, header and copied batches, and gives it its name; returns it with the end and
    /// the number of its last batch. The caller holds the writer lock. A crash leaves a temporary file, or the whole log.
    pub fn create_log(
        &self,
        previous: LogId,
        previous_end: u64,
        previous_seq: u64,
        next_id: u64,
        batches: &[Batch],
    ) -> Result<(LogFile, u64, u64)> {
        let bundle = &self.follower.bundle;
        let mut salt = [0; 4];
        bundle.vfs.random(&mut salt).map_err(|error| Error::io("random salt", error))?;
        let highest = bundle.logs()?.last().copied().unwrap_or(previous).max(previous);
        let header = LogHeader {
            log: LogId::new(highest.get() + 1),
            previous,
            previous_end,
            first_seq: previous_seq + 1,
            next_id,
            database: self.follower.database,
            salt: u32::from_le_bytes(salt),
        };
        let base = HEADER_BYTES as u64;
        let mut writer = BatchWriter::new(base, header.salt, previous_seq, previous_seq, base);
        for batch in batches {
            for op in &batch.ops {
                match op {
                    Op::Row(row) => {
                        writer.frame(KIND_ROW, &encode_row(&row.record, &row.body)?)?;
                    }
                    Op::End(end) => writer.frame(KIND_END, &encode_end(end))?,
                }
            }
            writer.seal(batch.next_id);
        }
        let (path, tmp) = (bundle.log(header.log), bundle.log_tmp(header.log));
        let written = self.write_log(&tmp, &header, writer.sealed()).and_then(|file| {
            // The last moment at which the path may have turned: what follows is one call.
            self.check_place()?;
            let renamed = bundle.vfs.rename(&tmp, &path).map(|()| file);
            renamed.map_err(|error| Error::io("begin log", error).in_file(&path))
        });
        let file = written.inspect_err(|_| {
            // On a full disk it would keep the last space. What cannot be removed is removed by the next to begin.
            self.remove_unlisted([&tmp]);
        })?;
        if !bundle.vfs.planted(PlantedBug::NoLogDirSync) {
            let directory = bundle.log_dir();
            bundle
                .vfs
                .sync_dir(&directory)
                .map_err(|error| Error::io("sync directory", error).in_file(directory))?;
        }
        let (end, seq) = (writer.end(), writer.seq());
        Ok((LogFile::created(header, file, path), end, seq))
    }

    /// A temporary file with a log's header and first batches, synced.
    fn write_log(
        &self,
        tmp: &Path,
        header: &LogHeader,
        batches: &[u8],
    ) -> Result<Arc<dyn VfsFile>> {
        let vfs = &self.follower.bundle.vfs;
        let io = |error| Error::io("begin log", error).in_file(tmp);
        let file = match vfs.open(tmp, OpenMode::CreateNew) {
            // Whoever began this log before was stopped: its number was never named.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                vfs.remove_file(tmp).map_err(io)?;
                vfs.open(tmp, OpenMode::CreateNew).map_err(io)?
            }
            opened => opened.map_err(io)?,
        };
        // The header excludes what lies behind the end that it names, so nobody may meet it before the copies are
        // durable: the file gets its name last.
        file.write_all_at(0, &header.encode()).map_err(io)?;
        if !batches.is_empty() {
            file.write_all_at(HEADER_BYTES as u64, batches).map_err(io)?;
        }
        file.sync_data().map_err(io)?;
        Ok(file)
    }
}
