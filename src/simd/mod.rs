//! Arithmetic on slices: dot products, 1-bit codes and their scan, the best of many scores.
//!
//! Pure. `unsafe` lives here and in the one map file, each block with its proof. What a kernel computes is defined in
//! [`reference`]; codes, factors and estimates have the same bits on every machine, dot products differ in the last
//! ones, so a dot product is never stored as truth.

pub mod codec;
mod floats;
mod kernels;
mod portable;
mod reference;
mod rotate;
mod rounded;
mod scan;
mod select;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

pub use codec::{Codec, QUERY_BITS};
pub use floats::{as_floats, prefetch};
pub use kernels::{dot, kernel_names};
pub use rounded::Rounded;
pub use scan::CodeQuery;
pub use select::{Best, Scored};
