//! All tables of the catalog, with the types of their keys and values (format-spec.md 4).
//!
//! Invariants: keys are redb's own tuples of integers, compared as integers, so that a negative time sorts before a
//! positive one; names are byte strings, never `str`, since redb panics on a `str` that is not UTF-8. Every table is
//! created with the file, so a missing one is damage.

use std::cell::OnceCell;
use std::sync::OnceLock;

use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
    WriteTransaction,
};

use super::boundary::{Attempt, Guarded};

/// Key of `timeline` and `recorded`, and of no other order: user, time, id.
pub type TimeKey = (u64, i64, u64);

/// Key of `session_order`: session, then the time, ordinal and id of the chunk's first entry.
pub type OrderKey = (u64, i64, u64, u64);

/// Key of names that are unique per user.
pub type NameKey = (u64, &'static [u8]);

type Bytes = &'static [u8];

macro_rules! tables {
    ($($(#[$doc:meta])* $constant:ident $field:ident $field_mut:ident: $key:ty => $value:ty;)*) => {
        $($(#[$doc])*
        pub(super) const $constant: TableDefinition<'static, $key, $value> =
            TableDefinition::new(stringify!($field));)*

        /// The tables of a transaction, opened at first use. The methods are called inside the boundary only.
        pub trait TableSet {
            $($(#[$doc])*
            fn $field(&self) -> Attempt<&impl ReadableTable<$key, $value>>;)*

            /// Name and number of rows of every table. No pass over rows: redb keeps the numbers.
            fn lengths(&self) -> Attempt<Vec<(&'static str, u64)>> {
                Ok(vec![$((stringify!($field), self.$field()?.len()?),)*])
            }
        }

        /// The tables of a read transaction.
        pub struct ReadTables {
            $($field: OnceLock<ReadOnlyTable<$key, $value>>,)*
            txn: ReadTransaction,
        }

        impl ReadTables {
            pub(super) fn new(txn: ReadTransaction) -> ReadTables {
                ReadTables { $($field: OnceLock::new(),)* txn }
            }
        }

        impl TableSet for ReadTables {
            $(fn $field(&self) -> Attempt<&impl ReadableTable<$key, $value>> {
                if let Some(table) = self.$field.get() {
                    return Ok(table);
                }
                let table = self.txn.open_table($constant)?;
                Ok(self.$field.get_or_init(|| table))
            })*
        }

        /// The tables of a write transaction; they stay open until it ends.
        pub struct WriteTables<'t> {
            $($field: OnceCell<Guarded<Table<'t, $key, $value>>>,)*
            txn: &'t WriteTransaction,
        }

        impl<'t> WriteTables<'t> {
            pub(super) fn new(txn: &'t WriteTransaction) -> WriteTables<'t> {
                WriteTables { $($field: OnceCell::new(),)* txn }
            }

            /// Opens, and so creates, every table.
            pub(super) fn create_all(&self) -> Attempt<()> {
                $(self.$field()?;)*
                Ok(())
            }

            $(#[allow(dead_code, reason = "some tables are created now and filled by later indexes")]
            pub(super) fn $field_mut(&mut self) -> Attempt<&mut Table<'t, $key, $value>> {
                self.$field()?;
                Ok(self.$field.get_mut().expect("opened in the line above"))
            })*
        }

        impl TableSet for WriteTables<'_> {
            $(fn $field(&self) -> Attempt<&impl ReadableTable<$key, $value>> {
                if let Some(table) = self.$field.get() {
                    return Ok(&**table);
                }
                let table = Guarded::new(self.txn.open_table($constant)?);
                Ok(&**self.$field.get_or_init(|| table))
            })*
        }
    };
}

tables! {
    /// Row [`META_STATE`]: what changes with every publish. Row [`META_FACTS`]: the rest of `Meta`.
    META meta meta_mut: u8 => Bytes;
    /// Segment: length, checksums, rows; with a CRC.
    MANIFEST manifest manifest_mut: u64 => Bytes;
    /// (segment, chunk of rows): the rows of that chunk that are ended; with a CRC.
    DEAD dead dead_mut: (u64, u32) => Bytes;
    /// User number: name.
    USERS users users_mut: u64 => Bytes;
    /// User name: number.
    USER_NAMES user_names user_names_mut: Bytes => u64;
    /// Session number: user number and name.
    SESSIONS sessions sessions_mut: u64 => Bytes;
    /// (user, session name): session number.
    SESSION_NAMES session_names session_names_mut: NameKey => u64;
    /// (session, first entry): up to 256 entries in order.
    SESSION_ORDER session_order session_order_mut: OrderKey => Bytes;
    /// (user, key of the caller): episode.
    KEYS keys keys_mut: NameKey => u64;
    /// Live episodes by (user, time, id).
    TIMELINE timeline timeline_mut: TimeKey => ();
    /// Live episodes by (user, record time, id).
    RECORDED recorded recorded_mut: TimeKey => ();
    /// (user, start, id): end of the time that an episode speaks of. Filled by the indexes.
    EVENT_TIME event_time event_time_mut: TimeKey => i64;
    /// (user, tag): the tag's row. Filled by the indexes.
    TAGS tags tags_mut: (u64, u64) => Bytes;
    /// (user, name or alias): tag. Filled by the indexes.
    TAG_NAMES tag_names tag_names_mut: NameKey => u64;
    /// (user, broader tag, narrower tag): the edge's row. Filled by the indexes.
    TAG_EDGES tag_edges tag_edges_mut: (u64, u64, u64) => Bytes;
    /// (user, episode, tag): 1 given by hand, 0 taken, since the row's segment was written. Filled by the indexes.
    TAG_OVERLAY tag_overlay tag_overlay_mut: (u64, u64, u64) => u8;
    /// (user, box): the box's row. Filled by the indexes.
    BOXES boxes boxes_mut: (u64, u64) => Bytes;
    /// (user, event): the event's row. Filled by the indexes.
    EVENTS events events_mut: (u64, u64) => Bytes;
    /// (user, trace): the trace's row. Filled by the indexes.
    TRACES traces traces_mut: (u64, u64) => Bytes;
    /// Episode: (highest ended version, 1 when superseded, 0 when deleted).
    TOMBSTONES tombstones tombstones_mut: u64 => (u32, u8);
    /// (episode, version): reserved for versions that are kept away from their segment. Empty.
    VERSIONS versions versions_mut: (u64, u32) => Bytes;
    /// User, or [`STATISTICS_TOTAL`]: live counts.
    STATISTICS statistics statistics_mut: u64 => Bytes;
    /// Sequence number: enrichment that waits. Filled by the write path.
    QUEUE queue queue_mut: u64 => Bytes;
}

/// Row of `meta`: generation and applied log.
pub(super) const META_STATE: u8 = 0;

/// Row of `meta`: everything else of `Meta`.
pub(super) const META_FACTS: u8 = 1;

/// Row of `statistics` that holds the sum over all users. No user has this number.
pub(super) const STATISTICS_TOTAL: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use redb::{Key, Value};

    use super::*;

    #[test]
    fn keys_have_the_bytes_and_the_order_of_the_specification() {
        let bytes = <TimeKey as Value>::as_bytes(&(1, -2, 3));
        let mut expected = [0; 24];
        expected[0] = 1;
        expected[8..16].fill(0xff);
        expected[8] = 0xfe;
        expected[16] = 3;
        assert_eq!(bytes, expected);
        let later = <TimeKey as Value>::as_bytes(&(1, 0, 0));
        assert!(<TimeKey as Key>::compare(&bytes, &later).is_lt());

        let name: &[u8] = b"\xffname";
        let bytes = <NameKey as Value>::as_bytes(&(258, name));
        assert_eq!(bytes, b"\x02\x01\0\0\0\0\0\0\xffname");
        assert_eq!(<OrderKey as Value>::as_bytes(&(1, 2, 3, 4)).len(), 32);
    }
}
