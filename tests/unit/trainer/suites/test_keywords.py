"""Keywords of languages."""

import json

from services.trainer.suites import keywords


def test_there_are_eight_languages_with_two_tasks_each() -> None:
    fields = json.loads(keywords.FILE.read_text(encoding="utf-8"))
    languages = [each["language"] for each in fields]
    assert len(set(languages)) == 8
    assert all(languages.count(language) == 2 for language in languages)
    assert all(each["keywords"] for each in fields)


def test_a_keyword_counts_as_a_word_or_the_beginning_of_one() -> None:
    assert keywords.found(["def", "class"], "undefined subclass") == []
    assert keywords.found(["def", "sync.Mutex", "&&", "Lock"], "def f; mu sync.Mutex; T&& t; mu.Lock()") == [
        "def", "sync.Mutex", "&&", "Lock",
    ]  # fmt: skip
    assert keywords.found(["quicksort"], "def QuickSort(items):") == ["quicksort"]
