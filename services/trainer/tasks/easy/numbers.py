"""Kinds of functions of whole numbers."""

from services.trainer.tasks.easy.kind import Kind, each, either, inputs

SOME = inputs(7, -3, 0, 12, 25, 100, -10, 41)
POSITIVE = inputs(7, 12, 1, 30, 45, 100, 64)
PAIRS = ((3, 5), (10, 4), (0, 7), (-2, 6), (8, 8), (15, -9))
SMALL = inputs(4, 6, 1, 2, 9, 10, 3)

KINDS = (
    Kind(
        "add_number", "(x: int) -> int", "Return x plus $k.", "x + $k",
        each(add_two=2, add_five=5, add_nine=9, add_twenty=20), SOME,
    ),
    Kind(
        "subtract_number", "(x: int) -> int", "Return x minus $k.", "x - $k",
        each(minus_one=1, minus_four=4, minus_eight=8, minus_fifty=50), SOME,
    ),
    Kind(
        "multiply_by_number", "(x: int) -> int", "Return $k times x.", "$k * x",
        each(double=2, triple=3, times_seven=7, times_ten=10), SOME,
    ),
    Kind(
        "raise_to_power", "(x: int) -> int", "Return x to the power of $k.", "x ** $k",
        each(square=2, cube=3, fourth_power=4), SOME,
    ),
    Kind(
        "remainder", "(x: int) -> int", "Return the remainder of x divided by $k.", "x % $k",
        each(modulo_three=3, modulo_five=5, last_digit=10, modulo_eight=8), POSITIVE,
    ),
    Kind(
        "whole_quotient", "(x: int) -> int", "Return how many times $k goes into x as a whole.", "x // $k",
        each(half=2, thirds=3, quarters=4, tens=10), POSITIVE,
    ),
    Kind(
        "divisible", "(x: int) -> bool", "Return True if x can be divided by $k without a remainder.",
        "x % $k == 0", each(is_multiple_of_three=3, is_multiple_of_five=5, ends_in_zero=10), POSITIVE,
    ),
    Kind(
        "above_limit", "(x: int) -> bool", "Return True if x is greater than $k.", "x > $k",
        each(is_above_ten=10, is_above_twenty=20, is_above_zero=0), SOME,
    ),
    Kind(
        "below_limit", "(x: int) -> bool", "Tell whether x is smaller than $k.", "x < $k",
        each(is_below_five=5, is_below_thirty=30, is_below_hundred=100), SOME,
    ),
    Kind(
        "at_least", "(x: int) -> int", "Return x, or $k if x is smaller.", "max(x, $k)",
        each(at_least_zero=0, at_least_ten=10, at_least_five=5), SOME,
    ),
    Kind(
        "at_most", "(x: int) -> int", "Return x, but never more than $k.", "min(x, $k)",
        each(at_most_ten=10, at_most_fifty=50, at_most_twenty=20), SOME,
    ),
    Kind(
        "distance", "(x: int) -> int", "Return the distance between x and $k.", "abs(x - $k)",
        each(distance_to_ten=10, distance_to_three=3, distance_to_hundred=100), SOME,
    ),
    Kind(
        "linear", "(x: int) -> int", "Multiply x by $a, then add $b.", "x * $a + $b",
        each(
            twice_plus_one={"a": "2", "b": "1"}, thrice_plus_two={"a": "3", "b": "2"},
            ten_times_plus_five={"a": "10", "b": "5"}, five_times_plus_three={"a": "5", "b": "3"},
        ), SOME,
    ),
    Kind(
        "two_numbers", "(a: int, b: int) -> int", "Return the $says.", "$code",
        either(
            add=("sum of a and b", "a + b"), subtract=("difference of a and b", "a - b"),
            multiply=("product of a and b", "a * b"), larger=("larger one of a and b", "max(a, b)"),
            smaller=("smaller one of a and b", "min(a, b)"),
        ), PAIRS,
    ),
    Kind(
        "compare_two", "(a: int, b: int) -> bool", "Compare two numbers: are they $says?", "$code",
        either(
            are_equal=("the same", "a == b"), are_different=("different", "a != b"),
            is_first_larger=("in falling order, a before b", "a > b"),
        ), PAIRS,
    ),
    Kind(
        "property", "(n: int) -> bool", "Say whether n is $says.", "$code",
        either(
            is_even=("an even number", "n % 2 == 0"), is_odd=("an odd number", "n % 2 == 1"),
            is_negative=("less than zero", "n < 0"), is_two_digits=("from 10 to 99", "10 <= n <= 99"),
        ), SOME,
    ),
    Kind(
        "digits", "(n: int) -> int", "Look at the decimal digits of n and return the $says.", "$code",
        either(
            sum_of_digits=("sum of all", "sum(int(digit) for digit in str(n))"),
            number_of_digits=("number of them", "len(str(n))"),
            largest_digit=("largest", "max(int(digit) for digit in str(n))"),
            first_digit=("first", "int(str(n)[0])"),
        ), inputs(472, 15, 9, 1000, 68, 35421, 77),
    ),
    Kind(
        "convert_time", "(amount: int) -> int", "How many $says?", "$code",
        either(
            minutes_to_seconds=("seconds are that many minutes", "amount * 60"),
            hours_to_minutes=("minutes are that many hours", "amount * 60"),
            days_to_hours=("hours are that many days", "amount * 24"),
            weeks_to_days=("days are that many weeks", "amount * 7"),
        ), SMALL,
    ),
    Kind(
        "shapes", "(a: int, b: int) -> int", "A rectangle has sides of length a and b. Return its $says.",
        "$code",
        either(
            rectangle_area=("area", "a * b"), rectangle_perimeter=("perimeter", "2 * (a + b)"),
            longer_side=("longer side", "max(a, b)"),
        ), ((3, 5), (10, 4), (1, 7), (2, 6), (8, 8), (15, 9)),
    ),
    Kind(
        "sum_up_to", "(n: int) -> int", "Add up the $says of all whole numbers from 1 to n.", "$code",
        either(
            sum_up_to=("values", "sum(range(1, n + 1))"),
            sum_of_squares=("squares", "sum(i * i for i in range(1, n + 1))"),
            sum_of_doubles=("doubles", "sum(2 * i for i in range(1, n + 1))"),
        ), SMALL,
    ),
    Kind(
        "halfway", "(a: int, b: int) -> float", "Return the number $says of the way from a to b.",
        "a + (b - a) $code",
        either(middle=("half", "/ 2"), quarter_way=("a quarter", "/ 4")), PAIRS,
    ),
)  # fmt: skip
