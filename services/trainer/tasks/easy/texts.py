"""Kinds of functions of texts."""

from services.trainer.tasks.easy.kind import Kind, each, either, inputs

WORDS = inputs("banana", "Python", "apple pie", "moonlight", "Radar", "seventeen")
SENTENCES = inputs(
    "the quick brown fox",
    "to be or not to be",
    "hello world",
    "one two three four five",
    "Anna sees a cat",
    "rain falls softly",
)
NAMES = inputs("Ada", "Grace", "Linus", "Bob", "Margaret Hamilton")
LONG = inputs("abcdefgh", "moonlight", "seventeen", "strawberry", "keyboard", "programming")

KINDS = (
    Kind(
        "repeat", "(text: str) -> str", "Return the text $k times in a row.", "text * $k",
        each(repeat_twice=2, repeat_three_times=3, repeat_five_times=5), WORDS,
    ),
    Kind(
        "beginning", "(text: str) -> str", "Return the first $k characters of the text.", "text[:$k]",
        each(first_two=2, first_three=3, first_five=5), LONG,
    ),
    Kind(
        "ending", "(text: str) -> str", "Return the last $k characters of the text.", "text[-$k:]",
        each(last_two=2, last_three=3, last_four=4), LONG,
    ),
    Kind(
        "without_beginning", "(text: str) -> str", "Drop the first $k characters and return what is left.",
        "text[$k:]", each(drop_one=1, drop_two=2, drop_four=4), LONG,
    ),
    Kind(
        "without_ending", "(text: str) -> str", "Cut $k characters off the end.", "text[:-$k]",
        each(cut_one=1, cut_three=3, cut_five=5), LONG,
    ),
    Kind(
        "letter_case", "(text: str) -> str", "Return the text $says.", "text.$code()",
        either(
            shout=("in capital letters", "upper"), whisper=("in small letters", "lower"),
            titled=("with every word capitalized", "title"),
            swapped=("with upper and lower case swapped", "swapcase"),
        ), inputs("Hello World", "banana", "PyThon is FUN", "radar", "Ada Lovelace", "ABC def"),
    ),
    Kind(
        "put_before", "(text: str) -> str", "Put '$k' before the text.", "'$k' + text",
        each(add_un="un", add_pre="pre", add_mister="Mr. ", add_hash="#"), WORDS,
    ),
    Kind(
        "put_after", "(text: str) -> str", "Put '$k' at the end of the text.", "text + '$k'",
        each(add_exclamation="!", add_ing="ing", add_dot_py=".py", add_question="?"), WORDS,
    ),
    Kind(
        "begins_with", "(text: str) -> bool", "Return True if the text begins with '$k'.",
        "text.startswith('$k')",
        each(begins_with_b="b", begins_with_py="Py", begins_with_s="s"), WORDS,
    ),
    Kind(
        "ends_with", "(text: str) -> bool", "Does the text end with '$k'?", "text.endswith('$k')",
        each(ends_with_n="n", ends_with_na="na", ends_with_light="light"), WORDS,
    ),
    Kind(
        "contains_letter", "(text: str) -> bool", "Return True if '$k' is somewhere in the text.",
        "'$k' in text",
        each(has_a="a", has_o="o", has_space=" ", has_ee="ee"),
        inputs("banana", "Python", "apple pie", "moonlight", "Radar", "green tree", "egg"),
    ),
    Kind(
        "count_letter", "(text: str) -> int", "Count how often '$k' occurs in the text.", "text.count('$k')",
        each(count_a="a", count_e="e", count_n="n", count_o="o"), WORDS,
    ),
    Kind(
        "replace_letter", "(text: str) -> str", "Replace every '$a' by '$b'.", "text.replace('$a', '$b')",
        each(
            a_to_o={"a": "a", "b": "o"}, spaces_to_dashes={"a": " ", "b": "-"},
            e_to_three={"a": "e", "b": "3"}, n_to_m={"a": "n", "b": "m"},
        ), WORDS,
    ),
    Kind(
        "remove_letter", "(text: str) -> str", "Remove every '$k' from the text.", "text.replace('$k', '')",
        each(remove_a="a", remove_spaces=" ", remove_e="e", remove_o="o"), WORDS,
    ),
    Kind(
        "words_of_sentence", "(sentence: str) -> str", "Return the $says of the sentence.", "$code",
        either(
            first_word=("first word", "sentence.split()[0]"), last_word=("last word", "sentence.split()[-1]"),
            longest_word=("longest word", "max(sentence.split(), key=len)"),
            second_word=("second word", "sentence.split()[1]"),
        ), SENTENCES,
    ),
    Kind(
        "count_in_sentence", "(sentence: str) -> int", "In a sentence, count the $says.", "$code",
        either(
            count_words=("words", "len(sentence.split())"),
            count_vowels=("vowels a, e, i, o and u", "sum(letter in 'aeiou' for letter in sentence)"),
            count_spaces=("spaces", "sentence.count(' ')"),
            count_different_words=("different words", "len(set(sentence.split()))"),
        ), SENTENCES,
    ),
    Kind(
        "join_words", "(sentence: str) -> str",
        "Put '$k' between the words of the sentence instead of spaces.",
        "'$k'.join(sentence.split())", each(dashed="-", underscored="_", with_commas=", "), SENTENCES,
    ),
    Kind(
        "reverse", "(text: str) -> str", "Return the text $says.", "$code",
        either(
            backwards=("backwards", "text[::-1]"),
            mirrored=("followed by itself backwards", "text + text[::-1]"),
            words_backwards=("with its words in reverse order", "' '.join(reversed(text.split()))"),
        ), SENTENCES,
    ),
    Kind(
        "letter_at", "(text: str) -> str", "Return the character at position $k, counting from 0.",
        "text[$k]",
        each(at_zero=0, at_one=1, at_three=3, at_five=5), LONG,
    ),
    Kind(
        "every_nth", "(text: str) -> str", "Take every ${k}th character, starting with the first.",
        "text[::$k]",
        each(every_fourth=4, every_fifth=5, every_sixth=6), LONG,
    ),
    Kind(
        "length_compared", "(text: str) -> bool", "Is the text longer than $k characters?", "len(text) > $k",
        each(longer_than_five=5, longer_than_six=6, longer_than_eight=8), WORDS,
    ),
    Kind(
        "pad", "(text: str) -> str", "Fill the text up to $says.", "text.$code",
        either(
            pad_right=("10 characters with dots at the end", "ljust(10, '.')"),
            pad_left=("10 characters with dots at the beginning", "rjust(10, '.')"),
            pad_stars=("12 characters with stars at the end", "ljust(12, '*')"),
        ), WORDS,
    ),
    Kind(
        "greeting", "(name: str) -> str", "Greet someone: '$a, NAME$b' with the name in place of NAME.",
        "'$a, ' + name + '$b'",
        each(
            say_hello={"a": "Hello", "b": "!"}, say_goodbye={"a": "Goodbye", "b": "."},
            say_welcome={"a": "Welcome", "b": "!"}, ask_how={"a": "How are you", "b": "?"},
        ), NAMES,
    ),
    Kind(
        "strip_ends", "(text: str) -> str", "Remove all '$k' at both ends of the text, but none inside.",
        "text.strip('$k')", each(strip_dashes="-", strip_stars="*"),
        inputs("--a-b--", "**x*y*", "-*-", "plain", "*--z--*", "a-b-"),
    ),
    Kind(
        "kind_of_text", "(text: str) -> bool", "Check whether the text $says.", "$code",
        either(
            is_all_digits=("consists of digits only", "text.isdigit()"),
            is_palindrome=("reads the same backwards", "text == text[::-1]"),
            is_lower=("has no capital letter", "text == text.lower()"),
        ), inputs("radar", "12321", "Hello", "2024", "level", "abc", "7A"),
    ),
)  # fmt: skip
