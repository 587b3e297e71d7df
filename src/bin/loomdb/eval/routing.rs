//! What choosing candidates loses on questions with known evidence: each is answered twice, routed and with every turn
//! scored.

use std::collections::{BTreeMap, HashSet};

use loomdb::{
    Db, EpisodeId, Maintenance, Memory, OpenOptions, Query, Result, SearchMode, Turn, ZonedTime,
};
use serde_json::{Value, json};

use super::data::{self, Conversation, Question, Set};
use crate::args::Routing;
use crate::contrast::{self, Answer, Contrast, DEPTHS, Tally};
use crate::import::item::Item;
use crate::temporary::Temporary;

/// Turns stored at once.
const BATCH_TURNS: usize = 4096;
/// The user whose memory all conversations are with --pool.
const POOL: &str = "pool";
/// Stands before keys and sessions of distractors, so that none is that of a conversation.
const DISTRACTOR: &str = "distractor/";

/// What was found. Arrays are by [`DEPTHS`].
#[derive(Default)]
pub struct Report {
    /// Turns of the largest memory.
    rows: u64,
    queries: usize,
    /// Questions without a word left.
    unasked: usize,
    /// Questions with all gold turns among the first.
    exhaustive_all: [usize; 3],
    routed_all: [usize; 3],
    tally: Tally,
    by_vectors: bool,
}

/// `loomdb eval routing`.
///
/// # Errors
/// Those of the database and of the reader of data sets; `Io` when there is no room for the database in the directory
/// for temporary files.
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
    let mut report = Report { by_vectors: arguments.vectors, ..Report::default() };
    for (conversation, ids) in set.conversations.iter().zip(&ids) {
        let memory = db.user(user_of(conversation, arguments));
        let rows = memory.stats()?.episodes;
        report.rows = report.rows.max(rows);
        let mut is_warm = false;
        for question in &conversation.questions {
            let Some(query) = query(conversation, question, arguments) else {
                report.unasked += 1;
                continue;
            };
            if !is_warm {
                // What a handle keeps of a memory is made by the first search, whose time is not that of a search.
                memory.search(query.clone())?;
                is_warm = true;
            }
            let gold = question.gold.iter().map(|place| ids[*place]).collect();
            report.ask(&memory, &query, &gold, rows, arguments)?;
        }
    }
    Ok(report)
}

fn user_of<'c>(conversation: &'c Conversation, arguments: &Routing) -> &'c str {
    if arguments.pool { POOL } else { &conversation.id }
}

/// Stores the conversations, fills each memory with distractors, and returns the ids of each conversation's turns. Their
/// keys and sessions begin with the conversation's name, as `loomdb import` has them.
fn store(
    db: &Db,
    set: &Set,
    distractors: &[Item],
    arguments: &Routing,
) -> Result<Vec<Vec<EpisodeId>>> {
    let add = |user: &str, items: &[Item], prefix: &str| -> Result<Vec<EpisodeId>> {
        let mut ids = Vec::with_capacity(items.len());
        for batch in items.chunks(BATCH_TURNS) {
            let turn = |item: &Item| {
                let mut item = item.clone();
                item.key.insert_str(0, prefix);
                item.session = item.session.map(|session| format!("{prefix}{session}"));
                item.into_turn()
            };
            let turns: Vec<Turn> = batch.iter().map(turn).collect();
            ids.extend(db.user(user).add_many(turns)?.iter().map(|added| added.id));
        }
        Ok(ids)
    };
    let mut ids = Vec::new();
    // Ordered, so that every run stores the same rows in the same places.
    let mut stored: BTreeMap<&str, usize> = BTreeMap::new();
    for conversation in &set.conversations {
        let user = user_of(conversation, arguments);
        ids.push(add(user, &conversation.turns, "")?);
        *stored.entry(user).or_default() += conversation.turns.len();
    }
    for (user, rows) in stored {
        let room = arguments.rows.saturating_sub(rows).min(distractors.len());
        add(user, &distractors[..room], DISTRACTOR)?;
    }
    db.checkpoint()?;
    db.merge()?;
    Ok(ids)
}

/// A question as it is asked; none when it has no word left.
fn query(conversation: &Conversation, question: &Question, arguments: &Routing) -> Option<Query> {
    let mut text = question.text.clone();
    if arguments.unsaid {
        let gold = question.gold.iter().map(|place| &conversation.turns[*place]);
        text = unsaid(&text, gold)?;
    }
    let query = Query::text(text).query_time(ZonedTime::utc(conversation.asked_at));
    Some(if arguments.vectors { query.mode(SearchMode::Vector) } else { query })
}

impl Report {
    fn ask(
        &mut self,
        memory: &Memory,
        query: &Query,
        gold: &HashSet<EpisodeId>,
        rows: u64,
        arguments: &Routing,
    ) -> Result<()> {
        let routed = Answer::routed(memory, query, arguments.routing.options(), None)?;
        let exhaustive = Answer::exhaustive(memory, query, arguments.vectors, None)?;
        let has_all = |answer: &Answer, depth: usize| {
            answer.ids.iter().take(depth).filter(|id| gold.contains(id)).count() == gold.len()
        };
        self.queries += 1;
        for (at, depth) in DEPTHS.into_iter().enumerate() {
            self.exhaustive_all[at] += usize::from(has_all(&exhaustive, depth));
            self.routed_all[at] += usize::from(has_all(&routed, depth));
        }
        self.tally.add(Contrast { routed: &routed, exhaustive: &exhaustive }, rows);
        Ok(())
    }

    fn share(&self, count: usize) -> f64 {
        count as f64 / self.queries.max(1) as f64
    }

    /// Positive when routing loses.
    fn loss(&self, at: usize) -> f64 {
        (self.exhaustive_all[at] as f64 - self.routed_all[at] as f64) / self.queries.max(1) as f64
    }

    /// As one JSON object.
    pub fn json(&self) -> Value {
        let tally = &self.tally;
        let (not_a_candidate, ranked_out) = tally.misses[0].shares();
        // A search by vectors alone lists no candidates.
        let known = |share: f64| if self.by_vectors { Value::Null } else { json!(share) };
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
            "overlap@10": tally.overlap[0].mean(),
            "overlap@20": tally.overlap[1].mean(),
            "overlap@50": tally.overlap[2].mean(),
            "top20_found": tally.overlap[1].mean(),
            "missed@10": {
                "not_a_candidate": known(not_a_candidate),
                "ranked_out": known(ranked_out),
            },
            "candidate_share_p50": tally.candidate_share.at(0.5),
            "candidate_share_p95": tally.candidate_share.at(0.95),
            "bits_share_p50": tally.bits_share.at(0.5),
            "widened_share": self.share(tally.widened),
            "latency_us": tally.latency_json(),
        })
    }

    /// For people.
    pub fn table(&self) -> String {
        let mut lines =
            format!("{} questions to memories of up to {} turns\n", self.queries, self.rows);
        if self.unasked > 0 {
            lines.push_str(&format!("{} questions had no word left\n", self.unasked));
        }
        lines.push('\n');
        lines.push_str(contrast::HEAD);
        let tally = &self.tally;
        let mut row = |name: &str, figure: &dyn Fn(usize) -> f64| {
            lines.push_str(&contrast::line(name, [0, 1, 2].map(figure)));
        };
        row("all, exhaustive", &|at| self.share(self.exhaustive_all[at]));
        row("all, lost", &|at| self.loss(at));
        row("overlap", &|at| tally.overlap[at].mean());
        if !self.by_vectors {
            row("not a candidate", &|at| tally.misses[at].shares().0);
            row("ranked out", &|at| tally.misses[at].shares().1);
        }
        lines.push_str(&format!(
            "\n{}looked into further cells: {:.2} % of the questions\n",
            tally.costs(),
            100.0 * self.share(tally.widened)
        ));
        lines
    }
}

/// `question` without the words that a gold turn or the name of its speaker holds: those of which it holds a term, and of
/// those without a term, such as stop words, the same word. None when no term is left.
fn unsaid<'i>(question: &str, gold: impl Iterator<Item = &'i Item>) -> Option<String> {
    let (mut terms, mut words) = (HashSet::new(), HashSet::new());
    for turn in gold {
        for said in [Some(&turn.text), turn.speaker.as_ref()].into_iter().flatten() {
            terms.extend(loomdb::terms(said));
            words.extend(said.split_whitespace().map(bare));
        }
    }
    let is_unsaid = |word: &&str| match loomdb::terms(word) {
        of if of.is_empty() => !words.contains(&bare(word)),
        of => !of.iter().any(|term| terms.contains(term)),
    };
    let left: Vec<&str> = question.split_whitespace().filter(is_unsaid).collect();
    let left = left.join(" ");
    (!loomdb::terms(&left).is_empty()).then_some(left)
}

/// A word without case and punctuation around it.
fn bare(word: &str) -> String {
    word.trim_matches(|character: char| !character.is_alphanumeric()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(speaker: &str, text: &str) -> Item {
        Item {
            user: None,
            key: "k".into(),
            session: None,
            speaker: Some(speaker.into()),
            time: ZonedTime::parse("2025-01-01T00:00:00Z").unwrap(),
            ordinal: None,
            text: text.into(),
            caption: None,
        }
    }

    #[test]
    fn a_question_loses_the_words_that_its_gold_turns_hold() {
        let gold = [item("Ana", "We sailed to the harbours."), item("Ben", "In March!")];
        let left = |question| unsaid(question, gold.iter());
        // In every form of the word; the name of who speaks is part of what is searched.
        assert_eq!(left("When did Ana sail to the old harbour?").unwrap(), "When did old");
        assert_eq!(left("Where is the boat in march?").unwrap(), "Where is boat");
        assert_eq!(left("Did Ben sail in March?"), None);
    }

    #[test]
    fn a_routing_that_loses_shows() {
        let mut report = Report { queries: 4, ..Report::default() };
        (report.exhaustive_all, report.routed_all) = ([3, 3, 4], [2, 3, 4]);
        let json = report.json();
        assert_eq!((&json["loss_all@10"], &json["loss_all@20"]), (&json!(0.25), &json!(0.0)));
        // One that finds more by chance is no loss.
        report.routed_all = [4, 3, 4];
        assert_eq!(report.json()["loss_all@10"], json!(-0.25));
    }
}
