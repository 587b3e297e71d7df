//! Arithmetic on slices: dot products, bit counts, rotation and codes. Pure; `unsafe` lives here and in the map file.

pub mod codec;
