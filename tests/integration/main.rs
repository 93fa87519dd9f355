//! Tests of the crate from outside: fixtures with known answers, equivalence with a slow reference, damaged stores, real data.
#![cfg(test)]

mod allocation;
mod cases;
mod cell;
mod equivalence;
mod mutations;
mod real;

use std::path::PathBuf;

/// The fixtures: stores, and the queries over them with their rows.
fn fixtures() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures"].iter().collect()
}
