"""Run cases by methods and keep what came out: cost, bound, gap, time, safety."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabprotect.attacker import attack, verify
from tabprotect.bench.cases import Case
from tabprotect.bench.environment import environment
from tabprotect.errors import InputError, TabprotectError
from tabprotect.files import replacing, write_text
from tabprotect.solve.stop import Listener, Progress
from tabprotect.suppression import suppress
from tabprotect.table.table import Table

if TYPE_CHECKING:
    import pandas as pd


def run(
    cases: Iterable[Case],
    methods: Sequence[str] = ("auto",),
    *,
    time_limit: float = 60.0,
    repeat: int = 1,
    peers: Iterable[Any] = (),
    progress: Listener | None = None,
) -> pd.DataFrame:
    """One row per case, method and repetition; a method that fails leaves a row that says how."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    start = time.perf_counter()
    for case in cases:
        table = case.make()
        for method in methods:
            for turn in range(repeat):
                if progress is not None:
                    progress(Progress(time.perf_counter() - start, f"{case.name} by {method}", done=len(rows)))
                rows.append(
                    _describe(case, table) | {"method": method, "turn": turn} | _once(case, table, method, time_limit)
                )
        rows += [
            _describe(case, table) | {"method": peer.name, "turn": 0} | peer.run(table, time_limit) for peer in peers
        ]
    return pd.DataFrame(rows)


def _describe(case: Case, table: Table) -> dict[str, Any]:
    return {
        "case": case.name,
        "family": case.family,
        "cells": table.n_cells,
        "relations": table.n_relations,
        "primary": int(table.primary.sum()),
        "best_known": case.best,
        "best_bound": case.bound,
        "source": case.source,
    }


def _once(case: Case, table: Table, method: str, time_limit: float) -> dict[str, Any]:
    """Run once, attack the result with other code, check the certificate."""
    news: list[Progress] = []
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        if case.task == "round":
            from tabprotect.rounding import round_table

            res = round_table(table, base=5, method="controlled", time_limit=time_limit)
        else:
            res = suppress(table, method=method, time_limit=time_limit, progress=news.append)
    except TabprotectError as error:
        return {"status": type(error).__name__, "error": str(error)[:200], "wall": time.perf_counter() - wall}
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    first = next((p.seconds for p in news if p.cost is not None), None)
    safe = attack(res, goal="verdict").safe and verify(res.certificate).ok if case.task == "suppress" else True
    return {
        "status": res.status,
        "objective": res.objective,
        "secondary": res.objective - float(table.weights()[table.primary].sum()) if case.task == "suppress" else None,
        "bound": res.bound,
        "gap": res.gap,
        "wall": wall,
        "cpu": cpu,
        "first_incumbent": first,
        "safe": bool(safe),
        "used": res.method,
    }


def save(frame: pd.DataFrame, path: str | Path, command: str = "") -> Path:
    """Write results as JSON or Parquet, with machine, date and versions."""
    target = Path(path)
    about = environment() | {"command": command}
    if target.suffix == ".json":
        return write_text(
            target,
            json.dumps({"environment": about, "rows": json.loads(frame.to_json(orient="records"))}, indent=1) + "\n",
        )
    if target.suffix in (".parquet", ".pq"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(frame, preserve_index=False)
        meta = {**(table.schema.metadata or {}), b"tabprotect": json.dumps(about).encode()}
        with replacing(target) as temporary:
            pq.write_table(table.replace_schema_metadata(meta), temporary)
        return target
    raise InputError(f"results are written as .json or .parquet, not {target.suffix!r}", file=target)


def load(path: str | Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Results and environment from a file written by `save`."""
    import pandas as pd

    target = Path(path)
    try:
        if target.suffix == ".json":
            data = json.loads(target.read_text(encoding="utf-8"))
            return pd.DataFrame(data["rows"]), data["environment"]
        import pyarrow.parquet as pq

        table = pq.read_table(target)
        return table.to_pandas(), json.loads((table.schema.metadata or {}).get(b"tabprotect", b"{}"))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"cannot be read as benchmark results: {error}", file=target) from None
