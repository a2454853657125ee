"""The process behind `ratchet merge`: what to merge as JSON on standard input, what it came to on standard
output, its progress on standard error as lines of `progress DONE TOTAL WHAT`.
"""

import contextlib
import resource
import sys
import time
from pathlib import Path

import psutil

from services.core.errors import ConfigurationError, PublishError
from services.core.models import Json
from services.core.settings import Settings, from_environment
from services.trainer import inquiry, model, publish, seals, subjects
from services.trainer.answering import loading
from services.trainer.comparing.questions import content_of
from services.trainer.merging import cost, merge
from services.trainer.merging.merge import Merge
from services.trainer.merging.stored import stored
from services.trainer.subjects import Subject

SPARE_BYTES = 64 * 2**20  # on the disk, beside the weights: tokenizer, config, manifest


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done."""
    settings = from_environment()
    return inquiry.answer(lambda sent: merged(sent, settings))


def merged(sent: Json, settings: Settings) -> Json:
    """Write the merged model and say what it cost.

    sent: `subject`, `output` (a path), `check` (whether to measure), `contents` (held out, may be none).
    Raises ConfigurationError for what cannot be merged, or measured in this memory; PublishError when it
    cannot be written.
    """
    subject, output = subjects.resolve(sent["subject"], settings), Path(sent["output"])
    if subject.kind == "team":
        raise subjects.alone(subject, "a model takes")
    if subject.kind != "adapter":
        raise ConfigurationError(f"{subject.name} is no adapter but a {subject.kind}: nothing to merge")
    source = loading.source_of(subject, settings)
    base = stored(source, settings.hub_token)
    assert subject.folder is not None
    prepared = merge.prepared(base, subject.folder)
    check_disk(prepared, output)
    if sent["check"]:
        check_memory(prepared)
    tokenizer = loading.load_tokenizer(subject, settings)
    began = time.monotonic()

    def write(folder: Path) -> None:
        prepared.write(folder, lambda done, of: inquiry.progress(done, of, "merged weights"))
        tokenizer.save_pretrained(folder)

    publish.publish(output.parent, output.name, write, manifest(subject, prepared))
    _unseal(output)
    answer: Json = {
        "adapter": str(subject.folder),
        "output": str(output),
        "base_model": subject.recipe.base_model,
        "bytes": prepared.bytes,
        "untied": prepared.unties,
        "seconds": round(time.monotonic() - began, 3),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if sent["check"]:
        contents = [content_of(fields) for fields in sent["contents"]]
        asked = cost.questions(contents, subject, tokenizer)
        answer |= cost.as_json(cost.arms(subject, output, settings, asked, inquiry.progress), asked)
    return answer


def manifest(subject: Subject, prepared: Merge) -> Json:
    """Of a model, with what it was made from."""
    made_from = subject.manifest or {}
    assert subject.folder is not None
    return {
        **{key: made_from[key] for key in ("track", "round", "snapshot_hash", "parent") if key in made_from},
        "kind": "model",
        "recipe": subject.recipe.model_dump(mode="json"),
        "base_model": subject.recipe.base_model,
        "base_revision": subject.revision,
        "merged": {
            "adapter": subject.released_as,
            "files": made_from.get("files", {}),
            "weights": len(prepared.change.touched),
        },
    }


def check_disk(prepared: Merge, output: Path) -> None:
    """Raises PublishError when the disk has too little room, before anything is written."""
    there = next(folder for folder in output.absolute().parents if folder.is_dir())
    free, need = psutil.disk_usage(str(there)).free, prepared.bytes + SPARE_BYTES
    if free < need:
        raise PublishError(
            f"{output} needs {need / 2**30:.1f} GiB and {there} has {free / 2**30:.1f} GiB free: make room,"
            " or name another place"
        )


def check_memory(prepared: Merge) -> None:
    """Raises ConfigurationError when the merged model does not fit into memory to be measured."""
    need = memory_needed(prepared)
    if model.has_gpu():
        import torch

        free, where = torch.cuda.mem_get_info()[0], "the GPU has"
    else:
        free, where = psutil.virtual_memory().available, "there are"
    if free < need:
        raise ConfigurationError(
            f"measuring the merged model takes {need / 2**30:.1f} GiB of memory and {where}"
            f" {free / 2**30:.1f} GiB free: give --no-check to merge without measuring"
            f" ({prepared.base.largest_file_bytes / 2**30:.1f} GiB, the base's largest file, are enough then)"
        )


def memory_needed(prepared: Merge) -> int:
    """Bytes of the weights as `compute_dtype` has them."""
    with prepared.base.opened() as opened:
        stored_as = opened.tensor(min(prepared.base.names)).element_size()
    return int(prepared.bytes * model.compute_dtype().itemsize / stored_as)


def _unseal(output: Path) -> None:
    """Take away what publishing keeps beside a track's folders: this one is a user's own."""
    folder = output.parent / seals.SEALS
    (folder / f"{output.name}.json").unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # others are in it
        folder.rmdir()


if __name__ == "__main__":
    sys.exit(main())
