"""Secrets and personal data are taken out, code stays code, and what is none stays."""

import ast
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.processor.stages import secrets
from services.processor.stages.secrets import redact
from services.processor.values import Redaction

HEX32 = "9f86d081884c7d659a2feaa0c55ad015"
KEY = (
    "-----BEGIN EC PRIVATE KEY-----\n"
    "MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49\n"
    "AwEHoUQDQgAEPR3tU2Fta9ktY+6P9G0cWO+0kETA6SFs38GecTyudlHz6xvCdz8q\n"
    "EKTcWGekdmdDPsHloRNt==\n"
    "-----END EC PRIVATE KEY-----"
)
SECRETS = [  # line, what must be gone, kind
    ('k = "AKIAQ3EGRN7X5KQ2LBUZ"', "AKIAQ3EGRN7X5KQ2LBUZ", "aws_access_key"),
    ("AWS_SECRET_ACCESS_KEY=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", "wJalrXUt", "aws_secret_key"),
    ("x = 'AIzaSyD3k9Qw7Zx1Vb5Nm2Lp8Rt6Yu4Io0As9Df'", "AIzaSyD3k9", "google_api_key"),
    ("ghp_0K2bX9fLq7RzT4vNcW8yJ3mHd6sPa1GeU5iO", "ghp_0K2b", "github_token"),
    ("# glpat-Zx7_Qw9Rt2Yu5Io8Pa1S", "glpat-Zx7", "gitlab_token"),
    ('"xoxb-263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1"', "FGqddMF8t08v8N7Oq4i57vs1", "slack_token"),
    ("hooks.slack.com/services/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", "q7RzT4vN", "slack_webhook"),
    ("stripe = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc'", "4eC39HqLyj", "stripe_key"),
    (f"sid = SK{HEX32}", HEX32, "twilio_key"),
    (f'"{HEX32}-us17"', HEX32, "mailchimp_key"),
    ("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", "hf_QwErTy", "huggingface_token"),
    ("bot 5839201744:AAH3k9Qw7Zx1Vb5Nm2Lp8Rt6Yu4Io0As9Df", "AAH3k9Qw7", "telegram_token"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "eyJzdWIi", "jwt"),
    ("AccountKey=" + "q7RzT4vNcW8yJ3mHd6sPa1GeU5iO" * 3 + "==;", "q7RzT4vN", "azure_storage_key"),
    ("postgres://app:pw12%40x@db.internal:5432/app", "pw12%40x", "password"),
    ('password = "hunter2x"', "hunter2x", "password"),
    ('    "db_password": "Tr0ub4dor&3",', "Tr0ub4dor", "password"),
    ("DB_PASSWORD=s3cr3t!pw,x", "s3cr3t!pw,x", "password"),
    ("Server=db1;Uid=sa;Password=t#OtkDjTmJ7;Encrypt=true", "t#OtkDjTmJ7", "password"),
    ("<password>Zx9!kLmn</password>", "Zx9!kLmn", "password"),
    ('<add key="ApiKey" value="q7RzT4vNcW8yJ3mH" />', "q7RzT4vNcW8yJ3mH", "api_key"),
    ('String apiKey = "q7RzT4vNcW8yJ3mHd6sP";', "q7RzT4vNcW8yJ3mHd6sP", "api_key"),
    ("define('AUTH_TOKEN', 'q7RzT4vNcW8yJ3mHd6sP');", "q7RzT4vNcW8yJ3mHd6sP", "token"),
    (f'os.getenv("API_TOKEN", "{HEX32}")', HEX32, "token"),
    ("Authorization: Bearer q7RzT4vNcW8yJ3mHd6sP", "q7RzT4vNcW8yJ3mHd6sP", "token"),
    ("curl -u admin:Sup3rS3cret! https://x", "Sup3rS3cret!", "password"),
    (r'{"a": "{\"password\": \"Tr0ub4dor&3\"}"}', "Tr0ub4dor&3", "password"),
    ("Copyright Anna Meyer <anna.meyer@gmail.com>", "anna.meyer", "email"),
    ('host = "52.17.203.9"', "52.17.203.9", "ipv4"),
    ('host = "2a03:2880:f12f:83:face:b00c::25de"', "face:b00c", "ipv6"),
]  # fmt: skip
HARMLESS = [
    'password = "changeme"',
    'password = "<your-password>"',
    'API_KEY = "your-api-key-here"',
    'api_key = "${API_KEY}"',
    "password = os.environ['DB_PASSWORD']",
    "token = next_token(stream)",
    'token_url = "https://auth.acme.dev/oauth2/token/v17"',
    'tokenizer = AutoTokenizer.from_pretrained("google/gemma-7b")',
    'SECRET = "test-secret"',
    'author = "JohnSmith1234"',
    "password=self.TEST_PASSWORD,",
    'raise ValueError("password must have 8 characters")',
    '"integrity": "sha512-q7RzT4vNcW8yJ3mHd6sPa1GeU5iOq7RzT4vNcW8yJ3mHd6sPa1GeU5iO=="',
    'commit = "9f86d081884c7d659a2feaa0c55ad01512345678"',
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7vbqajDw4o6gJy8UtmIbkcpnkO3Kwc4qs",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEPR3tU2Fta9kt\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBkTCCATegAwIBAgIUQ2F0cyBhcmUgbmljZSBhbmlt\n-----END CERTIFICATE-----",
    'if "-----BEGIN PRIVATE KEY-----" in text:',
    "git@github.com:acme/repo.git",
    "ssh://deploy@build.acme.dev/x",
    "someone@example.com, noreply@github.com",
    "y = weights@self.shape",
    "10.0.0.1 127.0.0.1 0.0.0.0 192.168.1.7 255.255.255.0 203.0.113.9 8.8.8.8",
    "version 4.18.0.2, ==1.2.3.4, Chrome/91.0.4472.124, oid 2.5.29.17",
    "published in 2008::",
    "12:30:45 aa:bb:cc:dd:ee:ff std::vector::iterator",
    "AKIAXXXXXXXXXXXXXXXX ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
]


@pytest.mark.parametrize(("line", "secret", "kind"), SECRETS)
def test_a_secret_is_gone(line: str, secret: str, kind: str) -> None:
    """What opens something, or names somebody, is not in the text any more; its kind and line are known."""
    redacted = redact(f"first\n{line}\nlast\n")
    assert secret not in redacted.text
    assert redacted.redactions == (Redaction(kind, 2),)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_none_stays(text: str) -> None:
    """Placeholders, code, public keys, hashes, documentation's and private addresses are left alone."""
    assert redact(text) == secrets.Redacted(text, ())


def test_the_placeholder_says_the_kind() -> None:
    """A reader of the code sees what stood there."""
    assert redact('k = "AKIAQ3EGRN7X5KQ2LBUZ"').text == 'k = "REDACTED_AWS_ACCESS_KEY"'


def test_addresses_stay_addresses() -> None:
    """E-mail and IP addresses become those reserved for documentation, which parse as what they were."""
    assert redact("a.meyer@gmail.com 52.17.203.9").text == "email@example.com 192.0.2.1"


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        f'KEY = """{KEY}"""',
        "\n".join(f"    {line}" for line in KEY.split("\n")),
        json.dumps({"private_key": KEY + "\n"}),
        json.dumps(json.dumps({"private_key": KEY})),
        "k = " + " +\n    ".join(json.dumps(line + "\n") for line in KEY.split("\n")),
        KEY.rpartition("\n")[0],
    ],
    ids=["plain", "literal", "indented", "json", "json in json", "concatenated", "truncated"],
)
def test_a_private_key_keeps_its_lines(written: str) -> None:
    """However it is written, nothing of a key stays but its number of lines."""
    redacted = redact(written)
    assert redacted.text.count("\n") == written.count("\n")
    assert not any(part in redacted.text for part in ("MHcCAQEE", "AwEHoUQD", "EKTcWGek", "PRIVATE KEY"))
    assert redacted.redactions == (Redaction("private_key", 1),)


def test_nothing_shows_what_was_redacted() -> None:
    """The result may be logged: neither it nor its representation holds the secret."""
    assert "hunter2x" not in repr(redact('password = "hunter2x"'))


def test_the_rest_of_the_line_stays() -> None:
    """Only the secret goes: what stands around it may be worth learning."""
    assert redact('db = connect("postgres://app:q7RzT4v@db:5432")  # é').text == (
        'db = connect("postgres://app:REDACTED_PASSWORD@db:5432")  # é'
    )


fragments = st.lists(
    st.one_of(
        st.sampled_from([line for line, *_ in SECRETS] + HARMLESS + [KEY]),
        st.text("aA1.@:=\"'\\-_/ \n,;<>(){}%é", max_size=24),
        st.sampled_from(
            ["password", "token=", "api_key: ", "://", "-----BEGIN PRIVATE KEY-----", "\\n", "@gmail.com"]
        ),
    ),
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(fragments, st.sampled_from(["", "\n", " ", "'", '"']))
def test_redacting_again_changes_nothing(parts: list[str], joint: str) -> None:
    """A placeholder is no secret, and no line break is lost or added."""
    text = joint.join(parts)
    once = redact(text)
    assert redact(once.text) == secrets.Redacted(once.text, ())
    assert once.text.count("\n") == text.count("\n")


values = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=["C", "Z"]), max_size=40
)
planted = st.one_of(values, st.sampled_from([secret for _, secret, _ in SECRETS] + [KEY]))
names = st.sampled_from(["password", "api_key", "token", "x", "SECRET_KEY", "dsn"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(names, planted), max_size=5))
def test_json_stays_json(pairs: list[tuple[str, str]]) -> None:
    """A document parses after redaction, with the same keys."""
    document = dict(pairs)
    assert json.loads(redact(json.dumps(document, indent=1)).text).keys() == document.keys()
    assert json.loads(redact(json.dumps(document, ensure_ascii=False)).text).keys() == document.keys()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(names, planted), max_size=5))
def test_python_stays_python(pairs: list[tuple[str, str]]) -> None:
    """A module parses after redaction, and has as many statements."""
    source = "".join(f"{name} = {value!r}\nf({name}={value!r})  # {name}\n" for name, value in pairs)
    assert len(ast.parse(redact(source).text).body) == len(ast.parse(source).body)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "@",
        "a@a.",
        "\"'",
        "password=",
        "token=1",
        "eyJ",
        "://a:",
        "AKIA",
        "9Q~",
        "AIza",
        "(",
        "\\n",
        "=",
        "Z" * 20,
    ],
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """Half a megabyte made for backtracking takes well under a second."""
    text = unit * (500_000 // len(unit))
    redact(text[:1000])
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 0.5


def test_key_headers_without_end_take_linear_time() -> None:
    """Each looks for its end no further than a key is long."""
    start = time.process_time()
    redact("-----BEGIN PRIVATE KEY-----\n" * 10_000)
    assert time.process_time() - start < 1.0
