//! The layers of the crate as data: imports point down, and each dangerous thing has one home.
//!
//! Reads the sources as text. A path is looked for everywhere in a file, not in `use` lines only, so that a module
//! named in full in the middle of a function counts too. Comments and what follows `#[cfg(test)]` are passed over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every module at the top of `src`, with its layer and the highest layer that it may name. Folders of one layer never
/// name each other.
const LAYERS: &[(&str, u8, u8)] = &[
    ("error", 0, 0),
    ("ids", 0, 0),
    ("time", 0, 0),
    ("options", 0, 0),
    ("model", 1, 0),
    ("simd", 1, 0),
    ("analysis", 2, 1),
    ("encode", 2, 1),
    ("topic", 2, 1),
    ("storage", 3, 1),
    ("index", 4, 3),
    ("ingest", 5, 4),
    ("recall", 5, 4),
    ("maintain", 5, 4),
    ("engine", 6, 5),
    ("lib", 6, 6),
    ("bin", 7, 6),
];

/// What may be named only below these paths.
const HOMES: &[(&str, &[&str])] = &[
    ("std::fs", &["storage/vfs", "bin"]),
    ("memmap2", &["storage/vfs"]),
    ("fs2", &["storage/vfs"]),
    ("redb", &["storage", "index"]),
    ("simsimd", &["simd"]),
    ("zstd", &["storage"]),
    ("bincode", &["model", "storage"]),
    ("serde", &["bin"]),
    ("clap", &["bin"]),
    ("indicatif", &["bin"]),
    ("flate2", &["bin"]),
];

/// Where `unsafe` may stand: arithmetic, and the one file that maps.
const UNSAFE_HOMES: &[&str] = &["simd", "storage/vfs/map.rs"];

/// The one module of layer 0 that the others of that layer may name: constructors of checked types return it.
const LAYER_0_SHARED: &str = "error";

/// The layer of a module, and the highest layer that it may name.
fn layer(module: &str) -> Option<(u8, u8)> {
    LAYERS.iter().find(|(name, ..)| *name == module).map(|(_, layer, knows)| (*layer, *knows))
}

/// The module at the top of `src` that a file belongs to, by its path below `src`.
fn module_of(file: &Path) -> String {
    let first = file.iter().next().expect("a file has a name").to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// All Rust files below `directory`.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The code of a file: without comments and strings, and without the tests, which by the house style come last.
fn code_of(text: &str) -> String {
    let text = text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code);
    let mut code = String::new();
    for line in text.lines() {
        let bare = line.split("//").next().unwrap_or_default();
        // Strings hold no code; an escaped quote within one does not end it.
        let plain = bare.replace("\\\"", "");
        let outside: Vec<&str> = plain.split('"').step_by(2).collect();
        code.push_str(&outside.join("\"\""));
        code.push('\n');
    }
    code
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The places behind each whole word `word` in `code`.
fn behind<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(word).filter_map(move |(at, _)| {
        let before = code[..at].chars().next_back();
        let rest = &code[at + word.len()..];
        let whole = !before.is_some_and(is_word) && !rest.starts_with(is_word);
        whole.then_some(rest)
    })
}

/// The first names behind `crate::`, those of a group `crate::{a::b, c}` included.
fn named_modules(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in behind(code, "crate") {
        let Some(rest) = rest.strip_prefix("::") else { continue };
        let name = |text: &str| text.chars().take_while(|c| is_word(*c)).collect::<String>();
        match rest.strip_prefix('{') {
            None => names.push(name(rest)),
            Some(group) => {
                let (mut depth, mut start) = (0, true);
                for (at, character) in group.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && is_word(c) => {
                            names.push(name(&group[at..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

/// What is wrong with one file.
fn problems(file: &Path, text: &str) -> Vec<String> {
    let shown = file.to_string_lossy().replace('\\', "/");
    let module = module_of(file);
    let code = code_of(text);
    let mut problems = Vec::new();
    let Some((own, knows)) = layer(&module) else {
        return vec![format!("{shown}: module {module} has no layer")];
    };
    for named in named_modules(&code) {
        match layer(&named) {
            Some(_) if named == module => {}
            Some((0, _)) if own == 0 && named == LAYER_0_SHARED => {}
            Some((other, _)) if other <= knows && (other < own || module == "lib") => {}
            Some((other, _)) => {
                problems.push(format!("{shown}: layer {own} names {named} of layer {other}"));
            }
            // An item at the root is a re-export of lib.rs, which is above all but the programs.
            None if own >= 6 => {}
            None => problems.push(format!("{shown}: names crate::{named} by way of lib.rs")),
        }
    }
    let below = |homes: &[&str]| homes.iter().any(|home| shown.starts_with(home));
    for (thing, homes) in HOMES {
        if !below(homes) && behind(&code, thing).any(|rest| rest.starts_with("::")) {
            problems.push(format!("{shown}: {thing} belongs to {}", homes.join(", ")));
        }
    }
    if !below(UNSAFE_HOMES) && behind(&code, "unsafe").next().is_some() {
        problems.push(format!("{shown}: unsafe belongs to {}", UNSAFE_HOMES.join(", ")));
    }
    problems
}

#[test]
fn imports_point_down_and_dangerous_things_stay_at_home() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = 0;
    let mut all = Vec::new();
    for path in sources(&root) {
        let file = path.strip_prefix(&root).unwrap();
        all.extend(problems(file, &std::fs::read_to_string(&path).unwrap()));
        files += 1;
    }
    assert!(files > 10, "the sources were not found");
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

#[test]
fn the_table_names_each_module_once() {
    let mut seen = BTreeMap::new();
    for (module, layer, knows) in LAYERS {
        assert_eq!(seen.insert(module, layer), None, "{module}");
        assert!(knows <= layer, "{module}");
    }
}

#[test]
fn what_breaks_the_rules_is_seen() {
    #[track_caller]
    fn check(file: &str, text: &str, expected: usize) {
        let found = problems(Path::new(file), text);
        assert_eq!(found.len(), expected, "{found:?}");
    }
    check("storage/log.rs", "use crate::error::Result;\nuse crate::model::Record;", 0);
    check("storage/log.rs", "use crate::recall::Query;", 1);
    check("storage/log.rs", "use crate::encode::Embedder;", 1);
    check("recall/scan.rs", "use crate::ingest::Turn;", 1);
    check("recall/scan.rs", "fn f() { crate::engine::Db::open() }", 1);
    check("model/record.rs", "use crate::simd::dot;", 1);
    check("model/record.rs", "use crate::{error::{Error, Result}, storage::Store, ids};", 1);
    check("model/record.rs", "use crate::Db;", 1);
    check("options.rs", "use crate::error::Error;", 0);
    check("error.rs", "use crate::time::Timestamp;", 1);
    check("bin/loomdb/main.rs", "use crate::args::Args;", 0);
    check("newcomer/mod.rs", "", 1);
    check("recall/scan.rs", "fn f() { std::fs::read(path) }", 1);
    check("storage/vfs/real.rs", "use std::fs::File;", 0);
    check("recall/scan.rs", "use redb::Database;", 1);
    check("recall/scan.rs", "// redb::Database and crate::engine::Db are told of here", 0);
    check("recall/scan.rs", "let text = \"crate::engine::Db\";", 0);
    check("recall/scan.rs", "unsafe { *pointer }", 1);
    check("recall/scan.rs", "#![deny(unsafe_code)]", 0);
    check("simd/x86.rs", "unsafe { *pointer }", 0);
    check(
        "recall/scan.rs",
        "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    use crate::ingest::Turn;\n}",
        0,
    );
}
