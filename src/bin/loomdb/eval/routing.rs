//! What choosing candidates loses: every question twice, routed and with every turn scored.

use std::collections::{HashMap, HashSet};

use loomdb::{Db, EpisodeId, Maintenance, OpenOptions, Query, Result, SearchMode, Turn, ZonedTime};
use serde_json::{Value, json};

use super::data::{self, Conversation, Question, Set};
use crate::args::Routing;
use crate::contrast::{Contrast, DEPTHS, Numbers};
use crate::import::item::Item;
use crate::output;
use crate::temporary::Temporary;

/// Turns stored at once.
const BATCH_TURNS: usize = 4096;
/// The user whose memory all conversations are with --pool.
const POOL: &str = "pool";

/// What was found.
#[derive(Default)]
pub struct Report {
    rows: usize,
    queries: usize,
    /// Questions without a word left.
    unasked: usize,
    /// Questions with all gold turns among the first, by depth.
    exhaustive_all: [usize; 3],
    routed_all: [usize; 3],
    overlap: [Numbers; 3],
    /// Of the exhaustive first: no candidate, and a candidate that was ranked out.
    missed: [(usize, usize); 3],
    wanted: [usize; 3],
    candidate_share: Numbers,
    bits_share: Numbers,
    widened: usize,
    routed_micros: Numbers,
    exhaustive_micros: Numbers,
}

/// `loomdb eval routing`.
///
/// # Errors
/// Those of the database and of the reader of data sets.
pub fn routing(arguments: &Routing) -> Result<Report> {
    let set = data::read(&arguments.data, arguments.captions)?;
    let distractors = match &arguments.distractors {
        Some(path) => data::turns_of(path, arguments.rows)?,
        None => Vec::new(),
    };
    let temporary = Temporary::new("eval")?;
    let options = OpenOptions::new().maintenance(Maintenance::Inline);
    let db = Db::open_with(temporary.path().join("eval.loom"), options)?;
    let ids = store(&db, &set, &distractors, arguments)?;
    let mut report = Report::default();
    for (conversation, ids) in set.conversations.iter().zip(&ids) {
        let memory = db.user(user_of(conversation, arguments));
        report.rows = report.rows.max(memory.stats()?.episodes as usize);
        for question in &conversation.questions {
            report.ask(&memory, conversation, question, ids, arguments)?;
        }
    }
    Ok(report)
}

fn user_of<'c>(conversation: &'c Conversation, arguments: &Routing) -> &'c str {
    if arguments.pool { POOL } else { &conversation.id }
}

/// Stores the conversations, fills each memory with distractors, and returns the ids of each conversation's turns. Keys and sessions begin with the conversation's name,
/// as `loomdb import` has them.
fn store(
    db: &Db,
    set: &Set,
    distractors: &[Item],
    arguments: &Routing,
) -> Result<Vec<Vec<EpisodeId>>> {
    let mut stored: HashMap<&str, usize> = HashMap::new();
    let add = |user: &str, items: &[Item]| -> Result<Vec<EpisodeId>> {
        let mut ids = Vec::with_capacity(items.len());
        for batch in items.chunks(BATCH_TURNS) {
            let turns: Vec<Turn> = batch.iter().cloned().map(Item::into_turn).collect();
            ids.extend(db.user(user).add_many(turns)?.iter().map(|added| added.id));
        }
        Ok(ids)
    };
    let mut ids = Vec::new();
    for conversation in &set.conversations {
        let user = user_of(conversation, arguments);
        ids.push(add(user, &conversation.turns)?);
        *stored.entry(user).or_default() += conversation.turns.len();
    }
    for (user, rows) in stored {
        let room = arguments.rows.saturating_sub(rows).min(distractors.len());
        add(user, &distractors[..room])?;
    }
    db.checkpoint()?;
    db.merge()?;
    Ok(ids)
}

impl Report {
    fn ask(
        &mut self,
        memory: &loomdb::Memory,
        conversation: &Conversation,
        question: &Question,
        ids: &[EpisodeId],
        arguments: &Routing,
    ) -> Result<()> {
        let mut text = question.text.clone();
        if arguments.unsaid {
            let gold = question.gold.iter().map(|place| &conversation.turns[*place]);
            text = unsaid(&text, gold);
            if text.is_empty() {
                self.unasked += 1;
                return Ok(());
            }
        }
        let mut query = Query::text(text).query_time(ZonedTime::utc(conversation.asked_at));
        if arguments.vectors {
            query = query.mode(SearchMode::Vector);
        }
        let routing = arguments.routing.options();
        let found = Contrast::ask(memory, &query, routing, arguments.vectors, None)?;
        let gold: HashSet<EpisodeId> = question.gold.iter().map(|place| ids[*place]).collect();
        let has_all = |answer: &[EpisodeId], depth: usize| {
            answer.iter().take(depth).filter(|id| gold.contains(id)).count() == gold.len()
        };
        self.queries += 1;
        for (at, depth) in DEPTHS.into_iter().enumerate() {
            self.exhaustive_all[at] += usize::from(has_all(&found.exhaustive, depth));
            self.routed_all[at] += usize::from(has_all(&found.routed, depth));
            self.overlap[at].push(found.overlap(depth));
            let (unchosen, ranked_out) = found.misses(depth);
            self.missed[at].0 += unchosen;
            self.missed[at].1 += ranked_out;
            self.wanted[at] += found.exhaustive.len().min(depth);
        }
        let rows = self.rows.max(1) as f64;
        self.candidate_share.push(found.explain.rows_exact as f64 / rows);
        self.bits_share.push(found.explain.rows_by_code as f64 / rows);
        self.widened += usize::from(found.explain.cells_widened > 0);
        self.routed_micros.push(found.routed_micros);
        self.exhaustive_micros.push(found.exhaustive_micros);
        Ok(())
    }

    fn share(&self, count: usize) -> f64 {
        count as f64 / self.queries.max(1) as f64
    }

    fn loss(&self, at: usize) -> f64 {
        self.share(self.exhaustive_all[at]) - self.share(self.routed_all[at])
    }

    /// As one JSON object.
    pub fn json(&self) -> Value {
        json!({
            "rows": self.rows,
            "queries": self.queries,
            "unasked": self.unasked,
            "exhaustive": {
                "all@10": self.share(self.exhaustive_all[0]),
                "all@20": self.share(self.exhaustive_all[1]),
                "all@50": self.share(self.exhaustive_all[2]),
            },
            "loss_all@10": self.loss(0),
            "loss_all@20": self.loss(1),
            "loss_all@50": self.loss(2),
            "overlap@10": self.overlap[0].mean(),
            "top20_found": self.overlap[1].mean(),
            "missed@10": {
                "not_a_candidate": self.missed[0].0 as f64 / self.wanted[0].max(1) as f64,
                "ranked_out": self.missed[0].1 as f64 / self.wanted[0].max(1) as f64,
            },
            "candidate_share_p50": self.candidate_share.at(0.5),
            "candidate_share_p95": self.candidate_share.at(0.95),
            "bits_share_p50": self.bits_share.at(0.5),
            "widened_share": self.share(self.widened),
            "latency_us": {
                "routed": self.routed_micros.json(),
                "exhaustive": self.exhaustive_micros.json(),
            },
        })
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut lines =
            format!("{} questions to memories of up to {} turns\n", self.queries, self.rows);
        if self.unasked > 0 {
            lines.push_str(&format!("{} questions had no word left\n", self.unasked));
        }
        lines.push_str("\nper cent            at 10    at 20    at 50\n");
        let mut row = |name: &str, figures: [f64; 3]| {
            let [a, b, c] = figures.map(|figure| 100.0 * figure);
            lines.push_str(&format!("{name:<16}{a:>9.2}{b:>9.2}{c:>9.2}\n"));
        };
        row("all, exhaustive", self.exhaustive_all.map(|count| self.share(count)));
        row("all, lost", [0, 1, 2].map(|at| self.loss(at)));
        row("overlap", [0, 1, 2].map(|at| self.overlap[at].mean()));
        let of_wanted = |count: usize, at: usize| count as f64 / self.wanted[at].max(1) as f64;
        row("no candidate", [0, 1, 2].map(|at| of_wanted(self.missed[at].0, at)));
        row("ranked out", [0, 1, 2].map(|at| of_wanted(self.missed[at].1, at)));
        let per_cent = |share: f64| format!("{:.2} %", 100.0 * share);
        lines.push_str(&format!(
            "\nfull vectors read: half of the questions {} of the turns or less, 95 in 100 {}\n\
             codes read: half of the questions {} or less; {} looked into further cells\n",
            per_cent(self.candidate_share.at(0.5)),
            per_cent(self.candidate_share.at(0.95)),
            per_cent(self.bits_share.at(0.5)),
            per_cent(self.share(self.widened)),
        ));
        for (name, micros) in
            [("routed", &self.routed_micros), ("exhaustive", &self.exhaustive_micros)]
        {
            let (p50, p99) = (micros.at(0.5), micros.at(0.99));
            lines.push_str(&format!("{name}: p50 {p50:.0} us, p99 {p99:.0} us\n"));
        }
        lines
    }
}

/// `question` without the words of which a gold turn, its speaker's name included, holds a term.
fn unsaid<'i>(question: &str, gold: impl Iterator<Item = &'i Item>) -> String {
    let mut said = HashSet::new();
    for turn in gold {
        said.extend(loomdb::terms(&turn.text));
        said.extend(turn.speaker.iter().flat_map(|speaker| loomdb::terms(speaker)));
    }
    let is_unsaid = |word: &&str| {
        let terms = loomdb::terms(word);
        !terms.is_empty() && !terms.iter().any(|term| said.contains(term))
    };
    let words: Vec<&str> = question.split_whitespace().filter(is_unsaid).collect();
    output::plain(&words.join(" "))
}
