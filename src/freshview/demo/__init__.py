"""A TPC-H warehouse with views, and seeded changes to it: for the demo and the benchmarks."""
