# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Which names say that a value is a secret, and which values are secrets whatever they are called.

Forms of tokens: the issuers' own pages. An identifier, such as that of an access key of AWS, opens nothing by itself.
"""

from __future__ import annotations

import re

#: Words of a name which say that its value is a secret.
_SECRET_WORDS = frozenset(
    (
        *("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "CREDENTIALS", "KEY"),
        *("APIKEY", "PRIVATEKEY", "AUTHORIZATION", "COOKIE"),
    )
)
#: Last words that do behind another: a personal access token, passwords, and a shared access signature. PWD alone is a
#: folder.
_LAST_WORDS = frozenset(("PAT", "PASS", "PWD", "SAS"))
#: Ends of a word that do, as in HFTOKEN and PGPASSWORD.
_ENDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "ACCESSKEY", "SECRETKEY")
#: PGPASS and its like, as opposed to BYPASS and COMPASS.
_PASSES = re.compile(
    r"(?:PG|SSH|DB|SQL|MYSQL|REDIS|MONGO|SUDO|FTP|HTTP|SMTP|MAIL|USER|ROOT|ADMIN|LDAP|PROXY)PASS(?:WD)?"
)
#: Last words which say that the value is only a place, or the name of something.
_PLACE_WORDS = frozenset(("FILE", "PATH", "DIR", "FOLDER", "URL", "ENDPOINT", "NAME"))
#: Words before TOKEN or KEY with which it is one of a text or of a table.
_HARMLESS = re.compile(
    "BOS|EOS|PAD|UNK|MASK|SEP|CLS|SPECIAL|IMAGE|AUDIO|VIDEO|STOP|START|END|BEGIN|NEW|FIRST|LAST|NEXT|PER|MAX|MIN|TEXT|"
    "PROMPT|SORT|PRIMARY|FOREIGN|LABEL|INPUT|OUTPUT|DATA|DATASET|SAMPLE|PUBLIC|PARTITION|COLUMN|TARGET|BY"
)
#: The end of a name of an identifier: AWS_ACCESS_KEY_ID.
_IDENTIFIERS = re.compile(r"(?:^|_)KEY_ID$")

#: Tokens of Hugging Face (which names of folders resemble), GitHub, GitLab, OpenAI and others, Slack, PyPI, Docker,
#: Vault, npm, Google, DigitalOcean, Databricks, Weights & Biases, NVIDIA, Groq, xAI, Replicate, Stripe, LangSmith,
#: Tailscale and SendGrid.
TOKEN = (
    r"(?<![A-Za-z0-9])(?:hf_(?:[A-Za-z0-9]{20,}|(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{12,})|gh[pousr]_[A-Za-z0-9]{10,}|"
    r"(?:github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-|xox[abeprs]-|xapp-|pypi-|dckr_[op]at_|hv[sb]\.|ya29\.|dop_v1_|"
    r"wandb_v1_)[\w-]{10,}|sk-(?:[A-Za-z0-9_]{20,}|(?=[\w-]*\d)[\w-]{16,})|npm_[A-Za-z0-9]{20,}|AIza[\w-]{20,}|"
    r"dapi[0-9a-f]{16,}|nvapi-[\w-]{20,}|(?:gsk_|xai-|r8_)[A-Za-z0-9]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|"
    r"lsv2_[ps][tk]_\w{16,}|tskey-[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,})"
)
#: A private key in PEM.
PRIVATE_KEY = r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
#: What a URL of Azure, AWS or Google is signed with, which opens the place for everybody who has the URL.
SIGNED = r"(?:(?<=[?&])(?:sig|signature)|X-(?:Amz|Goog)-(?:Signature|Security-Token))=[\w%+/.=-]{8,}"
#: An address to which everybody who knows it may post.
WEBHOOK = (
    r"(?:hooks\.slack\.com/(?:services|triggers|workflows)|discord(?:app)?\.com/api/webhooks|"
    r"webhook\.office\.com/webhookb2)/[\w/@-]{8,}"
)
#: A token in the place of a URL's user.
USER = r"(\b[A-Za-z][\w+.-]{0,30}://)(?=[\w-]{0,300}\d)[\w-]{20,300}@"
#: A header of a request with a scheme of its own.
SCHEME = r"(:\s{0,4}[\"']?(?:Token|ApiKey|Api-Key|Digest|Negotiate|SharedKey|AWS4-HMAC-SHA256))\s+[\w.+/:=~-]{8,}"
#: A header of a request, and a signed token (JWT).
BEARER = r"\b(?:Bearer|Basic)\s+[\w.+/=~-]{8,}"
JWT = r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]{4,}"
#: The hash of a password, as in /etc/shadow.
HASH = r"\$(?:1|2[aby]|5|6|y|argon2\w{0,2})\$[\w./$=,+-]{8,}"

_VALUES = (
    (re.compile(r"\b[A-Za-z][\w+.-]{0,30}://[^/\s@:]{0,300}:[^/\s@]{1,300}@"), "a URL with a password"),
    (re.compile(PRIVATE_KEY), "a private key"),
    (re.compile(TOKEN), "a token"),
    (re.compile(JWT), "a token"),
    (re.compile(BEARER, re.I), "a token"),
    (re.compile(HASH), "the hash of a password"),
    (re.compile(SIGNED, re.I), "a URL that is signed"),
    (re.compile(WEBHOOK), "the URL of a webhook"),
    (re.compile(USER), "a URL with a token"),
    (re.compile(SCHEME, re.I), "a token"),
)
#: ``name=value`` within a value: of a URL's query, of a connection string, an option or JSON. A path is none.
_ASSIGNED = re.compile(r"(?<![\w.-])-{0,2}([A-Za-z][\w.-]{0,60}?)[\"']?\s?[=:]\s?[\"']?(?=[^\s=:/\"'])")


def names_secret(name: str) -> bool:
    """Does the name of a variable, an option or an entry say that its value is a secret, not where one lies?"""
    words = [word for word in re.split(r"[^A-Z0-9]+", _separated(name).upper()) if word]
    if not words or words[-1] in _PLACE_WORDS:
        return False
    if words[-1] == "HEADERS" and "OTLP" in words:  # by which OpenTelemetry shows a receiver that it may send
        return True
    if _IDENTIFIERS.search("_".join(words)):
        words = words[:-2]
    return any(_is_secret(word, words[:number], number == len(words) - 1) for number, word in enumerate(words))


def _separated(name: str) -> str:
    """Its words apart, also where capitals alone begin them: apiKey, accessToken."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


def _is_secret(word: str, before: list[str], last: bool) -> bool:
    if word in ("TOKEN", "KEY") and before and _HARMLESS.fullmatch(before[-1]):
        return False
    return bool(
        word in _SECRET_WORDS
        or (last and before and word in _LAST_WORDS)
        or word.endswith(_ENDS)
        or bool(_PASSES.fullmatch(word))
    )


def option_names_secret(name: str) -> bool:
    """The same for an option or an entry, of which many are called key."""
    return name.strip("-").lower() != "key" and names_secret(name)


def secret_kind(value: str) -> str:
    """What kind of secret a value is or holds, such as "a token"; empty where it shows none."""
    for pattern, kind in _VALUES:
        if pattern.search(value):
            return kind
    for found in _ASSIGNED.finditer(value):
        if option_names_secret(found.group(1)):
            return f"a value of {found.group(1)}"
    return ""


def is_place(value: str) -> bool:
    """Whether a value is a path, behind which a secret may lie."""
    return value.startswith(("/", "~", "./", "../"))
