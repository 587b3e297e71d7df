//! Child processes of the test: this very binary, started again with a role in its environment.
//!
//! Invariant: only children started here are killed, each through its own handle, and none outlives the fleet.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names the role of a child: role, number, directory, seed, seconds to live.
pub const ROLE: &str = "LOOMDB_TEST_ROLE";

/// What a child is to do.
#[derive(Clone, Debug)]
pub struct Task {
    pub role: &'static str,
    pub number: usize,
}

/// What a child finds in its environment.
pub struct Orders {
    pub role: String,
    pub number: usize,
    pub seed: u64,
    pub deadline: Instant,
    pub directory: PathBuf,
}

impl Orders {
    /// `None` in the test process itself.
    pub fn read() -> Option<Orders> {
        let orders = std::env::var(ROLE).ok()?;
        let mut words = orders.splitn(5, ' ');
        let mut word = || words.next().expect("five words").to_owned();
        let (role, number, seed, seconds) = (word(), word(), word(), word());
        let seconds = Duration::from_secs(seconds.parse().unwrap());
        Some(Orders {
            role,
            number: number.parse().unwrap(),
            seed: seed.parse().unwrap(),
            deadline: Instant::now() + seconds,
            directory: word().into(),
        })
    }

    /// Leaves word of a failure for the parent, and ends.
    pub fn fail(&self, error: &str) -> ! {
        let path = failure_path(&self.directory, &self.role, self.number);
        fs::write(path, error).unwrap();
        std::process::exit(3);
    }
}

fn failure_path(directory: &Path, role: &str, number: usize) -> PathBuf {
    directory.join(format!("failure-{role}-{number}"))
}

/// A command that runs `child_entry` of this binary with these orders.
pub fn command(directory: &Path, task: &Task, seed: u64, seconds: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    prepare(&mut command, directory, task, seed, seconds);
    command
}

/// The same through a shell that runs `first` before.
pub fn shell(first: &str, directory: &Path, task: &Task, seed: u64, seconds: u64) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{first}; exec \"$0\" \"$@\""));
    command.arg(std::env::current_exe().unwrap());
    prepare(&mut command, directory, task, seed, seconds);
    command
}

fn prepare(command: &mut Command, directory: &Path, task: &Task, seed: u64, seconds: u64) {
    let Task { role, number } = task;
    let log = directory.join(format!("stderr-{role}-{number}"));
    command
        .args(["--exact", "child_entry", "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{role} {number} {seed} {seconds} {}", directory.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::options().create(true).append(true).open(log).unwrap());
}

/// Children that are killed and started again.
pub struct Fleet {
    directory: PathBuf,
    tasks: Vec<Task>,
    children: Vec<Child>,
    seconds: u64,
    pub kills: u64,
}

impl Fleet {
    pub fn start(directory: &Path, tasks: Vec<Task>, seed: u64, seconds: u64) -> Fleet {
        let spawn = |task| command(directory, task, seed, seconds).spawn().unwrap();
        let children = tasks.iter().map(spawn).collect();
        Fleet { directory: directory.to_path_buf(), tasks, children, seconds, kills: 0 }
    }

    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Kills one child, at whatever it is doing, and counts it if it was alive.
    pub fn kill(&mut self, at: usize) {
        self.check_alive(at);
        // On Unix this is SIGKILL, to the process started here, which has not been waited for.
        self.children[at].kill().unwrap();
        self.children[at].wait().unwrap();
        self.kills += 1;
    }

    pub fn start_again(&mut self, at: usize, seed: u64) {
        let mut command = command(&self.directory, &self.tasks[at], seed, self.seconds);
        self.children[at] = command.spawn().unwrap();
    }

    /// A child that ends by itself has found something wrong.
    pub fn check_alive(&mut self, at: usize) {
        if let Some(status) = self.children[at].try_wait().unwrap() {
            let Task { role, number } = &self.tasks[at];
            let said = fs::read_to_string(failure_path(&self.directory, role, *number));
            let log = fs::read_to_string(self.directory.join(format!("stderr-{role}-{number}")));
            let (said, log) = (said.unwrap_or_default(), log.unwrap_or_default());
            panic!("{role} {number} ended with {status}: {said}\n{log}");
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that has ended already cannot be killed any more, which is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
