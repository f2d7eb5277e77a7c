"""Benchmarks on standard instances: seeded families, JJ folders, own instances; results, tables, plots and comparisons."""
