"""Which tokens a masked language model has to guess: a pure function of the seed and of which sample it is.

So a resumed run masks what an uninterrupted one would, however many processes share the work. The shares are those of
Devlin et al., "BERT" (2018), section 3.1: of the 15 % that are guessed, 80 % are replaced by the mask, 10 % by any
token, and 10 % are left as they are. As in their code, the 15 % are a number and not a chance: every sample has as many
to guess, so that the mean over ranks is the mean over samples, and shapes never change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IGNORED = -100
"""Label of a token that is not guessed; what torch's cross-entropy leaves out by default."""
GUESSED = 0.15
HELD_OUT = 0x5BF03635


@dataclass(frozen=True)
class Masking:
    """How to mask."""

    mask: int
    """Id that stands for a masked token."""
    vocabulary: int
    """Replacements are drawn from the ids below this."""
    seed: int

    def apply(self, tokens: npt.NDArray[np.int64], keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Inputs and labels, (B, 2, T), of tokens (B, T), of which sample b is the one numbered keys[b]."""
        length = tokens.shape[1]
        start = np.uint64((self.seed * 0x9E3779B97F4A7C15 + 1) & 0xFFFFFFFFFFFFFFFF)
        with np.errstate(over="ignore"):
            choice = _mix(_mix(keys.astype(np.uint64)[:, None] + start) + np.arange(length).astype(np.uint64))
            fate = _mix(choice)
        count = max(1, round(GUESSED * length))
        last = np.partition(choice, count - 1, axis=1)[:, count - 1 : count]
        guessed = choice <= last
        share = (fate >> np.uint64(32)) / 2.0**32  # the lower bits are for the replacement
        other = ((fate & np.uint64(0xFFFFFFFF)) % np.uint64(self.vocabulary)).astype(np.int64)
        inputs = np.where(guessed & (share < 0.8), self.mask, np.where(guessed & (share < 0.9), other, tokens))
        return np.stack([inputs, np.where(guessed, tokens, IGNORED)], axis=1)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    values = values * np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
