//! What is refused, with which code and words: damage, paths that hold no database, and a machine that lets nobody write.

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn exit_codes_follow_the_kinds_of_errors() {
    let place = Place::new();
    let code = |arguments: &[&str]| place.run(arguments).code;
    assert_eq!(code(&["search", "db"]), 2);
    assert_eq!(code(&["no-such-command"]), 2);
    assert_eq!(code(&["users", "db"]), 3);
    assert!(!place.dir.path().join("db").exists());
    place.add("x", &[]);
    assert_eq!(code(&["get", "db", "-u", "u", "999"]), 3);
    assert_eq!(code(&["add", "db", "-u", "u", ""]), 2);
    assert_eq!(code(&["add", "db", "-u", "u", "x", "--time", "2025-03-01T10:00:00"]), 2);
    assert_eq!(code(&["add", "db", "-u", "u", "x", "--key", &"k".repeat(65_537)]), 4);
    assert_eq!(code(&["add", "db", "-u", "u", "x", "--read-only"]), 2);
    assert_eq!(code(&["init", "db"]), 2);
    let ran = place.run(&["get", "db", "-u", "u", "999", "--json"]);
    assert!(ran.out.is_empty() && ran.err.starts_with("loomdb: not found"), "{}", ran.err);
}

#[test]
fn verify_ends_with_6_when_a_segment_is_damaged() {
    let place = Place::new();
    place.file("turns.jsonl", turns(50));
    place.run(&["import", "db", "turns.jsonl"]).ok();
    place.run(&["checkpoint", "db"]).ok();
    let segments = place.dir.path().join("db/segments");
    let mut damaged = 0;
    for entry in std::fs::read_dir(segments).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        // Sealed segments are read-only, so that the file is replaced.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        damaged += 1;
    }
    assert!(damaged > 0);
    assert_eq!(place.run(&["verify", "db"]).code, 6);
}

#[test]
fn a_database_too_damaged_to_open_is_a_finding_of_verify() {
    let place = Place::new();
    place.add("one", &[]);
    let whole = place.run(&["verify", "db", "--json"]).ok().json();
    assert!(whole["bytes"].as_u64().unwrap() > 1000, "the log and the catalog count: {whole}");
    let log = place.dir.path().join("db/log/00000001.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let ran = place.run(&["verify", "db", "--json"]);
    assert_eq!(ran.code, 6);
    let found = ran.json();
    assert_eq!(found["whole"], json!(false));
    assert_eq!(found["problems"][0]["file"], json!(log.to_str().unwrap()));
}

#[test]
fn a_path_that_is_no_database_is_told_apart_from_a_failing_machine() {
    let place = Place::new();
    place.file("file", "text");
    std::fs::create_dir(place.dir.path().join("full")).unwrap();
    place.file("full/other", "text");
    for (path, read, write) in [("file", 3, 2), ("full", 3, 2), ("file/below", 3, 2), ("no", 3, 0)]
    {
        assert_eq!(place.run(&["search", path, "--user", "u", "x"]).code, read, "{path}");
        let wrote = place.run(&["add", path, "--user", "u", "x"]);
        assert_eq!(wrote.code, write, "{path}: {}", wrote.err);
    }
}

#[test]
fn a_database_that_lacks_a_part_is_damaged_for_every_command() {
    for part in [
        "FORMAT",
        "locks/state",
        "locks/writer",
        "locks",
        "log",
        "log/00000001.log",
        "catalog.redb",
    ] {
        let place = Place::new();
        place.add("x", &[]);
        let path = place.dir.path().join("db").join(part);
        match path.is_dir() {
            true => std::fs::remove_dir_all(&path).unwrap(),
            false => std::fs::remove_file(&path).unwrap(),
        }
        for command in [
            &["count", "db", "-u", "u"][..],
            &["count", "db", "-u", "u", "--read-only"],
            &["add", "db", "-u", "u", "y"],
            &["verify", "db"],
        ] {
            let ran = place.run(command);
            assert_eq!(ran.code, 6, "{part}: {command:?}: {}{}", ran.out, ran.err);
        }
        assert!(!path.exists(), "{part}: nothing is made again");
    }
}

#[test]
fn a_place_that_can_hold_no_database_is_told_as_what_it_is() {
    let place = Place::new();
    let add = |path: &str| place.run(&["add", path, "-u", "u", "x"]);
    let ran = add("nodir/db");
    assert!(ran.code == 3 && ran.err.contains("nodir"), "{}: {}", ran.code, ran.err);
    symlink("nothing", place.dir.path().join("link")).unwrap();
    let ran = add("link");
    assert!(ran.code == 2 && ran.err.contains("symlink"), "{}: {}", ran.code, ran.err);
    let ran = place.run(&["count", "link", "-u", "u"]);
    assert!(ran.code == 3 && ran.err.contains("symlink"), "{}: {}", ran.code, ran.err);
    std::fs::write(place.dir.path().join("file"), "").unwrap();
    symlink("file", place.dir.path().join("to-file")).unwrap();
    let ran = add("to-file");
    assert!(ran.code == 2 && !ran.err.contains("nowhere"), "{}: {}", ran.code, ran.err);
    // A file system of its own, which no test may unmount.
    let ran = add("/proc");
    assert!(ran.code == 2 || ran.code == 8, "{}: {}", ran.code, ran.err);
    // Nothing is left of the attempts.
    let names =
        std::fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 3);
}

/// The program under a limit of the size of files that lets it write none, as a full disk does.
#[cfg(target_os = "linux")]
#[test]
fn commands_that_only_read_do_so_where_nothing_can_be_written() {
    let place = Place::new();
    let id = place.add("kept", &[]).to_string();
    // What a killed writer leaves behind the log's end: opening for writing has to begin a log.
    let log = place.dir.path().join("db/log/00000001.log");
    let mut file = std::fs::File::options().append(true).open(log).unwrap();
    file.write_all(b"torn").unwrap();
    let limited = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
        command.arg(env!("CARGO_BIN_EXE_loomdb")).args(arguments);
        Ran::of(command.current_dir(&place.dir).stdin(Stdio::null()).output().unwrap())
    };
    let whose = ["db", "-u", "u"];
    for command in [
        &["search", "db", "-u", "u", "kept"][..],
        &["get", "db", "-u", "u", &id],
        &["history", "db", "-u", "u", &id],
        &[&["timeline"], &whose[..]].concat(),
        &[&["count"], &whose[..]].concat(),
        &["users", "db"],
        &["stats", "db"],
        &["verify", "db"],
    ] {
        let ran = limited(command);
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.err);
        assert!(ran.err.contains("read-only"), "{command:?}: {}", ran.err);
    }
    for command in [&["add", "db", "-u", "u", "y"][..], &["delete", "db", "-u", "u", &id]] {
        let ran = limited(command);
        assert!(ran.code == 8 && ran.err.contains("--read-only"), "{}: {}", ran.code, ran.err);
    }
    assert_eq!(place.texts(), ["kept"]);
}

#[test]
fn a_users_name_stays_on_its_line_and_does_nothing_to_a_terminal() {
    let place = Place::new();
    place.run(&["add", "db", "--user", "a\n\u{1b}[2Jb", "x"]).ok();
    assert_eq!(place.run(&["users", "db"]).ok().out, "a\\u{a}\\u{1b}[2Jb\n");
}

#[test]
fn verify_tells_the_damage_of_every_file_of_a_database_that_cannot_be_opened() {
    let place = Place::new();
    for number in 0..2 {
        place.file("turns.jsonl", turns(20 * (number + 1)));
        place.run(&["import", "db", "turns.jsonl"]).ok();
        place.run(&["checkpoint", "db"]).ok();
    }
    place.add("in the log", &[]);
    let files = |directory: &str| {
        let entries = std::fs::read_dir(place.dir.path().join("db").join(directory)).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let flip = |path: &Path, at: usize| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[at] ^= 1;
        // Sealed segments are read-only, so that the file is replaced.
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    let (segments, logs) = (files("segments"), files("log"));
    assert_eq!(segments.len(), 2);
    let mut damaged = vec![place.dir.path().join("db/FORMAT"), logs[logs.len() - 1].clone()];
    damaged.extend(segments);
    // The log's header, the others in their middle.
    damaged.iter().enumerate().for_each(|(number, path)| {
        let middle = std::fs::metadata(path).unwrap().len() as usize / 2;
        flip(path, if number == 1 { 3 } else { middle });
    });
    let told = |damaged: &[std::path::PathBuf]| {
        let ran = place.run(&["verify", "db", "--json"]);
        assert_eq!(ran.code, 6);
        let found = ran.json();
        let problems = found["problems"].as_array().unwrap().clone();
        for path in damaged {
            let named =
                problems.iter().any(|problem| problem["file"] == json!(path.to_str().unwrap()));
            assert!(named, "{}: {problems:?}", path.display());
        }
        problems.len()
    };
    assert_eq!(told(&damaged), damaged.len(), "each once, and nothing else");
    // Without a catalog every segment that is there is looked at.
    damaged.push(place.dir.path().join("db/catalog.redb"));
    std::fs::write(&damaged[4], "no catalog").unwrap();
    // Now nothing names the database whose files these are.
    told(&[damaged[0].clone(), damaged[4].clone()]);
}
