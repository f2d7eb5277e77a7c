"""Every kind of frame gives the same answer; bad data are explained."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tabprotect as tp
from tabprotect.errors import InputError
from tabprotect.microdata.encode import combine, encode, group
from tabprotect.microdata.frames import read, write
from tabprotect.microdata.synthetic import households

md = tp.microdata
OPTIONS = {"keys": ["sex", "age", "town"], "sensitive": ["income", "town2"], "fraction": 0.1}


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    df = households(800, seed=4)
    rng = np.random.default_rng(0)
    df["town"] = rng.choice(np.array(["Seoul", "Busan", None], dtype=object), len(df))
    df["town2"] = rng.choice(["x", "y", "z"], len(df))
    df["born"] = pd.Timestamp("2010-01-01") - pd.to_timedelta(df["age"] * 365, unit="D")
    return df


@pytest.fixture(scope="module")
def answer(people: pd.DataFrame) -> dict:
    return md.risk(people, **OPTIONS).to_dict()


def make(kind: str, people: pd.DataFrame, folder: Path) -> object:
    if kind == "polars":
        return pl.from_pandas(people)
    if kind == "lazy":
        return pl.from_pandas(people).lazy()
    if kind == "arrow":
        return pa.Table.from_pandas(people)
    if kind == "duckdb":
        return duckdb.sql("select * from people")
    if kind == "categorical":
        return people.assign(town=people["town"].astype("category"), sex=people["sex"].astype("Int8"))
    if kind == "dict":
        return {c: people[c].tolist() for c in people}
    path = folder / f"people.{kind}"
    if kind == "csv":
        people.to_csv(path, index=False)
    else:
        people.to_parquet(path)
    return str(path) if kind == "csv" else path


@pytest.mark.parametrize("kind", ["polars", "lazy", "arrow", "duckdb", "categorical", "dict", "csv", "parquet"])
def test_same_risk_from_every_frame(kind: str, people: pd.DataFrame, answer: dict, tmp_path: Path) -> None:
    found = md.risk(make(kind, people, tmp_path), **OPTIONS)
    assert found.to_dict() == answer
    assert len(nw.from_native(found.classes, eager_only=True)) == found.classes_count
    assert len(nw.from_native(found.riskiest(5), eager_only=True)) == 5


@pytest.mark.parametrize("kind", ["polars", "arrow", "parquet"])
def test_verbs_return_the_frame_they_got(kind: str, people: pd.DataFrame, tmp_path: Path) -> None:
    data = make(kind, people, tmp_path)
    done = md.generalize(data, hierarchies={"age": [5, 10, 20], "sex": [], "town": []}, k=3, suppression=0.05)
    same = md.generalize(people, hierarchies={"age": [5, 10, 20], "sex": [], "town": []}, k=3, suppression=0.05)
    assert isinstance(done.data, pl.DataFrame if kind == "polars" else pa.Table)
    assert read(done.data).get_column("age").to_list() == same.data["age"].tolist()
    grouped = md.microaggregate(data, columns=["income", "town2"], k=4)
    assert (
        read(grouped.data).get_column("town2").to_list()
        == md.microaggregate(people, columns=["income", "town2"], k=4).data["town2"].tolist()
    )
    blanked = md.suppress_cells(data, keys=["sex", "age"], k=3)
    assert md.risk(blanked.data, keys=["sex", "age"]).k >= 3
    assert md.dissimilarity(data, done).RTab == pytest.approx(md.dissimilarity(people, same).RTab)


def test_pandas_index_is_no_obstacle(people: pd.DataFrame) -> None:
    odd = people.set_axis(people.index[::-1] * 7)
    done = md.suppress_records(md.recode(odd, {"age": 10}), keys=["sex", "age"], k=5)
    assert done.data["income"].tolist() == people["income"].iloc[done.kept].tolist()


@pytest.mark.parametrize("parts", [1, 3])
def test_a_file_in_parts(parts: int, people: pd.DataFrame, answer: dict, tmp_path: Path) -> None:
    people.to_parquet(tmp_path / "p.parquet")
    with ThreadPoolExecutor(2) as pool:
        found = md.risk(tmp_path / "p.parquet", **OPTIONS, parts=parts, executor=pool)
    assert _close(found.to_dict(), answer)
    with pytest.raises(InputError, match="in parts"):
        _ = found.records
    with pytest.raises(InputError, match="parts"):
        md.risk(tmp_path / "p.parquet", **OPTIONS, parts=2, missing="wildcard")
    dropped = md.risk(tmp_path / "p.parquet", **OPTIONS, parts=2, missing="drop").to_dict()
    whole = md.risk(people, **OPTIONS, missing="drop").to_dict()
    assert _close(dropped | {"dropped": 0}, whole | {"dropped": 0})


def _close(a: dict, b: dict) -> bool:
    return all(a[k] == b[k] or a[k] == pytest.approx(b[k]) for k in b)


@pytest.fixture(scope="module")
def spark() -> Iterator[object]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need this interpreter's packages
    builder = pytest.importorskip("pyspark.sql").SparkSession.builder.master("local[1]")
    session = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


@pytest.mark.spark
@pytest.mark.slow
def test_spark_frame(spark: object, people: pd.DataFrame, answer: dict) -> None:
    frame = spark.createDataFrame(people[["sex", "age", "town", "income", "town2"]])  # type: ignore[attr-defined]
    assert _close(md.risk(frame, **OPTIONS, parts=3).to_dict(), answer)
    done = md.recode(frame, {"age": 10})
    assert done.data["age"].tolist() == md.recode(people, {"age": 10}).data["age"].tolist()


def test_encoding_every_type(people: pd.DataFrame) -> None:
    df = people.head(50).assign(
        flag=[True, False] * 25,
        maybe=[True, None] * 25,
        big=np.arange(50) * 10**15,
        tiny=np.linspace(0, 1, 50).round(1),
        none=None,
    )
    frame = read(df)
    for name in df.columns:
        e = encode(frame, name)
        back = pd.Series(e.decoded(e.codes))
        assert (back.isna().to_numpy() == df[name].isna().to_numpy()).all()
        some = df[name].notna().to_numpy()
        assert (back[some].to_numpy() == df[name][some].to_numpy()).all()
        assert e.size == df[name].nunique()
        if e.ordered:
            assert (np.diff(e.values) > 0).all()


def test_ordered_categories_have_the_ordered_distance() -> None:
    sizes = pd.Categorical(list("SMLSML"), categories=list("SML"), ordered=True)
    df = pd.DataFrame({"a": [1, 1, 1, 2, 2, 2], "s": sizes})
    df.loc[:2, "s"] = "S"
    ordered = md.risk(df, keys=["a"], sensitive="s").t
    assert ordered == pytest.approx(md.risk(df.assign(s=df["s"].cat.codes), keys=["a"], sensitive="s").t)
    assert ordered != md.risk(df, keys=["a"], sensitive="s", distance="equal").t


def test_group_and_combine_agree_with_numpy() -> None:
    rng = np.random.default_rng(0)
    for sizes in ([3, 4], [1 << 20, 1 << 20, 1 << 20], [50] * 12):
        codes = [rng.integers(0, s, 500).astype(np.int32) for s in sizes]
        for c in codes:
            c[:50] = c[50:100]
        key, span = combine(codes, sizes, 500)
        ids, count = group(key, span)
        _, want = np.unique(np.stack(codes), axis=1, return_inverse=True)
        assert count == want.max() + 1
        assert len({(int(a), int(b)) for a, b in zip(ids, want.ravel(), strict=True)}) == count


def test_files_are_checked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        md.risk(tmp_path / "none.parquet", keys=["a"])
    (tmp_path / "x.dat").write_text("a")
    with pytest.raises(InputError, match="suffix"):
        md.risk(tmp_path / "x.dat", keys=["a"])
    with pytest.raises(InputError, match="cannot read microdata"):
        md.risk(3, keys=["a"])
    with pytest.raises(InputError, match="suffix"):
        write(pd.DataFrame({"a": [1]}), tmp_path / "x.doc")
    write(pd.DataFrame({"a": [1]}), tmp_path / "x.csv")
    assert md.risk(tmp_path / "x.csv", keys=["a"]).n == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.csv", "x.dat"]
