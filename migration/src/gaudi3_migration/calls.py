"""Calls of what is not optimum-habana's: of `generate`, and of processors that transformers 5 reads in another way."""

from __future__ import annotations

import libcst as cst

from gaudi3_migration.facts import Facts, dotted, literal
from gaudi3_migration.keywords import Note, code, with_keywords, without
from gaudi3_migration.names import GENERATE_KEYWORDS


def generation(call: cst.Call, note: Note) -> cst.Call:
    """A call of `generate` without what only optimum-habana's model classes take."""
    args, before = list(call.args), call.whitespace_before_args
    for each in call.args:
        key = each.keyword.value if each.keyword else ""
        if key not in GENERATE_KEYWORDS:
            continue
        asked = key == "ignore_eos" and literal(each.value) is not False
        end = "no successor: generation ends at the end-of-text token" if asked else "drop"
        note(f"generate({key}={code(each.value)})", end, "person" if asked else "sure", asked)
        args, before = without(args, next(one for one in args if one.value is each.value), before)
    return call.with_changes(args=args, whitespace_before_args=before)


def processor(call: cst.Call, function: str, facts: Facts, note: Note) -> cst.Call:
    """AutoProcessor that reads what `function` saved of a tokenizer and an extractor, given the model's configuration.

    transformers 4 wrote the processor's class into both; 5 writes it into neither, and where the folder has no
    configuration of a model, gives the tokenizer alone.
    """
    if not dotted(call.func).endswith("AutoProcessor.from_pretrained") or not call.args:
        return call
    known = facts.configurations.get(function)
    given = {each.keyword.value for each in call.args if each.keyword}
    if known is None or "config" in given or (function, code(call.args[0].value)) not in facts.saved:
        return call
    note(code(call), f"config={known}: what the program saves there no longer names its class", "sure", False)
    return call.with_changes(args=with_keywords(list(call.args), [("config", known)]))
