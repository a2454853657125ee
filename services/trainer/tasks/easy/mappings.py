"""Kinds of functions of dictionaries."""

from services.trainer.tasks.easy.kind import Arguments, Kind, each, either, inputs

STOCK = inputs(
    {"apple": 3, "pear": 7},
    {"pen": 10, "ink": 2, "pad": 5},
    {"tea": 1},
    {"a": 4, "b": 4, "c": 9},
    {"nut": 0, "oil": 12, "apple": 6},
)
TWO: tuple[Arguments, ...] = (
    ({"a": 1}, {"b": 2}),
    ({"x": 5, "y": 6}, {"y": 7}),
    ({}, {"k": 3}),
    ({"m": 1, "n": 2}, {}),
    ({"p": 9}, {"p": 8, "q": 7}),
)
COUNT = "(stock: dict[str, int]) -> int"
SAME = "(stock: dict[str, int]) -> dict[str, int]"

KINDS = (
    Kind(
        "look_up", COUNT, "Return the value of '$k', or 0 if it is not in the dictionary.",
        "stock.get('$k', 0)",
        each(apples="apple", pens="pen", teas="tea"), STOCK,
    ),
    Kind(
        "has_key", "(stock: dict[str, int]) -> bool", "Tell if the dictionary has the key '$k'.",
        "'$k' in stock",
        each(has_apple="apple", has_ink="ink", has_oil="oil"), STOCK,
    ),
    Kind(
        "over_values", COUNT, "Return the $says of the dictionary.", "$code",
        either(
            sum_of_values=("sum of the values", "sum(stock.values())"),
            largest_value=("largest value", "max(stock.values())"),
            smallest_value=("smallest value", "min(stock.values())"),
            number_of_keys=("number of keys", "len(stock)"),
        ), STOCK,
    ),
    Kind(
        "sorted_parts", "(stock: dict[str, int]) -> list", "Return a sorted list of the $says.",
        "sorted(stock.$code())",
        either(sorted_keys=("keys", "keys"), sorted_values=("values", "values"),
        sorted_pairs=("pairs", "items")), STOCK,
    ),
    Kind(
        "filter_values", SAME, "Keep the entries with a value of more than $k.",
        "{key: value for key, value in stock.items() if value > $k}",
        each(more_than_three=3, more_than_five=5, more_than_zero=0), STOCK,
    ),
    Kind(
        "change_values", SAME, "Return the dictionary with $says.",
        "{key: $code for key, value in stock.items()}",
        either(
            values_doubled=("every value doubled", "value * 2"),
            values_plus_one=("1 added to every value", "value + 1"),
            values_squared=("every value squared", "value * value"),
        ), STOCK,
    ),
    Kind(
        "extreme_key", "(stock: dict[str, int]) -> str", "Return the key with the $says value.",
        "$code(stock, key=stock.get)", either(best=("largest", "max"), worst=("smallest", "min")),
        (*STOCK[:3], *inputs({"a": 4, "b": 5, "c": 9}, {"nut": 0, "oil": 12, "apple": 6})),
    ),
    Kind(
        "merge", "(a: dict[str, int], b: dict[str, int]) -> dict[str, int]",
        "Merge two dictionaries; for a key in both take the value of $says.", "$code",
        either(merge_second=("b", "{**a, **b}"), merge_first=("a", "{**b, **a}")), TWO,
    ),
    Kind(
        "from_words", "(words: list[str]) -> dict[str, int]", "Map every word to its $says.",
        "{word: $code for word in words}",
        either(
            lengths=("length", "len(word)"),
            counts=("number of occurrences in the list", "words.count(word)"),
            vowel_a=("number of letters 'a'", "word.count('a')"),
        ), inputs(["cat", "banana"], ["a", "b", "a"], ["tea"], ["sun", "sun", "moon"], ["data", "area",
        "era"]),
    ),
    Kind(
        "from_keys", "(keys: list[str]) -> dict[str, int]",
        "Make a dictionary that has $k as the value of every key.",
        "{key: $k for key in keys}", each(all_zero=0, all_one=1, all_hundred=100),
        inputs(["a", "b"], ["x"], [], ["red", "green", "blue"], ["tea", "milk"]),
    ),
    Kind(
        "swap", "(mapping: dict[str, str]) -> dict[str, str]", "$says.",
        "{$code for key, value in mapping.items()}",
        either(
            swap_keys_and_values=("Swap keys and values", "value: key"),
            upper_keys=("Return the dictionary with its keys in capital letters", "key.upper(): value"),
            upper_values=("Return the dictionary with its values in capital letters", "key: value.upper()"),
        ), inputs({"a": "x", "b": "y"}, {"one": "uno"}, {}, {"hot": "cold", "up": "down"}, {"k": "v",
        "m": "n"}),
    ),
)  # fmt: skip
