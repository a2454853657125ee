"""Do our units agree with the parsers that the languages themselves bring?

    .venv/bin/python bench/units.py PATH…

For every Python, Java, Go, Rust and C++ file below the paths the units with a body are counted twice: by
services.processor.stages.units and by a peer.

Python: ast. Java: the tree API of javac. Go: go/ast. Rust: rustc's own parser (-Zunpretty=ast-tree), for
SLOW_FILES evenly spread files. C++: universal-ctags, which is no compiler; its slips show in the difference.
A peer whose program is not on the path is left out. Ends with one line of JSON.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from services.processor.stages import syntax, units
from services.processor.stages.grammars import GRAMMARS
from services.processor.values import Rejection

SUFFIXES = {
    ".py": "python", ".java": "java", ".go": "go", ".rs": "rust",
    ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hpp": "c++", ".hh": "c++",
}  # fmt: skip
SLOW_FILES = 200
MAX_BYTES = 1_000_000
PEERS = Path(__file__).parent / "units_peers"
Counts = Counter[str]  # kind of unit → how many


def main(paths: list[str]) -> None:
    peers: dict[str, tuple[str, str, Callable[[list[Path]], dict[Path, Counts]]]] = {
        "python": ("ast", "", by_ast),
        "java": ("javac", "javac", by_javac),
        "go": ("go/ast", "go", by_go),
        "rust": ("rustc", "rustc", by_rustc),
        "c++": ("ctags", "ctags", by_ctags),
    }
    files = list_files(paths)
    report: dict[str, object] = {}
    for language, (peer, program, count) in peers.items():
        mine = [path for path in files if SUFFIXES[path.suffix] == language]
        if language == "rust":
            mine = mine[:: max(1, len(mine) // SLOW_FILES)]
        if not mine or (program and shutil.which(program) is None):
            print(f"{language}: {len(mine)} files, {peer} not there" if mine else f"{language}: no files")
            continue
        report[language] = compare(language, mine, peer, count)
    print(json.dumps({"units_vs_peer": report}))


def list_files(paths: list[str]) -> list[Path]:
    """The files of the five languages below the paths that are UTF-8 and not too large for us."""
    found = []
    for path in sorted(path for root in paths for path in Path(root).resolve().rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and path.stat().st_size <= MAX_BYTES:
            try:
                path.read_bytes().decode()
            except UnicodeDecodeError:
                continue
            found.append(path)
    return found


def compare(
    language: str, files: list[Path], peer: str, count: Callable[[list[Path]], dict[Path, Counts]]
) -> dict[str, object]:
    texts = {path: path.read_bytes().decode() for path in files}
    started = time.process_time()
    parse_only(language, texts)
    bare = time.process_time() - started
    started = time.process_time()
    ours = {path: found for path in files if (found := by_us(language, path, texts[path])) is not None}
    split = time.process_time() - started
    theirs = count(list(files))
    both = [path for path in files if path in ours and path in theirs]
    ours_total, theirs_total = total(ours[path] for path in both), total(theirs[path] for path in both)
    print(f"\n{language}: {len(files)} files, we refuse {len(files) - len(ours)}, {peer} refuses "
          f"{len(files) - len(theirs)}; parse {bare:.2f} CPU-s, parse and split {split:.2f}")  # fmt: skip
    for kind in sorted(ours_total | theirs_total):
        print(f"  {kind:<10} ours {ours_total[kind]:>7}  {peer} {theirs_total[kind]:>7}  "
              f"{share(ours_total[kind], theirs_total[kind]):+.2%}")  # fmt: skip
    difference = share(ours_total.total(), theirs_total.total())
    print(f"  all        ours {ours_total.total():>7}  {peer} {theirs_total.total():>7}  {difference:+.2%}")
    worst = sorted(
        both, key=lambda path: -(ours[path] - theirs[path]).total() - (theirs[path] - ours[path]).total()
    )
    for path in worst[:5]:
        if ours[path] != theirs[path]:
            more, fewer = dict(ours[path] - theirs[path]), dict(theirs[path] - ours[path])
            print(f"  {path.name}: ours {more}, {peer} {fewer}")
    return {
        "files": len(both), "peer": peer, "ours": ours_total.total(), "theirs": theirs_total.total(),
        "difference": round(difference, 4),
        "files_alike": round(sum(ours[p] == theirs[p] for p in both) / max(1, len(both)), 4),
        "split_over_parse": round(split / bare, 3), "refused": len(files) - len(ours),
    }  # fmt: skip


def parse_only(language: str, texts: dict[Path, str]) -> None:
    grammar = GRAMMARS[language]
    parser = syntax.parser(grammar.module, grammar.entry)
    for text in texts.values():
        parser.parse(text.encode())


def total(counts: Iterable[Counts]) -> Counts:
    return sum(counts, Counter())


def share(ours: int, theirs: int) -> float:
    return (ours - theirs) / theirs if theirs else float(ours > 0)


def by_us(language: str, path: Path, text: str) -> Counts | None:
    found = units.split(language, text)
    if isinstance(found, Rejection):
        print(f"  refused {path}: {found.detail}")
        return None
    return Counter(unit.kind for unit in found)


def by_ast(files: list[Path]) -> dict[Path, Counts]:
    counts = {}
    for path in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        found: Counts = Counter()
        waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
        while waiting:
            node, in_class = waiting.pop()
            if isinstance(node, ast.ClassDef):
                found["class"] += 1
                in_class = True
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found["method" if in_class else "function"] += 1
                in_class = False
            waiting += [(child, in_class) for child in ast.iter_child_nodes(node)]
        counts[path] = found
    return counts


def by_javac(files: list[Path]) -> dict[Path, Counts]:
    return by_program(["java", str(PEERS / "Units.java")], files)


def by_go(files: list[Path]) -> dict[Path, Counts]:
    return by_program(["go", "run", str(PEERS / "units.go")], files)


RUST_ITEM = re.compile(r"^( *)kind: (Fn|Impl|Trait|Struct|Union|Enum|Mod)\($")
RUST_KINDS = {
    "Impl": "impl",
    "Trait": "trait",
    "Struct": "struct",
    "Union": "struct",
    "Enum": "enum",
    "Mod": "module",
}


def by_rustc(files: list[Path]) -> dict[Path, Counts]:
    """Reads the items off rustc's dump of its tree; the bodies of macros are in neither count."""
    counts = {}
    environment = os.environ | {"RUSTC_BOOTSTRAP": "1"}
    for path in files:
        command = ["rustc", "-Zunpretty=ast-tree", "--crate-type=lib", "--edition=2021", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.stdout:
            counts[path] = rust_items(done.stdout.splitlines())
    return counts


def rust_items(lines: list[str]) -> Counts:
    found: Counts = Counter()
    open_items: list[tuple[int, str]] = []  # indentation and kind of the items around
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        while open_items and indent <= open_items[-1][0] and line.strip():
            open_items.pop()
        if item := RUST_ITEM.match(line):
            following = lines[number + 1].strip()
            if item[2] in ("Struct", "Union") and not following.endswith("#0,"):
                continue  # an expression or a pattern
            if item[2] == "Mod" and not any(
                text.strip() == "Loaded(" for text in lines[number + 1 : number + 12]
            ):
                continue  # declared here, defined in another file
            if item[2] != "Fn":
                found[RUST_KINDS[item[2]]] += 1
            open_items.append((indent, item[2]))
        elif line.strip() == "body: Some(" and open_items and open_items[-1] == (indent - 8, "Fn"):
            outer = open_items[-2][1] if len(open_items) > 1 else ""
            found["method" if outer in ("Impl", "Trait") else "function"] += 1
    return found


def by_program(command: list[str], files: list[Path]) -> dict[Path, Counts]:
    """Of a program that reads paths and writes each on a line, then `path TAB kind` for each unit."""
    lines = "".join(f"{path}\n" for path in files)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return tally(done.stdout)


def tally(output: str) -> dict[Path, Counts]:
    counts: dict[Path, Counts] = {}
    for line in output.splitlines():
        name, _, kind = line.partition("\t")
        counts.setdefault(Path(name), Counter())[kind] += bool(kind)
    return {path: +found for path, found in counts.items()}


CTAGS_KINDS = {
    "function": "function", "class": "class", "struct": "struct", "enum": "enum", "union": "struct",
    "namespace": "module",
}  # fmt: skip


def by_ctags(files: list[Path]) -> dict[Path, Counts]:
    with tempfile.NamedTemporaryFile("w", suffix=".list") as listed:
        listed.writelines(f"{path}\n" for path in files)
        listed.flush()
        command = ["ctags", "--output-format=json", "--fields=+KSne", "-f", "-", "-L", listed.name,
                   "--language-force=C++"]  # fmt: skip
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts: dict[Path, Counts] = {path: Counter() for path in files}
    for line in output.splitlines():
        tag = json.loads(line)
        kind = CTAGS_KINDS.get(tag.get("kind", ""))
        if kind and not tag["name"].startswith("__anon"):
            if kind == "function" and tag.get("scopeKind") in ("class", "struct", "union"):
                kind = "method"
            counts[Path(tag["path"])][kind] += 1
    return counts


if __name__ == "__main__":
    main(sys.argv[1:])
