"""The real process: started, killed, stopped, doubled, with an ingest folder that comes and goes."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.integration.processor.conftest import code, instance, until

KILLED = -signal.SIGKILL


def everything(rows) -> list[tuple]:
    return rows(
        "SELECT s.name, f.path, f.reason, encode(c.sha256, 'hex'), c.score, c.cluster_id"
        " FROM files f JOIN sources s ON s.id = f.source_id LEFT JOIN contents c ON c.id = f.content_id"
        " WHERE f.retired_at IS NULL ORDER BY 1, 2"
    )


@pytest.mark.parametrize(
    "point", ["processor.after_read", "processor.before_commit", "processor.after_commit"]
)
def test_killed_at_a_point_it_loses_and_doubles_nothing(point: str, repo: Path, processor, rows) -> None:
    """After kill -9 and a new start every file has exactly the row it would have had."""
    for number in range(30):
        (repo / f"file{number}.py").write_text(code(f"things_{number % 25}"))
    assert processor(RATCHET_FAILPOINT=point).wait(60) == KILLED
    assert rows("SELECT count(*) FROM contents") == [(27 if point.endswith("after_commit") else 0,)]
    processor()
    until(lambda: rows("SELECT count(*) FROM sources WHERE last_scanned_at IS NOT NULL") == [(1,)])
    assert len(everything(rows)) == 33
    assert rows("SELECT count(*), count(DISTINCT sha256), count(DISTINCT cluster_id) FROM contents") == [
        (27, 27, 27)
    ]
    assert rows("SELECT count(*) FROM claims") == [(0,)]


def test_two_processors_share_the_sources(ingest: Path, processor, rows, log) -> None:
    """Each text and each path is stored once, and neither process says anything went wrong."""
    for source in range(12):
        (ingest / f"repo{source}").mkdir()
        for number in range(20):
            (ingest / f"repo{source}" / f"f{number}.py").write_text(
                code(f"things_{(source * 7 + number) % 60}")
            )
    both = [processor(RESCAN_INTERVAL="1"), processor(RESCAN_INTERVAL="1")]
    until(lambda: rows("SELECT count(*) FROM sources WHERE last_scanned_at IS NOT NULL") == [(12,)])
    until(lambda: rows("SELECT count(*) FROM heartbeats") == [(2,)])
    for process in both:
        process.terminate()
    assert [process.wait(60) for process in both] == [0, 0]
    assert rows("SELECT count(*), count(content_id) FROM files") == [(240, 240)]
    assert rows("SELECT count(*), count(DISTINCT sha256), min(cluster_id) > 0 FROM contents") == [
        (60, 60, True)
    ]
    assert "WARNING" not in log(0) + log(1)
    assert "ERROR" not in log(0) + log(1)


def test_it_notices_what_is_dropped_changed_and_taken_away(
    ingest: Path, repo: Path, processor, files
) -> None:
    """By events, long before the rescan: new files and directories, changes, deletions, whole sources."""
    processor()
    until(lambda: len(files()) == 3)
    (repo / "src" / "deeper").mkdir()
    (repo / "src" / "deeper" / "plums.py").write_text(code("plums"))
    until(lambda: files().get("repo/src/deeper/plums.py", "") is None)
    (repo / "short.py").write_text(code("short_no_more"))
    until(lambda: files()["repo/short.py"] is None)
    (repo / "src" / "pears.py").unlink()
    until(lambda: "repo/src/pears.py" not in files())
    (ingest / "loose.py").write_text(code("loose"))
    until(lambda: "./loose.py" in files())
    shutil.rmtree(repo)
    until(lambda: files() == {"./loose.py": None})


def test_it_stops_on_sigterm(repo: Path, processor, rows, log) -> None:
    """With status 0, saying so, and its heartbeat goes with it."""
    process = processor()
    until(lambda: rows("SELECT count(*) FROM heartbeats WHERE instance = %s", instance(process)) == [(1,)])
    process.terminate()
    assert process.wait(60) == 0
    assert "stopped" in log(0)
    assert rows("SELECT count(*) FROM heartbeats") == [(0,)]


def test_it_stops_on_sigterm_while_the_database_is_away(processor, log) -> None:
    """Also in the middle of waiting for it."""
    process = processor(DATABASE_URL="postgresql://nobody:nothing@127.0.0.1:1/none")
    until(lambda: log(0).count("cannot log in") >= 3)
    process.terminate()
    assert process.wait(60) == 0
    assert "nothing" not in log(0)


def test_its_heartbeat_tells_what_it_does(repo: Path, processor, rows) -> None:
    """State idle and the counts so far, once the first scan is over."""
    process = processor()
    query = "SELECT detail FROM heartbeats WHERE instance = %s AND state = 'idle' AND detail->>'stored' = '2'"
    until(lambda: rows(query, instance(process)))
    ((detail,),) = rows(query, instance(process))
    told = {"source", "files_seen", "stored", "rejected", "files_per_s", "message", "disks"}
    assert set(detail) == told
    assert 0 < detail["disks"][0]["free_bytes"] < detail["disks"][0]["total_bytes"]
    assert (detail["files_seen"], detail["rejected"], detail["message"]) == (3, 1, None)


def test_an_empty_folder_is_said_once(processor, rows, log, ingest: Path) -> None:
    """As idle with a message, not with every look."""
    processor(RESCAN_INTERVAL="0.2")
    until(lambda: "is empty: drop repositories" in log(0))
    until(
        lambda: rows(
            "SELECT detail->>'message' FROM heartbeats WHERE state = 'idle' AND detail->>'message' <> ''"
        )
    )
    assert log(0).count("is empty") == 1


def test_a_missing_folder_is_an_error_and_retires_nothing(
    ingest: Path, repo: Path, processor, rows, log
) -> None:
    """The heartbeat says what to do, and when the folder is back all is as before."""
    processor(RESCAN_INTERVAL="0.5")
    until(lambda: rows("SELECT count(*) FROM sources WHERE last_scanned_at IS NOT NULL") == [(1,)])
    before = everything(rows)
    ingest.rename(ingest.parent / "unmounted")
    until(
        lambda: rows(
            "SELECT 1 FROM heartbeats WHERE state = 'error' AND detail->>'message' LIKE '%%cannot read%%'"
        )
    )
    assert everything(rows) == before
    assert log(0).count("cannot read the ingest folder") == 1
    (ingest.parent / "unmounted").rename(ingest)
    until(lambda: rows("SELECT 1 FROM heartbeats WHERE state = 'idle'"))
    assert everything(rows) == before


def test_a_wrong_setting_ends_it_with_a_message(processor, log) -> None:
    """Exit status 2, and the nearest valid name."""
    assert processor(INGEST_DIRR="/x").wait(60) == 2
    assert "INGEST_DIRR is not a setting: did you mean INGEST_DIR?" in log(0)


def test_a_hostile_source_harms_nothing(ingest: Path, processor, files, rows) -> None:
    """Links, FIFOs, sparse files, hooks: each a reason or nothing, and the good file is kept."""
    repo = ingest / "hostile"
    repo.mkdir()
    (repo / "root").symlink_to("/")
    (repo / "loop").symlink_to(".")
    os.mkfifo(repo / "pipe.py")
    with (repo / "sparse.py").open("wb") as file:
        file.truncate(10_000_000_000)
    (repo / ".git").mkdir()
    (repo / ".git" / "config").write_text("[core]\n\tfsmonitor = touch /tmp/never\n")
    (repo / "brackets.py").write_text("(" * 200_000)
    (repo / "good.py").write_text(code("good"))
    processor()
    until(lambda: len(files()) == 6)
    assert files() == {
        "hostile/root": "symlink",
        "hostile/loop": "symlink",
        "hostile/pipe.py": "special_file",
        "hostile/sparse.py": "too_large",
        "hostile/brackets.py": "minified",
        "hostile/good.py": None,
    }


def test_what_is_written_while_it_scans_is_found_at_last(repo: Path, processor, rows) -> None:
    """A file rewritten again and again ends with its last text stored and in use."""
    processor()
    for number in range(25):
        (repo / "src" / "busy.py").write_text(code(f"version_{number}"))
        time.sleep(0.04)
    query = "SELECT c.text FROM files f JOIN contents c ON c.id = f.content_id WHERE f.path = 'src/busy.py'"
    until(lambda: rows(query) == [(code("version_24"),)])


def test_connections_cut_again_and_again_lose_nothing(ingest: Path, processor, rows) -> None:
    """Each batch is tried until it is in; the process itself never ends."""
    for number in range(600):
        source = ingest / f"repo{number % 3}"
        source.mkdir(exist_ok=True)
        (source / f"file{number}.py").write_text(code(f"things_{number}"))
    process = processor(RESCAN_INTERVAL="1")
    sessions = "FROM pg_stat_activity WHERE application_name = 'ratchet processor'"
    cuts = 0

    def done() -> bool:
        nonlocal cuts
        if cuts < 4 and rows("SELECT count(*) FROM heartbeats") == [(1,)]:
            cuts += rows(f"SELECT count(pg_terminate_backend(pid)) {sessions}")[0][0]
        kept = "content_id IS NOT NULL OR reason = 'near_duplicate'"
        return rows(f"SELECT count(*), count(*) FILTER (WHERE {kept}) FROM files") == [(600, 600)]

    until(done)
    assert cuts >= 2
    assert process.poll() is None
