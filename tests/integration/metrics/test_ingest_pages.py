"""The pages of ingest on ten days of history, as the role that production uses."""

import html
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from services.core import db
from services.core.reason_texts import TEXTS
from services.core.sql import queries
from services.core.target import Target
from services.metrics.app import create_app
from tests import metrics_history
from tests.integration.metrics.test_app import settings_for

Rows = Callable[..., list[Any]]
SET_ASIDE = "cluster_id IN (SELECT cluster_id FROM held_out_clusters WHERE role = 'held_out')"
REFUSED = re.compile(r'<th scope="row">.*?<code class="path">(.*?)</code>', re.DOTALL)
HOSTILE = f"/ingest/sources/{quote(metrics_history.HOSTILE_SOURCE, safe='')}"


@pytest.fixture(scope="module")
def client(shown_history: Target) -> Iterator[FlaskClient]:
    """The pages of a history that nobody changes."""
    yield from serving(shown_history)


@pytest.fixture(scope="module")
def rows(server: Target, shown_history: Target) -> Iterator[Rows]:
    """Ask that history, as its owner."""
    yield from asking(server.model_copy(update={"dbname": shown_history.dbname}))


@pytest.fixture
def own_client(history_as: Callable[[str], Target]) -> Iterator[FlaskClient]:
    """The pages of a history of one's own."""
    yield from serving(history_as("ratchet_metrics"))


@pytest.fixture
def own_rows(history: Target) -> Iterator[Rows]:
    """Change it, as its owner."""
    yield from asking(history)


def asking(target: Target) -> Iterator[Rows]:
    with closing(db.connect(target)) as connection, connection.cursor() as cursor:
        connection.autocommit = True

        def ask(statement: str, *values: object) -> list[Any]:
            cursor.execute(
                statement, values[0] if len(values) == 1 and isinstance(values[0], dict) else values
            )
            return list(cursor.fetchall()) if cursor.description else []

        yield ask


def serving(target: Target, **settings: Any) -> Iterator[FlaskClient]:
    app = create_app(settings_for(target, **settings))
    yield app.test_client()
    for name in ("observer", "reader"):
        app.extensions[name].database.close()


def page(client: FlaskClient, path: str, status: int = 200) -> str:
    answer = client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return answer.text


def said(text: str) -> str:
    """What a reader sees: without tags, entities resolved, white space folded."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def content(rows: Rows, where: str) -> str:
    """The address of one content's page."""
    found = rows(f"SELECT encode(sha256, 'hex') AS sha256 FROM contents c WHERE {where} ORDER BY id LIMIT 1")
    return f"/contents/{found[0].sha256}"


def walk(client: FlaskClient, path: str) -> Iterator[str]:
    """This page and those that its links call further."""
    while path:
        text = page(client, path)
        yield text
        following = re.search(r'rel="next" href="([^"]+)"', text)
        path = html.unescape(following[1]) if following else ""


# /ingest


def test_every_source_is_there_with_its_counts(client: FlaskClient) -> None:
    """Kept, refused, commit, licence and the last look."""
    shown = said(page(client, "/ingest"))
    assert "billing-service git 153 52 3f9d2c513f MIT 2026-" in shown or "billing-service git 153 52" in shown
    assert "routing-engine bare 110 45 a81be40ca8 Apache-2.0" in shown
    assert f"{metrics_history.HOSTILE_SOURCE} archive 44 38" in shown


def test_the_words_of_the_line_are_what_the_database_counts(client: FlaskClient, rows: Rows) -> None:
    """Without JavaScript, `?threshold=65` says what 65 would admit."""
    counted = rows(
        "SELECT count(*) FILTER (WHERE score >= 65) AS there, count(*) FILTER (WHERE score >= 70) AS here,"
        " count(*) AS total FROM contents WHERE live"
    )[0]
    shown = said(page(client, "/ingest?threshold=65"))
    assert f"65 would admit {counted.there - counted.here} more than 70 does: {counted.there} of" in shown


def test_a_threshold_that_cannot_be_is_refused_by_name(client: FlaskClient) -> None:
    assert "threshold='101' cannot be shown" in said(page(client, "/ingest?threshold=101", 400))


def test_every_reason_of_a_refusal_is_told_and_listed(client: FlaskClient, rows: Rows) -> None:
    """Its text for people, and a list as long as the count beside it."""
    text = page(client, "/ingest")
    counts = rows("SELECT reason, count(*) AS files FROM files WHERE reason IS NOT NULL GROUP BY reason")
    assert len(counts) >= 8
    for row in counts:
        assert TEXTS[row.reason].replace("`", "") in said(text).replace(" ,", ",").replace(" ;", ";")
        listed = "".join(walk(client, f"/ingest/rejections?reason={row.reason}"))
        assert listed.count('<code class="path">') == row.files


def test_what_was_read_in_the_last_hour_has_a_rate(client: FlaskClient, rows: Rows) -> None:
    """Files a minute, from what is stored."""
    read = rows(
        "SELECT sum(kept + refused) AS files FROM files_read WHERE minute > now() - interval '1 hour'"
    )
    assert f"Files a minute, last hour {read[0].files / 60:.2f}" in said(page(client, "/ingest"))


def test_an_empty_ratchet_says_what_to_do(role_target: Callable[[str], Target]) -> None:
    for client in serving(role_target("ratchet_metrics")):
        assert "Nothing has come in yet" in said(page(client, "/ingest"))
        assert "No file was refused" in said(page(client, "/ingest/rejections"))


# /ingest/rejections


def test_refusals_come_page_by_page_and_each_once(client: FlaskClient, rows: Rows) -> None:
    """Following the links lists every refused file, of one source too."""
    for where, asked in (("", ""), ("AND source_id = 1", "?source=billing-service")):
        pages = list(walk(client, f"/ingest/rejections{asked}"))
        listed = [path for text in pages for path in REFUSED.findall(text)]
        counted = rows(f"SELECT count(*) AS files FROM files WHERE reason IS NOT NULL {where}")[0].files
        assert len(listed) == counted
        assert len(pages) == -(-counted // 50)


def test_a_near_duplicate_leads_to_what_was_kept(client: FlaskClient) -> None:
    text = page(client, "/ingest/rejections?reason=near_duplicate&source=billing-service")
    kept = re.search(r'of <a href="(/contents/[0-9a-f]{64})"', text)
    assert kept is not None
    assert "refused as nearly the same as this one" in said(page(client, kept[1]))


def test_a_source_that_is_not_there_is_named(client: FlaskClient) -> None:
    assert "there is no source 'nowhere'" in said(page(client, "/ingest/rejections?source=nowhere", 404))


# /ingest/sources/<name>


def test_a_source_shows_its_files_and_its_looks(client: FlaskClient, rows: Rows) -> None:
    """Every file, in the order of paths, and a row for each look."""
    pages = list(walk(client, "/ingest/sources/billing-service"))
    counted = rows("SELECT count(*) AS files FROM files WHERE source_id = 1")[0].files
    paths = [
        html.unescape(each) for text in pages for each in re.findall('<code class="path">(.*?)</code>', text)
    ]
    assert len(paths) == counted
    assert paths == sorted(paths)
    looks = rows("SELECT count(*) AS looks FROM looks WHERE source_id = 1")[0].looks
    section = pages[0].split('id="looks"')[1].split("</section>")[0]
    assert section.count("<tr>") == looks + 1


@pytest.mark.parametrize("path", ["/ingest", "/ingest/rejections", HOSTILE, f"{HOSTILE}?after=src/"])
def test_hostile_names_do_nothing(client: FlaskClient, path: str) -> None:
    """No name is markup, and what hides or turns writing round is spelled out."""
    text = page(client, path)
    assert "<script>document" not in text
    assert "<img src=x" not in text
    assert "<i>" not in text
    assert not set("\u202e\u202c\x1b\x07") & set(text)


def test_every_hostile_name_can_be_read(client: FlaskClient) -> None:
    text = "".join(walk(client, HOSTILE))
    shown = said(text)
    for name in (
        r"invoice_\u202eyp.tset\u202c.py",
        r"first\x0aline: <b>second</b>.py",
        r"\x1b[31mred\x07.py",
    ):
        assert f"src/{name}" in shown
    assert metrics_history.TEMPLATE_NAME in shown


# /contents/<sha256>


def test_a_content_shows_its_code_units_and_score(client: FlaskClient, rows: Rows) -> None:
    """Every line with its number, every unit, every reason's points and the percentile."""
    row = rows(
        "SELECT id, encode(sha256, 'hex') AS sha256, text, score, score_reasons, language FROM contents"
        " WHERE text <> '' ORDER BY score DESC, id LIMIT 1"
    )[0]
    text = page(client, f"/contents/{row.sha256}")
    lines = row.text.removesuffix("\n").split("\n")
    code = text.split('<div class="code"')[1].split("</div>")[0]
    assert html.unescape(re.sub(r"<[^>]*>", "", code.split(">", 1)[1])).split() == row.text.split()
    assert code.count("<li ") == len(lines)
    assert sum(row.score_reasons.values()) == row.score
    for name, points in row.score_reasons.items():
        assert re.search(rf"{name.replace('_', ' ')} .{{0,80}}?{points} of \d+", said(text))
    below = rows(
        "SELECT 100.0 * count(*) FILTER (WHERE score < %s) / count(*) AS share FROM contents"
        " WHERE live AND language = %s", row.score, row.language,
    )[0].share  # fmt: skip
    assert f"It scores higher than {below:.1f} %" in said(text)
    units = rows("SELECT name FROM units WHERE content_id = %s", row.id)
    assert all(f"<code>{html.escape(unit.name)}</code>" in text for unit in units)


def test_a_content_shows_where_it_was_used(client: FlaskClient, rows: Rows) -> None:
    """Each round with its role and how often it was seen."""
    address = content(
        rows,
        "EXISTS (SELECT FROM round_contents rc JOIN rounds r ON r.id = rc.round_id"
        "        WHERE rc.content_id = c.id AND r.number = 1 AND rc.role = 'train' AND rc.position = 1)",
    )
    assert "demo 1 train 2 760 promoted round-0001" in said(page(client, address))


def test_what_is_held_out_says_that_it_is_never_trained_on(client: FlaskClient, rows: Rows) -> None:
    address = content(rows, SET_ASIDE)
    assert "held out in demo: never trained on" in said(page(client, address))


def test_it_stays_held_out_when_its_cluster_is_merged(own_client: FlaskClient, own_rows: Rows) -> None:
    """The track has set it aside under the name it had then."""
    address = content(own_rows, SET_ASIDE)
    row = own_rows("SELECT id, cluster_id FROM contents WHERE sha256 = decode(%s, 'hex')", address[10:])[0]
    own_rows("INSERT INTO cluster_merges VALUES (%s, 900001)", row.cluster_id)
    own_rows("UPDATE contents SET cluster_id = 900001 WHERE id = %s", row.id)
    assert "held out in demo: never trained on" in said(page(own_client, address))


def test_what_was_taken_out_is_told_by_kind_and_line(client: FlaskClient, rows: Rows) -> None:
    shown = said(page(client, content(rows, "redactions <> '[]'")))
    assert "email in line 6 aws access key in line 7" in shown
    assert "AKIA" not in shown


def test_hostile_code_does_nothing(client: FlaskClient, rows: Rows) -> None:
    """It is shown, escaped, with every mark that hides or turns writing round spelled out."""
    text = page(client, content(rows, "text LIKE '%%Account2%%'"))
    assert "<script>document" not in text
    assert not set("\u202e\u2066\u2069\u200b\x1b") & set(text)
    assert r'<mark class="escape">\u202e</mark>' in text
    assert "{{ config }}" in said(text)


def test_what_was_forgotten_is_never_shown(client: FlaskClient, rows: Rows) -> None:
    """410, that it was taken back and the rounds that had it; no path, no unit, no score."""
    address = content(rows, "id IN (SELECT content_id FROM forgotten_contents)")
    text = page(client, address, 410)
    assert "This text was taken back on 2" in said(text)
    assert "customers" not in text
    assert "Why it scores" not in text


def test_a_text_that_is_being_forgotten_is_not_shown_either(own_client: FlaskClient, own_rows: Rows) -> None:
    """From the moment that its tombstone stands, before it is erased."""
    row = own_rows(
        "SELECT id, encode(sha256, 'hex') AS sha256 FROM contents WHERE text <> '' ORDER BY id LIMIT 1"
    )[0]
    own_rows("INSERT INTO forgotten_contents SELECT 1, %s, true", row.id)
    page(own_client, f"/contents/{row.sha256}", 410)


def test_the_role_reads_no_text_but_one_by_one(shown_history: Target, rows: Rows) -> None:
    """`contents.text` stays closed to it; the function gives nothing that was forgotten."""
    forgotten = rows("SELECT content_id FROM forgotten_contents")[0].content_id
    with closing(db.connect(shown_history)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT shown_text(%s) AS gone, shown_text(1) AS there", (forgotten,))
        found = cursor.fetchone()
    assert (found.gone, bool(found.there)) == (None, True)


def test_the_code_is_not_shown_where_a_setting_says_so(shown_history: Target, rows: Rows) -> None:
    """METRICS_SHOW_CODE=false leaves what describes the content."""
    for client in serving(shown_history, metrics_show_code="false"):
        text = page(client, content(rows, "text LIKE '%%Account2%%'"))
        assert "METRICS_SHOW_CODE=false" in said(text)
        assert "is_admin(user" not in text
        assert "Why it scores" in text


def test_what_is_no_hash_is_no_content(client: FlaskClient) -> None:
    page(client, f"/contents/{'0' * 64}", 404)
    page(client, f"/contents/{'Z' * 64}", 404)


def test_a_long_text_comes_in_parts(own_client: FlaskClient, own_rows: Rows) -> None:
    """A thousand lines at a time, each part linked to the next."""
    row = own_rows(
        "SELECT id, encode(sha256, 'hex') AS sha256 FROM contents WHERE text <> '' ORDER BY id LIMIT 1"
    )[0]
    own_rows("ALTER TABLE contents DISABLE TRIGGER USER")
    own_rows("UPDATE contents SET text = repeat(E'a = 1\n', 2500), lines = 2500 WHERE id = %s", row.id)
    numbers = [
        int(number)
        for text in walk(own_client, f"/contents/{row.sha256}")
        for number in re.findall(r'<li id="L(\d+)"', text)
    ]
    assert numbers == list(range(1, 2501))


# What they cost

LARGE = {"files", "contents", "units", "round_contents", "files_read", "looks", "exposures"}
ASKED = {
    "after": "", "limit": 50, "threshold": 70, "name": "billing-service", "source_id": 1, "content_id": 1,
    "cluster_id": 1, "sha256": "00" * 32, "reason": "too_short",
}  # fmt: skip
OURS = sorted(name for name in queries() if name.startswith(("ingest_", "content_", "api_rejections")))


@pytest.mark.parametrize("name", OURS)
def test_a_query_reads_no_large_table_from_end_to_end(rows: Rows, name: str) -> None:
    """There is an index for whatever it asks, or PostgreSQL would scan a table even when told not to."""
    variants = [ASKED]
    if name == "api_rejections":
        source = ASKED["name"]
        given = [(None, None), (None, "too_short"), (source, None), (source, "too_short")]
        variants = [{**ASKED, "after": 0, "source": source, "reason": reason} for source, reason in given]
    rows("SET enable_seqscan = off")
    for asked in variants:
        plan = str(rows("EXPLAIN (FORMAT JSON) " + queries()[name].text.rstrip().rstrip(";"), asked)[0][0])
        scanned = set(re.findall(r"'Node Type': 'Seq Scan'[^{}]*?'Relation Name': '(\w+)'", plan))
        assert not scanned & LARGE
