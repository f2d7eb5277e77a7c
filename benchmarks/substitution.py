"""Random substitution against the numpy prototype: ``python -m benchmarks.substitution [--records 100000000]``.

The prototype is the plain vectorised form of the γ-diagonal rule with numpy's (non-cryptographic) generator. Times are the best of
several calls in this process; the ratio to the prototype is what counts.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.common import best_of, peak_memory_gib, save
from tabprotect.substitution import GammaDiagonal, Product, Retention, Transition

GAMMA = 19.0


def prototype(codes: Any, n: int, rng: np.random.Generator) -> Any:
    """Keep with probability γ/(γ+n−1), else another value."""
    keep = rng.random(codes.size) < GAMMA / (GAMMA + n - 1)
    other = rng.integers(0, n - 1, codes.size)
    other += other >= codes
    return np.where(keep, codes, other)


def randomize_rows(records: int = 1_000_000, n: int = 100) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n, records)
    gamma, general = GammaDiagonal(n, GAMMA), Transition(GammaDiagonal(n, GAMMA).dense())
    calls = {
        "numpy prototype": lambda: prototype(codes, n, rng),
        "GammaDiagonal, secure": lambda: gamma.randomize(codes),
        "GammaDiagonal, seeded": lambda: gamma.randomize(codes, seed=1),
        "Retention, secure": lambda: Retention(0.15, np.ones(n)).randomize(codes),
        "Transition (dense), secure": lambda: general.randomize(codes),
    }
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()  # compile and warm up
    for _ in range(25):  # in turns, so that a busy machine slows all of them alike
        for name, call in calls.items():
            best[name] = min(best[name], best_of(call, 1)[0])
    what, base = f"randomize {records:,} records, n = {n}", best["numpy prototype"]
    return [{"what": what, "how": name, "seconds": s, "of_prototype": s / base} for name, s in best.items()]


def reconstruct_rows() -> list[dict[str, Any]]:
    y = np.bincount(np.random.default_rng(0).integers(0, 10**6, 10**6), minlength=10**6)
    joint, product = GammaDiagonal((100, 100, 100), 1000.0), Product([GammaDiagonal(100, 50.0)] * 3)
    calls = {
        "GammaDiagonal on the product, unbiased": lambda: joint.reconstruct(y),
        "GammaDiagonal on the product, nnls": lambda: joint.reconstruct(y, method="nnls"),
        "GammaDiagonal on the product, ml": lambda: joint.reconstruct(y, method="ml"),
        "GammaDiagonal on the product, estimate with errors": lambda: joint.estimate(y),
        "Product of three, unbiased": lambda: product.reconstruct(y),
        "Product of three, estimate with errors": lambda: product.estimate(y),
    }
    rows = []
    for name, call in calls.items():
        seconds, _ = best_of(call, 5)
        rows.append({"what": "reconstruct, domain of 10^6 values", "how": name, "seconds": seconds})
    return rows


def chunk_row(records: int, chunk: int = 1 << 20, n: int = 100) -> dict[str, Any]:
    """Randomise and count chunk by chunk; nothing but one chunk is held."""
    matrix, codes = GammaDiagonal(n, GAMMA), np.random.default_rng(0).integers(0, n, chunk, dtype=np.int32)
    before, total, start = peak_memory_gib(), np.zeros(n), time.perf_counter()
    sizes = (min(chunk, records - done) for done in range(0, records, chunk))
    for released in matrix.randomize_chunks((codes[:size] for size in sizes), seed=1):
        total += np.bincount(released, minlength=n)
    seconds = time.perf_counter() - start
    assert total.sum() == records
    return {
        "what": f"randomize and count {records:,} records in chunks",
        "how": "GammaDiagonal",
        "seconds": seconds,
        "records_per_second": records / seconds,
        "extra_memory_gib": peak_memory_gib() - before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000_000, help="records of the chunked run")
    options = parser.parse_args()
    rows = [*randomize_rows(), *reconstruct_rows(), chunk_row(options.records)]
    save(
        "substitution",
        rows,
        note="ratios to the numpy prototype within this run; the prototype's generator is not cryptographic",
    )


if __name__ == "__main__":
    main()
