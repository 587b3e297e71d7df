//! How a large memory is narrowed to candidates before any is scored.

use crate::error::{Error, Result};

use super::WHOLE_ROWS_MAX;

/// How a search chooses candidates. A score never depends on these: routing may miss an episode and never moves one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingOptions {
    /// Episodes of a user, or of those that pass the filters, up to which every one is scored. Default: 20,000, where
    /// scoring all costs a few milliseconds (design 4). Any.
    pub whole_rows: u32,
    /// Episodes best by words that are looked at, at least; and twice the answers asked for. Default: 400. Among 100,000
    /// episodes 200 find 95 % of the exhaustive first ten on BEAM-100k, 400 find 98 % (`loomdb eval routing`). 1 to 10,000.
    pub lexical_rows: usize,
    /// Episodes best by the codes of their vectors that are looked at beside them. Default: 500, of the same measurement.
    /// 1 to 10,000.
    pub code_rows: usize,
    /// Cells whose codes are scanned, nearest first, at least. Default: 8, of the same measurement; 4 lose little more.
    /// 1 to 1,000,000.
    pub cells: usize,
    /// Whether a search that is not sure of its candidates scans the codes of all cells. Default: true.
    pub widen: bool,
}

impl Default for RoutingOptions {
    fn default() -> RoutingOptions {
        RoutingOptions {
            whole_rows: WHOLE_ROWS_MAX,
            lexical_rows: 400,
            code_rows: 500,
            cells: 8,
            widen: true,
        }
    }
}

impl RoutingOptions {
    /// # Errors
    /// `Invalid` for a number outside its range.
    pub fn check(&self) -> Result<()> {
        let bounds = [
            ("lexical_rows", self.lexical_rows, 10_000),
            ("code_rows", self.code_rows, 10_000),
            ("cells", self.cells, 1_000_000),
        ];
        for (name, value, most) in bounds {
            if !(1..=most).contains(&value) {
                return Err(Error::invalid(format!("{name} is {value}, not within 1 to {most}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_range_are_refused() {
        assert!(RoutingOptions::default().check().is_ok());
        let broken: [fn(&mut RoutingOptions); 4] = [
            |o| o.lexical_rows = 0,
            |o| o.code_rows = 10_001,
            |o| o.cells = 0,
            |o| o.cells = 1_000_001,
        ];
        for damage in broken {
            let mut options = RoutingOptions::default();
            damage(&mut options);
            assert!(options.check().is_err());
        }
    }
}
