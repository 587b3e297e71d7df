//! `loomdb audit`: what choosing candidates loses on a user's own memory.

use std::fs;

use loomdb::{Db, EpisodeId, Error, Memory, Query, Result, RoutingOptions, TimelineOptions};
use serde_json::{Value, json};

use crate::args::Audit;
use crate::contrast::{Contrast, DEPTHS, Numbers};
use crate::database;
use crate::failure::Failure;
use crate::output::{self, Output};

/// Lengths of the lexical list that a sweep tries.
const SWEEP_LISTS: [usize; 4] = [50, 100, 200, 400];
/// Numbers of cells that it tries.
const SWEEP_CELLS: [usize; 5] = [1, 2, 4, 8, 16];
/// Words that a question made of a turn has, at least.
const WORDS_MIN: usize = 3;
/// Share of the exhaustive first ten below which more candidates are recommended.
const OVERLAP_GOOD: f64 = 0.98;

/// A question, and the turn that it was made of.
struct Question {
    text: String,
    own: Option<EpisodeId>,
}

/// What a way of routing came to.
#[derive(Default)]
struct Outcome {
    overlap: [Numbers; 3],
    /// Missed: no candidate, ranked out; by depth.
    missed: [(usize, usize); 3],
    wanted: [usize; 3],
    candidates: Numbers,
    bits: Numbers,
    routed: Numbers,
    exhaustive: Numbers,
}

/// `loomdb audit`.
pub fn audit(arguments: &Audit, output: &mut Output) -> std::result::Result<(), Failure> {
    let db = database::open_to_read(&arguments.database)?;
    let routing = arguments.routing.options();
    let mut reports = Vec::new();
    let mut text = String::new();
    for name in audited(&db, arguments, routing.whole_rows)? {
        let memory = db.user(&name[..]);
        let rows = memory.stats()?.episodes;
        let questions = questions(&memory, arguments)?;
        if questions.is_empty() {
            return Err(Error::invalid("there is no question to ask").into());
        }
        let outcome = Outcome::of(&memory, &questions, routing, rows)?;
        let shown = output::plain(&String::from_utf8_lossy(&name));
        text.push_str(&outcome.table(&shown, rows, questions.len()));
        let mut report = outcome.json(rows, questions.len());
        report.extend(output::user(&name));
        if arguments.sweep {
            let sweep = sweep(&memory, &questions, routing, rows)?;
            text.push_str(&sweep_table(&sweep));
            report.insert("sweep".into(), sweep.into());
        }
        reports.push(Value::Object(report));
    }
    if reports.is_empty() {
        text = format!(
            "no user has more than {} turns: every turn is scored, and nothing can be missed\n",
            routing.whole_rows
        );
    }
    output.answer(json!({ "whole_rows": routing.whole_rows, "users": reports }), || text)?;
    Ok(())
}

/// The users to look at.
fn audited(db: &Db, arguments: &Audit, whole_rows: u32) -> Result<Vec<Vec<u8>>> {
    if let Some(user) = &arguments.user {
        return Ok(vec![user.as_encoded_bytes().to_vec()]);
    }
    let mut large = Vec::new();
    for user in db.users()? {
        if db.user(&user[..]).stats()?.episodes > u64::from(whole_rows) {
            large.push(user.to_vec());
        }
    }
    Ok(large)
}

/// The questions to ask: those of a file, or made of turns that lie evenly over the user's time.
fn questions(memory: &Memory, arguments: &Audit) -> Result<Vec<Question>> {
    if let Some(path) = &arguments.queries {
        let text = fs::read_to_string(path)
            .map_err(|cause| Error::io("read questions", cause).in_file(path))?;
        let asked = text.lines().filter(|line| !line.trim().is_empty());
        return asked
            .zip(1..)
            .map(|(line, number)| {
                let text = match serde_json::from_str::<Value>(line) {
                    Ok(Value::Object(map)) => match map.get("question") {
                        Some(Value::String(question)) => question.clone(),
                        _ => {
                            let message = format!("line {number}: no \"question\"");
                            return Err(Error::invalid(message).in_file(path));
                        }
                    },
                    _ => line.trim().to_owned(),
                };
                Ok(Question { text, own: None })
            })
            .collect();
    }
    let total = memory.stats()?.episodes as usize;
    let step = (total / arguments.sample.max(1)).max(1);
    let mut questions = Vec::new();
    let (mut options, mut seen) = (TimelineOptions::default().limit(1000), 0_usize);
    loop {
        let page = memory.timeline(options.clone())?;
        for episode in &page.episodes {
            seen += 1;
            if seen % step != 0 || questions.len() == arguments.sample {
                continue;
            }
            // Every third word with a meaning is left out, so that a question is not the turn itself.
            let words = episode.text.split_whitespace();
            let words: Vec<&str> = words.filter(|word| !loomdb::terms(word).is_empty()).collect();
            let kept: Vec<&str> = words
                .iter()
                .enumerate()
                .filter(|(at, _)| at % 3 != 2)
                .map(|(_, word)| *word)
                .collect();
            if kept.len() >= WORDS_MIN {
                questions.push(Question { text: kept.join(" "), own: Some(episode.id) });
            }
        }
        match page.next {
            Some(next) if questions.len() < arguments.sample => options = options.cursor(next),
            _ => return Ok(questions),
        }
    }
}

impl Outcome {
    fn of(
        memory: &Memory,
        questions: &[Question],
        routing: RoutingOptions,
        rows: u64,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for question in questions {
            let query = Query::text(question.text.as_str());
            let found = Contrast::ask(memory, &query, routing, false, question.own)?;
            for (at, depth) in DEPTHS.into_iter().enumerate() {
                outcome.overlap[at].push(found.overlap(depth));
                let (unchosen, ranked_out) = found.misses(depth);
                outcome.missed[at].0 += unchosen;
                outcome.missed[at].1 += ranked_out;
                outcome.wanted[at] += found.exhaustive.len().min(depth);
            }
            let share = |count: u64| count as f64 / rows.max(1) as f64;
            outcome.candidates.push(share(found.explain.rows_exact));
            outcome.bits.push(share(found.explain.rows_by_code));
            outcome.routed.push(found.routed_micros);
            outcome.exhaustive.push(found.exhaustive_micros);
        }
        Ok(outcome)
    }

    /// Shares of the exhaustive answers that are missed: no candidate, ranked out.
    fn lost(&self, at: usize) -> (f64, f64) {
        let wanted = self.wanted[at].max(1) as f64;
        (self.missed[at].0 as f64 / wanted, self.missed[at].1 as f64 / wanted)
    }

    fn recommendation(&self) -> &'static str {
        let (unchosen, ranked_out) = self.lost(0);
        if unchosen + ranked_out == 0.0 {
            "Nothing of the first 10 is lost. Keep the defaults."
        } else if self.overlap[0].mean() >= OVERLAP_GOOD {
            "Hardly anything of the first 10 is lost. Keep the defaults."
        } else if unchosen >= ranked_out {
            "Turns are lost that were no candidates: raise lexical_rows or cells; --sweep shows what helps."
        } else {
            "Turns are lost although they were candidates: ask for more answers than are needed, or raise whole_rows."
        }
    }

    fn json(&self, rows: u64, queries: usize) -> serde_json::Map<String, Value> {
        let mut depths = serde_json::Map::new();
        for (at, depth) in DEPTHS.into_iter().enumerate() {
            let (unchosen, ranked_out) = self.lost(at);
            depths.insert(
                format!("at_{depth}"),
                json!({
                    "overlap": self.overlap[at].mean(),
                    "lost_not_a_candidate": unchosen,
                    "lost_ranked_out": ranked_out,
                }),
            );
        }
        let report = json!({
            "rows": rows,
            "queries": queries,
            "candidate_share_p50": self.candidates.at(0.5),
            "candidate_share_p95": self.candidates.at(0.95),
            "bits_share_p50": self.bits.at(0.5),
            "latency_us": { "routed": self.routed.json(), "exhaustive": self.exhaustive.json() },
            "recommendation": self.recommendation(),
        });
        let Value::Object(mut report) = report else { unreachable!("built as an object") };
        report.extend(depths);
        report
    }

    fn table(&self, user: &str, rows: u64, queries: usize) -> String {
        let mut lines = format!("{user}: {queries} questions to {rows} turns\n\n");
        lines.push_str("per cent                at 10    at 20    at 50\n");
        let mut row = |name: &str, figure: &dyn Fn(usize) -> f64| {
            let figures = [0, 1, 2].map(|at| format!("{:>9.2}", 100.0 * figure(at))).concat();
            lines.push_str(&format!("{name:<20}{figures}\n"));
        };
        row("found", &|at| self.overlap[at].mean());
        row("not a candidate", &|at| self.lost(at).0);
        row("ranked out", &|at| self.lost(at).1);
        lines.push_str(&format!(
            "\nfull vectors read: p50 {:.2} %, p95 {:.2} %; codes read: p50 {:.2} %\n\
             routed p50 {:.0} us, p99 {:.0} us; every turn scored p50 {:.0} us, p99 {:.0} us\n{}\n",
            100.0 * self.candidates.at(0.5),
            100.0 * self.candidates.at(0.95),
            100.0 * self.bits.at(0.5),
            self.routed.at(0.5),
            self.routed.at(0.99),
            self.exhaustive.at(0.5),
            self.exhaustive.at(0.99),
            self.recommendation(),
        ));
        lines
    }
}

/// Every length of the lexical list with every number of cells.
fn sweep(
    memory: &Memory,
    questions: &[Question],
    routing: RoutingOptions,
    rows: u64,
) -> Result<Vec<Value>> {
    let mut lines = Vec::new();
    for lexical_rows in SWEEP_LISTS {
        for cells in SWEEP_CELLS {
            let routing = RoutingOptions { lexical_rows, cells, ..routing };
            let outcome = Outcome::of(memory, questions, routing, rows)?;
            lines.push(json!({
                "lexical_rows": lexical_rows,
                "cells": cells,
                "overlap@10": outcome.overlap[0].mean(),
                "overlap@50": outcome.overlap[2].mean(),
                "candidate_share_p50": outcome.candidates.at(0.5),
                "bits_share_p50": outcome.bits.at(0.5),
                "routed_us_p50": outcome.routed.at(0.5),
            }));
        }
    }
    Ok(lines)
}

fn sweep_table(sweep: &[Value]) -> String {
    let mut lines = String::from("\n list  cells  found@10  found@50  vectors %  codes %     us\n");
    for line in sweep {
        let number = |name: &str| line[name].as_f64().unwrap_or(0.0);
        lines.push_str(&format!(
            "{:>5}{:>7}{:>10.2}{:>10.2}{:>11.2}{:>9.2}{:>7.0}\n",
            number("lexical_rows"),
            number("cells"),
            100.0 * number("overlap@10"),
            100.0 * number("overlap@50"),
            100.0 * number("candidate_share_p50"),
            100.0 * number("bits_share_p50"),
            number("routed_us_p50"),
        ));
    }
    lines
}
