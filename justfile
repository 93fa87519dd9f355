# Everything that CI runs.
check:
    .ci/run

# The tests alone; `just test equivalence` for some of them.
test filter="":
    cargo test {{filter}}

# 20 000 random stores against the reference reader, and 10 000 mutated stores.
proof:
    ZARR_EQUIVALENCE_CASES=20000 cargo test --test integration equivalence -- --nocapture
    ZARR_MUTATIONS=10000 cargo test --test integration mutations -- --nocapture

# SELECT * against the decode floor; ZARR_BENCH_DATA names the folder of the synthetic stores.
bench filter="":
    cargo bench --bench scan -- {{filter}}
