//! Clusters: the rows of a cell once more, gathered by meaning (format-spec.md 3.9). Their codes lie together, so that a
//! search scans those that are near and passes over the others.
//!
//! Rows themselves stay in the order of their ids: a turn is scored with its neighbours in the session, and those lie
//! beside it.

use std::ops::Range;

use super::columns::Columns;
use super::format::CLUSTER_BYTES;
use super::input::Input;
use super::reader::Segment;
use super::section::{CLUSTER_SECTIONS, Section};
use super::sections::SectionWriter;
use super::writer::Codes;
use super::{Cell, RowSource, SegmentInput};
use crate::error::{Error, Result};
use crate::ids::UserNumber;
use crate::model::{RowKind, VectorSpace, unpack_vector};
use crate::simd::Rounded;
use crate::storage::clusters::clusters;

/// Rows of one user and kind that lie near each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    pub user: UserNumber,
    pub kind: RowKind,
    /// Its entries of the sections of clusters.
    pub entries: Range<u32>,
    /// Root of the mean squared distance of the rows' vectors from their mean.
    pub radius: f32,
    /// Smallest and largest time of the rows.
    pub times: (i64, i64),
}

impl Cluster {
    fn encode(&self) -> [u8; CLUSTER_BYTES] {
        let mut bytes = [0; CLUSTER_BYTES];
        bytes[0..8].copy_from_slice(&self.user.get().to_le_bytes());
        bytes[8] = self.kind as u8;
        bytes[12..16].copy_from_slice(&self.entries.start.to_le_bytes());
        bytes[16..20].copy_from_slice(&(self.entries.end - self.entries.start).to_le_bytes());
        bytes[20..24].copy_from_slice(&self.radius.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.times.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.times.1.to_le_bytes());
        bytes
    }
}

/// Gathers the rows of each cell and writes the sections; none when no cell has enough rows.
///
/// # Errors
/// What `rows` answers; `Io`.
pub(super) fn write(
    out: &mut SectionWriter<'_>,
    cells: &[Cell],
    rows: &dyn RowSource,
    input: &SegmentInput<'_>,
    codes: &Codes,
) -> Result<()> {
    let space = input.space;
    let (mut directory, mut centroids) = (Vec::new(), Vec::new());
    let mut members: Vec<u32> = Vec::new();
    for cell in cells {
        for cluster in clusters(rows, cell.rows.clone(), space, input.clustered_from)? {
            let start = members.len() as u32;
            let (mean, radius, times) = measure(&cluster, rows, space)?;
            members.extend(cluster);
            let (user, kind) = (cell.user, cell.kind);
            let entries = start..members.len() as u32;
            directory.extend(Cluster { user, kind, entries, radius, times }.encode());
            centroids.extend(mean.iter().flat_map(|value| value.to_le_bytes()));
        }
    }
    if members.is_empty() {
        return Ok(());
    }
    out.section(Section::Clusters, &directory)?;
    out.begin(Section::Centroids, space.dimension as usize * size_of::<f32>(), 0)?;
    out.put(&centroids)?;
    out.end()?;
    out.column(Section::ClusterRows, members.iter().map(|row| Ok(row.to_le_bytes())))?;
    out.begin(Section::ClusterCodes, codes.code_bytes, 0)?;
    for row in &members {
        let at = *row as usize * codes.code_bytes;
        out.put(&codes.codes[at..at + codes.code_bytes])?;
    }
    out.end()?;
    let factors = members.iter().map(|row| Ok(codes.factors[*row as usize].to_le_bytes()));
    out.column(Section::ClusterFactors, factors)
}

/// The mean of some rows' vectors, the root of their mean squared distance from it, and their smallest and largest time.
fn measure(
    members: &[u32],
    rows: &dyn RowSource,
    space: &VectorSpace,
) -> Result<(Vec<f32>, f32, (i64, i64))> {
    let mut sum = vec![0.0_f64; space.dimension as usize];
    let (mut squares, mut times) = (0.0_f64, (i64::MAX, i64::MIN));
    let (mut stored, mut values) = (Vec::new(), Vec::new());
    for row in members {
        let time = rows.head(*row as usize)?.time;
        times = (times.0.min(time), times.1.max(time));
        stored.clear();
        rows.vector(*row as usize, &mut stored)?;
        unpack_vector(&stored, space.element, &mut values);
        for (sum, value) in sum.iter_mut().zip(&values) {
            *sum += f64::from(*value);
            squares += f64::from(*value) * f64::from(*value);
        }
    }
    let count = members.len() as f64;
    let mean: Vec<f64> = sum.iter().map(|sum| sum / count).collect();
    let of_mean: f64 = mean.iter().map(|value| value * value).sum();
    let radius = (squares / count - of_mean).max(0.0).sqrt();
    Ok((mean.iter().map(|value| *value as f32).collect(), radius as f32, times))
}

/// The directory of clusters of a segment whose sections have their shapes.
///
/// # Errors
/// `Corrupt` when the sections do not come together, or the directory does not hold each entry once and in order.
pub(super) fn open(
    columns: &Columns,
    code_bytes: Option<usize>,
    centroid_bytes: usize,
) -> Result<Vec<Cluster>> {
    let present = CLUSTER_SECTIONS.iter().filter(|section| columns.place(**section).is_some());
    match present.count() {
        0 => return Ok(Vec::new()),
        count if count == CLUSTER_SECTIONS.len() => {}
        _ => {
            let at = columns.footer_at();
            return Err(columns.corrupt("segment has clusters in part only", at));
        }
    }
    let Some(code_bytes) = code_bytes else {
        return Err(columns.corrupt("segment has clusters without codes", columns.footer_at()));
    };
    let count = |section: Section, width: usize| -> Result<u64> {
        Ok(columns.require(section)?.len / width as u64)
    };
    let entries = count(Section::ClusterRows, 4)?;
    let centroids = count(Section::Centroids, centroid_bytes)?;
    let clusters = columns.decode(Section::Clusters, |bytes, at| decode(bytes, at, entries))?;
    let factors = count(Section::ClusterFactors, 4)?;
    let codes = count(Section::ClusterCodes, code_bytes)?;
    if centroids != clusters.len() as u64 || factors != entries || codes != entries {
        return Err(columns.corrupt("segment sections of clusters disagree", columns.footer_at()));
    }
    Ok(clusters)
}

fn decode(bytes: &[u8], offset: u64, entries: u64) -> Result<Vec<Cluster>> {
    let mut input = Input::new(bytes, offset, "directory of clusters");
    let mut clusters: Vec<Cluster> = Vec::with_capacity(bytes.len() / CLUSTER_BYTES);
    let mut next = 0_u32;
    while input.left() > 0 {
        let user = UserNumber::new(input.u64()?);
        let kind = RowKind::from_number(input.u8()?)
            .ok_or_else(|| input.corrupt("holds an unknown kind of row"))?;
        input.take(3)?;
        let (first, count, radius) = (input.u32()?, input.u32()?, input.f32()?);
        let times = (input.i64()?, input.i64()?);
        input.take(8)?;
        let end = first.checked_add(count).filter(|end| count > 0 && u64::from(*end) <= entries);
        let is_sorted =
            clusters.last().is_none_or(|last: &Cluster| (last.user, last.kind) <= (user, kind));
        let (Some(end), true) = (end, first == next && is_sorted) else {
            return Err(input.corrupt("does not hold each entry once"));
        };
        if !(0.0..=f32::MAX).contains(&radius) || times.0 > times.1 {
            return Err(input.corrupt("holds an impossible radius or time"));
        }
        next = end;
        clusters.push(Cluster { user, kind, entries: first..end, radius, times });
    }
    if u64::from(next) != entries {
        return Err(input.corrupt("does not hold each entry once"));
    }
    Ok(clusters)
}

impl Segment {
    /// The clusters of one user and kind, with the number of the first; empty for few rows.
    pub fn clusters_of(&self, user: UserNumber, kind: RowKind) -> (u32, &[Cluster]) {
        let all = &self.clusters;
        let start = all.partition_point(|one| (one.user, one.kind) < (user, kind));
        let count = all[start..].partition_point(|one| (one.user, one.kind) == (user, kind));
        (start as u32, &all[start..start + count])
    }

    /// The mean of a cluster's vectors: little-endian `f32`, one a dimension. `number`: counted among all clusters.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn centroid(&self, number: u32) -> Result<&[u8]> {
        let width = u64::from(self.space().dimension) * 4;
        let start = u64::from(number) * width;
        self.columns.bytes(Section::Centroids, start..start + width)
    }

    /// All centroids, rounded. Reads them when they are asked for first.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn rounded_centroids(&self) -> Result<&Rounded> {
        if let Some(centroids) = self.centroids.get() {
            return Ok(centroids);
        }
        let mut rounded = Rounded::new(self.space().dimension as usize);
        for number in 0..self.clusters.len() as u32 {
            let values = self.centroid(number)?.as_chunks().0.iter();
            rounded.push(values.map(|value| f32::from_le_bytes(*value)));
        }
        Ok(self.centroids.get_or_init(|| rounded))
    }

    /// The rows of some entries, little-endian `u32`. They are only what the file says: see [`Segment::rows`].
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn cluster_rows(&self, entries: Range<u32>) -> Result<&[[u8; 4]]> {
        self.columns.items(Section::ClusterRows, entries)
    }

    /// The codes of some entries, one behind the other, and their factors.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn cluster_codes(&self, entries: Range<u32>) -> Result<(&[u8], &[[u8; 4]])> {
        let width = self.code_bytes.ok_or_else(|| Error::corrupt("clusters without codes"))?;
        let range = u64::from(entries.start) * width as u64..u64::from(entries.end) * width as u64;
        let codes = self.columns.bytes(Section::ClusterCodes, range)?;
        Ok((codes, self.columns.items(Section::ClusterFactors, entries)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, DIMENSION, Random};
    use super::*;
    use crate::model::unpack_vector;
    use crate::options::{CELL_ROWS_MAX, CELL_ROWS_MIN};

    /// A segment whose rows lie about eight directions.
    fn clustered() -> Vec<u8> {
        let mut random = Random(5);
        let mut rows = tests::random_rows(&mut random, 24_000, &[20], DIMENSION);
        rows.0.retain(|row| row.head.kind == RowKind::Episode);
        rows.0.iter_mut().for_each(|row| row.head.cluster = 0);
        rows.0.sort_by_key(|row| (row.head.user, row.head.kind, row.head.id, row.head.version));
        let mut directions = vec![vec![0.0_f32; DIMENSION]; 8];
        for direction in &mut directions {
            direction
                .iter_mut()
                .for_each(|value| *value = random.below(2000) as f32 / 1000.0 - 1.0);
        }
        for (number, row) in rows.0.iter_mut().enumerate().filter(|(_, row)| row.head.has_vector) {
            let direction = &directions[number % 8];
            let values: Vec<f32> = direction
                .iter()
                .map(|value| value + random.below(1000) as f32 / 5000.0 - 0.1)
                .collect();
            let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
            let unit: Vec<f32> = values.iter().map(|value| value / length).collect();
            row.set_vector(&unit);
        }
        let (space, codec) = (tests::space(DIMENSION), tests::codec());
        tests::write(&tests::input(&space, Some(&codec)), &rows).0
    }

    #[test]
    fn clusters_hold_each_row_once_and_near_their_mean() {
        let segment = tests::open(&clustered()).unwrap();
        assert!(segment.verify(true).is_empty());
        let mut rows = 0;
        for (number, cluster) in (0..).zip(&segment.clusters) {
            assert!((CELL_ROWS_MIN..=CELL_ROWS_MAX).contains(&cluster.entries.len()));
            // Rows of one direction lie within 0.4 of it; all together would lie at 0.9.
            assert!(cluster.radius < 0.75, "{}", cluster.radius);
            let mut mean = Vec::new();
            let stored = segment.centroid(number).unwrap();
            unpack_vector(stored, crate::options::VectorElement::F32, &mut mean);
            for row in segment.cluster_rows(cluster.entries.clone()).unwrap() {
                let row = u32::from_le_bytes(*row);
                let mut values = Vec::new();
                let vector = segment.vector(row).unwrap().unwrap();
                unpack_vector(vector, crate::options::VectorElement::F32, &mut values);
                let cosine = crate::simd::dot(&mean, &values);
                assert!(cosine > 0.2, "{cosine}");
                rows += 1;
            }
        }
        let with_vector = (0..segment.rows()).filter(|row| segment.has_vector(*row).unwrap());
        assert_eq!(rows, with_vector.count());
        assert_eq!(clustered(), clustered(), "equal rows give equal bytes");
    }

    #[test]
    fn clusters_in_part_or_out_of_order_are_refused() {
        let one = |first: u32, end: u32, radius: f32| {
            let (user, kind) = (UserNumber::new(1), RowKind::Episode);
            Cluster { user, kind, entries: first..end, radius, times: (1, 2) }.encode()
        };
        let read = |entries: &[[u8; CLUSTER_BYTES]], count| decode(&entries.concat(), 0, count);
        assert_eq!(read(&[one(0, 3, 0.5), one(3, 4, 0.0)], 4).unwrap().len(), 2);
        for (entries, count) in [
            (vec![one(0, 3, 0.5)], 4),
            (vec![one(1, 4, 0.5)], 4),
            (vec![one(0, 0, 0.5)], 0),
            (vec![one(0, 4, f32::NAN)], 4),
            (vec![one(0, 5, 0.5)], 4),
        ] {
            assert!(read(&entries, count).is_err());
        }
    }
}
