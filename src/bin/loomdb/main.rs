//! The command line of LoomDB: `loomdb COMMAND DB ..`.
//!
//! stdout is data, stderr is talk, exit codes follow the kinds of errors ([`failure`]).

mod args;
mod audit;
mod contrast;
mod database;
mod demo;
mod eval;
mod failure;
mod import;
mod ingest;
mod json;
mod maintain;
mod output;
mod read;
mod search;
mod temporary;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut output = Output::new(cli.json);
    let result = run(cli.command, &mut output);
    // What was written before a failure is still an answer.
    let result = result.and(output.flush().map_err(Failure::from));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::say(&message);
            }
            failure.code()
        }
    }
}

fn run(command: Command, output: &mut Output) -> Result<(), Failure> {
    match command {
        Command::Audit(arguments) => audit::audit(&arguments, output),
        Command::Demo(arguments) => demo::demo(&arguments, output),
        Command::Eval(arguments) => eval::eval(&arguments, output),
        Command::Init(arguments) => maintain::init(&arguments, output),
        Command::Add(arguments) => ingest::add(arguments, output),
        Command::Import(arguments) => ingest::import(&arguments, output),
        Command::Search(arguments) => search::search(arguments, output),
        Command::Timeline(arguments) => read::timeline(&arguments, output),
        Command::Get(arguments) => read::get(&arguments, output),
        Command::History(arguments) => read::history(&arguments, output),
        Command::Update(arguments) => ingest::update(arguments, output),
        Command::Delete(arguments) => ingest::delete(&arguments, output),
        Command::Count(arguments) => read::count(&arguments, output),
        Command::Users(arguments) => read::users(&arguments, output),
        Command::Stats(arguments) => maintain::stats(&arguments, output),
        Command::Verify(arguments) => maintain::verify(&arguments, output),
        Command::Checkpoint(arguments) => maintain::checkpoint(&arguments, output),
    }
}
