//! Search by vector with filters: 100,000 vectors of 384 values of 300 topics, 100 users, two years of bursty sessions.
//!
//! `cargo bench --bench filtered` asks three kinds of question: the whole store as one user, one user of many, and one week
//! of a user. Every kind is asked by a fresh process that does nothing else, and answered a second time by a plain pass over
//! the vectors that pass the same filter, in memory. Prints recall@10 against that pass, the processor's time at the median
//! (of blocks of searches, on one thread), p50 and p99 by the clock, the counters, and the memory of the process beyond
//! mapped files. Nothing is asserted.

mod asking;
#[path = "../common/mod.rs"]
mod common;
mod data;

use std::path::Path;

use loomdb::{Db, Maintenance, Timestamp, Turn};

use asking::Ask;
use common::{Random, Spread};
use data::{Row, Store};

/// Questions of each kind.
const QUESTIONS: usize = 400;
/// Turns added at once.
const BATCH: usize = 1000;
const WEEK_MICROS: i64 = 7 * 24 * 3600 * 1_000_000;
/// The user of the store that has but one.
const EVERYBODY: &str = "everybody";

fn main() {
    if asking::is_child() {
        return asking::child();
    }
    let directory = common::bench_dir("filtered");
    common::print_machine(&directory);
    let store = Store::new();
    println!("data: {}; 1 thread", store.describe());
    let (one, many) = (directory.join("one.loom"), directory.join("many.loom"));
    build(&one, &store, |_| EVERYBODY.to_owned());
    build(&many, &store, |row| row.user_name());
    let questions = directory.join("questions");
    let ask = |what: &str, goal: f64, path: &Path, reach: &dyn Fn(&Row) -> Reach| {
        println!("\n{what}");
        let (asks, plain) = questions_of(what, &store, reach);
        asking::ask(path, &questions, &asks);
        println!("  plain pass over the rows in reach {plain}");
        println!("  goal: {goal} ms of the processor");
    };
    ask("whole store", 0.3, &one, &|_| Reach::default());
    ask("one user of many", 0.15, &many, &|row| Reach { user: Some(row.user), week: None });
    ask("a week of a user", 0.04, &many, &|row| {
        let since = row.time - row.time.rem_euclid(WEEK_MICROS);
        Reach { user: Some(row.user), week: Some(since) }
    });
    common::remove(&directory);
}

fn build(path: &Path, store: &Store, user: impl Fn(&Row) -> String) {
    let mut spread = Spread::default();
    spread.time(|| {
        let options = asking::options().maintenance(Maintenance::Inline);
        let db = Db::open_with(path, options).expect("the database opens");
        for rows in store.rows.chunks(BATCH) {
            // Users in the order of their first row: a batch of each.
            let mut by_user: Vec<(String, Vec<Turn>)> = Vec::new();
            for row in rows {
                let time = Timestamp::from_micros(row.time).expect("within the calendar");
                let turn = Turn::new(row.text())
                    .session(format!("session-{}", row.session))
                    .time(time)
                    .vector(row.vector.as_slice());
                let name = user(row);
                match by_user.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, turns)) => turns.push(turn),
                    None => by_user.push((name, vec![turn])),
                }
            }
            for (name, turns) in by_user {
                db.user(name).add_many(turns).expect("add");
            }
        }
        db.checkpoint().expect("checkpoint");
        db.merge().expect("merge");
    });
    println!("stored {} turns in {:.1} s", store.rows.len(), spread.p50() / 1e6);
}

/// Which rows a question may find.
#[derive(Default)]
struct Reach {
    user: Option<usize>,
    /// The first moment of a week.
    week: Option<i64>,
}

impl Reach {
    fn holds(&self, row: &Row) -> bool {
        self.user.is_none_or(|user| row.user == user)
            && self.week.is_none_or(|week| (week..week + WEEK_MICROS).contains(&row.time))
    }
}

/// Questions near random rows, with what a plain pass over the rows in reach finds, and its times.
fn questions_of<'a>(
    what: &str,
    store: &'a Store,
    reach: &dyn Fn(&Row) -> Reach,
) -> (Vec<Ask<'a>>, Spread) {
    let mut random = Random::new(what.len() as u64);
    let (mut plain, mut in_reach) = (Spread::default(), 0);
    let mut asks = Vec::with_capacity(QUESTIONS);
    for _ in 0..QUESTIONS {
        let row = &store.rows[random.below(store.rows.len())];
        let vector = store.near(row, &mut random);
        let reach = reach(row);
        let passing: Vec<&Row> = store.rows.iter().filter(|row| reach.holds(row)).collect();
        in_reach += passing.len();
        let truth = plain.time(|| data::nearest(&passing, &vector, asking::TOP));
        let user = reach.user.map_or(EVERYBODY.to_owned(), |_| row.user_name());
        let times = reach.week.map(|since| (since, since + WEEK_MICROS));
        asks.push(Ask { user, times, vector, truth });
    }
    println!("  rows in reach on average: {}", in_reach / QUESTIONS);
    (asks, plain)
}
