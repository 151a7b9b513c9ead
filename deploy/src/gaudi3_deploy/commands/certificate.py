"""certificate: show, compare and verify the certificates that gaudi3.scale.certificate writes of machines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from gaudi3_deploy import given_file
from gaudi3_deploy.app import Context, Json, app, print_json
from gaudi3_deploy.collection._certificate import compare as comparison
from gaudi3_deploy.collection._certificate import document, page, signature
from gaudi3_deploy.collection._refusal import Refusal
from gaudi3_deploy.collection._ssh_keygen import SIGNATURE, changed
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.messages import reason

certificate = typer.Typer(no_args_is_help=True, help="Certificates of machines: show, compare, verify.")
app.add_typer(certificate, name="certificate")

File = Annotated[Path, typer.Argument(metavar="FILE", help="NODE.certificate.json; its signature lies beside it.")]


@certificate.command()
def show(context: typer.Context, file: File, as_json: Json = False) -> None:
    """Tell what a certificate says, without trusting who signed it.

    Exit codes: 0 shown, 2 the file is no certificate.
    """
    text = _text(file)
    found = _loaded(text, file)
    given = _optional(_beside(file))
    try:
        signed_by = signature.signer(text, given)[0] if given is not None else ""
    except Refusal as refusal:
        raise DeployError(str(refusal)) from refusal
    if as_json:
        judged, evidence = found.judgement.as_facts(), found.evidence.as_facts()
        print_json({"digest": found.digest, "signed_by": signed_by, "judgement": judged, "certificate": evidence})
        return
    _print(context.obj, page.text(found, signed_by))


@certificate.command()
def compare(
    context: typer.Context,
    file: File,
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="Another one of the same machine, in any order.")],
    as_json: Json = False,
) -> None:
    """Tell what got worse between two certificates of one machine.

    Exit codes: 0 nothing got worse, 1 something did or is odd, 2 they are of two machines, or one is no certificate.
    """
    try:
        found = comparison.compare(_loaded(_text(file), file), _loaded(_text(other), other))
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal
    if as_json:
        print_json(found.as_facts())
    else:
        grades = (
            f"{found.earlier} then, {found.later} now" if found.earlier != found.later else f"{found.later} both times"
        )
        lines = [f"grade: {grades}"]
        for title, texts in (("worse", found.worse), ("odd", found.odd), ("changed", found.changed)):
            lines += [title, *(f"  {text}" for text in texts)] if texts else []
        if found.odd:
            first, last = map(page.moment, found.taken)
            lines.append(
                f"by the machine's clock from {first} to {last}: where that was wrong, it is the other way round"
            )
        _print(context.obj, [*lines, *([] if len(lines) > 1 else ["nothing changed"])])
    if found.worse or found.odd:
        raise typer.Exit(1)


@certificate.command()
def verify(
    context: typer.Context,
    file: File,
    key: Annotated[Path | None, typer.Option(help="The owner's public key, got by a way that you trust.")] = None,
) -> None:
    """Tell whether a certificate is as its owner signed it, and the page beside it is the certificate's.

    Exit codes: 0 as its owner signed it, 1 it is not, or nobody says by whom, 2 a file is missing or no certificate.
    """
    text, given = _text(file), _optional(_beside(file))
    found = _loaded(text, file)
    if given is None:
        raise DeployError(f"{file} is not signed: anybody may have changed it. Ask its owner for {_beside(file).name}.")
    try:
        by, why = signature.signer(text, given)
        problem = "" if by else changed(str(file), why)
        if not problem and key is None:
            problem = (
                f"{file} is as the key {by} signed it, and nothing says whose that is: give the owner's with --key."
            )
        elif not problem and key is not None:
            why = signature.problem(text, given, _text(key))
            problem = f"{file} is not verified: {why}." if why else ""
    except Refusal as refusal:
        raise DeployError(str(refusal)) from refusal
    shown = _optional(file.with_suffix(".html"))
    if not problem and shown is not None and shown != page.html(found, by):
        problem = f"{file.with_suffix('.html')} is not the page that this release makes of it: show the file itself."
    if problem:
        raise DeployError(problem)
    beside = " The page beside it is its own." if shown is not None else ""
    _print(context.obj, [f"{file}: signed by {by}, unchanged.{beside}"])


def _beside(file: Path) -> Path:
    return file.with_name(file.name + SIGNATURE)


def _text(file: Path) -> str:
    try:
        content = given_file.read_bytes(file, document.LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({reason(error)}): give a file NODE.certificate.json.") from None
    if len(content) > document.LARGEST:
        raise UsageError(f"{file} has more than {document.LARGEST} bytes: give a file NODE.certificate.json.")
    return content.decode("utf-8", "surrogateescape")


def _optional(file: Path) -> str | None:
    return _text(file) if file.exists() else None


def _loaded(text: str, file: Path) -> document.Certificate:
    try:
        return document.load(text, str(file))
    except Refusal as refusal:
        raise UsageError(str(refusal)) from refusal


def _print(settings: Context, lines: Iterable[str]) -> None:
    for line in lines:
        settings.console.print(line, highlight=False, markup=False, soft_wrap=True)
