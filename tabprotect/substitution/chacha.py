"""ChaCha20 as the source of randomness: cryptographic, several gigabytes per second, and addressable by position.

Word i of the stream belongs to record i, so that results do not depend on chunks or threads. A secure stream takes its key
from the operating system; a seeded one, for studies, from a hash of the seed. The block function is RFC 8439, section 2.3,
computed for 128 blocks side by side so that the compiler turns it into vector instructions.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError

LANES = 128
WORDS = 8 * LANES  # 64-bit words made by one call of ``refill``
Words = npt.NDArray[np.uint64]

_u = np.uint32


@nb.njit(nogil=True, cache=True)
def _quarter_round(a, b, c, d):  # type: ignore[no-untyped-def]
    for i in range(LANES):
        w, x, y, z = a[i], b[i], c[i], d[i]
        w = _u(w + x)
        z = _u(z ^ w)
        z = _u(z << _u(16)) | _u(z >> _u(16))
        y = _u(y + z)
        x = _u(x ^ y)
        x = _u(x << _u(12)) | _u(x >> _u(20))
        w = _u(w + x)
        z = _u(z ^ w)
        z = _u(z << _u(8)) | _u(z >> _u(24))
        y = _u(y + z)
        x = _u(x ^ y)
        x = _u(x << _u(7)) | _u(x >> _u(25))
        a[i], b[i], c[i], d[i] = w, x, y, z


@nb.njit(nogil=True, cache=True)
def refill(words, state, block):  # type: ignore[no-untyped-def]
    """Write blocks ``block`` to ``block + LANES - 1`` of the stream of ``state`` (16 words) into ``words`` (64-bit)."""
    first = np.empty((16, LANES), np.uint32)
    for j in range(16):
        first[j] = state[j]
    for i in range(LANES):
        counter = np.uint64(block) + np.uint64(i)
        first[12, i] = _u(counter & np.uint64(0xFFFFFFFF))
        first[13, i] = _u(counter >> np.uint64(32))
    s = first.copy()
    for _ in range(10):
        for k in range(4):
            _quarter_round(s[k], s[4 + k], s[8 + k], s[12 + k])
        for k in range(4):
            _quarter_round(s[k], s[4 + (k + 1) % 4], s[8 + (k + 2) % 4], s[12 + (k + 3) % 4])
    for i in range(LANES):
        for j in range(8):
            low = np.uint64(_u(s[2 * j, i] + first[2 * j, i]))
            high = np.uint64(_u(s[2 * j + 1, i] + first[2 * j + 1, i]))
            words[8 * i + j] = low | (high << np.uint64(32))


@dataclass
class Stream:
    """A ChaCha20 key and a position in its stream; every use moves the position on.

    >>> Stream.seeded(7).words(2).tolist() == Stream.seeded(7).words(2).tolist()
    True
    >>> Stream.secure().reproducible
    False
    """

    state: npt.NDArray[np.uint32]
    reproducible: bool
    position: int = 0

    @classmethod
    def from_key(cls, key: bytes, *, reproducible: bool) -> Stream:
        """A stream with the given 32-byte key; the counter has 64 bits and the nonce is zero."""
        constants = np.frombuffer(b"expand 32-byte k", dtype="<u4")
        state = np.concatenate([constants, np.frombuffer(key, dtype="<u4"), np.zeros(4, "<u4")]).astype(np.uint32)
        return cls(state, reproducible)

    @classmethod
    def secure(cls) -> Stream:
        """A stream whose key comes from the operating system and is stored nowhere."""
        return cls.from_key(os.urandom(32), reproducible=False)

    @classmethod
    def seeded(cls, seed: int) -> Stream:
        """A reproducible stream, for studies only: whoever knows the seed can undo the randomisation."""
        return cls.from_key(hashlib.sha256(f"tabprotect {int(seed)}".encode()).digest(), reproducible=True)

    @classmethod
    def of(cls, rng: Any = None, seed: int | None = None) -> Stream:
        """A stream from nothing (secure), a seed, a NumPy generator, or another stream (continued)."""
        if rng is not None and seed is not None:
            raise InputError("give rng or seed, not both")
        source = seed if rng is None else rng
        if source is None:
            return cls.secure()
        if isinstance(source, Stream):
            return source
        if isinstance(source, int | np.integer) and not isinstance(source, bool):
            return cls.seeded(int(source))
        if isinstance(source, np.random.Generator | np.random.RandomState):
            return cls.from_key(source.bytes(32), reproducible=True)
        raise InputError(
            f"rng is {type(source).__name__}: give a seed, a numpy Generator, a Stream, or nothing for secure"
        )

    def words(self, count: int) -> Words:
        """The next ``count`` 64-bit words."""
        block, skip = divmod(self.take(count), 8)
        parts = []
        for start in range(block, block + (skip + count + 7) // 8, LANES):
            part = np.empty(WORDS, np.uint64)
            refill(part, self.state, start)
            parts.append(part)
        return np.concatenate(parts)[skip : skip + count] if parts else np.empty(0, np.uint64)

    def take(self, count: int, width: int = 1) -> int:
        """Reserve ``count`` groups of ``width`` words and return the position of the first, a multiple of ``width``."""
        start = -(-self.position // width) * width
        self.position = start + count * width
        return start

    def branch(self, number: int, width: int, position: int) -> Stream:
        """An independent stream of the same key (another nonce), for one of several attributes."""
        state = self.state.copy()
        state[14:16] = number, width
        return Stream(state, self.reproducible, position)
