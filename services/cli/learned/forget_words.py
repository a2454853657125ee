"""What a forgetting would touch, and what came of it, in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.cli.printing.figures import moment
from services.cli.printing.inert import inert
from services.core.models import Json
from services.trainer.forgetting.found import Found
from services.trainer.forgetting.remains import NOT_OURS
from services.trainer.forgetting.steps import Forgetting
from services.trainer.forgetting.words import Adapter, Policy

SHOWN = 5  # names in a row


def preview(looked: Found) -> Iterator[str]:
    """A line for each thing that would happen."""
    told = looked.as_json()
    yield f"{inert(looked.target.shown)}: {told['files']:,} files are barred and never read again"
    yield (
        f"  {told['contents']:,} texts in {told['clusters']:,} clusters go, {told['bytes']:,} bytes"
        + (f"; {told['earlier']:,} of them are not held any more" if told["earlier"] else "")
    )
    if looked.shared:
        yield (
            f"  {looked.shared:,} texts stay, since files elsewhere hold them too ({_names(looked.holders)}):"
            " --everywhere forgets them there as well"
        )
    if looked.near:
        yield f"  nearly the same, and not forgotten by this: {_names(looked.near)}"
    for track in looked.tracks:
        yield from _of_track(looked, track)
    if not looked.tracks:
        yield "  no adapter has learned from them"


def outcome(end: Forgetting) -> Iterator[str]:
    """What was done, what models gave up of it, and what is not Ratchet's to remove."""
    yield inert(f"{end.words}: done")
    for track, figures in sorted(end.extraction.items()):
        yield f"  {inert(extraction(track, figures))}"
    for track, refuge in sorted(end.found["refuges"].items()):
        yield inert(f"  {track} is back at {refuge or 'the base model'}, where the next round goes on")
    yield "Not removed, since it is not Ratchet's:"
    yield from (f"  - {each}" for each in NOT_OURS)


def extraction(track: str, figures: Mapping[str, Any]) -> str:
    """One sentence: of how many passages what could be written out, before, after, and by the base model."""
    if "before" not in figures:
        return f"{track}: not measured ({figures.get('problem', 'no passage')})"
    before, base, after = figures["before"], figures["base"], figures.get("after")
    now = "not measured" if after is None else f"{after['extracted']} after ({after['adapter'] or 'base'})"
    said = (
        f"{track}: {before['extracted']} of {before['passages']} passages could be written out before"
        f" ({before['adapter']}), {now}; base {base['extracted']}"
    )
    tokens = f"tokens foreseen: {_share(before)} before, {'?' if after is None else _share(after)} after"
    bits = [each and each.get("exposure_bits") for each in (before, after, base)]
    exposed = "" if None in bits else f"; exposure of strings: {', '.join(f'{bit:.1f}' for bit in bits)} bits"
    return f"{said}; {tokens}, {_share(base)} base{exposed}"


def listed(rows: Sequence[Json]) -> Iterator[str]:
    """A few lines each, newest first."""
    for row in rows:
        target = f"{row['source']}/{row['path']}".rstrip("/") if row["path"] else row["source"]
        end = "remembered" if row["remembered_at"] else row["state"]
        yield inert(
            f"{row['id']}  {target}  {end}  {moment(row['begun_at'])}  by {row['actor']}: {row['reason']}"
        )
        found = row["found"]
        yield (
            f"   {found['files']:,} files, {found['contents']:,} texts, {found['bytes']:,} bytes,"
            f" {len(found['adapters'])} adapters ({row['policy']})"
        )
        for track, figures in sorted(row["extraction"].items()):
            yield f"   {inert(extraction(track, figures))}"


def _of_track(looked: Found, track: str) -> Iterator[str]:
    direct = [each for each in looked.adapters if each.track == track and each.contents]
    inherited = [each for each in looked.adapters if each.track == track and not each.contents]
    if direct:
        learned = ", ".join(f"{inert(each.directory)} ({each.contents:,} texts)" for each in direct[:SHOWN])
        yield f"  {inert(track)}: learned from them: {learned}{_more(direct)}"
    if inherited:
        yield f"  {inert(track)}: continue from those: {_adapters(inherited)}"
    for each in looked.open_rounds:
        if each.track == track:
            yield f"  {inert(track)}: round {each.number} is under way with some of them: it is closed"
    if looked.policy is Policy.WARN and (direct or inherited):
        yield "    FORGET_POLICY=warn: they are marked, and serve and are trained on as before"
    elif track in looked.refuges:
        refuge = looked.refuges[track] or "the base model"
        yield f"    the champion is among them: {inert(refuge)} serves instead, and learns what is left"


def _adapters(adapters: Sequence[Adapter]) -> str:
    return ", ".join(inert(each.directory) for each in adapters[:SHOWN]) + _more(adapters)


def _names(names: Sequence[str]) -> str:
    return ", ".join(inert(name) for name in names[:SHOWN]) + _more(names)


def _more(items: Sequence[Any]) -> str:
    return f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""


def _share(figures: Mapping[str, Any]) -> str:
    return f"{100 * figures['matched_tokens'] / max(1, figures['tokens']):.0f} %"
