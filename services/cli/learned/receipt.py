"""`ratchet receipt ADAPTER`: what an adapter was trained on, and whether that is still as it was written."""

import fnmatch
import json
from collections.abc import Iterator
from pathlib import Path

from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.errors import ReceiptError
from services.core.models import ContentRole, Json
from services.trainer import publish
from services.trainer.receipts import merkle, verifying
from services.trainer.receipts.lines import NAME, Content
from services.trainer.receipts.reading import Item, Receipt
from services.trainer.receipts.verifying import Chain
from services.trainer.recipes import files as recipe_files

MOST_SOURCES = 20  # of a summary; --json has them all
UNKNOWN = "not known"
CHAMPION = "champion"  # of the track of RECIPE, as other commands take it


def run(
    environment: Environment, asked: str, *, verify: bool, path: str | None, prove: str | None, as_json: bool
) -> None:
    """Print the summary, the contents or tasks that `path` matches, or the proof of one of them.

    Raises ReceiptError for whatever is wrong with the receipt, PublishError for the adapter's other files.
    """
    folder = folder_of(_named(environment) if asked == CHAMPION else asked, environment.settings.adapters_dir)
    found: list[Json] = []

    def look(item: Item) -> None:
        if path is not None and matches(item, path):
            found.append(item.model_dump(mode="json", exclude_none=True))

    chain: Chain | None = None
    if verify:
        receipt, chain = verifying.verify(folder, look)
    else:
        receipt = verifying.read(folder, look)
    if prove is not None:
        print(json.dumps(proof(receipt, prove)))
    elif as_json:
        print(json.dumps(document(receipt, chain) | ({} if path is None else {"matches": found})))
    elif path is not None:
        print("\n".join(_matching(found)) or f"no file of {receipt.name} matches {inert(path)}")
    else:
        print("\n".join(summary(receipt, chain)))


def _named(environment: Environment) -> str:
    return recipe_files.load(environment.settings.recipe, environment.settings.recipe_overrides).name


def folder_of(asked: str, adapters_dir: Path) -> Path:
    """`track/round-0001`, `track` for its champion, `round-0001` where one track has it, or a folder.

    Raises ReceiptError when there is none, or more than one.
    """
    below = adapters_dir / asked
    is_below = not asked.startswith((".", "/", "~")) and below.is_dir()
    places = [below / publish.CURRENT, below] if is_below else [Path(asked).expanduser()]
    if not is_below and "/" not in asked and adapters_dir.is_dir():
        places += [track / asked for track in sorted(adapters_dir.iterdir())]
    found = [place.resolve() for place in places if (place / publish.MANIFEST).is_file()]
    if len(found) > 1 and not is_below:
        named = ", ".join(f"{each.parent.name}/{each.name}" for each in found)
        raise ReceiptError(f"{asked} is there more than once: name one of {named}")
    if not found:
        empty = "has no champion: name a round of it" if is_below else "is no published adapter"
        raise ReceiptError(
            f"{asked} {empty}; expected TRACK, TRACK/round-0001 below {adapters_dir}, or a folder with a"
            f" {publish.MANIFEST}"
        )
    return found[0]


def matches(item: Item, pattern: str) -> bool:
    """Whether a file of it, as source/path or as path alone, matches; `*` crosses folders.

    Of a task its name does, alone or behind its set's.
    """
    places = [file[:2] for file in item.files] if isinstance(item, Content) else [(item.task_set, item.name)]
    return any(
        fnmatch.fnmatchcase(name, pattern)
        for first, second in places
        for name in (f"{first}/{second}", second)
    )


def document(receipt: Receipt, chain: Chain | None) -> Json:
    """All that the summary knows."""
    header = receipt.header
    return {
        "adapter": receipt.name,
        "path": str(receipt.path),
        "sha256": receipt.sha256,
        "root": receipt.root,
        "lines": receipt.lines,
        "header": header.model_dump(mode="json"),
        "contents": {role.value: receipt.contents[role] for role in ContentRole},
        "learned_bytes": receipt.learned_bytes,
        "seen": receipt.seen,
        "not_seen": receipt.not_seen,
        "tokens": receipt.tokens,
        "planted": receipt.planted,
        "tasks": {role.value: number for role, number in receipt.tasks.items()},
        "practised_of": dict(receipt.practised_of.most_common()),
        "solutions": receipt.solutions,
        "solutions_seen": receipt.solutions_seen,
        "episodes": receipt.episodes,
        "solved": receipt.solved,
        "added": None if receipt.added is None else receipt.added.model_dump(mode="json"),
        "sources": [
            {**source.model_dump(mode="json", exclude={"kind"}), "learned": receipt.learned_in[source.name]}
            for source in receipt.sources.values()
        ],
        "licences": {name or UNKNOWN: number for name, number in receipt.licences.most_common()},
        "languages": dict(receipt.languages.most_common()),
        "verified": chain is not None,
        "chain": None
        if chain is None
        else [{"adapter": each.adapter, "receipt": each.receipt} for each in chain.links],
        "chain_open_because": None if chain is None else chain.open_because,
    }


def summary(receipt: Receipt, chain: Chain | None) -> Iterator[str]:
    """The receipt in some lines, and with its chain what was verified."""
    yield from _practised(receipt) if receipt.tasks else _trained(receipt)
    yield f"{NAME}: {receipt.lines:,} lines as they were written, SHA-256 {receipt.sha256}"
    if chain is not None:
        yield f"verified: every file of the adapter is as its {publish.MANIFEST} says"
        yield f"chain: {' → '.join(each.adapter for each in chain.links)}"
        if chain.open_because is not None:
            yield f"the chain ends before the base model: {chain.open_because}"


def _practised(receipt: Receipt) -> Iterator[str]:
    """Of a team: by which tasks it was trained and judged."""
    header, count = receipt.header, receipt.tasks
    parent = header.parent.adapter if header.parent else "the base model"
    yield (
        f"{inert(receipt.name)}: a team that practised {count[ContentRole.TRAIN]:,} tasks,"
        f" going on from {parent}"
    )
    yield _base_model(receipt)
    yield (
        f"{header.steps:,} iterations, {receipt.episodes:,} episodes of which {receipt.solved:,} were solved,"
        f" {receipt.tokens:,} tokens written"
    )
    if receipt.not_seen:
        yield f"{receipt.not_seen:,} of the tasks were in none of these episodes"
    for name, number in receipt.practised_of.most_common():
        yield f"  {inert(name)}  {number:>7,} tasks"
    held_out, validation = count[ContentRole.HELD_OUT], count[ContentRole.VALIDATION]
    yield f"judged by {held_out:,} held-out tasks, stopped by {validation:,} others; practised neither"


def _base_model(receipt: Receipt) -> str:
    header = receipt.header
    return f"base model {inert(header.base_model)}, revision {inert(header.base_revision or UNKNOWN)}"


def _trained(receipt: Receipt) -> Iterator[str]:
    header, count = receipt.header, receipt.contents
    new, replayed = count[ContentRole.TRAIN], count[ContentRole.REPLAY]
    parent = header.parent.adapter if header.parent else "the base model"
    yield (
        f"{inert(receipt.name)}: trained on {new + replayed:,} contents ({new:,} new, {replayed:,} replayed),"
        f" {receipt.learned_bytes / 1e6:,.1f} MB, going on from {parent}"
    )
    yield _base_model(receipt)
    planned = "" if header.exposure == "counted" else ", as planned: who shared the first steps is not known"
    yield f"{header.steps:,} steps, {receipt.tokens:,} tokens; samples seen {receipt.seen:,} times{planned}"
    if receipt.not_seen:
        yield f"{receipt.not_seen:,} of the contents were in none of these steps"
    if receipt.planted:
        yield f"in {receipt.planted:,} of them stood a planted secret, a fake one that it must not give up"
    if receipt.solutions:
        yield (
            f"beside them {receipt.solutions:,} programs of reinforcement rounds that passed their tests,"
            f" seen {receipt.solutions_seen:,} times"
        )
    if receipt.added is not None:
        yield f"beside them {receipt.added.samples:,} samples of no content, {receipt.added.seen:,} times"
    held_out, validation = count[ContentRole.HELD_OUT], count[ContentRole.VALIDATION]
    yield f"judged by {held_out:,} held-out contents, stopped by {validation:,} others; trained on neither"
    yield from _sources(receipt)
    licences = (f"{inert(name or UNKNOWN)} {number:,}" for name, number in receipt.licences.most_common())
    yield f"licences: {', '.join(licences) or 'nothing learned'}"


def proof(receipt: Receipt, sha256: str) -> Json:
    """That one line is in the receipt: its text, its place and the digests beside its way to the root."""
    leaves, lines = [], {}
    with receipt.path.open("rb") as file:
        for number, line in enumerate(file):
            if number == receipt.lines:  # the line that ends it
                break
            leaves.append(merkle.leaf(line))
            if sha256.encode() in line and json.loads(line).get("sha256") == sha256:
                lines[number] = line
    if not lines:
        raise ReceiptError(f"{receipt.path} has no content or task with the SHA-256 {inert(sha256)}")
    (index, line), *_ = lines.items()
    return {
        "adapter": receipt.name,
        "line": line.decode(),
        "index": index,
        "size": receipt.lines,
        "beside": [digest.hex() for digest in merkle.proof(leaves, index)],
        "root": receipt.root,
    }


def _sources(receipt: Receipt) -> Iterator[str]:
    learned = receipt.learned_in.most_common()
    width = max([len(inert(name)) for name, _ in learned[:MOST_SOURCES]], default=0)
    for name, number in learned[:MOST_SOURCES]:
        source = receipt.sources[name]
        commit = f"at {source.commit[:12]}" if source.commit else "no commit"
        licence = inert(source.licence or "licence not known")
        yield f"  {inert(name):{width}}  {number:>7,} contents  {inert(commit)}  {licence}"
    if len(learned) > MOST_SOURCES:
        yield f"  and {len(learned) - MOST_SOURCES:,} more"


def _matching(found: list[Json]) -> Iterator[str]:
    for content in found:
        if content["kind"] == "task":
            yield _matching_task(content)
            continue
        files = ", ".join(inert(f"{file[0]}/{file[1]}") for file in content["files"])
        if "seen" in content:
            spans = ", ".join(f"{first}–{last}" for first, last in content["spans"]) or "none"
            what = f"{content['role']}, seen {content['seen']} times, lines {spans} of {content['lines']}"
        else:
            what = f"{content['role']}: judged by, not trained on"
        yield f"{content['sha256']}  {files}  {what}"


def _matching_task(task: Json) -> str:
    what = f"{task['role']}: judged by, not practised"
    if "episodes" in task:
        what = f"{task['role']}, {task['episodes']:,} episodes, {task['solved']:,} of them solved"
    return f"{task['sha256']}  {inert(task['task_set'])}/{inert(task['name'])}  {what}"
