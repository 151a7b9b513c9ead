"""Facts of a provider's schema out of its public Go source: ``python go_schema.py SOURCE VERSION SEEN OUT TYPE...``.

SOURCE is a checkout of IBM-Cloud/terraform-provider-ibm (MPL-2.0). Names, types, flags, enums and ranges are written;
no descriptions and no code. A literal is read as a literal: whatever would have to be run is counted in ``unresolved``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`)|(?P<rune>'(?:[^'\\]|\\.)+')"""
    r"""|(?P<number>\d[\w.]*)|(?P<name>[^\W\d]\w*)|(?P<sign>:=|&&|\|\||[=!<>]=|\.\.\.|.)""",
    re.DOTALL,
)
KINDS = {
    "TypeString": "string", "TypeBool": "bool", "TypeInt": "number", "TypeFloat": "number", "TypeList": "list",
    "TypeSet": "set", "TypeMap": "map",
}  # fmt: skip
FLAGS = {"Required": "required", "Optional": "optional", "Computed": "computed", "ForceNew": "forcenew",
         "Sensitive": "sensitive"}  # fmt: skip
Tokens = list[tuple[str, str]]


def tokens(text: str) -> Tokens:
    """Kind and text of each token, without space and comments."""
    return [(str(each.lastgroup), each.group()) for each in TOKEN.finditer(text) if each.lastgroup != "space"]


class Reader:
    """An expression at a time, as nested tuples."""

    def __init__(self, found: Tokens, at: int = 0) -> None:
        self.tokens, self.at = found, at

    def peek(self, ahead: int = 0) -> str:
        """The text of a token that is still to be read."""
        at = self.at + ahead
        return self.tokens[at][1] if at < len(self.tokens) else ""

    def take(self) -> tuple[str, str]:
        """The next token."""
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self) -> None:
        """Over a bracket with all that is in it."""
        depth = 0
        while self.at < len(self.tokens):
            kind, text = self.take()
            if kind == "sign":
                depth += (text in "([{") - (text in ")]}")
            if depth == 0:
                return

    def expression(self) -> tuple[Any, ...]:
        """Operands joined by operators; only a sum of texts matters."""
        value = self.operand()
        while self.peek() in ("+", "-", "*", "/", "&&", "||", "==", "!=", "<", ">", "<=", ">=", "|", "%"):
            sign = self.take()[1]
            value = ("binary", sign, value, self.operand())
        return value

    def operand(self) -> tuple[Any, ...]:
        """A value with what follows it: selectors, calls, literals' braces."""
        kind, text = self.take()
        if text in ("&", "-", "!", "*"):
            return self.operand()
        if kind == "text":
            return ("text", text[1:-1] if text[0] == "`" else json.loads(text.replace("\\'", "'")))
        if kind in ("number", "rune"):
            return ("number", text)
        if text == "(":
            value = self.expression()
            self.take()
            return value
        if text == "func":
            while self.peek() != "{":
                self.skip() if self.peek() == "(" else self.take()
            self.skip()
            if self.peek() == "(":
                self.skip()
            return ("code",)
        if text == "{":
            self.at -= 1
            return ("literal", "", self.elements())
        name = self.type_name(text)
        return self.after(name)

    def type_name(self, text: str) -> str:
        """A name or a type, as one text."""
        while True:
            if text.endswith(("interface", "struct")) and self.peek() == "{":
                self.skip()
                text += "{}"
            if (text.endswith("map") and self.peek() == "[") or text == "[":
                while not text.endswith("]"):
                    text += self.take()[1]
                while self.peek() in ("*", "[", "]") or (self.peek() and self.tokens[self.at][0] == "name"):
                    text += self.take()[1]
                    if self.peek() == ".":
                        text += self.take()[1] + self.take()[1]
                    if text.endswith("interface") and self.peek() == "{":
                        self.skip()
                    if text[-1] not in "*[]" and self.peek() != "[":
                        break
                return text
            if self.peek() == "." and self.peek(1) != "(":
                text += self.take()[1] + self.take()[1]
                continue
            return text

    def after(self, name: str) -> tuple[Any, ...]:
        """What follows a name."""
        value: tuple[Any, ...] = ("name", name)
        while True:
            if self.peek() == "(":
                value = ("call", name, self.arguments())
            elif self.peek() == "{" and ((name[0] in "m[" and "]" in name) or re.search(r"(^|\.)[A-Z]\w*$", name)):
                value = ("literal", name, self.elements())
            elif self.peek() == "." and self.peek(1) == "(":
                self.take()
                self.skip()
            elif self.peek() == ".":
                self.take()
                name = f"{name}.{self.take()[1]}"
            elif self.peek() == "[":
                self.skip()
            else:
                return value

    def arguments(self) -> list[tuple[Any, ...]]:
        """Of a call."""
        self.take()
        found = []
        while self.peek() != ")":
            found.append(self.expression())
            while self.peek() in (",", "..."):
                self.take()
        self.take()
        return found

    def elements(self) -> list[tuple[Any, Any]]:
        """Of a literal: keys and values, the key None in a list."""
        self.take()
        found: list[tuple[Any, Any]] = []
        while self.peek() != "}":
            first = self.expression()
            if self.peek() == ":":
                self.take()
                found.append((first, self.expression()))
            else:
                found.append((None, first))
            if self.peek() == ",":
                self.take()
        self.take()
        return found


class Package:
    """Constants, functions and validators of one folder of Go files."""

    def __init__(self, folder: Path) -> None:
        self.values: dict[str, tuple[Any, ...]] = {}
        self.bodies: dict[str, Tokens] = {}
        for path in sorted(folder.glob("*.go")):
            if not path.name.endswith("_test.go"):
                self.read(path.read_text())

    def read(self, text: str) -> None:
        """One file: what stands at the beginning of a line."""
        for block in re.findall(r"^(?:const|var) \((.*?)^\)", text, re.MULTILINE | re.DOTALL):
            for name, value in re.findall(r'^\s+(\w+)(?: +\w+)?\s*= *("[^"\n]*"|`[^`]*`|[\w.]+)', block, re.MULTILINE):
                self.values[name] = Reader(tokens(value)).expression()
        for name, value in re.findall(r'^(?:const|var) (\w+)(?: \w+)? = ("[^"\n]*"|[\w.]+)', text, re.MULTILINE):
            self.values[name] = Reader(tokens(value)).expression()
        for found in re.finditer(r"^func (\w+)\([^)]*\)[^\n]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            if "schema." in found.group(0).partition("\n")[0] or "ResourceValidator" in found.group(0):
                self.bodies[found.group(1)] = tokens(found.group(2))


class Source:
    """A checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root / "ibm"
        self.packages: dict[str, Package] = {}
        self.main = (self.root / "provider/provider.go").read_text()
        self.unresolved: list[str] = []
        self.known: dict[str, dict[str, dict[str, Any]]] = {}

    def package(self, name: str) -> Package:
        """By its name; empty where there is none."""
        if name not in self.packages:
            folder = self.root / "service" / name
            self.packages[name] = Package(folder if folder.is_dir() else self.root / name)
        return self.packages[name]

    def maker(self, wanted: str, kind: str) -> tuple[str, str]:
        """Package and function of a type."""
        prefix = {"resource": "Resource", "data": "DataSource"}[kind]
        found = re.search(rf'"{wanted}":\s+(\w+)\.({prefix}\w+)\(\),', self.main)
        if found is None:
            raise SystemExit(f"provider.go has no {kind} {wanted}: give a type of this release.")
        return found.group(1), found.group(2)

    def returned(self, package: str, function: str) -> tuple[Any, ...]:
        """What a function returns, with its local names put in."""
        body = self.package(package).bodies.get(function)
        if body is None:
            return ("code",)
        local: dict[str, tuple[Any, ...]] = {}
        at = 0
        value: tuple[Any, ...] = ("code",)
        while at < len(body):
            if body[at][1] == ":=" and at:
                reader = Reader(body, at + 1)
                local[body[at - 1][1]] = reader.expression()
                at = reader.at
            elif body[at][1] == "return":
                reader = Reader(body, at + 1)
                value = reader.expression()
                at = reader.at
            else:
                at += 1
        for _step in range(3):  # What is returned may be a local name, or such a name wrapped by a call.
            name = value[1] if value[0] == "name" else value[2][0][1] if value[0] == "call" and value[2] else None
            value = local.get(name, value) if isinstance(name, str) else value
        return value

    def value(self, package: str, expression: Any) -> Any:
        """A constant's value, or None."""
        if expression is None or expression[0] == "code":
            return None
        if expression[0] == "text":
            return expression[1]
        if expression[0] == "number":
            return float(expression[1]) if "." in expression[1] else int(expression[1].strip("'"), 0)
        if expression[0] == "binary" and expression[1] == "+":
            both = [self.value(package, each) for each in expression[2:]]
            return both[0] + both[1] if all(isinstance(each, str) for each in both) else None
        if expression[0] == "literal":
            return [self.value(package, each) for _key, each in expression[2]]
        if expression[0] == "name":
            name = expression[1]
            if name in ("true", "false"):
                return name == "true"
            owner, dot, rest = name.partition(".")
            where, inner = (owner, rest) if dot else (package, name)
            known = self.package(where).values.get(inner)
            return self.value(where, known) if known else None
        return None

    def validators(self, package: str) -> dict[str, dict[str, Any]]:
        """What the package's validators admit, by "resource key"."""
        found: dict[str, dict[str, Any]] = {}
        for body in self.package(package).bodies.values():
            literals = [
                Reader(body, at - 2).expression()
                for at, (_kind, text) in enumerate(body)
                if text in ("ValidateSchema", "ResourceValidator") and at > 1 and self.opens(body, at)
            ]
            fields = [
                {key[1]: each for key, each in literal[2] if key} for literal in literals if literal[0] == "literal"
            ]
            names = [self.value(package, each["ResourceName"]) for each in fields if "ResourceName" in each]
            for each in fields if names else []:
                rule = {
                    "enum": self.value(package, each.get("AllowedValues")),
                    "matches": self.value(package, each.get("Regexp")),
                    "range": [self.value(package, each.get(key)) for key in ("MinValue", "MaxValue")],
                }
                if isinstance(rule["enum"], str):
                    rule["enum"] = [word.strip() for word in rule["enum"].split(",")]
                rule["range"] = [int(each) if each else None for each in rule["range"]]
                found[f"{names[-1]} {self.value(package, each.get('Identifier'))}"] = rule
        return found

    @staticmethod
    def opens(body: Tokens, at: int) -> bool:
        """Whether a literal opens there, and not a type of a slice."""
        return body[at + 1][1] == "{" and body[at - 3][1] != "]"

    def schema(self, package: str, expression: Any, where: str) -> dict[str, Any]:
        """A map of attributes."""
        if expression and expression[0] == "call":
            owner, dot, name = expression[1].rpartition(".")
            return self.schema(owner if dot else package, self.returned(owner if dot else package, name), where)
        if not expression or expression[0] != "literal":
            self.unresolved.append(where)
            return {}
        out: dict[str, Any] = {}
        for key, each in expression[2]:
            name = self.value(package, key)
            if name is None:
                self.unresolved.append(f"{where}.{key}")
                continue
            out[name] = self.attribute(package, each, f"{where}.{name}")
        return out

    def attribute(self, package: str, expression: Any, where: str) -> dict[str, Any]:
        """One attribute's facts."""
        if expression[0] == "call":
            owner, dot, name = expression[1].rpartition(".")
            package, expression = (owner if dot else package), self.returned(owner if dot else package, name)
        if expression[0] != "literal":
            self.unresolved.append(where)
            return {"type": "string", "computed": True}
        fields = {key[1]: each for key, each in expression[2]}
        kind = KINDS.get(str(fields.get("Type", ("", ""))[1]).rpartition(".")[2])
        out: dict[str, Any] = {"type": kind or "string"}
        for flag, word in FLAGS.items():
            if self.value(package, fields.get(flag)) is True:
                out[word] = True
        for key, word in (("Default", "default"), ("MinItems", "minitems"), ("MaxItems", "maxitems")):
            value = self.value(package, fields.get(key))
            if value is not None:
                out[word] = value
        for key, word in (
            ("ConflictsWith", "conflicts"),
            ("ExactlyOneOf", "exactlyone"),
            ("AtLeastOneOf", "atleastone"),
        ):
            if key in fields:
                out[word] = self.value(package, fields[key]) or []
        if "ConfigMode" in fields and str(fields["ConfigMode"][1]).endswith("Attr"):
            out["mode"] = "attribute"
        if str(fields.get("DiffSuppressFunc", ("", ""))[1]).endswith("ApplyOnce"):
            out["once"] = True
        self.restrict(package, fields.get("ValidateFunc") or fields.get("ValidateDiagFunc"), out)
        element = fields.get("Elem")
        if element and element[0] == "call":
            owner, dot, name = element[1].rpartition(".")
            package, element = (owner if dot else package), self.returned(owner if dot else package, name)
        if element and element[0] == "literal":
            inner = {key[1]: each for key, each in element[2]}
            if element[1].endswith("Resource"):
                out["block"] = self.schema(package, inner.get("Schema"), where)
            else:
                found = KINDS.get(str(inner.get("Type", ("", ""))[1]).rpartition(".")[2], "string")
                out["elem"] = found
        elif kind in ("list", "set", "map"):
            out["elem"] = "string"
        return out

    def restrict(self, package: str, check: Any, out: dict[str, Any]) -> None:
        """What a check admits, where it is one of those that say so."""
        if not check or check[0] != "call":
            return
        name, given = check[1].rpartition(".")[2], check[2]
        if name in ("StringInSlice", "ValidateAllowedStringValues"):
            out["enum"] = self.value(package, given[0])
        elif name == "IntBetween":
            out["range"] = [self.value(package, each) for each in given]
        elif name in ("InvokeValidator", "InvokeDataSourceValidator"):
            key = " ".join(str(self.value(package, each)) for each in given)
            rule = self.known.setdefault(package, self.validators(package)).get(key, {})
            out.update({word: each for word, each in rule.items() if each and each != [None, None]})

    def type(self, wanted: str, kind: str) -> dict[str, Any]:
        """A resource or a data source."""
        package, function = self.maker(wanted, kind)
        fields = {key[1]: each for key, each in self.returned(package, function)[2]}
        out: dict[str, Any] = {"attributes": self.schema(package, fields.get("Schema"), wanted)}
        if "Timeouts" in fields:
            out["timeouts"] = sorted(key[1].lower() for key, _each in fields["Timeouts"][2])
        return out

    def configuration(self) -> dict[str, Any]:
        """What a provider block takes."""
        fields = {key[1]: each for key, each in self.returned("provider", "Provider")[2]}
        return self.schema("provider", fields.get("Schema"), "provider")


def main(source: str, version: str, seen: str, out: str, *wanted: str) -> None:
    """See the module; a data source is named as data.TYPE."""
    reader = Source(Path(source))
    facts: dict[str, Any] = {"resource": {}, "data": {}}
    for name in sorted(wanted):
        kind = "data" if name.startswith("data.") else "resource"
        facts[kind][name.removeprefix("data.")] = reader.type(name.removeprefix("data."), kind)
    about = {"provider": "ibm", "version": version, "seen": seen, "licence": "MPL-2.0",
             "source": "Go source of IBM-Cloud/terraform-provider-ibm, read by support/go_schema.py",
             "unresolved": reader.unresolved, "configuration": reader.configuration()}  # fmt: skip
    Path(out).write_text(json.dumps({**about, **facts}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
