//! Made vectors: topics in broader groups, users of whom few say much, sessions in bursts.

use super::common::{FIRST_TIME, Random};

/// Values of a vector.
pub const DIMENSION: usize = 384;
const ROWS: usize = 100_000;
const TOPICS: usize = 300;
const GROUPS: usize = 20;
const USERS: usize = 100;
/// Turns of a session.
const SESSION: usize = 20;
/// Topics that a user talks of.
const TOPICS_OF_USER: usize = 12;
const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;
const DAYS: usize = 730;
/// Days with talk come in bursts: this many of a user's sessions follow one another within a week.
const BURST: usize = 6;
/// The length of what is added to a topic's direction for a turn, and to a group's for a topic.
const TURN_NOISE: f32 = 0.4;
const TOPIC_NOISE: f32 = 1.2;
/// Directions in which the turns of a topic differ most, as those of real embeddings do.
const TOPIC_DIRECTIONS: usize = 16;
/// At most so far along each.
const ALONG_STEP: f32 = 0.35;
/// And to a turn's for a question.
const QUESTION_NOISE: f32 = 0.5;

/// A turn.
pub struct Row {
    pub user: usize,
    pub session: usize,
    /// Microseconds since the epoch.
    pub time: i64,
    /// Of unit length.
    pub vector: Vec<f32>,
    topic: usize,
}

impl Row {
    pub fn user_name(&self) -> String {
        format!("user-{}", self.user)
    }

    pub fn text(&self) -> String {
        format!("{} of user {} about topic {}", self.time / 1_000_000, self.user, self.topic)
    }
}

/// All turns, in the order of their times.
pub struct Store {
    pub rows: Vec<Row>,
}

impl Store {
    pub fn new() -> Store {
        let mut random = Random::new(384);
        let groups: Vec<Vec<f32>> = (0..GROUPS).map(|_| direction(&mut random)).collect();
        let topic =
            |at: usize, random: &mut Random| moved(&groups[at % GROUPS], TOPIC_NOISE, random);
        let topics: Vec<Vec<f32>> = (0..TOPICS).map(|at| topic(at, &mut random)).collect();
        let mut along = || (0..TOPIC_DIRECTIONS).map(|_| direction(&mut random)).collect();
        let along: Vec<Vec<Vec<f32>>> = (0..TOPICS).map(|_| along()).collect();
        // Zipf: of user n one in n + 1 of what the first says.
        let shares: Vec<f64> = (1..=USERS).map(|rank| 1.0 / rank as f64).collect();
        let whole: f64 = shares.iter().sum();
        let mut rows = Vec::with_capacity(ROWS);
        let mut session = 0;
        for (user, share) in shares.iter().enumerate() {
            let count = (ROWS as f64 * share / whole).round() as usize;
            let known: Vec<usize> = (0..TOPICS_OF_USER).map(|_| random.below(TOPICS)).collect();
            let (mut day, mut topic, end) = (0, known[0], rows.len() + count);
            while rows.len() < end {
                if session % BURST == 0 {
                    day = random.below(DAYS);
                }
                if random.below(2) == 0 {
                    topic = known[random.below(TOPICS_OF_USER)];
                }
                let hour = random.below(14 * 3600) as i64 * 1_000_000;
                let start = FIRST_TIME + (day + session % BURST) as i64 * DAY_MICROS + hour;
                for turn in 0..SESSION.min(end - rows.len()) {
                    let mut vector = topics[topic].clone();
                    for along in &along[topic] {
                        let step = (random.below(2001) as f32 / 1000.0 - 1.0) * ALONG_STEP;
                        vector
                            .iter_mut()
                            .zip(along)
                            .for_each(|(value, along)| *value += step * along);
                    }
                    let vector = moved(&vector, TURN_NOISE, &mut random);
                    let time = start + turn as i64 * 45_000_000;
                    rows.push(Row { user, session, time, vector, topic });
                }
                session += 1;
            }
        }
        rows.sort_by_key(|row| (row.time, row.session));
        Store { rows }
    }

    pub fn describe(&self) -> String {
        format!(
            "{} made vectors of {DIMENSION} values, {TOPICS} topics in {GROUPS} groups, {USERS} users (Zipf)",
            self.rows.len()
        )
    }

    /// A question near a row.
    pub fn near(&self, row: &Row, random: &mut Random) -> Vec<f32> {
        moved(&row.vector, QUESTION_NOISE, random)
    }
}

/// A direction, all alike.
fn direction(random: &mut Random) -> Vec<f32> {
    // The sum of twelve even values is nearly normal.
    let mut value = || (0..12).map(|_| random.below(1 << 20) as f32).sum::<f32>() / 6e6 - 1.0;
    unit((0..DIMENSION).map(|_| value()).collect())
}

/// `from` with a random direction of length `noise` added.
fn moved(from: &[f32], noise: f32, random: &mut Random) -> Vec<f32> {
    let noise = direction(random).into_iter().map(|value| value * noise);
    unit(from.iter().zip(noise).map(|(value, noise)| value + noise).collect())
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

/// The places of the rows nearest to a vector, by a plain pass.
pub fn nearest<'a>(rows: &[&'a Row], vector: &[f32], most: usize) -> Vec<&'a Row> {
    use loomdb::internals::simd::{Best, Scored, dot};
    let mut best = Best::new(most);
    for (at, row) in (0..).zip(rows) {
        best.push(Scored { score: dot(&row.vector, vector), name: u64::from(at) }, at);
    }
    best.into_sorted().into_iter().map(|(_, at)| rows[at as usize]).collect()
}
