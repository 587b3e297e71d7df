//! The arguments of every command, and the help that `loomdb --help` prints.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::import::Format;

const AFTER_HELP: &str = "\
Examples:
  loomdb demo
  loomdb import agent.loom turns.jsonl chats.jsonl.gz --user alice --zone Europe/Paris
  loomdb search agent.loom --user alice \"what did we decide about the kitchen?\" -k 5 --explain
  loomdb add agent.loom --user alice --speaker Alice --session monday \"I moved to Porto\"
  loomdb timeline agent.loom --user alice --since 2025-03-01T00:00:00Z --limit 20 --json

What a command answers goes to stdout, everything else to stderr. With --json the answer is one JSON
object on one line, with field names that stay.

Times are RFC 3339 with a zone (2025-03-01T09:30:00+01:00). With --zone they may lack it, and a date
alone is its midnight. --since is inclusive, --until exclusive.

Exit codes:
  0  done                                 5  locked by another process for too long
  1  unexpected                           6  damaged, or `verify` found problems
  2  bad argument or input                7  written by an unknown version or for other vectors
  3  not found                            8  the machine refused (disk, permission)
  4  above a documented limit             9  the handle broke: open again";

/// An embedded on-disk database for the memory of agents.
///
/// Stores the turns of conversations, each under a user, and finds those that answer a question, with the reason.
/// DB is the path of a database, a directory by custom named *.loom.
#[derive(Debug, Parser)]
#[command(name = "loomdb", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Cli {
    /// Answer with one JSON object.
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Import a bundled conversation, ask it six questions and show what is found.
    Demo(Demo),
    /// Measure how well questions with known answers are answered.
    Eval(Eval),
    /// Tell what choosing candidates loses on a user's own memory, against scoring every turn.
    Audit(Audit),
    /// Create a database.
    Init(Init),
    /// Store one turn. Creates the database when there is none.
    Add(Add),
    /// Store turns or chats from files. Creates the database when there is none.
    Import(Import),
    /// Find the turns that answer a question.
    Search(Search),
    /// List a user's turns in the order of their time.
    Timeline(Timeline),
    /// Show one stored turn.
    Get(One),
    /// Show every version of one stored turn, oldest first.
    History(One),
    /// Write a new version of a stored turn; what is not named stays.
    Update(Update),
    /// Delete a turn, all versions of it, or a whole session.
    Delete(Delete),
    /// Count a user's turns.
    Count(Whose),
    /// List the users.
    Users(Database),
    /// Show counts and sizes of the database, and with --user the counts of one user.
    Stats(Stats),
    /// Read every byte and check it. Exits with 6 when something is wrong.
    Verify(Database),
    /// Move what the log holds into segments. Never needed: it happens by itself.
    Checkpoint(Database),
}

/// Which database, and how it is opened.
#[derive(Debug, Args)]
pub struct Database {
    /// The database.
    #[arg(value_name = "DB")]
    pub path: PathBuf,
    #[command(flatten)]
    pub opening: Opening,
}

/// How a database is opened.
#[derive(Clone, Debug, Default, Args)]
pub struct Opening {
    /// Seconds to wait for another process that holds the database.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    #[arg(help_heading = "Opening")]
    pub busy_timeout: Duration,
    /// Refuse to write. Reading commands do so by themselves where the system lets nobody write.
    #[arg(long, help_heading = "Opening")]
    pub read_only: bool,
    /// Open a database on a network file system, where locks may not work.
    #[arg(long, help_heading = "Opening")]
    pub allow_remote_fs: bool,
}

/// A database and one of its users.
#[derive(Debug, Args)]
pub struct Whose {
    #[command(flatten)]
    pub database: Database,
    /// Whose memory. An opaque name: case, spaces and every other byte count.
    #[arg(long, short, value_name = "NAME")]
    pub user: OsString,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Keep the database here. Without it, it lives in a temporary directory and is removed at the end.
    #[arg(long, value_name = "DB")]
    pub db: Option<PathBuf>,
    /// Turns shown for each question.
    #[arg(short = 'k', long, value_name = "N", default_value_t = 5)]
    pub top_k: usize,
}

#[derive(Debug, Args)]
pub struct Eval {
    #[command(subcommand)]
    pub what: Evaluation,
}

#[derive(Debug, Subcommand)]
pub enum Evaluation {
    /// Store conversations, ask every question about them, and tell how many of the turns that hold the answer are
    /// among the first found.
    Retrieval(Retrieval),
    /// Ask the same questions twice, choosing candidates and scoring every turn, and tell what choosing loses.
    Routing(Routing),
}

#[derive(Debug, Args)]
#[command(after_help = ROUTING_HELP)]
pub struct Routing {
    /// The folder with turns.jsonl and queries.jsonl, plain or gzip (.jsonl.gz).
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Put the caption of a picture behind the text, as [image: caption].
    #[arg(long)]
    pub captions: bool,
    /// All conversations are one user's memory.
    #[arg(long)]
    pub pool: bool,
    /// Turns that hold no answer, added to each memory up to --rows: a file as for import.
    #[arg(long, value_name = "FILE")]
    pub distractors: Option<PathBuf>,
    /// Turns of each memory, at most, distractors included.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub rows: usize,
    /// Take every word out of a question that its gold turns hold. Questions without a word left are not asked.
    #[arg(long, conflicts_with = "vectors")]
    pub unsaid: bool,
    /// Compare vectors alone.
    #[arg(long)]
    pub vectors: bool,
    #[command(flatten)]
    pub routing: RoutingArguments,
}

/// How candidates are chosen; what is not given is as in a search.
#[derive(Debug, Args)]
pub struct RoutingArguments {
    /// Turns of a memory above which candidates are chosen.
    #[arg(long, value_name = "N", help_heading = "Routing")]
    pub route_above: Option<u32>,
    /// Turns best by words that become candidates.
    #[arg(long, value_name = "N", help_heading = "Routing")]
    pub lexical_rows: Option<usize>,
    /// Turns best by the codes of their vectors that become candidates.
    #[arg(long, value_name = "N", help_heading = "Routing")]
    pub code_rows: Option<usize>,
    /// Cells whose codes are scanned at least.
    #[arg(long, value_name = "N", help_heading = "Routing")]
    pub cells: Option<usize>,
}

impl RoutingArguments {
    /// As a search takes them.
    pub fn options(&self) -> loomdb::RoutingOptions {
        let defaults = loomdb::RoutingOptions::default();
        loomdb::RoutingOptions {
            whole_rows: self.route_above.unwrap_or(defaults.whole_rows),
            lexical_rows: self.lexical_rows.unwrap_or(defaults.lexical_rows),
            code_rows: self.code_rows.unwrap_or(defaults.code_rows),
            cells: self.cells.unwrap_or(defaults.cells),
            ..defaults
        }
    }
}

const ROUTING_HELP: &str = "\
Turns and questions: as `loomdb eval retrieval --help` tells. A question is compared over its first 50
answers.

  exhaustive       every turn of the memory is scored, as if it were small (Query::route_above of 2^32 - 1);
                   this gives the answers of Query::exact to the last bit (tests/agreement) in a fraction
                   of the time; with --vectors, Query::exact itself
  all@k            share of the questions with all gold turns among the first k
  loss_all@k       all@k exhaustive less all@k routed: positive when routing loses
  overlap@10       share of the exhaustive first 10 that routing has in its own, mean; top20_found at 20
  missed@10        share of the exhaustive first 10 that it has not: no candidate, or ranked out
  candidate_share  turns whose full vector was read, neighbours included, over the turns of the memory
  bits_share       turns whose 1-bit code was read, over the turns of the memory
  latency_us       of the searches that are compared: 50 answers each

The database is made in the directory for temporary files and removed at the end.";

#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub struct Audit {
    #[command(flatten)]
    pub database: Database,
    /// Whose memory. Default: every user with more turns than are scored whole.
    #[arg(long, short, value_name = "NAME")]
    pub user: Option<OsString>,
    /// Questions to ask, one a line: a text, or a JSON object with the field "question". Default: questions made
    /// of stored turns, which themselves do not count as answers.
    #[arg(long, value_name = "FILE")]
    pub queries: Option<PathBuf>,
    /// Stored turns of which questions are made, at most.
    #[arg(long, value_name = "N", default_value_t = 200, conflicts_with = "queries")]
    pub sample: usize,
    /// Which turns are drawn: equal seeds draw equal turns.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "queries")]
    pub seed: u64,
    /// Also try other lengths of the lexical list and numbers of cells.
    #[arg(long)]
    pub sweep: bool,
    #[command(flatten)]
    pub routing: RoutingArguments,
}

const AUDIT_HELP: &str = "\
Each question is answered twice, by chosen candidates and exhaustively: with every turn scored, as if the
memory were small (Query::route_above of 2^32 - 1), which gives the answers of Query::exact to the last
bit (tests/agreement) in a fraction of the time. The first 50 answers are compared; the time is that of
searches for 50.

  recall@k         share of the exhaustive first k that the routed answer has anywhere
  overlap@k        share of the exhaustive first k that it has in its own first k
  not_a_candidate  share of the exhaustive first k that is not in its first k and was not among the candidates:
                   on no list, or weighed too lightly there to be scored exactly
  ranked_out       share that was a candidate and did not come into its first k
  candidate_share  turns whose full vector was read, neighbours included, over the turns of the memory
  bits_share       turns whose 1-bit code was read, over the turns of the memory
  loss@k           in a sweep: 1 less recall@k

A list is at least twice as long as the answer, so that a sweep shows the same for 50 as for 100.
A question made of a turn is its beginning without every third word that has a meaning. All questions are
asked when the user's newest turn was said.";

#[derive(Debug, Args)]
#[command(after_help = EVAL_HELP)]
pub struct Retrieval {
    /// The folder with turns.jsonl and queries.jsonl, plain or gzip (.jsonl.gz).
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Put the caption of a picture behind the text, as [image: caption].
    #[arg(long)]
    pub captions: bool,
    /// Also rank by plain BM25, by plain vectors, and by rank fusion of the two.
    #[arg(long)]
    pub compare: bool,
}

const EVAL_HELP: &str = "\
Turns: as `loomdb import --help` tells. Each conversation is one user's memory.

Questions: one JSON object a line.
  conv_id     the conversation (required)
  question    what is asked (required)
  category    a name to group figures by (required); \"adversarial\" is left out of the main figures
  evidence    the turn_id of each turn that holds the answer (required); without one, the question is
              not asked

Every question is asked a day after the last turn of its conversation.

  r@k, recall@k   share of the turns that hold the answer among the first k, mean over the questions
  all@k           share of the questions with all such turns among the first k
  ndcg@10, mrr    how far up they stand
  within tokens   the same in an answer of so many tokens (1.3 a word), filled in the order of ranks;
                  what does not fit is passed over

The database is made in the directory for temporary files and removed at the end.";

#[derive(Debug, Args)]
pub struct Init {
    #[command(flatten)]
    pub database: Database,
    /// What makes the vectors: the built-in model, or nothing (they are given with each turn).
    #[arg(long, value_enum, default_value_t = EmbedderChoice::Builtin)]
    pub embedder: EmbedderChoice,
    /// Values of a vector, 1 to 4096.
    #[arg(long, value_name = "N", required_if_eq("embedder", "none"))]
    pub dimension: Option<u32>,
    /// A name for the vectors that are given, such as the model and its version.
    #[arg(long, value_name = "NAME", default_value = "external")]
    pub space: String,
    /// How vectors are kept.
    #[arg(long, value_enum, default_value_t = Element::F32)]
    pub element: Element,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmbedderChoice {
    /// The English model inside the program.
    Builtin,
    /// None.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Element {
    /// 32-bit floats.
    F32,
    /// 16-bit floats: half the bytes.
    F16,
}

/// What is said of a turn besides its text.
#[derive(Debug, Args)]
pub struct Parts {
    /// The session it belongs to.
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Who said it.
    #[arg(long, value_name = "NAME")]
    pub speaker: Option<String>,
    /// The agent that stores it.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// When it was said. Default for a new turn: now.
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// The zone of a time without one: UTC, an offset, or a name such as Europe/Paris.
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// A JSON object. An update merges it into what is there; null removes a field.
    #[arg(long, value_name = "JSON")]
    pub metadata: Option<String>,
    /// A tag; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// The vector, a JSON list of numbers: for databases without an embedder.
    #[arg(long, value_name = "JSON")]
    pub vector: Option<String>,
}

#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    pub whose: Whose,
    /// A key of your own, unique per user: adding it again with the same content changes nothing.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    #[command(flatten)]
    pub parts: Parts,
    /// What was said; `-` reads it from stdin, without its last line break.
    #[arg(value_name = "TEXT")]
    pub text: String,
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
pub struct Import {
    #[command(flatten)]
    pub database: Database,
    /// Files, plain or gzip; `-` is stdin.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Whose memory. Default: each conversation is its own user.
    #[arg(long, short, value_name = "NAME")]
    pub user: Option<OsString>,
    /// The zone of times without one: UTC, an offset, or a name such as Europe/Paris. Default: UTC.
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// The shape of the files.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    pub format: Format,
    /// Put the caption of a picture behind the text, as [image: caption].
    #[arg(long)]
    pub captions: bool,
}

const IMPORT_HELP: &str = "\
Turns: one JSON object a line.
  conv_id     the conversation (required). The user, unless --user names one
  turn_id     unique in the conversation (required). The key is conv_id/turn_id
  text        what was said (required)
  time        when the turn was said, or its session began (required, unless turn_time is there)
  turn_time   when the turn was said; wins over time
  session_id  the session becomes conv_id/session_id
  idx         the place in the conversation, from 0: orders turns of one time
  speaker     who said it
  caption     what a shared picture shows: kept as metadata

Chat: {\"messages\": [{\"role\", \"content\", \"timestamp\"}, ..]}, one conversation a line, or one over
several lines.
  role        the speaker
  content     a string, or a list of parts with a text; a message without text is left out and counted
  timestamp   RFC 3339, or a number of Unix seconds
  The conversation's conversation_id or id is its session and, unless --user names one, its user; the
  key is id/place. Without an id, --user is required and a hash of the first message stands for it.

In keys and sessions a / or % inside an id is written %2F or %25.

Batches of 4096 turns are stored whole or not at all. A bad line ends the import and is named together
with the last line that is stored; a second run skips what is stored with the same content, and writes
a new version of what has changed. A line may have up to 17 MiB. A field that stands twice in one object,
and a time with a zone in brackets but no offset, are refused.";

#[derive(Debug, Args)]
#[command(after_help = SEARCH_HELP)]
pub struct Search {
    #[command(flatten)]
    pub whose: Whose,
    /// The question, in plain words: no character of it is an operator. An empty one lists the newest turns.
    #[arg(value_name = "QUERY", required_unless_present = "vector")]
    pub query: Option<String>,
    /// Turns to find. Default: 10; with --max-tokens as many as are looked at, 400.
    #[arg(short = 'k', long, value_name = "N")]
    pub top_k: Option<usize>,
    /// Tokens of the whole answer, at most (1.3 a word). Long turns go in as their best passage; those without room are
    /// named at the end.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<usize>,
    #[command(flatten)]
    pub filter: Filter,
    /// Only turns of this speaker. The name as stored, whole.
    #[arg(long, value_name = "NAME")]
    pub speaker: Option<String>,
    /// Only turns whose metadata matches: {"field": value, "field": {"gte": 3}, "OR": [{..}, {..}]}.
    #[arg(long = "filter", value_name = "JSON")]
    pub metadata: Option<String>,
    /// When the question is asked, for days such as "yesterday" in it. Default: now, in UTC.
    #[arg(long, value_name = "TIME")]
    pub query_time: Option<String>,
    /// By what to rank. Default: hybrid for a text, vector for a vector alone.
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// List only the best of turns that say nearly the same, and count the others.
    #[arg(long)]
    pub fold: bool,
    /// Say how the answer was found: which ways ran, the parts of each score, rows and postings, bytes touched,
    /// microseconds by stage.
    #[arg(long)]
    pub explain: bool,
    /// Score every turn exactly instead of choosing candidates first. Slower; for comparison.
    #[arg(long)]
    pub exact: bool,
    /// Other weights than the defaults, for trying.
    #[arg(long, value_name = "NAME=VALUE,..")]
    pub weights: Option<String>,
    /// The vector of the question, a JSON list of numbers: instead of QUERY, or beside it where the database has no
    /// embedder.
    #[arg(long, value_name = "JSON")]
    pub vector: Option<String>,
}

/// By what a search ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Words, vectors and small priors together.
    Hybrid,
    /// Vectors alone. Turns without a vector are not found.
    Vector,
    /// Words alone. Turns that share no word with the question are not found.
    Lexical,
}

const SEARCH_HELP: &str = "\
Filters on metadata (--filter): a field is compared with a value, or by the operators eq ne in nin gt
gte lt lte contains exists; AND and OR take a list of filters, NOT takes one.
  {\"topic\": \"kitchen\", \"price\": {\"lt\": 500}, \"NOT\": {\"status\": {\"in\": [\"done\", \"dropped\"]}}}

Weights (--weights): lexical vector speaker when range length concise concise_words spread long_words
vector_previous vector_next words_previous words_before_previous words_next k1 b range_days_before
range_days_after.";

/// Hard limits on what is looked at.
#[derive(Debug, Args)]
pub struct Filter {
    /// Only turns said at or after this time.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only turns said before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only turns of this session.
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// The zone of times without one: UTC, an offset, or a name such as Europe/Paris.
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

#[derive(Debug, Args)]
pub struct Timeline {
    #[command(flatten)]
    pub whose: Whose,
    /// Turns to list.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    pub limit: usize,
    #[command(flatten)]
    pub filter: Filter,
    /// Newest first.
    #[arg(long)]
    pub reverse: bool,
    /// Go on where an earlier list ended: the `next` that it named.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

#[derive(Debug, Args)]
pub struct One {
    #[command(flatten)]
    pub whose: Whose,
    /// The id.
    #[arg(value_name = "ID")]
    pub id: u64,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["text", "session", "speaker", "agent", "time", "metadata", "tags", "vector"]))]
pub struct Update {
    #[command(flatten)]
    pub one: One,
    /// The new text; `-` reads it from stdin, without its last line break.
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    #[command(flatten)]
    pub parts: Parts,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["id", "session"]))]
pub struct Delete {
    #[command(flatten)]
    pub whose: Whose,
    /// The id.
    #[arg(value_name = "ID")]
    pub id: Option<u64>,
    /// Delete every turn of this session.
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
}

#[derive(Debug, Args)]
pub struct Stats {
    #[command(flatten)]
    pub database: Database,
    /// Also count this user's turns.
    #[arg(long, short, value_name = "NAME")]
    pub user: Option<OsString>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "not a time to wait".into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    #[track_caller]
    fn check(line: &[&str], expected: Result<(), ErrorKind>) {
        let parsed = Cli::try_parse_from([&["loomdb"], line].concat());
        assert_eq!(parsed.map(|_| ()).map_err(|error| error.kind()), expected);
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_take_what_they_need_and_no_less() {
        use ErrorKind::{ArgumentConflict, MissingRequiredArgument, UnknownArgument};
        check(&["add", "db", "--user", "u", "hello", "--json"], Ok(()));
        check(&["--json", "add", "db", "-u", "u", "--", "-hello"], Ok(()));
        check(&["add", "db", "hello"], Err(MissingRequiredArgument));
        check(&["search", "db", "hello"], Err(MissingRequiredArgument));
        check(&["search", "db", "-u", "u"], Err(MissingRequiredArgument));
        check(&["search", "db", "-u", "u", "--vector", "[1]"], Ok(()));
        check(&["search", "db", "-u", "u", "q", "--vector", "[1]"], Ok(()));
        check(&["get", "db", "--user", "u", "7"], Ok(()));
        check(&["delete", "db", "--user", "u"], Err(MissingRequiredArgument));
        check(&["delete", "db", "--user", "u", "7", "--session", "s"], Err(ArgumentConflict));
        check(&["delete", "db", "--user", "u", "--session", "s"], Ok(()));
        check(&["update", "db", "--user", "u", "7"], Err(MissingRequiredArgument));
        check(&["update", "db", "--user", "u", "7", "--tag", "a"], Ok(()));
        check(&["update", "db", "--user", "u", "7", "--zone", "UTC"], Err(MissingRequiredArgument));
        check(&["init", "db", "--embedder", "none"], Err(MissingRequiredArgument));
        check(&["init", "db", "--embedder", "none", "--dimension", "3"], Ok(()));
        check(&["import", "db"], Err(MissingRequiredArgument));
        check(&["import", "db", "a", "b", "--format", "chat", "--captions"], Ok(()));
        check(&["eval", "retrieval", "--data", "d", "--captions", "--compare", "--json"], Ok(()));
        check(&["eval", "retrieval"], Err(MissingRequiredArgument));
        check(&["stats", "db", "--users", "u"], Err(UnknownArgument));
        check(&["users", "db", "--busy-timeout", "-1"], Err(UnknownArgument));
        check(&["users", "db", "--busy-timeout=nan"], Err(ErrorKind::ValueValidation));
        check(&["users", "db", "--busy-timeout", "0.5"], Ok(()));
    }
}
