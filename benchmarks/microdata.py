"""Microdata: risk of 8 million records, MDAV up to a million, the θ study.

``python -m benchmarks.microdata [risk|mdav|study …] [--records N]``; without names all three. Peers are run on the same data in the same
process, so that the ratios hold on any machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import tabprotect as tp
from benchmarks.common import peak_memory_gib, save
from tabprotect.microdata.classes import Sensitive, class_table
from tabprotect.microdata.encode import encode
from tabprotect.microdata.frames import read
from tabprotect.microdata.keyed import keyed
from tabprotect.microdata.mdav import mdav
from tabprotect.microdata.study import theta_study
from tabprotect.microdata.tally import tally

KEYS = ["region", "age", "sex", "occupation", "education", "size"]


def census(n: int, seed: int = 1) -> pd.DataFrame:
    """Six keys that make about three quarters as many classes as records, and an income."""
    rng = np.random.default_rng(seed)

    def skewed(size: int, power: float) -> np.ndarray:
        weight = 1.0 / np.arange(1, size + 1) ** power
        return rng.choice(size, n, p=weight / weight.sum())

    return pd.DataFrame(
        {
            "region": skewed(200, 1.0),
            "age": rng.integers(0, 95, n),
            "sex": rng.integers(0, 2, n),
            "occupation": skewed(120, 1.0),
            "education": skewed(8, 0.8),
            "size": skewed(9, 1.2),
            "income": (rng.lognormal(7.5, 0.6, n) // 10 * 10).astype(np.int64),
        }
    )


def timed(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[float, float, Any]:
    """Wall time, processor time and the answer."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = call(*args, **options)
    return time.perf_counter() - wall, time.process_time() - cpu, answer


def bench_risk(n: int) -> list[dict[str, Any]]:
    """All measures in one call, its steps, the same with text keys, 24 keys, and what peers need for class sizes alone."""
    rows = []
    df = census(n)
    options: dict[str, Any] = {"keys": KEYS, "sensitive": "income", "fraction": 0.1, "tolerance": 30}
    tp.microdata.risk(df.head(1000), **options)  # compiled kernels are loaded once
    base = peak_memory_gib()
    wall, cpu, found = min((timed(tp.microdata.risk, df, **options) for _ in range(3)), key=lambda x: x[0])
    rows.append(
        {"task": "risk, all measures", "records": n, "classes": found.classes_count, "wall_s": wall, "cpu_s": cpu,
         "peak_gib": peak_memory_gib(), "frame_gib": base}
    )  # fmt: skip
    frame = read(df)
    for step, call in (
        ("encode 6 keys and combine", lambda: keyed(frame, KEYS, "class")),
        ("encode income", lambda: Sensitive.of(encode(frame, "income"))),
    ):
        wall, cpu, _ = timed(call)
        rows.append({"task": f"step: {step}", "records": n, "wall_s": wall, "cpu_s": cpu})
    records, income = keyed(frame, KEYS, "class"), Sensitive.of(encode(frame, "income"))
    wall, cpu, table = timed(class_table, records.key, records.span, income)
    rows.append({"task": "step: sort and scan", "records": n, "wall_s": wall, "cpu_s": cpu})
    wall, cpu, _ = timed(tally, table, income, 30.0)
    rows.append({"task": "step: sums over classes", "records": n, "wall_s": wall, "cpu_s": cpu})
    del records, income, table, found
    rows += _peers(df, n)
    text = df.assign(region="r" + df["region"].astype(str), occupation="o" + df["occupation"].astype(str))
    wall, cpu, _ = timed(tp.microdata.risk, text, **options)
    rows.append({"task": "risk, two text keys (object strings)", "records": n, "wall_s": wall, "cpu_s": cpu})
    arrow = read(text).to_arrow()
    wall, cpu, _ = timed(tp.microdata.risk, arrow, **options)
    rows.append({"task": "risk, two text keys (Arrow)", "records": n, "wall_s": wall, "cpu_s": cpu})
    del text, arrow
    rng = np.random.default_rng(2)
    wide = df.drop(columns="income").assign(**{f"x{i}": rng.integers(0, 12, n) for i in range(18)})
    wall, cpu, _ = timed(tp.microdata.risk, wide, keys=list(wide.columns))
    rows.append({"task": "risk, 24 keys", "records": n, "wall_s": wall, "cpu_s": cpu, "peak_gib": peak_memory_gib()})
    return rows


def _peers(df: pd.DataFrame, n: int) -> list[dict[str, Any]]:
    """Class sizes only: a part of what risk() computes."""
    import duckdb
    import polars as pl

    sizes = [int(df[c].max()) + 1 for c in KEYS]

    def by_numpy() -> int:
        key = np.zeros(n, np.int64)
        for c, size in zip(KEYS, sizes, strict=True):
            key = key * size + df[c].to_numpy()
        return len(np.unique(key, return_counts=True)[1])

    lazy = pl.from_pandas(df).lazy()
    relation = duckdb.connect().from_arrow(lazy.collect().to_arrow())
    listed = ", ".join(KEYS)
    calls: dict[str, Callable[[], Any]] = {
        "numpy unique": by_numpy,
        "duckdb": lambda: relation.aggregate("count(*) as n", listed).aggregate("count(*)").fetchall(),
        "polars": lambda: lazy.group_by(KEYS).len().collect().height,
        "pandas": lambda: len(df.groupby(KEYS).size()),
    }
    rows = []
    for name, call in calls.items():
        wall, cpu, _ = timed(call)
        rows.append({"task": f"peer, class sizes only: {name}", "records": n, "wall_s": wall, "cpu_s": cpu})
    return rows


def bench_mdav(sizes: list[int]) -> list[dict[str, Any]]:
    """Exact MDAV, k=3, five columns (sdcMicro: 0.45 s at 10,000 and 78 s at 100,000 on an idle machine), and in blocks."""
    rows = []
    mdav(np.random.default_rng(0).standard_normal((100, 5)), 3)
    for n in sizes:
        df = pd.DataFrame(np.random.default_rng(0).standard_normal((n, 5)), columns=list("abcde"))
        for blocks in (1, max(n // 20_000, 2)):
            wall, cpu, done = timed(tp.microdata.microaggregate, df, columns=list("abcde"), k=3, blocks=blocks)
            rows.append(
                {"task": "mdav k=3, 5 columns", "records": n, "blocks": blocks, "wall_s": wall, "cpu_s": cpu,
                 "loss_percent": done.details["information loss %"]}
            )  # fmt: skip
    return rows


def bench_study() -> list[dict[str, Any]]:
    """36 settings × 1,000 samples."""
    theta_study(samples=2)
    wall, cpu, found = timed(theta_study, samples=1000)
    return [
        {
            "task": "θ study, 36 × 1,000 samples",
            "wall_s": wall,
            "cpu_s": cpu,
            "claims_hold": all(found.claims().values()),
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["risk", "mdav", "study"])
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    args = parser.parse_args()
    if "risk" in args.what:
        save(
            "microdata_risk", bench_risk(args.records), "all measures; peers compute class sizes only; times in seconds"
        )
    if "mdav" in args.what:
        save(
            "microdata_mdav",
            bench_mdav(args.sizes),
            "blocks=1 is exact MDAV; loss is 100·SSE/SST of standardised columns",
        )
    if "study" in args.what:
        save("microdata_study", bench_study())


if __name__ == "__main__":
    main()
