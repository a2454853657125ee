"""Headers and licence texts give SPDX expressions; lists of allowed and denied licences are kept to."""

import time

import pytest

from services.processor.stages.licence import is_permitted, of_file, of_text

HEADERS = [
    ("# SPDX-License-Identifier: Apache-2.0\nimport os\n", "Apache-2.0"),
    ("/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */\n", "(GPL-2.0-only OR MIT)"),
    ("// SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note\n", "GPL-2.0 WITH Linux-syscall-note"),
    ("<!-- SPDX-License-Identifier: MIT -->", "MIT"),
    ('#!/bin/sh\n# Licensed under the Apache License, Version 2.0 (the\n# "License");', "Apache-2.0"),
    (
        "// Permission is hereby granted, free of charge, to any person\n// obtaining a copy of",
        "MIT",
    ),
    ("# This code is released under the MIT License.\n", "MIT"),
    (
        (" * This program is free software: you can redistribute it and/or modify\n"
        " * it under the terms of the GNU General Public License as published by\n"
        " * the Free Software Foundation, either version 3 of the License, or\n"
        " * (at your option) any later version."),
        "GPL-3.0-or-later",
    ),
    ("# under the terms of the GNU General Public License version 2 as published by the FSF", "GPL-2.0-only"),
    (
        "/* GNU Lesser General Public License; either\n * version 2.1, or any later version */",
        "LGPL-2.1-or-later",
    ),
    ("// GNU Affero General Public License, version 3, as published", "AGPL-3.0-only"),
    ("# subject to the terms of the Mozilla\n# Public License, v. 2.0. If", "MPL-2.0"),
    ("# Use of this source code is governed by a BSD-style\n# license that can be found", "BSD-3-Clause"),
    ("// Distributed under the Boost Software License, Version 1.0.", "BSL-1.0"),
    ("# This is free and unencumbered software released into the public domain.", "Unlicense"),
]  # fmt: skip
MIT = (
    "MIT License\n\nCopyright (c) 2020 Anna\n\n"
    "Permission is hereby granted, free of charge, to any person obtaining a copy\n"
    "of this software. The above copyright notice and this permission notice shall be included in all copies."
)
BSD = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted: "
ISC = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"
TEXTS = [
    (MIT, "MIT"),
    ("                  Apache License\n            Version 2.0, January 2004", "Apache-2.0"),
    (BSD + "1. … 2. … this list of conditions.", "BSD-2-Clause"),
    (BSD + "3. Neither the name … may be used to endorse or promote products", "BSD-3-Clause"),
    (BSD + "3. All advertising materials must display … used to endorse or promote", "BSD-4-Clause"),
    ("GNU GENERAL PUBLIC LICENSE\n Version 3, 2007 … GNU Lesser General Public License", "GPL-3.0-only"),
    ("GNU LESSER GENERAL PUBLIC LICENSE\n Version 2.1, February 1999", "LGPL-2.1-only"),
    ("Mozilla Public License Version 2.0\n====", "MPL-2.0"),
    (ISC + ", provided that the above copyright notice", "ISC"),
    (ISC, "0BSD"),
    ("Boost Software License - Version 1.0 - August 17th, 2003", "BSL-1.0"),
    (MIT + "\n\nParts of it:\n" + BSD, "MIT"),
    ("All rights reserved. Nobody may use this.", None),
]  # fmt: skip


@pytest.mark.parametrize(("header", "expression"), HEADERS)
def test_a_header_names_its_licence(header: str, expression: str) -> None:
    """SPDX lines are taken as written, the known notices as their identifiers."""
    assert of_file(header + "\n\ncode\n") == expression


@pytest.mark.parametrize(
    "text",
    [
        "import os\n",
        "# The licence plate recogniser\nplates = []\n",
        "# SPDX-License-Identifier: see below\n",
        "\n" * 80 + "# SPDX-License-Identifier: MIT\n",
        "def licensed(): return True\n",
    ],
)
def test_other_code_has_none(text: str) -> None:
    """The word alone names no licence, and only the head of a file is a header."""
    assert of_file(text) is None


@pytest.mark.parametrize(("text", "identifier"), TEXTS)
def test_a_licence_text_is_known(text: str, identifier: str | None) -> None:
    """The first licence of a LICENSE file decides; one that is not known is None."""
    assert of_text(text) == identifier


@pytest.mark.parametrize(
    ("expression", "allow", "deny", "permitted"),
    [
        ("MIT", (), (), True),
        ("MIT", ("MIT",), (), True),
        ("mit", ("MIT", "Apache-2.0"), (), True),
        ("GPL-3.0-only", ("MIT",), (), False),
        ("GPL-3.0-only", (), ("GPL-*",), False),
        ("LGPL-3.0-only", (), ("GPL-*",), True),
        ("MIT OR GPL-3.0-only", (), ("GPL-*",), True),
        ("MIT AND GPL-3.0-only", (), ("GPL-*",), False),
        ("MIT AND (BSD-2-Clause OR GPL-2.0+)", ("MIT", "BSD-*"), (), True),
        ("MIT OR Apache-2.0 AND GPL-2.0-only", (), ("MIT", "GPL-*"), False),
        ("GPL-2.0 WITH Classpath-exception-2.0", (), ("GPL-*",), False),
        ("GPL-2.0 WITH Classpath-exception-2.0", ("GPL-2.0-only WITH Classpath-exception-2.0",), (), True),
        ("Apache-2.0 WITH LLVM-exception", ("Apache-2.0",), (), True),
        ("GPL-2.0-or-later", ("GPL-2.0-only",), (), True),
        ("GPL-2.0+", (), ("GPL-2.0-or-later",), False),
        ("GPL-2.0", ("GPL-2.0-only",), (), True),
        (None, (), (), True),
        (None, ("MIT",), (), False),
        (None, ("MIT", "unknown"), (), True),
        (None, (), ("unknown",), False),
        ("no ( expression", ("MIT",), (), False),
        ("MIT", ("MIT",), ("MIT",), False),
    ],
)
def test_lists_are_kept_to(
    expression: str | None, allow: tuple[str, ...], deny: tuple[str, ...], permitted: bool
) -> None:
    """OR needs one part, AND all; deny goes before allow; None and nonsense are `unknown`."""
    assert is_permitted(expression, allow, deny) is permitted


def test_hostile_expressions_end() -> None:
    """Ten thousand brackets are no expression, and take no time."""
    assert of_file("# SPDX-License-Identifier: " + "(" * 10_000) is None
    assert is_permitted("(" * 10_000 + "MIT", (), ("MIT",))


def test_hostile_text_takes_linear_time() -> None:
    """A megabyte of the words that licences begin with is read in well under a second."""
    start = time.process_time()
    for phrase in ("gpl ", "redistribution and use in source and binary forms ", "icense ", "a.b "):
        of_file(phrase * (1_000_000 // len(phrase)))
        of_text(phrase * (1_000_000 // len(phrase)))
    assert time.process_time() - start < 2
