//! `loomdb audit`: what choosing candidates loses on a user's own memory.
//!
//! Invariant: every figure compares with the memory itself with every turn scored; nobody has to know the right answers.

mod questions;

use loomdb::{Db, Error, Memory, Result, RoutingOptions};
use serde_json::{Map, Value, json};

use self::questions::Question;
use crate::args::Audit;
use crate::contrast::{self, Answer, Contrast, DEPTHS, Tally};
use crate::database;
use crate::failure::Failure;
use crate::output::{self, Output};

/// Lengths of the lexical list that a sweep tries.
const SWEEP_LISTS: [usize; 4] = [50, 100, 200, 400];
/// Numbers of cells that it tries.
const SWEEP_CELLS: [usize; 5] = [1, 2, 4, 8, 16];
/// Mean overlap at 10 below which a change is recommended: the bound that `loomdb eval routing` is held to.
const OVERLAP_GOOD: f64 = 0.98;
/// How many times as long the lists are that are tried where too much is lost. A stated guess: a remedy that costs more is
/// none.
const LONGER_TIMES: usize = 4;
/// Their length, at most: what [`RoutingOptions`] allows.
const LIST_ROWS_MAX: usize = 10_000;

/// A user with what is asked of it, and the answers with every turn scored.
struct Audited {
    memory: Memory,
    rows: u64,
    questions: Vec<Question>,
    exhaustive: Vec<Answer>,
}

/// `loomdb audit`.
pub fn audit(arguments: &Audit, output: &mut Output) -> std::result::Result<(), Failure> {
    let db = database::open_to_read(&arguments.database)?;
    let routing = arguments.routing.options();
    let asked = arguments.queries.as_deref().map(questions::read).transpose()?;
    let (mut reports, mut text) = (Vec::new(), String::new());
    for (name, rows) in users(&db, arguments, routing.whole_rows)? {
        let memory = db.user(&name[..]);
        let questions = match &asked {
            Some(texts) => questions::asked(&memory, texts)?,
            None => questions::sampled(&memory, arguments.sample, arguments.seed)?,
        };
        let mut report = output::user(&name);
        report.insert("rows".into(), rows.into());
        report.insert("queries".into(), questions.len().into());
        let shown = output::name(&String::from_utf8_lossy(&name));
        text.push_str(&format!("{shown}: {} questions to {rows} turns\n", questions.len()));
        if questions.is_empty() {
            let why = "No turn has words enough to make a question of: give some with --queries.";
            report.insert("recommendation".into(), why.into());
            text.push_str(&format!("{why}\n\n"));
        } else {
            let audited = Audited::new(memory, rows, questions)?;
            let tally = audited.tally(routing)?;
            let longer = match is_good(&tally) {
                true => None,
                false => Some(audited.tally(longer(routing))?),
            };
            let recommendation = recommendation(&tally, longer.as_ref(), rows);
            report.extend(json_of(&tally));
            report.insert("recommendation".into(), recommendation.as_str().into());
            text.push_str(&format!("\n{}\n{recommendation}\n\n", table(&tally)));
            if arguments.sweep {
                let sweep = audited.sweep(routing)?;
                text.push_str(&format!("{}\n", sweep_table(&sweep)));
                report.insert("sweep".into(), sweep.into());
            }
        }
        reports.push(Value::Object(report));
    }
    let mut value = json!({ "whole_rows": routing.whole_rows, "users": reports });
    if reports.is_empty() {
        let of = if arguments.user.is_some() { "The user does not have" } else { "No user has" };
        let why = format!(
            "{of} more than {} turns: every turn is scored, routing is not used, and nothing can be missed. \
             --route-above 0 audits all the same.",
            routing.whole_rows
        );
        text = format!("{why}\n");
        value["recommendation"] = why.into();
    }
    output.answer(value, || text)?;
    Ok(())
}

/// The users with so many turns that candidates are chosen, with their turns.
///
/// # Errors
/// `NotFound` when the user that is named has no turns.
fn users(db: &Db, arguments: &Audit, whole_rows: u32) -> Result<Vec<(Vec<u8>, u64)>> {
    let names = match &arguments.user {
        Some(user) => vec![user.as_encoded_bytes().to_vec()],
        None => db.users()?,
    };
    let mut large = Vec::new();
    for name in names {
        let rows = db.user(&name[..]).stats()?.episodes;
        if rows == 0 && arguments.user.is_some() {
            return Err(Error::not_found("the user has no turns"));
        }
        if rows > u64::from(whole_rows) {
            large.push((name, rows));
        }
    }
    Ok(large)
}

impl Audited {
    fn new(memory: Memory, rows: u64, questions: Vec<Question>) -> Result<Audited> {
        // What a handle keeps of a memory is made by the first search, whose time is not that of a search.
        memory.search(questions[0].query.clone())?;
        let answer =
            |question: &Question| Answer::exhaustive(&memory, &question.query, false, question.own);
        let exhaustive = questions.iter().map(answer).collect::<Result<_>>()?;
        Ok(Audited { memory, rows, questions, exhaustive })
    }

    /// All questions, routed by `routing`.
    fn tally(&self, routing: RoutingOptions) -> Result<Tally> {
        let mut tally = Tally::default();
        for (question, exhaustive) in self.questions.iter().zip(&self.exhaustive) {
            let routed = Answer::routed(&self.memory, &question.query, routing, question.own)?;
            tally.add(Contrast { routed: &routed, exhaustive }, self.rows);
        }
        Ok(tally)
    }

    /// Every length of the lexical list with every number of cells.
    fn sweep(&self, routing: RoutingOptions) -> Result<Vec<Value>> {
        let mut lines = Vec::with_capacity(SWEEP_LISTS.len() * SWEEP_CELLS.len());
        for lexical_rows in SWEEP_LISTS {
            for cells in SWEEP_CELLS {
                let tally = self.tally(RoutingOptions { lexical_rows, cells, ..routing })?;
                let lost = |at: usize| 1.0 - tally.recall[at].mean();
                lines.push(json!({
                    "lexical_rows": lexical_rows,
                    "cells": cells,
                    "overlap@10": tally.overlap[0].mean(),
                    "loss@10": lost(0),
                    "loss@50": lost(2),
                    "candidate_share_p50": tally.candidate_share.at(0.5),
                    "bits_share_p50": tally.bits_share.at(0.5),
                    "routed_us_p50": tally.routed_micros.at(0.5),
                }));
            }
        }
        Ok(lines)
    }
}

fn json_of(tally: &Tally) -> Map<String, Value> {
    let mut map = Map::new();
    for (at, depth) in DEPTHS.into_iter().enumerate() {
        let (not_a_candidate, ranked_out) = tally.misses[at].shares();
        for (name, share) in [
            ("recall", tally.recall[at].mean()),
            ("overlap", tally.overlap[at].mean()),
            ("not_a_candidate", not_a_candidate),
            ("ranked_out", ranked_out),
        ] {
            map.insert(format!("{name}@{depth}"), share.into());
        }
    }
    for (name, share) in [
        ("candidate_share_p50", tally.candidate_share.at(0.5)),
        ("candidate_share_p95", tally.candidate_share.at(0.95)),
        ("bits_share_p50", tally.bits_share.at(0.5)),
        ("bits_share_p95", tally.bits_share.at(0.95)),
    ] {
        map.insert(name.to_owned(), share.into());
    }
    map.insert("latency_us".to_owned(), tally.latency_json());
    map
}

fn table(tally: &Tally) -> String {
    let mut lines = contrast::HEAD.to_owned();
    let mut row = |name: &str, figure: &dyn Fn(usize) -> f64| {
        lines.push_str(&contrast::line(name, [0, 1, 2].map(figure)));
    };
    row("recall", &|at| tally.recall[at].mean());
    row("overlap", &|at| tally.overlap[at].mean());
    row("not a candidate", &|at| tally.misses[at].shares().0);
    row("ranked out", &|at| tally.misses[at].shares().1);
    format!("{lines}\n{}", tally.costs())
}

/// The same with more of everything that is looked at.
fn longer(routing: RoutingOptions) -> RoutingOptions {
    let times = |count: usize| count.saturating_mul(LONGER_TIMES).min(LIST_ROWS_MAX);
    RoutingOptions {
        lexical_rows: times(routing.lexical_rows),
        code_rows: times(routing.code_rows),
        cells: times(routing.cells),
        ..routing
    }
}

/// What to do, in words. `longer`: the same with longer lists, where that was tried.
fn recommendation(tally: &Tally, longer: Option<&Tally>, rows: u64) -> String {
    let per_cent = |share: f64| format!("{:.2} %", 100.0 * share);
    let lost = |tally: &Tally, at: usize| {
        let (not_a_candidate, ranked_out) = tally.misses[at].shares();
        not_a_candidate + ranked_out
    };
    let loss = lost(tally, 0);
    if tally.misses[0].is_none() {
        let deeper = match tally.misses[2].is_none() {
            true => "and nothing at 50".to_owned(),
            false => format!("and {} at 50", per_cent(lost(tally, 2))),
        };
        return format!("Nothing is lost at 10, {deeper}: keep these options.");
    }
    if is_good(tally) {
        return format!("{} is lost at 10, which is little: keep these options.", per_cent(loss));
    }
    let remedy = match longer.map(|longer| lost(longer, 0)) {
        Some(left) if left <= loss / 2.0 => format!(
            "with lexical_rows, code_rows and cells {LONGER_TIMES} times as large only {}: raise them, --sweep shows \
             which",
            per_cent(left)
        ),
        _ => "and longer lists do not bring it back, since it is left out before an exact score: ask for more answers \
              than are needed (top_k)"
            .to_owned(),
    };
    format!(
        "{} is lost at 10, {remedy}. Or raise whole_rows above {rows}: with every turn scored a search takes {:.1} ms \
         at the median.",
        per_cent(loss),
        tally.exhaustive_micros.at(0.5) / 1000.0
    )
}

fn is_good(tally: &Tally) -> bool {
    tally.overlap[0].mean() >= OVERLAP_GOOD
}

fn sweep_table(sweep: &[Value]) -> String {
    let mut lines =
        String::from("lexical  cells  overlap@10  loss@10  loss@50  vectors %  codes %  p50 us\n");
    for line in sweep {
        let number = |name: &str| line[name].as_f64().unwrap_or(0.0);
        let share = |name: &str| 100.0 * number(name);
        lines.push_str(&format!(
            "{:>7}{:>7}{:>12.2}{:>9.2}{:>9.2}{:>11.2}{:>9.2}{:>8.0}\n",
            number("lexical_rows"),
            number("cells"),
            share("overlap@10"),
            share("loss@10"),
            share("loss@50"),
            share("candidate_share_p50"),
            share("bits_share_p50"),
            number("routed_us_p50"),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use loomdb::{EpisodeId, Explain};

    use super::*;

    /// The tally of one question of whose first ten routing finds `found`.
    fn tally(found: u64) -> Tally {
        let answer = |ids: std::ops::Range<u64>| Answer {
            ids: ids.map(EpisodeId::new).collect(),
            explain: Explain::default(),
            micros: 1500.0,
        };
        let (mut routed, exhaustive) = (answer(1..found + 1), answer(1..11));
        routed.explain.candidates = Some(routed.ids.clone());
        let mut tally = Tally::default();
        tally.add(Contrast { routed: &routed, exhaustive: &exhaustive }, 30_000);
        tally
    }

    #[test]
    fn what_is_recommended_follows_from_what_is_lost_and_what_helps() {
        let said = |found, longer: Option<u64>| {
            recommendation(&tally(found), longer.map(tally).as_ref(), 30_000)
        };
        assert!(said(10, None).starts_with("Nothing is lost at 10, and nothing at 50"));
        let helped = said(5, Some(9));
        assert!(helped.starts_with("50.00 % is lost at 10") && helped.contains("only 10.00 %"));
        assert!(helped.contains("lexical_rows") && !helped.contains("top_k"), "{helped}");
        assert!(helped.contains("above 30000") && helped.contains("1.5 ms"), "{helped}");
        let helpless = said(5, Some(6));
        assert!(helpless.contains("top_k") && !helpless.contains("lexical_rows"), "{helpless}");
    }

    #[test]
    fn longer_lists_are_allowed_ones() {
        let routing = RoutingOptions { lexical_rows: 9_000, cells: 3, ..RoutingOptions::default() };
        let RoutingOptions { lexical_rows, cells, .. } = longer(routing);
        assert_eq!((lexical_rows, cells), (10_000, 12));
    }
}
