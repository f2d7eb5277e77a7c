"""Noise for numeric columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.frames import checked
from tabprotect.microdata.recipe import Deidentified
from tabprotect.microdata.verbs import numbers

KINDS = ("additive", "correlated", "multiplicative")


def add_noise(
    data: Any,
    *,
    columns: Sequence[str],
    scale: float = 0.1,
    kind: str = "additive",
    moments: bool = False,
    seed: int | None = None,
) -> Deidentified:
    """Disturb numeric columns by random noise.

    scale: standard deviation of the noise, relative to that of the column (additive, correlated) or to the value (multiplicative).
    kind: ``"additive"`` independent normal noise; ``"correlated"`` normal noise with the columns' own correlations, which keeps them;
    ``"multiplicative"`` lognormal factors with mean 1, which keep signs and zeros.
    moments: shrink afterwards so that mean and standard deviation are those of the original.
    The seed is not recorded in the recipe: who knows it can take the noise off again.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"pay": [0.0, 100.0, 200.0]})
    >>> noisy = tp.microdata.add_noise(df, columns=["pay"], kind="multiplicative", seed=1).data["pay"]
    >>> float(noisy[0]), bool(noisy[1] != 100)
    (0.0, True)

    References: Kim (1986) for correlated noise; Kim and Winkler (2003) for multiplicative noise.
    """
    if kind not in KINDS:
        raise InputError(f"kind={kind!r}: choose one of {', '.join(map(repr, KINDS))}")
    if not scale >= 0:
        raise InputError(f"scale={scale} must not be negative")
    done = Deidentified.start(data)
    frame = done.frame
    names = checked(frame.columns, [columns] if isinstance(columns, str) else columns)
    x = np.stack([numbers(frame, c) for c in names], axis=1) if names else np.zeros((len(frame), 0))
    rng = np.random.default_rng(seed)
    spread = np.nan_to_num(np.nanstd(x, axis=0)) if len(x) else np.zeros(len(names))
    if kind == "multiplicative":
        sigma = np.sqrt(np.log1p(scale**2))
        y = x * np.exp(rng.normal(-(sigma**2) / 2, sigma, x.shape))
    elif kind == "correlated":
        known = x[~np.isnan(x).any(axis=1)]
        cov = np.atleast_2d(np.cov(known, rowvar=False)) if len(known) > 1 else np.diag(spread**2)
        y = x + scale * rng.multivariate_normal(np.zeros(len(names)), cov, len(x), method="eigh")
    else:
        y = x + scale * spread * rng.standard_normal(x.shape)
    if moments and len(x):
        now = np.nanstd(y, axis=0)
        y = (y - np.nanmean(y, axis=0)) * np.where(now > 0, spread / np.where(now > 0, now, 1), 1) + np.nanmean(
            x, axis=0
        )
    options = {"columns": names, "scale": scale, "kind": kind, "moments": moments}
    return done.step("add_noise", options, columns={c: y[:, j] for j, c in enumerate(names)})
