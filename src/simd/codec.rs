//! One-bit codes.

/// Turns vectors of one space into codes and scores codes against a query.
#[derive(Debug)]
pub struct Codec {}
