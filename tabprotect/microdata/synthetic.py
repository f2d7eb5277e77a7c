"""Seeded stand-ins for the two sources' files, which are not public."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

HOUSEHOLDS = 10_667


def households(n: int = HOUSEHOLDS, seed: int = 2010) -> pd.DataFrame:
    """A population of households with the shape of the 2010 survey of income and expenditure.

    sex 1, 2; age 16 to 90 (nobody is 17); size 1 to 9; education 0 to 7; monthly income in won.

    >>> frame = households(1000)
    >>> frame.columns.tolist(), int(frame["size"].max()) <= 9
    (['sex', 'age', 'size', 'education', 'income'], True)
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    age = np.clip(np.rint(rng.normal(50, 14.5, n)), 16, 90).astype(np.int64)
    age[age == 17] = 18
    male = rng.random(n) < 0.85 - 0.004 * np.abs(age - 42)
    # couples with children in the middle years, one and two persons at both ends
    middle = np.exp(-(((age - 43) / 14.0) ** 2))
    mean = 0.45 + 2.4 * middle * np.where(male, 1.0, 0.45) + 0.55 * male
    size = 1 + np.minimum(rng.binomial(8, np.clip(mean / 8, 0.02, 0.9)), 8)
    cohort = (90 - age) / 74
    school = np.clip(np.rint(0.6 + 4.6 * cohort + 0.7 * male + rng.normal(0, 1.7, n)), 0, 7).astype(np.int64)
    school = np.minimum(school, np.where(age < 20, 3, np.where(age < 24, 5, 7)))
    # the rare classes are those of the old and the young, whose incomes are low and close together
    level = 13.7 + 0.12 * school + 0.28 * np.log(size) - ((age - 46) / 27.0) ** 2 + 0.15 * male
    income = np.exp(level + rng.normal(0, 0.4, n))
    return pd.DataFrame(
        {
            "sex": np.where(male, 1, 2),
            "age": age,
            "size": size,
            "education": school,
            "income": (np.rint(income / 1000) * 1000).astype(np.int64),
        }
    )


QUASI = ("sex", "age", "region", "plan", "tenure", "job")
NOMINAL = tuple(f"nominal{i}" for i in range(1, 8))
NUMERIC = tuple(f"number{i}" for i in range(1, 12))


def accounts(n: int = 20_000, seed: int = 2017) -> pd.DataFrame:
    """Credit records with the shape of the dissimilarity study: 6 quasi-identifiers, 7 nominal and 11 numeric sensitive attributes.

    Customers belong to hidden segments, so that attributes go together as they do in real files.

    >>> accounts(100).shape
    (100, 24)
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    segments = 12
    segment = rng.choice(segments, n, p=np.arange(segments, 0, -1) / (segments * (segments + 1) / 2))
    data: dict[str, np.ndarray] = {  # type: ignore[type-arg]
        "sex": rng.integers(1, 3, n),
        "age": np.clip(np.rint(rng.normal(28 + 3.2 * segment, 8)), 19, 84).astype(np.int64),
        "region": rng.choice(16, n, p=(w := 1.0 / np.arange(1, 17)) / w.sum()),
        "plan": (segment // 3 * 2 + rng.integers(0, 3, n)) % 8,
        "tenure": np.minimum(rng.gamma(2.0, 14 + segment, n), 180).astype(np.int64),
        "job": np.where(rng.random(n) < 0.6, segment, rng.integers(0, segments, n)),
    }
    for i, name in enumerate(NOMINAL):
        categories = 3 + i
        usual = np.random.default_rng((seed, i)).integers(0, categories, segments)[segment]
        data[name] = np.where(rng.random(n) < 0.7, usual, rng.integers(0, categories, n))
    for i, name in enumerate(NUMERIC):
        center = np.random.default_rng((seed, 100 + i)).normal(3.0 + 0.2 * i, 0.7, segments)[segment]
        data[name] = np.round(np.exp(center + rng.normal(0, 0.5, n)), 2)
    frame = pd.DataFrame(data)
    for name in ("region", "plan", "job", *NOMINAL):
        frame[name] = name[0] + frame[name].astype(str).str.zfill(2)
    return frame
