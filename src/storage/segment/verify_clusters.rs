//! Says whether the clusters of a segment repeat its rows as they are.

use std::collections::HashSet;

use super::clusters::Cluster;
use super::reader::Segment;
use super::section::Section;
use super::verify::Findings;
use crate::error::Result;

impl Segment {
    /// Every row with a vector of a user and kind that have clusters is in one of them, once, with its code and within its
    /// times.
    pub(super) fn verify_clusters(&self, findings: &mut Findings) {
        for cells in self.cells().chunk_by(|a, b| (a.user, a.kind) == (b.user, b.kind)) {
            let rows = cells[0].rows.start..cells[cells.len() - 1].rows.end;
            let (_, clusters) = self.clusters_of(cells[0].user, cells[0].kind);
            let mut seen = HashSet::new();
            for cluster in clusters {
                let problem = self.cluster_problem(cluster, &mut seen);
                match problem {
                    Ok(None) => {}
                    Ok(Some(section)) => findings.add(self.disagree("cluster", section), 0..0),
                    Err(error) => findings.add(error, 0..0),
                }
            }
            let with_vector = rows.clone().filter(|row| self.has_vector(*row).unwrap_or(false));
            if !clusters.is_empty() && !with_vector.eq(sorted(&seen)) {
                findings.add(self.disagree("cluster", Section::ClusterRows), rows);
            }
        }
        let known = |cluster: &&Cluster| !self.cells_of(cluster.user, cluster.kind).is_empty();
        if !self.clusters.iter().all(|cluster| known(&cluster)) {
            findings.add(self.disagree("cluster", Section::Clusters), 0..0);
        }
    }

    /// The section in which a cluster is not what its rows are.
    fn cluster_problem(
        &self,
        cluster: &Cluster,
        seen: &mut HashSet<u32>,
    ) -> Result<Option<Section>> {
        let members = self.cluster_rows(cluster.entries.clone())?;
        let (codes, factors) = self.cluster_codes(cluster.entries.clone())?;
        let width = codes.len() / members.len().max(1);
        let mut times = (i64::MAX, i64::MIN);
        for (at, row) in members.iter().enumerate() {
            let row = u32::from_le_bytes(*row);
            if row >= self.rows() || !seen.insert(row) {
                return Ok(Some(Section::ClusterRows));
            }
            let time = self.time(row)?;
            times = (times.0.min(time), times.1.max(time));
            if self.codes(row..row + 1)? != Some(&codes[at * width..(at + 1) * width]) {
                return Ok(Some(Section::ClusterCodes));
            }
            if self.factors(row..row + 1)? != Some(&factors[at..=at]) {
                return Ok(Some(Section::ClusterFactors));
            }
        }
        Ok((times != cluster.times).then_some(Section::Clusters))
    }
}

fn sorted(rows: &HashSet<u32>) -> impl Iterator<Item = u32> {
    let mut rows: Vec<u32> = rows.iter().copied().collect();
    rows.sort_unstable();
    rows.into_iter()
}
