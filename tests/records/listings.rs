//! Listings: pages, cursors, the order of a session, what has expired.

use super::*;

/// Every page of a listing, put together.
fn walk(memory: &Memory, options: &TimelineOptions, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor: Option<Cursor> = None;
    loop {
        let mut options = options.clone().limit(limit);
        if let Some(cursor) = cursor {
            // By way of its text, as a client would hand it back.
            options = options.cursor(cursor.to_string().parse().unwrap());
        }
        let page = memory.timeline(options).unwrap();
        assert!(page.episodes.len() == limit || page.next.is_none());
        assert!(!page.episodes.is_empty() || page.next.is_none());
        all.extend(page.episodes.into_iter().map(|episode| episode.text));
        assert!(all.len() <= 100, "the pages come to no end");
        cursor = page.next;
        if cursor.is_none() {
            return all;
        }
    }
}

#[test]
fn pages_put_together_are_the_listing() {
    let mut bench = Bench::new();
    // Written out of order, some at equal times, some behind a checkpoint.
    for i in [5, 3, 9, 1, 7, 3, 5, 0] {
        let count = bench.memory().count().unwrap();
        bench.memory().add(turn(&format!("{i}-{count}")).time(at(i)).session("s")).unwrap();
        if count == 3 {
            bench.db.checkpoint().unwrap();
        }
    }
    bench.memory().add(turn("other").time(at(4)).session("other")).unwrap();
    let all = ["0-7", "1-3", "3-1", "3-5", "other", "5-0", "5-6", "7-4", "9-2"];
    bench.at_every_stage(|memory| {
        for limit in 1..=10 {
            let options = TimelineOptions::new();
            assert_eq!(walk(memory, &options, limit), all);
            let down = options.clone().direction(Direction::Descending);
            let reversed: Vec<&str> = all.iter().rev().copied().collect();
            assert_eq!(walk(memory, &down, limit), reversed);
            let part = options.clone().since(at(3)).until(at(7));
            assert_eq!(walk(memory, &part, limit), ["3-1", "3-5", "other", "5-0", "5-6"]);
            let session = part.clone().session("s");
            assert_eq!(walk(memory, &session, limit), ["3-1", "3-5", "5-0", "5-6"]);
            let down = session.direction(Direction::Descending);
            assert_eq!(walk(memory, &down, limit), ["5-6", "5-0", "3-5", "3-1"]);
        }
        assert!(walk(memory, &TimelineOptions::new().since(at(3)).until(at(3)), 5).is_empty());
        assert!(walk(memory, &TimelineOptions::new().session("none"), 5).is_empty());
    });
}

#[test]
fn a_cursor_stays_good_when_its_episode_goes() {
    let bench = Bench::new();
    let memory = bench.memory();
    let turns = (0..6).map(|i| turn(&format!("t{i}")).session("s").time(at(i)));
    let ids: Vec<_> = memory.add_many(turns.collect()).unwrap().iter().map(|a| a.id).collect();
    for options in [TimelineOptions::new(), TimelineOptions::new().session("s")] {
        let page = memory.timeline(options.clone().limit(2)).unwrap();
        assert_eq!(page.episodes[1].text, "t1");
        let down = options.clone().direction(Direction::Descending);
        let last = memory.timeline(down.clone().limit(4)).unwrap();
        assert_eq!(last.episodes[3].text, "t2");
        if memory.get(ids[1]).is_ok() {
            memory.delete(ids[1]).unwrap();
            let rest = texts(&memory, options.clone().cursor(page.next.unwrap()));
            assert_eq!(rest, ["t2", "t3", "t4", "t5"]);
            memory.add(turn("t1").session("s").time(at(1))).unwrap();
        }
        assert_eq!(texts(&memory, down.cursor(last.next.unwrap())), ["t1", "t0"]);
    }
}

#[test]
fn a_session_keeps_the_order_of_time_then_ordinal_then_writing() {
    let mut bench = Bench::new();
    let memory = bench.memory();
    let given = |text: &str| turn(text).session("s").time(at(1));
    memory.add_many(vec![given("c").ordinal(2), given("a"), given("b")]).unwrap();
    bench.db.checkpoint().unwrap();
    memory
        .add_many(vec![given("late").ordinal(1), turn("first").session("s").time(at(0))])
        .unwrap();
    bench.at_every_stage(|memory| {
        for limit in 1..6 {
            let options = TimelineOptions::new().session("s");
            assert_eq!(walk(memory, &options, limit), ["first", "a", "b", "late", "c"]);
        }
    });
}

#[test]
fn what_has_expired_is_not_read() {
    let mut bench = Bench::new();
    let memory = bench.memory();
    let past = Timestamp::from_micros(Timestamp::now().micros() - 1_000_000).unwrap();
    let gone = memory.add(turn("gone").expires(past).session("s").key("k")).unwrap();
    memory.add(turn("here").expires(at(10_000_000_000)).session("s")).unwrap();
    bench.at_every_stage(|memory| {
        assert_eq!(kind(memory.get(gone.id)), ErrorKind::NotFound);
        assert_eq!(kind(memory.history(gone.id)), ErrorKind::NotFound);
        assert_eq!(texts(memory, TimelineOptions::new().limit(1)), ["here"]);
        assert_eq!(texts(memory, TimelineOptions::new().session("s")), ["here"]);
        for exact in [false, true] {
            let query = loomdb::Query::vector([1.0, 0.0]).exact(exact);
            assert_eq!(memory.search(query).unwrap().hits.len(), 1);
        }
        assert_eq!(memory.search("").unwrap().hits.len(), 1);
    });
    // Written again without an expiry, it is back.
    let back = bench.memory().add(turn("gone").session("s").key("k")).unwrap();
    assert_eq!((back.id, back.outcome), (gone.id, Outcome::NewVersion));
    assert_eq!(bench.memory().get(gone.id).unwrap().text, "gone");
}
