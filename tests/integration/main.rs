//! Tests of the crate from outside: fixtures with known answers, equivalence with a slow reference, damaged stores, real data.
#![cfg(test)]

mod allocation;
mod analyzer;
mod cases;
mod cell;
#[cfg(feature = "cli")]
mod cli;
mod equivalence;
mod mutations;
mod pushdown;
mod real;
mod sqllogic;
mod surface;

use std::path::PathBuf;

/// The fixtures: stores, and the queries over them with their rows.
fn fixtures() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures"].iter().collect()
}

/// The store of the documentation's examples.
fn demo() -> String {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", "air_temperature_small.zarr"]
        .iter()
        .collect::<PathBuf>()
        .display()
        .to_string()
}
