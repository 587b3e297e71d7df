//! Several processes on one database: killed at any moment, starting at once, waiting for one another.

mod fleet;
mod fork;
mod growth;
mod opening;
mod oracle;
mod random;
mod refusing;
mod roles;
mod storm;
mod waiting;
mod writer;

use fleet::Orders;

/// Not a test: what this binary does when it is started again as a child. Without orders it does nothing.
#[test]
fn child_entry() {
    let Some(orders) = Orders::read() else { return };
    let Orders { number, seed, deadline, ref directory, .. } = orders;
    let outcome = match &orders.role[..] {
        "write" => writer::write(directory, number, seed, deadline),
        "read" => roles::read(directory, number, deadline),
        "checkpoint" => roles::checkpoint(directory, seed, deadline),
        "fill" => writer::fill(directory, number, seed),
        "open" => opening::open(directory, number, deadline),
        "hold" => waiting::hold(directory, deadline),
        "fork" => fork::fork(directory),
        other => Err(format!("no role {other}")),
    };
    if let Err(error) = outcome {
        orders.fail(&error);
    }
}

/// Every byte of the database is as it should be.
#[track_caller]
fn assert_whole(db: &loomdb::Db) {
    let verification = db.verify().unwrap();
    assert!(verification.is_whole(), "{:?}", verification.problems);
}
