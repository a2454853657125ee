"""Who may do what: every role, every table, every verb; and what nobody may."""

import itertools
from collections.abc import Callable
from contextlib import closing

import psycopg2
import pytest

from services.core import db
from services.core.target import Target

VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
READ, APPEND, WRITE = {"SELECT"}, {"SELECT", "INSERT"}, {"SELECT", "INSERT", "UPDATE"}
ALLOWED: dict[str, dict[str, set[str]]] = {
    "ratchet_processor": {
        "schema_migrations": READ,
        "heartbeats": WRITE | {"DELETE"},
        "departures": WRITE,
        "sources": WRITE,
        "contents": WRITE,
        "files": WRITE,
        "rejections": READ,
        "claims": WRITE | {"DELETE"},
        "groups": WRITE,
        "cluster_merges": WRITE,
        "score_histogram": WRITE,
        "bands": APPEND,
        "units": WRITE,
        "forgettings": READ,
        "forgotten_contents": READ,
        "looks": APPEND | {"DELETE"},
    },
    "ratchet_trainer": {
        "schema_migrations": READ,
        "heartbeats": WRITE | {"DELETE"},
        "departures": WRITE,
        "sources": READ,
        "contents": READ,
        "files": READ,
        "file_counts": READ,
        "rejections": READ,
        "units": READ,
        "cluster_merges": READ,
        "backlog": READ,
        "trained_clusters": READ,
        "champions": READ,
        "forgettings": READ,
        "tainted_adapters": READ,
        "taints": READ,
        "tracks": WRITE,
        "rounds": WRITE,
        "adapters": WRITE,
        "evaluations": WRITE | {"DELETE"},
        "progress": WRITE | {"DELETE"},
        "round_contents": APPEND,
        "held_out_clusters": APPEND,
        "anchors": APPEND,
        "round_sources": APPEND,
        "round_files": APPEND,
        "exposures": APPEND | {"DELETE"},
        "trained": APPEND,
        "promotions": APPEND,
        "suite_reports": APPEND | {"DELETE"},
        "suite_scores": APPEND,
        "round_samples": APPEND,
        "solutions": WRITE,
        "round_solutions": WRITE,
        "round_episodes": APPEND | {"DELETE"},
        "round_log": APPEND | {"DELETE"},
        "task_sets": WRITE,
        "tasks": WRITE,
        "round_tasks": APPEND,
        "task_exposures": APPEND | {"DELETE"},
        "events": READ,
        "webhook_endpoints": WRITE,
        "deliveries": {"SELECT", "UPDATE"},
        "requests": READ,  # and the columns of the answer
    },
    "ratchet_webhooks": {
        "schema_migrations": READ,
        "events": READ,
        "webhook_endpoints": WRITE,
        "deliveries": {"SELECT", "UPDATE"},
    },
    "ratchet_metrics": dict.fromkeys(
        [
            "schema_migrations", "sources", "files", "rejections", "tracks", "rounds", "round_contents",
            "held_out_clusters", "trained", "evaluations", "adapters", "promotions", "progress", "heartbeats",
            "units", "claims", "groups", "cluster_merges", "score_histogram", "backlog", "trained_clusters",
            "suite_reports", "anchors", "champions", "round_sources", "round_files", "exposures",
            "suite_answers", "round_samples", "round_log", "task_sets", "tasks", "round_tasks",
            "task_exposures", "solutions", "round_solutions", "round_episodes",
            "events", "webhook_endpoints", "deliveries", "stalls", "departures", "requests",
            "forgettings", "forgotten_contents", "tainted_adapters", "taints",
            "file_counts", "files_read", "looks",
        ],
        READ,
    ),
}  # fmt: skip


def refusal(target: Target, statement: str) -> str | None:
    """What PostgreSQL says to the statement, or None when it lets it pass. Nothing stays."""
    with closing(db.connect(target)) as connection, connection.cursor() as cursor:
        try:
            cursor.execute(statement)
        except psycopg2.Error as exc:
            return str(exc)
        finally:
            connection.rollback()
    return None


def test_every_role_table_and_verb(target: Target) -> None:
    """Exactly the grants above, on every table and view there is."""
    with closing(db.connect(target)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')"
        )
        tables = sorted(row[0] for row in cursor.fetchall())
        surprises = []
        for role, table, verb in itertools.product(ALLOWED, tables, VERBS):
            cursor.execute("SELECT has_table_privilege(%s, %s, %s)", (role, table, verb))
            if cursor.fetchone()[0] != (verb in ALLOWED[role].get(table, set())):
                surprises.append((role, table, verb))
    assert surprises == []


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("ratchet_processor", "INSERT INTO rounds DEFAULT VALUES"),
        ("ratchet_processor", "SELECT * FROM rounds"),
        ("ratchet_processor", "SELECT * FROM promotions"),
        ("ratchet_trainer", "DELETE FROM contents"),
        ("ratchet_trainer", "UPDATE promotions SET reason = ''"),
        ("ratchet_trainer", "DELETE FROM promotions"),
        ("ratchet_trainer", "UPDATE trained SET round_id = 1"),
        (
            "ratchet_metrics",
            "INSERT INTO heartbeats (service, instance, state) VALUES ('trainer', 'x', 'idle')",
        ),
        ("ratchet_metrics", "SELECT text FROM contents"),
        ("ratchet_metrics", "CREATE TABLE mine (id integer)"),
        ("ratchet_metrics", "SELECT passwd FROM pg_shadow"),
        (
            "ratchet_trainer",
            "INSERT INTO requests (kind, track, payload, actor) VALUES ('train', 'demo', '{}', 'x')",
        ),
        ("ratchet_trainer", "UPDATE requests SET actor = 'x'"),
        ("ratchet_trainer", "SELECT ask('train', 'demo', '{}', 'x')"),
        (
            "ratchet_metrics",
            "INSERT INTO requests (kind, track, payload, actor) VALUES ('train', 'demo', '{}', 'x')",
        ),
        ("ratchet_metrics", "UPDATE requests SET state = 'done', message = 'x', done_at = now()"),
        ("ratchet_metrics", "SELECT expire_requests()"),
        ("ratchet_processor", "SELECT ask('train', 'demo', '{}', 'x')"),
        ("ratchet_metrics", "COPY sources TO PROGRAM 'true'"),
    ],
)
def test_a_role_is_refused(role_target: Callable[[str], Target], role: str, statement: str) -> None:
    """Logged in as the role, the statement itself is refused for want of a privilege."""
    assert "permission denied" in (refusal(role_target(role), statement) or "it was allowed")


def test_metrics_sees_what_describes_a_content(role_target: Callable[[str], Target]) -> None:
    """All of a content but its text."""
    assert refusal(role_target("ratchet_metrics"), "SELECT id, language, bytes, score FROM contents") is None


@pytest.mark.parametrize(
    "statement", ["UPDATE promotions SET reason = ''", "DELETE FROM promotions", "TRUNCATE promotions"]
)
def test_promotions_are_append_only_for_the_owner_too(target: Target, statement: str) -> None:
    """Not even the owner changes or removes a promotion."""
    assert "promotions is append-only" in (refusal(target, statement) or "it was allowed")


@pytest.mark.parametrize("role", ALLOWED)
def test_roles_are_nothing_more(target: Target, role: str) -> None:
    """No superuser, no creator of databases or roles, no member of another role."""
    with closing(db.connect(target)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls,"
            " EXISTS (SELECT FROM pg_auth_members WHERE member = oid) FROM pg_roles WHERE rolname = %s",
            (role,),
        )
        assert tuple(cursor.fetchone()) == (False,) * 6
