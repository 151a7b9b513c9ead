"""Forms that programs have for the same few things: how they import, give, ask and wrap what is optimum-habana's.

Each table names its forms; a program takes one of each, or several where they do not exclude one another.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

GONE = (
    "use_habana",
    "use_lazy_mode",
    "gaudi_config_name",
    "use_hpu_graphs_for_inference",
    "fp8",
    "warmup_ratio",
    "no_cuda",
)
VALUES = {"gaudi_config_name": "'folder'", "warmup_ratio": "0.1"}

IMPORTS = {
    "by name": "from optimum.habana import {T}, {A}, {C}\n",
    "by other names": "from optimum.habana import (\n    {T} as T,  # short\n    {A} as A,\n    {C} as C,\n)\n",
    "a module": "import optimum.habana as oh\n",
    "a module of a package": "from optimum import habana\n",
    "a try": (
        "try:\n    from optimum.habana import {T}, {A}, {C}\n    HAVE = True\nexcept ImportError:\n    HAVE = False\n"
    ),
    "a try with a way out": (
        "try:\n    from optimum.habana import {T}, {A}, {C}\nexcept ImportError:\n    {T} = {A} = {C} = None\n"
    ),
    "a try with another class": (
        "try:\n    from optimum.habana import {T} as T, {A} as A, {C} as C\n"
        "except ImportError:\n    from transformers import Trainer as T, TrainingArguments as A\n    C = dict\n"
    ),
    "modules of its own": (
        "from optimum.habana.transformers.trainer import {T}\n"
        "from optimum.habana.transformers.training_args import {A}\n"
        "from optimum.habana.transformers.gaudi_configuration import {C}\n"
    ),
    "behind a colon": (
        "if bool(os.environ): from optimum.habana import {T}, {A}, {C}; HAVE = True\nelse: HAVE = False\n"
    ),
    "a condition": (
        "if bool(os.environ):\n    from optimum.habana import {T} as T, {A} as A, {C} as C\n"
        "else:\n    from transformers import Trainer as T, TrainingArguments as A\n    C = dict\n"
    ),
    "a star": "from optimum.habana import *\n",
    "at run time": "import importlib\noh = importlib.import_module('optimum.habana')\n",
    "by getattr": "import optimum.habana as oh\nT, A, C = (getattr(oh, each) for each in ('{T}', '{A}', '{C}'))\n",
}
PREFIXES = {
    "by other names": "TAC",
    "a try with another class": "TAC",
    "a condition": "TAC",
    "by getattr": "TAC",
    "a module": "oh.",
    "at run time": "oh.",
    "a module of a package": "habana.",
}
"""What precedes the names then, or the three short names."""

ARGUMENTS = {
    "keywords": "run_args = {A}('out', {keywords})\n",
    "a dictionary": "options = {{{pairs}}}\nrun_args = {A}('out', **options)\n",
    "dict()": "options = dict({keywords})\nrun_args = {A}(output_dir='out', **options)\n",
    "a function": "def build(**kwargs):\n    return {A}('out', **kwargs)\n\n\nrun_args = build({keywords})\n",
    "partial": "from functools import partial\nmake = partial({A}, {keywords})\nrun_args = make('out')\n",
    "partial, then called": "import functools\nmake = functools.partial({A}, 'out')\nrun_args = make({keywords})\n",
    "a dictionary in place": "run_args = {A}('out', **{{{pairs}}})\n",
    "update": "options = {{'output_dir': 'out'}}\noptions.update({{{pairs}}})\nrun_args = {A}(**options)\n",
    "update by keywords": "options = {{'output_dir': 'out'}}\noptions.update({keywords})\nrun_args = {A}(**options)\n",
    "update from a dictionary": (
        "more = {{{pairs}}}\noptions = {{'output_dir': 'out'}}\noptions.update(more)\nrun_args = {A}(**options)\n"
    ),
    "a union": "options = {{'output_dir': 'out'}}\noptions |= {{{pairs}}}\nrun_args = {A}(**options)\n",
    "a union in place": "options = {{'output_dir': 'out'}}\nrun_args = {A}(**(options | {{{pairs}}}))\n",
    "unpacked twice": "more = {{{pairs}}}\noptions = {{'output_dir': 'out', **more}}\nrun_args = {A}(**options)\n",
    "dict() over another": "more = {{{pairs}}}\nrun_args = {A}(**dict(more, output_dir='out'))\n",
    "dict() of pairs": "run_args = {A}('out', **dict([{tuples}]))\n",
    "a lambda": "make = lambda **kw: {A}('out', **kw)\nrun_args = make({keywords})\n",
    "a lambda without arguments": "make = lambda: {A}('out', {keywords})\nrun_args = make()\n",
    "a lambda called in place": "run_args = (lambda **kw: {A}('out', **kw))({keywords})\n",
    "a walrus": "if (run_args := {A}('out', {keywords})):\n    pass\n",
    "a comprehension": "run_args = [{A}(each, {keywords}) for each in ('out',)][0]\n",
    "a comprehension of keywords": "run_args = {A}('out', **{{key: value for key, value in [{tuples}]}})\n",
    "a decorated function": (
        "def once(function):\n    return function\n\n\n@once\ndef build(out='out'):\n    return {A}(out, {keywords})\n"
        "\n\nrun_args = build()\n"
    ),
    "a decorator's argument": (
        "def given(arguments):\n    return lambda function: arguments\n\n\n@given({A}('out', {keywords}))\n"
        "def run_args():\n    pass\n"
    ),
    "a default of a parameter": "def build(made={A}('out', {keywords})):\n    return made\n\n\nrun_args = build()\n",
    "a class attribute": "class Setup:\n    made = {A}('out', {keywords})\n\n\nrun_args = Setup.made\n",
    "a choice of classes": "run_args = ({A} if flag or True else None)('out', {keywords})\n",
    "a table of classes": "KINDS = {{'hpu': {A}}}\nrun_args = KINDS['hpu']('out', {keywords})\n",
    "a function that gives the class": "def kind():\n    return {A}\n\n\nrun_args = kind()('out', {keywords})\n",
    "another name": "Other = {A}\nrun_args = Other('out', {keywords})\n",
    "attributes": "run_args = {A}('out')\n{attributes}",
    "setattr": "run_args = {A}('out')\n{setattrs}",
    "replace": "import dataclasses\nrun_args = dataclasses.replace({A}('out'), {keywords})\n",
    "a parser": (
        "from transformers import HfArgumentParser\nparser = HfArgumentParser(({A},))\n"
        "(run_args,) = parser.parse_args_into_dataclasses(args=['--output_dir', 'out', {options}])\n"
    ),
    "a parser of a dictionary": (
        "from transformers import HfArgumentParser\nparser = HfArgumentParser({A})\n"
        "run_args = parser.parse_dict({{'output_dir': 'out', {pairs}}})[0]\n"
    ),
    "behind a colon": "if True: run_args = {A}('out', {keywords}); made = True\n",
    "a name for positional ones": "place = ('out',)\nrun_args = {A}(*place, {keywords})\n",
    "one at a time": "options = {{}}\noptions['output_dir'] = 'out'\n{keys}run_args = {A}(**options)\n",
    "a subclass": "class Fixed({A}):\n    pass\n\n\nrun_args = Fixed('out', {keywords})\n",
    "a dataclass of defaults": (
        "from dataclasses import dataclass\n@dataclass\nclass Fixed({A}):\n{fields}\n\nrun_args = Fixed('out')\n"
    ),
    "class attributes": "class Fixed({A}):\n{attributes_of_class}\n\nrun_args = Fixed('out')\n",
    "super().__init__": (
        "class Fixed({A}):\n    def __init__(self, out):\n        super().__init__(out, {keywords})\n"
        "\n\nrun_args = Fixed('out')\n"
    ),
    "a shadowed name": (
        "def build(kind, out, **kw):\n    return kind(out, **kw)\n\n\nrun_args = build({A}, 'out', {keywords})\n"
    ),
    "a generator": "run_args = next({A}(each, {keywords}) for each in ['out'])\n",
    "a with": ("from contextlib import nullcontext\nwith nullcontext({A}('out', {keywords})) as run_args:\n    pass\n"),
    "a loop": "for run_args in [{A}('out', {keywords})]:\n    pass\n",
    "an unpacking": "run_args, other = {A}('out', {keywords}), 1\n",
    "one statement": "x = 1; run_args = {A}('out', {keywords}); y = 2\n",
}

WRAPS = {
    "nothing": "",
    "a class": (
        "class Own({T}):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)\n\n\n"
    ),
    "a class that names the configuration": (
        "class Own({T}):\n    def __init__(self, model=None, gaudi_config=None, args=None):\n"
        "        super().__init__(model, gaudi_config, args)\n\n\n"
    ),
    "a class that asks": "class Own({T}):\n    def lazy(self):\n        return self.args.use_lazy_mode\n\n\n",
    "a choice": "Own = {T} if flag or True else Plain\n",
    "or": "Own = {T} or Plain\n",
    "a function": "def Own(*args, **kwargs):\n    return {T}(*args, **kwargs)\n\n\n",
    "a lambda": "Own = lambda model, gaudi_config, args: {T}(model, gaudi_config, args)\n",
    "a lambda of all": "Own = lambda *args, **kwargs: {T}(*args, **kwargs)\n",
    "partial": "from functools import partial\nOwn = partial({T})\n",
    "type()": "Own = type('Own', ({T},), {{}})\n",
    "a class attribute": "class Kinds:\n    kind = {T}\n\n\nOwn = Kinds.kind\n",
    "a walrus": "if Own := {T}:\n    pass\n",
    "a table": "KIND = {{'hpu': {T}}}\nOwn = KIND['hpu']\n",
    "an instance": (
        "class Maker:\n    def __call__(self, *args, **kwargs):\n        return {T}(*args, **kwargs)\n\n\n"
        "Own = Maker()\n"
    ),
}

CALLS = {
    "keywords": "{T}(model=m, gaudi_config=setup, args=run_args)",
    "positional": "{T}(m, setup, run_args)",
    "mixed": "{T}(m, gaudi_config=setup, args=run_args)",
    "a list": "{T}(*[m, setup, run_args])",
    "a dictionary": "{T}(**dict(model=m, gaudi_config=setup, args=run_args))",
    "a dictionary in place": "{T}(**{{'model': m, 'gaudi_config': setup, 'args': run_args}})",
    "a lambda": "(lambda model: {T}(model, setup, run_args))(m)",
    "a comprehension": "[{T}(each, setup, run_args) for each in [m]][0]",
    "a walrus": "(made := {T}(m, setup, args=run_args))",
    "a choice": "{T}(m, setup, run_args) if run_args else None",
    "a star behind the model": "{T}(m, *(setup, run_args))",
}

READS = {
    "an attribute": "    if run_args.use_lazy_mode:\n        print(run_args.use_habana)\n",
    "behind a colon": "    if run_args.use_lazy_mode: print(run_args.use_habana)\n",
    "getattr": "    print(getattr(run_args, 'use_lazy_mode', False))\n",
    "hasattr": "    if hasattr(run_args, 'use_habana'):\n        print('on')\n",
    "hasattr of what is not known": (
        "    if hasattr(t.args, 'use_habana') and t.args.use_habana:\n        print('on')\n"
    ),
    "vars": "    print(vars(run_args).get('use_lazy_mode'))\n",
    "in vars": "    print('use_lazy_mode' in vars(run_args))\n",
    "__dict__": "    print(run_args.__dict__.get('use_lazy_mode'))\n",
    "attrgetter": "    import operator\n    print(operator.attrgetter('use_lazy_mode')(run_args))\n",
    "a format": "    print(f'{run_args.use_lazy_mode!r:>5} {1}')\n",
    "a lambda": "    print((lambda: run_args.use_lazy_mode)())\n",
    "a comprehension": "    print([each.use_lazy_mode for each in [run_args]])\n",
    "a walrus": "    if (lazy := run_args.use_lazy_mode) or lazy:\n        print(lazy)\n",
    "setattr": "    setattr(run_args, 'use_lazy_mode', False)\n",
    "delattr": "    if hasattr(run_args, 'fp8'): delattr(run_args, 'fp8')\n",
    "a condition": "    print('lazy' if run_args.use_lazy_mode else 'eager')\n",
    "assert": "    assert run_args.use_lazy_mode in (True, False), 'use'\n",
    "another name": "    other = run_args\n    print(other.use_lazy_mode)\n",
    "of the trainer": "    print(t.args.use_lazy_mode)\n",
    "match": "    match run_args.use_lazy_mode:\n        case True:\n            print(1)\n",
}

VENDOR = {
    "nothing": "",
    "behind a colon": "if flag: import habana_frameworks.torch.core as htcore; htcore.mark_step()\n",
    "a lambda": "import habana_frameworks.torch.core as htcore\nstep = lambda: htcore.mark_step()\nstep()\n",
    "by name": "from habana_frameworks.torch.core import mark_step\nmark_step()\n",
    "handed on": "import habana_frameworks.torch.core as htcore\nstep = htcore.mark_step\nstep()\n",
    "a try": (
        "try:\n    import habana_frameworks.torch.core as htcore\nexcept ImportError:\n    htcore = None\n"
        "if htcore: htcore.mark_step()\n"
    ),
    "the whole path": "import habana_frameworks.torch.core\nhabana_frameworks.torch.core.mark_step()\n",
    "getattr": "import habana_frameworks.torch.core as htcore\ngetattr(htcore, 'mark_step')()\n",
    "and": "import habana_frameworks.torch.core as htcore\nflag and htcore.mark_step()\n",
    "a comprehension": "import habana_frameworks.torch.core as htcore\n[htcore.mark_step() for each in range(1)]\n",
}
TABLES = {
    "import": IMPORTS,
    "arguments": ARGUMENTS,
    "wrap": WRAPS,
    "call": CALLS,
    "read": READS,
    "vendor": VENDOR,
}


@dataclass
class Mutated:
    """A program and what is known of it."""

    text: str
    gone: list[str]
    """Arguments in it that are no more."""
    forms: dict[str, str]
    """The form of each table."""
    helpers: dict[str, str] = field(default_factory=dict)
    """Modules beside it."""


def given(gone: Iterable[str], draw: random.Random) -> dict[str, str]:
    """A value of each argument that is no more, and of one that stays."""
    return {name: VALUES.get(name, draw.choice(["True", "False", "flag"])) for name in gone} | {"seed": "3"}


def mutated(draw: random.Random, forms: dict[str, str]) -> Mutated:
    """A program of these forms."""
    short = ["GaudiTrainer", "GaudiTrainingArguments", "GaudiConfig"]
    prefix = PREFIXES.get(forms["import"], "")
    names = list("TAC") if prefix == "TAC" else [f"{prefix}{each}" for each in short]
    head = IMPORTS[forms["import"]].format(T=short[0], A=short[1], C=short[2])
    trainer, arguments, config = names
    gone = draw.sample(GONE, draw.randrange(1, 5))
    values = given(gone, draw)
    text = "import os  # first\nfrom transformers import Trainer as Plain, TrainingArguments as PlainArguments\n"
    text += f"{head}\nflag = bool(os.environ)\n{VENDOR[forms['vendor']]}"
    helpers = {}
    if draw.random() < 0.15:
        helpers["helper"] = (
            f"import os\n{head}\n\nclass Helped({trainer}):\n    def f(self):\n        return self.args.use_lazy_mode\n"
        )
        text += "from helper import Helped\n"
        trainer = "Helped"
    if wrap := WRAPS[forms["wrap"]]:
        text += wrap.format(T=trainer)
        trainer = "Own"
    text += f"setup = {config}(use_fused_adam=True)\n"
    true = {name: value for name, value in values.items() if value == "True"} | {"seed": "3"}
    text += ARGUMENTS[forms["arguments"]].format(
        A=arguments,
        keywords=", ".join(f"{name}={value}" for name, value in values.items()),
        pairs=", ".join(f"'{name}': {value}" for name, value in values.items()),
        tuples=", ".join(f"('{name}', {value})" for name, value in values.items()),
        attributes="".join(f"run_args.{name} = {value}\n" for name, value in values.items()),
        setattrs="".join(f"setattr(run_args, '{name}', {value})\n" for name, value in values.items()),
        options=", ".join(f"'--{name}', '{value}'" for name, value in true.items()),
        keys="".join(f"options['{name}'] = {value}\n" for name, value in values.items()),
        fields="".join(f"    {name}: object = {value}\n" for name, value in values.items()),
        attributes_of_class="".join(f"    {name} = {value}\n" for name, value in values.items()),
    )
    if "{options}" in ARGUMENTS[forms["arguments"]]:
        gone = [name for name in gone if name in true]
    text += f"\n\ndef main(m):\n    # the trainer\n    t = {CALLS[forms['call']].format(T=trainer)}\n"
    text += f"{READS[forms['read']]}    return t\n"
    return Mutated(text, gone, forms, helpers)


def drawn(seed: int) -> Mutated:
    """A program of forms that the seed draws: each table's forms in turn, so that few programs have all of them."""
    draw = random.Random(seed)
    forms = {}
    for number, (name, table) in enumerate(TABLES.items()):
        order = list(table)
        random.Random(number * 1000 + seed // len(order)).shuffle(order)
        forms[name] = order[seed % len(order)]
    return mutated(draw, forms)
