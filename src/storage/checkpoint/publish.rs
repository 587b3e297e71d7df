//! The one catalog transaction of a checkpoint.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ids::{LogId, SegmentId};
use crate::simd::codec::Codec;
use crate::storage::catalog::{CatalogTxn, ManifestRow, Meta, SessionName};
use crate::storage::segment::SegmentSummary;
use crate::storage::snapshot::Snapshot;

use super::rows::Plan;

/// Writes everything that `plan` changes in the catalog; `segment` is the file that holds its rows.
pub fn apply(
    catalog: &mut CatalogTxn<'_>,
    before: &Snapshot,
    plan: &Plan,
    segment: Option<(SegmentId, SegmentSummary)>,
    log_applied: LogId,
    learned: Option<&Codec>,
) -> Result<()> {
    for (number, name) in &plan.new_users {
        catalog.user_add(*number, name)?;
    }
    for (number, user, name) in &plan.new_sessions {
        catalog.session_add(&SessionName { user: *user, session: *number, name: name.clone() })?;
    }
    take_ended(catalog, before, plan)?;
    add_live(catalog, plan)?;
    for (session, [inserts, removes]) in plan.session_changes() {
        catalog.session_apply(session, &inserts, &removes)?;
    }
    for (user, counts) in &plan.counts {
        catalog.statistics_add(*user, *counts)?;
    }
    let base = &before.view().base;
    let mut next_segment = base.meta.next_segment;
    if let Some((id, summary)) = segment {
        next_segment = next_segment.max(id.get() + 1);
        list(catalog, plan, id, summary)?;
    }
    catalog.set_meta(&Meta {
        generation: base.generation + 1,
        log_applied,
        next_segment,
        next_user: plan.next_user,
        next_session: plan.next_session,
        codec_mean: learned.map(|codec| codec.mean().to_vec()).or(base.meta.codec_mean.clone()),
        ..base.meta.clone()
    })
}

/// Ends rows of earlier segments: off the indexes, onto the dead lists.
fn take_ended(catalog: &mut CatalogTxn<'_>, before: &Snapshot, plan: &Plan) -> Result<()> {
    let mut dead: BTreeMap<SegmentId, Vec<(u32, bool)>> = BTreeMap::new();
    for ended in &plan.ends {
        let head = &ended.head;
        catalog.timeline_remove(head.user, head.time, head.id)?;
        catalog.recorded_remove(head.user, head.first_record_time, head.id)?;
        if let Some(key) = &ended.key {
            catalog.key_remove(head.user, key)?;
        }
        // The history of an episode goes with it.
        let kept = ended.end.superseded && !plan.deleted.contains_key(&head.id);
        dead.entry(ended.segment).or_default().push((ended.row, kept));
    }
    // Also of a version that never reached a segment: by its tombstone a rewrite knows the older ones.
    for (id, version) in &plan.deleted {
        catalog.tombstone_put(*id, *version, false)?;
    }
    for (segment, rows) in dead {
        let view = before.view().base.segment(segment).expect("the plan was made from this view");
        let mut all = (*view.dead).clone();
        let mut deleted_rows = view.row.deleted_rows;
        for (row, kept) in rows {
            all.insert(row);
            deleted_rows += u32::from(!kept);
        }
        catalog.dead_set(segment, &all.rows())?;
        catalog.manifest_put(&ManifestRow {
            dead_rows: all.len(),
            deleted_rows,
            dead_version: view.row.dead_version + 1,
            ..view.row.clone()
        })?;
    }
    Ok(())
}

/// Lists the rows that are live, each index in its own order.
fn add_live(catalog: &mut CatalogTxn<'_>, plan: &Plan) -> Result<()> {
    let mut live: Vec<_> = plan.rows.iter().filter(|row| row.live).collect();
    live.sort_by_key(|row| (row.user, row.frame.record.time, row.frame.record.id));
    for row in &live {
        catalog.timeline_insert(row.user, row.frame.record.time, row.frame.record.id)?;
    }
    live.sort_by_key(|row| (row.user, row.frame.record.first_record_time, row.frame.record.id));
    for row in &live {
        let record = &row.frame.record;
        catalog.recorded_insert(row.user, record.first_record_time, record.id)?;
    }
    live.retain(|row| row.frame.record.body.key.is_some());
    live.sort_by(|a, b| {
        (a.user, &a.frame.record.body.key).cmp(&(b.user, &b.frame.record.body.key))
    });
    for row in &live {
        let record = &row.frame.record;
        let key = record.body.key.as_deref().expect("retained above");
        catalog.key_set(row.user, key, record.id)?;
    }
    Ok(())
}

/// Lists the new segment, with its rows that were superseded before they reached it.
fn list(
    catalog: &mut CatalogTxn<'_>,
    plan: &Plan,
    id: SegmentId,
    summary: SegmentSummary,
) -> Result<()> {
    let rows = plan.rows.iter().enumerate();
    let dead: Vec<u32> =
        rows.filter(|(_, row)| !row.live).map(|(number, _)| number as u32).collect();
    if !dead.is_empty() {
        catalog.dead_set(id, &dead)?;
    }
    catalog.manifest_put(&ManifestRow {
        segment: id,
        bytes: summary.bytes,
        footer_crc: summary.footer_crc,
        rows: summary.rows,
        dead_rows: dead.len() as u32,
        deleted_rows: 0,
        dead_version: 0,
        ids: summary.ids,
    })
}
