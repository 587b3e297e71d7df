//! `loomdb eval`: measures this build on conversations with questions whose answers are known.
//!
//! Invariant: what is measured is the public API on rows stored as `loomdb import` stores them, in a database on disk
//! that goes when the run ends; the yardsticks beside it see the same rows.

mod data;
mod metrics;
mod plain;
mod report;
mod routing;
mod run;

use crate::args::{Eval, Evaluation};
use crate::failure::Failure;
use crate::output::Output;

/// `loomdb eval`.
pub fn eval(arguments: &Eval, output: &mut Output) -> Result<(), Failure> {
    match &arguments.what {
        Evaluation::Retrieval(retrieval) => {
            let set = data::read(&retrieval.data, retrieval.captions)?;
            let report = run::retrieval(&set, retrieval.compare)?;
            output.answer(report.json(), || report.table())?;
            Ok(())
        }
        Evaluation::Routing(arguments) => {
            let report = routing::routing(arguments)?;
            output.answer(report.json(), || report.table())?;
            Ok(())
        }
    }
}
