"""Randomisation: the random source, the kernels, and what goes in and out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tabprotect.errors import InputError
from tabprotect.substitution import GammaDiagonal, Matrix, Product, Retention, Stream, Transition
from tabprotect.substitution.chacha import WORDS, refill

GENERAL = np.array([[0.7, 0.1, 0.2], [0.2, 0.8, 0.0], [0.1, 0.1, 0.8]])
MATRICES: dict[str, Matrix] = {
    "gamma": GammaDiagonal(6, gamma=3),
    "tiny gamma": GammaDiagonal(4, gamma=1.001),
    "retention": Retention([0.9, 0.5, 0.2, 0.7], [0.4, 0.3, 0.2, 0.1]),
    "dense": Transition(GENERAL),
    "sparse": Transition(sp.csr_array(GENERAL)),
    "joint": GammaDiagonal((2, 3), gamma=4),
    "product": Product([GammaDiagonal(2, gamma=3), Retention(0.5, [0.2, 0.3, 0.5]), Transition(GENERAL)]),
}


def test_block_function_of_rfc_8439() -> None:
    """The test vector of section 2.3.2; our counter has 64 bits, so its nonce's first word is the counter's upper half."""
    stream = Stream.from_key(bytes(range(32)), reproducible=True)
    stream.state[14:16] = 0x4A000000, 0
    words = np.empty(WORDS, np.uint64)
    refill(words, stream.state, (0x09000000 << 32) | 1)
    expected = (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert words[:8].astype("<u8").tobytes().hex() == expected


def test_stream_does_not_depend_on_how_it_is_read() -> None:
    whole = Stream.seeded(5).words(5000)
    pieces = Stream.seeded(5)
    assert (np.concatenate([pieces.words(k) for k in (1, 7, 8, 1000, 1024, 2960)]) == whole).all()
    assert np.unique(whole).size == 5000
    assert (Stream.seeded(6).words(10) != whole[:10]).all()
    assert not np.array_equal(Stream.secure().words(4), Stream.secure().words(4))


@pytest.mark.parametrize("name", MATRICES)
def test_every_column_of_the_matrix_is_hit(name: str) -> None:
    """Chi-square of the released values of each true value against its column; p-values are fixed by the seed."""
    matrix, records = MATRICES[name], 60_000
    columns = matrix.dense().T
    codes = np.repeat(np.arange(matrix.n), records)
    released = matrix.randomize(codes, seed=11).reshape(matrix.n, records)
    for k in range(matrix.n):
        possible = columns[k] > 0
        seen = np.bincount(released[k], minlength=matrix.n)
        assert not seen[~possible].any()
        assert chisquare(seen[possible], records * columns[k][possible] / columns[k].sum()).pvalue > 1e-4


@pytest.mark.parametrize("name", MATRICES)
def test_chunks_threads_and_integer_types_change_nothing(name: str) -> None:
    matrix = MATRICES[name]
    codes = np.random.default_rng(0).integers(0, matrix.n, 3333)
    whole = matrix.randomize(codes, seed=2)
    cuts = np.array_split(codes, [1, 2, 9, 1000, 1001, 2500])
    assert (np.concatenate(list(matrix.randomize_chunks(cuts, seed=2))) == whole).all()
    for kind in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.uint64):
        again = matrix.randomize(codes.astype(kind), seed=2)
        assert again.dtype == kind
        assert (again == whole).all()
    with ThreadPoolExecutor(2) as pool:
        many = np.random.default_rng(0).integers(0, matrix.n, 600_000)
        assert (matrix.randomize(many, seed=3, executor=pool) == matrix.randomize(many, seed=3)).all()


def test_sources_of_randomness() -> None:
    matrix, codes = GammaDiagonal(50, gamma=2), np.zeros(1000, dtype=int)
    one = matrix.randomize(codes, np.random.default_rng(4))
    assert (one == matrix.randomize(codes, np.random.default_rng(4))).all()
    rng = np.random.default_rng(4)
    assert (one == matrix.randomize(codes, rng)).all()
    assert (one != matrix.randomize(codes, rng)).any()
    assert (matrix.randomize(codes, 9) == matrix.randomize(codes, seed=9)).all()
    assert (matrix.randomize(codes) != matrix.randomize(codes)).any()
    with pytest.raises(InputError, match="not both"):
        matrix.randomize(codes, 1, seed=2)
    with pytest.raises(InputError, match="rng is str"):
        matrix.randomize(codes, "dice")


def test_attributes_get_independent_randomness() -> None:
    """Two attributes with the same code and the same matrix must not be replaced together."""
    matrix = Product([GammaDiagonal(10, gamma=2)] * 2)
    released = matrix.randomize(np.zeros((20_000, 2), dtype=int), seed=1)
    together = float((released[:, 0] == released[:, 1]).mean())
    keep, other = 2 / 11, 1 / 11
    assert together == pytest.approx(keep**2 + 9 * other**2, abs=0.01)


@settings(max_examples=200, deadline=None)
@given(n=st.integers(2, 10**6), gamma=st.floats(1.0001, 1e6))
def test_integer_lottery_never_amplifies_more_than_gamma(n: int, gamma: float) -> None:
    keep, width = (int(part) for part in GammaDiagonal(n, gamma)._thresholds)
    assert keep + n * width == 2**64
    realised = Fraction(keep + width, width)
    assert realised <= Fraction(gamma)
    assert float(realised) == pytest.approx(gamma, rel=1e-6)


def test_reciprocal_division_is_exact_at_the_edges() -> None:
    """All words of the stream, replayed in Python integers, for widths where rounding would show."""
    for n, gamma in ((3, 1.5), (7, 19.0), (1000, 1.01), (10**6, 50.0)):
        matrix = GammaDiagonal(n, gamma)
        keep, width = (int(part) for part in matrix._thresholds)
        words = [int(word) for word in Stream.seeded(0).words(4000)]
        expected = [1 if word < keep else (word - keep) // width for word in words]
        assert matrix.randomize(np.ones(4000, dtype=int), seed=0).tolist() == expected


def test_categoricals_in_and_out() -> None:
    labels = ["low", "mid", "high"]
    matrix = GammaDiagonal(3, gamma=5)
    codes = np.random.default_rng(0).integers(0, 3, 500)
    expected = np.array(labels)[matrix.randomize(codes, seed=1)].tolist()
    values = np.array(labels)[codes]

    series = pd.Series(pd.Categorical(values, categories=labels, ordered=True), index=range(100, 600), name="income")
    out = matrix.randomize(series, seed=1)
    assert out.tolist() == expected
    assert out.dtype == series.dtype
    assert out.index.equals(series.index)
    assert out.name == "income"
    assert list(matrix.randomize(series.array, seed=1)) == expected
    assert matrix.counts(series).tolist() == np.bincount(codes).tolist()

    enum = pl.Series("income", values.tolist(), dtype=pl.Enum(labels))
    out_enum = matrix.randomize(enum, seed=1)
    assert out_enum.to_list() == expected
    assert out_enum.dtype == enum.dtype

    plain = pl.Series("income", values.tolist(), dtype=pl.Categorical)
    assert matrix.randomize(plain, seed=1).dtype == pl.Categorical
    numbers = pd.Series(codes, index=range(500, 0, -1))
    assert matrix.randomize(numbers, seed=1).tolist() == matrix.randomize(codes, seed=1).tolist()
    arrow = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(labels))])
    assert matrix.counts(arrow).tolist() == np.bincount(codes).tolist()
    assert matrix.randomize(arrow, seed=1).to_pylist() == expected
    integer_labels = pd.Series(pd.Categorical([10, 20, 30, 10]))
    assert set(matrix.randomize(integer_labels, seed=1)) <= {10, 20, 30}


def test_bad_codes_are_named() -> None:
    matrix = GammaDiagonal(3, gamma=5)
    for other in MATRICES.values():
        with pytest.raises(InputError, match=f"record 2: the code is not in 0 … {other.n - 1};"):
            other.randomize([0, 1, other.n, 0], seed=0)
    with pytest.raises(InputError, match="record 1: the code"):
        matrix.randomize([0, -1])
    with pytest.raises(InputError, match="integers"):
        matrix.randomize([0.5, 1.0])
    with pytest.raises(InputError, match="integers"):
        matrix.randomize(["a", "b"])
    with pytest.raises(InputError, match="2 categories"):
        matrix.randomize(pd.Series(["a", "b"], dtype="category"))
    with pytest.raises(InputError, match="not categorical"):
        matrix.randomize(pd.Series(["a", "b"]))
    with pytest.raises(InputError, match="missing or not in the domain"):
        matrix.randomize(pd.Series(pd.Categorical(["a", None], categories=["a", "b", "c"])))
    with pytest.raises(InputError, match="record 1, attribute 0: the code is not in 0 … 1"):
        GammaDiagonal((2, 3), gamma=4).randomize([[0, 0], [2, 0]])
    with pytest.raises(InputError, match="2 attribute"):
        GammaDiagonal((2, 3), gamma=4).randomize([[0, 0, 0]])
    with pytest.raises(InputError, match="record 0"):
        matrix.counts([3])
    with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match="record 299999"):
        matrix.randomize(np.append(np.zeros(299_999, dtype=int), 7), executor=pool)


def test_no_records_in_no_records_out() -> None:
    assert GammaDiagonal(3, gamma=5).randomize([]).shape == (0,)
    assert GammaDiagonal((3, 2), gamma=5).randomize(np.empty((0, 2), dtype=int)).shape == (0, 2)
