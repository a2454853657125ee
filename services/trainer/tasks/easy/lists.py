"""Kinds of functions of lists."""

from services.trainer.tasks.easy.kind import Kind, each, either, inputs

NUMBERS = inputs([3, 1, 4, 1, 5], [10, -2, 7], [8], [2, 4, 6, 8, 10], [0, 5, -5, 20], [9, 9, 3, 12])
LONGER = inputs(
    [3, 1, 4, 1, 5, 9],
    [10, -2, 7, 0, 6],
    [8, 6, 7, 5, 3],
    [2, 4, 6, 8, 10],
    [0, 5, -5, 20, 11, 13],
)
WORDS = inputs(
    ["apple", "fig", "banana"],
    ["cat", "elephant"],
    ["sun"],
    ["red", "green", "blue", "violet"],
    ["Ada", "alan", "Bob"],
    ["tea", "to", "a", "ten"],
)
TWO = (
    ([1, 2, 3], [4, 5, 6]),
    ([10, 0], [3, 3]),
    ([7], [-7]),
    ([5, 5, 1, 2], [2, 9, 1, 0]),
    ([0, 8], [8, 0]),
)
LIST = "(numbers: list[int]) -> list[int]"
NUMBER = "(numbers: list[int]) -> int"

KINDS = (
    Kind(
        "whole_list", NUMBER, "Return the $says of the list.", "$code",
        either(
            total=("sum", "sum(numbers)"), largest=("largest number", "max(numbers)"),
            smallest=("smallest number", "min(numbers)"), count=("length", "len(numbers)"),
            spread=("difference between the largest and the smallest number", "max(numbers) - min(numbers)"),
        ), NUMBERS,
    ),
    Kind(
        "element", NUMBER, "Return the $says element.", "numbers[$code]",
        either(
            first=("first", "0"), last=("last", "-1"), second=("second", "1"),
            last_but_one=("last but one", "-2"),
        ), LONGER,
    ),
    Kind(
        "first_elements", LIST, "Return a list of the first $k elements.", "numbers[:$k]",
        each(take_two=2, take_three=3, take_four=4), LONGER,
    ),
    Kind(
        "without_some", LIST, "Return the list without $says.", "numbers[$code]",
        either(
            without_first=("its first element", "1:"), without_last=("its last element", ":-1"),
            without_ends=("its first and its last element", "1:-1"),
            every_other=("every second element", "::2"),
        ), LONGER,
    ),
    Kind(
        "add_to_all", LIST, "Add $k to every number.", "[x + $k for x in numbers]",
        each(add_one_to_all=1, add_three_to_all=3, add_ten_to_all=10), NUMBERS,
    ),
    Kind(
        "multiply_all", LIST, "Multiply every number by $k.", "[x * $k for x in numbers]",
        each(double_all=2, triple_all=3, negate_all=-1, ten_times_all=10), NUMBERS,
    ),
    Kind(
        "change_all", LIST, "Return a list of the $says of the numbers.", "[$code for x in numbers]",
        either(
            squares=("squares", "x * x"), absolutes=("absolute values", "abs(x)"),
            remainders=("remainders when divided by 3", "x % 3"),
        ), NUMBERS,
    ),
    Kind(
        "keep_above", LIST, "Keep only the numbers greater than $k.", "[x for x in numbers if x > $k]",
        each(keep_above_two=2, keep_above_four=4, keep_positive=0), NUMBERS,
    ),
    Kind(
        "keep_below", LIST, "Remove all numbers that are $k or more.", "[x for x in numbers if x < $k]",
        each(remove_from_five=5, remove_from_nine=9, remove_from_zero=0), NUMBERS,
    ),
    Kind(
        "keep_some", LIST, "Return those numbers that are $says.", "[x for x in numbers if $code]",
        either(
            only_even=("even", "x % 2 == 0"), only_odd=("odd", "x % 2 == 1"),
            only_multiples_of_five=("multiples of 5", "x % 5 == 0"),
        ), NUMBERS,
    ),
    Kind(
        "count_value", NUMBER, "Count how many times $k is in the list.", "numbers.count($k)",
        each(count_ones=1, count_nines=9, count_fives=5), NUMBERS,
    ),
    Kind(
        "contains_value", "(numbers: list[int]) -> bool", "Return True if $k is in the list.",
        "$k in numbers",
        each(has_five=5, has_eight=8, has_zero=0), NUMBERS,
    ),
    Kind(
        "order", LIST, "Return the numbers $says.", "$code",
        either(
            ascending=("sorted from small to large", "sorted(numbers)"),
            descending=("sorted from large to small", "sorted(numbers, reverse=True)"),
            backwards=("in reverse order", "numbers[::-1]"),
            ascending_unique=("sorted from small to large, each only once", "sorted(set(numbers))"),
        ), NUMBERS,
    ),
    Kind(
        "sum_of_some", NUMBER, "Add up only the $says numbers.", "sum(x for x in numbers if $code)",
        either(
            sum_even=("even", "x % 2 == 0"), sum_odd=("odd", "x % 2 == 1"),
            sum_positive=("positive", "x > 0"), sum_big=("two-digit", "10 <= x <= 99"),
        ), NUMBERS,
    ),
    Kind(
        "position", NUMBER, "Return the position, counting from 0, of the $says.", "numbers.index($code)",
        either(
            position_of_largest=("largest number", "max(numbers)"),
            position_of_smallest=("smallest number", "min(numbers)"),
        ), NUMBERS,
    ),
    Kind(
        "repetition", "(numbers: list[int]) -> bool", "Tell whether $says.", "$code",
        either(
            has_duplicates=("some number is there more than once", "len(set(numbers)) < len(numbers)"),
            all_equal=("all numbers are the same", "len(set(numbers)) == 1"),
            is_sorted=("the numbers are sorted from small to large", "numbers == sorted(numbers)"),
        ), (*NUMBERS, ([4, 4, 4],), ([1, 2, 2],)),
    ),
    Kind(
        "extend", LIST, "Return a new list with $says.", "$code",
        either(
            append_zero=("a 0 after the numbers", "numbers + [0]"),
            prepend_one=("a 1 before the numbers", "[1] + numbers"),
            append_total=("the sum of the numbers after them", "numbers + [sum(numbers)]"),
        ), NUMBERS,
    ),
    Kind(
        "numbers_as_text", "(numbers: list[int]) -> str",
        "Write the numbers in one text with '$k' between them.", "'$k'.join(str(x) for x in numbers)",
        each(with_plus="+", with_comma=",", with_space=" "), NUMBERS,
    ),
    Kind(
        "change_words", "(words: list[str]) -> list[str]", "Return a list of the $says.",
        "[$code for word in words]",
        either(
            upper_words=("words in capital letters", "word.upper()"),
            first_letters=("first letters of the words", "word[0]"),
            last_letters=("last letters of the words", "word[-1]"),
            reversed_words=("words, each backwards", "word[::-1]"),
        ), WORDS,
    ),
    Kind(
        "word_lengths", "(words: list[str]) -> int", "Return the $says.", "$code",
        either(
            longest_length=("length of the longest word", "max(len(word) for word in words)"),
            shortest_length=("length of the shortest word", "min(len(word) for word in words)"),
            total_length=("number of letters of all words together", "sum(len(word) for word in words)"),
        ), WORDS,
    ),
    Kind(
        "keep_long_words", "(words: list[str]) -> list[str]", "Keep the words with more than $k letters.",
        "[word for word in words if len(word) > $k]", each(over_two=2, over_three=3, over_four=4), WORDS,
    ),
    Kind(
        "words_with_letter", "(words: list[str]) -> list[str]", "Keep the words that begin with '$k'.",
        "[word for word in words if word.startswith('$k')]",
        each(words_in_a="a", words_in_b="b", words_in_t="t"), WORDS,
    ),
    Kind(
        "two_lists", "(a: list[int], b: list[int]) -> list[int]",
        "Go through two lists of the same length and return a list of the $says at each position.",
        "[$code for x, y in zip(a, b)]",
        either(
            add_lists=("sum", "x + y"), multiply_lists=("product", "x * y"),
            larger_of_lists=("larger number", "max(x, y)"), subtract_lists=("difference", "x - y"),
        ), TWO,
    ),
    Kind(
        "running", LIST, "Return a list that has at each position the $says so far.",
        "result = []\nfor i in range(len(numbers)):\n"
        "    result.append($code(numbers[:i + 1]))\nreturn result",
        either(
            running_sum=("sum of the numbers", "sum"), running_max=("largest number", "max"),
            running_min=("smallest number", "min"),
        ), NUMBERS,
    ),
    Kind(
        "count_up", "(n: int) -> list[int]", "Return the list of $says.", "list(range($code))",
        either(
            one_to=("whole numbers from 1 to n", "1, n + 1"),
            zero_below=("whole numbers from 0 up to n, without n", "n"),
            even_up_to=("even numbers from 0 to n", "0, n + 1, 2"),
            countdown=("numbers from n down to 1", "n, 0, -1"),
        ), inputs(5, 3, 1, 8, 10),
    ),
    Kind(
        "whether_all", "(numbers: list[int]) -> bool", "Return True if $says.",
        "$code(x > $k for x in numbers)",
        each(
            all_above_zero={"says": "all numbers are greater than 0", "code": "all", "k": "0"},
            any_above_nine={"says": "at least one number is greater than 9", "code": "any", "k": "9"},
            all_above_two={"says": "every number is greater than 2", "code": "all", "k": "2"},
        ), NUMBERS,
    ),
)  # fmt: skip
