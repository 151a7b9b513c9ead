"""The tokens before and after a document."""

from __future__ import annotations

import numpy as np

from gaudi3_scale.data.tokenizer import Tokenizer, Tokens


def framed(tokenizer: Tokenizer, tokens: Tokens, first: bool, last: bool) -> Tokens:
    """With those that are put before a document, if it begins here, and after it, if it ends here."""
    before = [tokenizer.begin] if first and tokenizer.begin is not None else []
    after = [tokenizer.separator] if last else []
    if not before and not after:
        return tokens
    parts = [np.array(each, dtype=tokens.dtype) for each in (before, after)]
    return np.concatenate([parts[0], tokens, parts[1]])
