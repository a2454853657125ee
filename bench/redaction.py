"""Redaction on real files: recall of planted secrets, what it takes for one in real code, and its speed.

    .venv/bin/python bench/redaction.py [--show] [PATH …]

PATHs are files or folders; without any, the standard library and the installed packages. A thousand
secrets (fixed seed), made from the formats their issuers publish, are planted one by one into these files
as people write them. `--show` prints every line of the untouched files from which something is redacted,
for counting by hand which of them are none. Ends with one line of JSON.
"""

import argparse
import base64
import json
import random
import string
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from services.processor.stages import secrets  # noqa: E402

PLANTED = 1_000
MAX_FILES, MAX_BYTES = 5_000, 200_000
LETTERS, ALNUM, HEX = string.ascii_letters, string.ascii_letters + string.digits, "0123456789abcdef"
URL64 = ALNUM + "-_"
DIGITS = string.digits
PERSONAL = ("email", "ipv4", "ipv6")
Made = Callable[[random.Random], str]


def _of(alphabet: str, length: int, prefix: str = "", suffix: str = "") -> Made:
    return lambda rng: prefix + "".join(rng.choices(alphabet, k=length)) + suffix


def _jwt(rng: random.Random) -> str:
    parts = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": str(rng.randrange(10**9)), "name": "Jo", "iat": rng.randrange(10**9)},
    )
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, _of(URL64, 43)(rng)])


def _uuid(rng: random.Random) -> str:
    return "-".join(_of(HEX, length)(rng) for length in (8, 4, 4, 4, 12))


def _password(rng: random.Random) -> str:
    """Of 10 to 20 characters with all four classes, as a password manager makes it."""
    characters = [rng.choice(LETTERS), rng.choice(string.digits), rng.choice("!@#%^&*+-_=?~")]
    characters += rng.choices(ALNUM + "!@#%^*+-_?~", k=rng.randint(7, 17))
    rng.shuffle(characters)
    return "".join(characters)


def _human_password(rng: random.Random) -> str:
    word = rng.choice(("Dragon", "Monkey", "Sunshine", "Berlin", "Winter", "Falcon", "Guitar", "Purple"))
    return word.replace("o", "0").replace("e", "3") + str(rng.randrange(1950, 2030)) + rng.choice("!?#*")


def _private_key(kind: str) -> Made:
    def made(rng: random.Random) -> str:
        body = base64.b64encode(rng.randbytes(rng.randint(120, 1190))).decode()
        lines = [body[at : at + 64] for at in range(0, len(body), 64)]
        return "\n".join([f"-----BEGIN {kind}PRIVATE KEY-----", *lines, f"-----END {kind}PRIVATE KEY-----"])

    return made


def _email(rng: random.Random) -> str:
    first = rng.choice(("anna", "bjorn", "chen", "dmitri", "emeka", "fatima"))
    last = rng.choice(("smith", "kowalski", "tanaka", "silva", "okafor", "meyer"))
    host = rng.choice(
        ("gmail.com", "outlook.com", "tu-berlin.de", "mit.edu", "proton.me", "corp.acme-labs.io")
    )
    return f"{first}{rng.choice(('.', '_', '', '-'))}{last}{rng.choice(('', '82', '7'))}@{host}"


def _ipv4(rng: random.Random) -> str:
    first = rng.choice((34, 52, 81, 93, 142, 185, 203))
    return f"{first}.{rng.randint(30, 250)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"


# kind → how its issuer makes one
TOKENS: dict[str, Made] = {
    "aws_access_key": _of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, "AKIA"),
    "aws_session_key": _of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, "ASIA"),
    "google_api_key": _of(URL64, 35, "AIza"),
    "google_oauth_secret": _of(URL64, 28, "GOCSPX-"),
    "google_oauth_token": _of(URL64, 120, "ya29.a0"),
    "azure_client_secret": lambda rng: f"{_of(ALNUM, 3)(rng)}{rng.choice('78')}Q~{_of(URL64 + '.', 34)(rng)}",
    "github_classic": lambda rng: rng.choice(("ghp_", "gho_", "ghu_", "ghs_", "ghr_")) + _of(ALNUM, 36)(rng),
    "github_fine": lambda rng: "github_pat_" + _of(ALNUM, 22)(rng) + "_" + _of(ALNUM, 59)(rng),
    "gitlab": _of(URL64, 20, "glpat-"),
    "slack_bot": lambda rng: f"xoxb-{_of(DIGITS, 12)(rng)}-{_of(DIGITS, 12)(rng)}-{_of(ALNUM, 24)(rng)}",
    "slack_webhook": lambda rng: "https://hooks.slack.com/services/T" + _of("ABCDEFGHJK0123456789", 8)(rng)
    + "/B" + _of("ABCDEFGHJK0123456789", 10)(rng) + "/" + _of(ALNUM, 24)(rng),
    "stripe_live": lambda rng: rng.choice(("sk_live_", "rk_live_")) + _of(ALNUM, rng.choice((24, 99)))(rng),
    "twilio_key": _of(HEX, 32, "SK"),
    "sendgrid": lambda rng: f"SG.{_of(URL64, 22)(rng)}.{_of(URL64, 43)(rng)}",
    "mailgun": _of(HEX, 32, "key-"),
    "mailchimp": lambda rng: _of(HEX, 32)(rng) + f"-us{rng.randint(1, 21)}",
    "npm": _of(ALNUM, 36, "npm_"),
    "pypi": _of(URL64, 150, "pypi-AgEIcHlwaS5vcmc"),
    "docker_hub": _of(URL64, 27, "dckr_pat_"),
    "huggingface": _of(LETTERS, 34, "hf_"),
    "openai_old": lambda rng: f"sk-{_of(ALNUM, 20)(rng)}T3BlbkFJ{_of(ALNUM, 20)(rng)}",
    "openai_project": lambda rng: f"sk-proj-{_of(URL64, 74)(rng)}T3BlbkFJ{_of(URL64, 74)(rng)}",
    "anthropic": _of(URL64, 93, "sk-ant-api03-", "AA"),
    "databricks": _of(HEX, 32, "dapi"),
    "digitalocean": _of(HEX, 64, "dop_v1_"),
    "shopify": _of(HEX, 32, "shpat_"),
    "square": _of(URL64, 22, "sq0atp-"),
    "telegram": lambda rng: f"{rng.randrange(10**8, 10**10)}:A{_of(URL64, 34)(rng)}",
    "facebook": _of(ALNUM, 160, "EAACEdEose0cBA"),
    "atlassian": _of(URL64, 186, "ATATT3"),
    "linear": _of(ALNUM, 40, "lin_api_"),
    "newrelic": _of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 27, "NRAK-"),
    "vault": _of(ALNUM, 95, "hvs.CAES"),
    "terraform": lambda rng: f"{_of(ALNUM, 14)(rng)}.atlasv1.{_of(ALNUM, 67)(rng)}",
    "age": _of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, "AGE-SECRET-KEY-1"),
    "artifactory": _of(ALNUM, 69, "AKCp"),
    "grafana": lambda rng: f"glsa_{_of(ALNUM, 32)(rng)}_{_of(HEX, 8)(rng)}",
    "jwt": _jwt,
}  # fmt: skip
# name → value: secrets that only their name gives away
NAMED: dict[str, Made] = {
    "AWS_SECRET_ACCESS_KEY": _of(ALNUM + "+/", 40),
    "DD_API_KEY": _of(HEX, 32),
    "WANDB_API_KEY": _of(HEX, 40),
    "HEROKU_API_KEY": _uuid,
    "TWILIO_AUTH_TOKEN": _of(HEX, 32),
    "TWITTER_CONSUMER_SECRET": _of(ALNUM, 50),
    "DB_PASSWORD": _password,
    "password": _password,
    "adminPassword": _human_password,
    "smtp_passwd": _password,
    "client_secret": _of(ALNUM, 32),
    "apiKey": _of(ALNUM, 24),
    "auth_token": _of(URL64, 40),
    "encryption_key": _of(ALNUM + "+/", 43, "", "="),
    "SECRET_KEY": _of(ALNUM + "!@#%^&*(-_=+)", 50),
    "accessToken": _of(ALNUM, 32),
}
URLS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "postgres": lambda rng: ("postgres://app:%s@db.internal:5432/app", _of(ALNUM + "-_.!~", 14)(rng)),
    "mongodb": lambda rng: ("mongodb+srv://root:%s@cluster0.ab1cd.mongodb.net/x", _of(ALNUM, 16)(rng)),
    "redis": lambda rng: ("redis://:%s@10.0.0.5:6379/0", _of(ALNUM, 24)(rng)),
    "https": lambda rng: ("https://deploy:%s@git.acme-labs.io/team/repo.git", _of(ALNUM, 20)(rng)),
    "azure": lambda rng: (
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=%s;EndpointSuffix=core.windows.net",
        base64.b64encode(rng.randbytes(64)).decode(),
    ),
    "ado": lambda rng: (
        "Server=db1;Database=app;User Id=sa;Password=%s;Encrypt=true",
        _of(ALNUM + "!#", 14)(rng) + "7",
    ),
    "slack": lambda rng: ("https://api.acme-labs.io/v1/items?access_token=%s&page=2", _of(ALNUM, 32)(rng)),
}
KEYS = {
    name or "PKCS8 ": _private_key(name) for name in ("RSA ", "EC ", "OPENSSH ", "", "DSA ", "ENCRYPTED ")
}
PERSONS = {"email": _email, "ipv4": _ipv4}

# suffix → lines as people write them there; {n} the name, {v} the value
ASSIGNED = {
    ".py": ['{n} = "{v}"', "    {n} = '{v}'", 'os.environ["{n}"] = "{v}"', 'config = {{"{n}": "{v}"}}',
            'client = Client({n}="{v}")',
            '# {n} = "{v}"', '{n}: str = "{v}"', 'x = os.getenv("{n}", "{v}")', 'self.{n} = "{v}"'],
    ".js": ['const {n} = "{v}";', "let {n} = '{v}'", '  {n}: "{v}",', 'process.env.{n} = "{v}";',
            "const {n} = `{v}`;", '// {n}: "{v}"', 'export const {n}: string = "{v}";'],
    ".go": ['{n} := "{v}"', 'const {n} = "{v}"', '\t{n}:    "{v}",', 'os.Setenv("{n}", "{v}")',
            "var {n} string = `{v}`"],
    ".java": ['private static final String {n} = "{v}";', 'props.put("{n}", "{v}");',
              'String {n}="{v}";', 'config.set{n}("{v}");'],
    ".yaml": ['{n}: "{v}"', "{n}: '{v}'", "  - {n}={v}", "    {n}: {v}"],
    ".json": ['  "{n}": "{v}",', '"{n}":"{v}"'],
    ".env": ["{n}={v}", 'export {n}="{v}"', "{n}='{v}'"],
    ".sh": ["export {n}={v}", '{n}="{v}"', "curl -H 'X-{n}: {v}' https://api.acme-labs.io"],
    ".ini": ["{n} = {v}", "{n}={v}", "{n}: {v}"],
    ".xml": ["<{n}>{v}</{n}>", '<add key="{n}" value="{v}" />'],
    ".rb": ["{n} = '{v}'", ':{n} => "{v}",', 'ENV["{n}"] = "{v}"'],
    ".php": ["${n} = '{v}';", "define('{n}', '{v}');", "'{n}' => '{v}',"],
    ".tf": ['{n} = "{v}"'],
}  # fmt: skip
ALONE = {
    ".py": ['x = "{v}"', "# see {v}", 'call("{v}")', "print('{v}')"],
    ".js": ['fetch("{v}")', "// {v}", "const x = `{v}`;"],
    ".go": ['x := "{v}"', "// {v}"],
    ".java": ['foo.bar("{v}");', "/* {v} */"],
    ".yaml": ["value: {v}", "- {v}", 'value: "{v}"'],
    ".json": ['"x": "{v}",', '["{v}"]'],
    ".sh": ["echo {v}", "curl -H 'Authorization: Bearer {v}' https://x.acme-labs.io", "X={v}"],
    ".md": ["Use `{v}` here.", "See {v} for more."],
}


def plant(rng: random.Random) -> tuple[str, str, str, str]:
    """Kind, suffix, the line or lines to plant, and what must be gone from them."""
    group = rng.choices(("token", "named", "url", "key", "person"), weights=(45, 30, 10, 8, 7))[0]
    if group == "named":
        name = rng.choice(list(NAMED))
        suffix = rng.choice(list(ASSIGNED))
        value = NAMED[name](rng)
        return name, suffix, rng.choice(ASSIGNED[suffix]).format(n=name, v=value), value
    suffix = rng.choice(list(ALONE))
    line = rng.choice(ALONE[suffix])
    if group == "token":
        kind = rng.choice(list(TOKENS))
        value = TOKENS[kind](rng)
        return kind, suffix, line.format(v=value), value.rpartition("/")[2] if "://" in value else value
    if group == "url":
        kind = rng.choice(list(URLS))
        url, value = URLS[kind](rng)
        return kind + "_url", suffix, line.format(v=url % value), value
    if group == "person":
        kind = rng.choice(list(PERSONS))
        value = PERSONS[kind](rng)
        return kind, suffix, line.format(v=value), value
    kind = rng.choice(list(KEYS))
    return f"{kind}key", *_written_key(rng, KEYS[kind](rng))


def _written_key(rng: random.Random, key: str) -> tuple[str, str, str]:
    """A key as files, literals of one and more lines, and concatenations hold it; its first line of data."""
    lines = key.split("\n")
    gone = lines[1]
    style = rng.randrange(5)
    if style == 0:
        return ".pem", key, gone
    if style == 1:
        return ".py", f'KEY = """{key}"""', gone
    if style == 2:
        return ".json", json.dumps({"private_key": key + "\n"}), gone
    if style == 3:
        return ".java", "String k = " + " +\n    ".join(f'"{line}\\n"' for line in lines) + ";", gone
    return ".yaml", "key: |\n" + "\n".join(f"    {line}" for line in lines), gone


def recall(texts: list[str], rng: random.Random) -> dict[str, object]:
    """Plants each secret into a text of its own, at a random line."""
    hits, planted, missed = 0, Counter[str](), []
    for _ in range(PLANTED):
        kind, suffix, line, secret = plant(rng)
        lines = rng.choice(texts).split("\n")
        at = rng.randrange(len(lines) + 1)
        redacted = secrets.redact("\n".join([*lines[:at], line, *lines[at:]]))
        planted[kind] += 1
        if (
            secret not in redacted.text
            and len(redacted.text.split("\n")) == len(lines) + line.count("\n") + 1
        ):
            hits += 1
        else:
            missed.append(f"{kind}{suffix}: {line[:140]}")
    for line in missed:
        print("missed", line)
    return {"recall": round(hits / PLANTED, 4), "planted": PLANTED, "planted_kinds": len(planted)}


def read(paths: list[Path]) -> dict[Path, str]:
    """Text files below the paths, evenly sampled when there are many."""
    found = [file for path in paths for file in _files(path)]
    texts = {}
    for file in found[:: max(1, len(found) // MAX_FILES)]:
        try:
            data = file.read_bytes()
            text = data.decode()
        except (OSError, UnicodeDecodeError):
            continue
        if 0 < len(data) <= MAX_BYTES and "\0" not in text:
            texts[file] = text
    return texts


def _files(path: Path) -> Iterator[Path]:
    yield from (
        [path]
        if path.is_file()
        else sorted(
            one
            for one in path.rglob("*")
            if one.is_file() and "site-packages" not in one.relative_to(path).parts
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--show", action="store_true", help="print every redacted line")
    arguments = parser.parse_args()
    locations = sysconfig.get_paths()
    texts = read(arguments.paths or [Path(locations["stdlib"]), Path(locations["purelib"])])
    start = time.process_time()
    for text in texts.values():
        secrets.redact(text)  # the automaton builds its states as it meets them
    first_seconds = time.process_time() - start
    credentials: list[Path] = []
    personal: list[Path] = []
    kinds = Counter[str]()
    clean_seconds, clean_bytes, seconds = 0.0, 0, 0.0
    for path, text in texts.items():
        start = time.process_time()
        redactions = secrets.redact(text).redactions
        spent = time.process_time() - start
        seconds += spent
        kinds.update(redaction.kind for redaction in redactions)
        if not redactions:
            clean_seconds, clean_bytes = clean_seconds + spent, clean_bytes + len(text)
            continue
        is_credential = any(redaction.kind not in PERSONAL for redaction in redactions)
        (credentials if is_credential else personal).append(path)
        if arguments.show:
            lines = text.split("\n")
            for redaction in redactions:
                print(f"{path}:{redaction.line} {redaction.kind}: {lines[redaction.line - 1].strip()[:160]}")
    figures = {
        "files": len(texts),
        "files_with_credentials": len(credentials),
        "files_with_personal_data_only": len(personal),
        "us_per_file_at_first": round(first_seconds / len(texts) * 1e6, 1),
        "us_per_file": round(seconds / len(texts) * 1e6, 1),
        "us_per_10kb_clean": round(clean_seconds / max(1, clean_bytes) * 1e10, 1),
        **recall([text for text in texts.values() if text.isascii()], random.Random(3)),
    }
    print(json.dumps({"kinds": kinds.most_common()}))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
