"""Lazy or eager: PT_HPU_LAZY_MODE as it was when habana_frameworks.torch was imported."""

from __future__ import annotations

import os

# Releases disagree about the default; here it is eager, as in the current ones.
LAZY = os.environ.get("PT_HPU_LAZY_MODE", "0") != "0"
