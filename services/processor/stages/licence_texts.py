"""What licences say of themselves: phrases of their texts and of the notices in file headers.

Phrases are in the normal form of `licence`: lower case, words of letters, digits, `.` and `+`, one blank
between them. SPDX identifiers of list 3.27. The text of a GNU licence does not say "or later": it is
recorded as `-only`, the narrower grant.
"""

import re

# How the grants of the short licences begin
_MIT = "permission is hereby granted free of charge to any person obtaining a copy"
_ISC = "permission to use copy modify and or distribute this software for any purpose with or without fee"
_CURL = "permission to use copy modify and distribute this software for any purpose with or without fee"
_BSD = "redistribution and use in source and binary forms"
_CMU = "by obtaining using and or copying this software and or its associated documentation you agree"
_HPND = "permission to use copy modify and distribute this software and its documentation for any purpose"

# A LICENSE file: the phrase that stands first in it decides. A second pattern must be there as well, a
# third must not.
TEXTS: tuple[tuple[str, str, str, str], ...] = (
    ("Apache-2.0", r"apache license version 2.0", "", ""),
    ("Apache-2.0", r"licensed under the apache license 2.0", "", ""),
    ("Apache-1.1", r"apache software license version 1.1", "", ""),
    ("AGPL-3.0-only", r"gnu affero general public license version 3", "", ""),
    ("LGPL-3.0-only", r"gnu lesser general public license version 3", "", ""),
    ("LGPL-2.1-only", r"gnu lesser general public license version 2.1", "", ""),
    ("LGPL-2.0-only", r"gnu library general public license version 2", "", ""),
    ("GPL-3.0-only", r"gnu general public license version 3", "", ""),
    ("GPL-2.0-only", r"gnu general public license version 2", "", ""),
    ("MPL-2.0", r"mozilla public license version 2.0", "", ""),
    ("MPL-1.1", r"mozilla public license version 1.1", "", ""),
    ("EPL-2.0", r"eclipse public license v(?:ersion)? ?2.0", "", ""),
    ("EPL-1.0", r"eclipse public license v(?:ersion)? ?1.0", "", ""),
    ("CDDL-1.0", r"common development and distribution license (?:cddl )?version 1.0", "", ""),
    ("EUPL-1.2", r"european union public license v 1.2", "", ""),
    ("Python-2.0", r"python software foundation license version 2", "beopen.com", ""),
    ("PSF-2.0", r"(?:python software foundation license version 2|psf license agreement)", "", "beopen.com"),
    ("CC0-1.0", r"(?:cc0 1.0 universal|creative commons cc0 1.0)", "", ""),
    ("CC-BY-SA-4.0", r"(?:creative commons )?attribution sharealike 4.0 international", "", ""),
    ("CC-BY-NC-4.0", r"(?:creative commons )?attribution noncommercial 4.0 international", "", ""),
    ("CC-BY-4.0", r"(?:creative commons )?attribution 4.0 international", "", ""),
    ("Unlicense", r"this is free and unencumbered software released into the public domain", "", ""),
    ("BSL-1.0", r"boost software license version 1.0", "", ""),
    ("BUSL-1.1", r"business source license 1.1", "", ""),
    ("SSPL-1.0", r"server side public license version 1", "", ""),
    ("Elastic-2.0", r"elastic license 2.0", "", ""),
    ("OFL-1.1", r"sil open font license version 1.1", "", ""),
    ("Artistic-2.0", r"artistic license 2.0", "", ""),
    ("MS-PL", r"microsoft public license", "", ""),
    ("WTFPL", r"do what the fuck you want to public license", "", ""),
    ("BlueOak-1.0.0", r"blue oak model license version 1.0.0", "", ""),
    ("Zlib", "provided as is without any express or implied warranty", "must not be misrepresented", ""),
    ("curl", _CURL, "except as contained in this notice", ""),
    ("0BSD", _ISC, "", "provided that the above copyright"),
    ("ISC", f"{_ISC}|{_CURL}", "", ""),
    ("PostgreSQL", _HPND + " without fee and without a written agreement", "", ""),
    ("MIT-CMU", _CMU, "", ""),
    ("HPND", rf"{_HPND}|use copy modify and distribute this software and its associated", "", ""),
    ("NCSA", _MIT, "redistributions of source code must retain", ""),
    ("X11", _MIT, "except as contained in this notice the name", ""),
    ("MIT-0", _MIT, "", "permission notice shall be included|the above copyright notice"),
    ("MIT", _MIT, "", ""),
    ("BSD-4-Clause", _BSD, "all advertising materials", ""),
    ("BSD-3-Clause-Clear", _BSD, "no express or implied licenses to any party", ""),
    ("BSD-3-Clause", _BSD, "(?:endorse or promote|used to endorse)", ""),
    ("BSD-2-Clause", _BSD, "", ""),
    ("MIT", r"^(?:the )?mit license", "", ""),
)  # fmt: skip

# The head of a source file: of the GNU licences the first that is found, with its version and whether the
# notice grants later ones; of the others the first row with one of its phrases.
LATER = re.compile(r"any later version|or later|v[23]\+|(?:any|or) newer version|2.0\+|3.0\+|2\+|3\+")
GNU = (
    ("AGPL", ("affero general public license", "agpl")),
    ("LGPL", ("lesser general public license", "library general public license", "lgpl")),
    (
        "GPL",
        ("general public license", "gplv2", "gplv3", "gpl v2", "gpl v3", "gpl 2", "gpl 3", "gpl version"),
    ),
)
GNU_VERSION = re.compile(r"(?:version |license v?|gpl[ v]{0,2})(3|2\.1|2)(?:\.0)?\b")
NOTICES = (
    ("Apache-2.0", ("apache license version 2.0", "apache license 2.0", "apache license v2.0",
                    "licensed under the apache license", "apache 2.0 license",
                    "apache.org licenses license 2.0")),
    ("MPL-2.0", ("mozilla public license version 2.0", "mozilla public license v 2.0",
                 "mozilla public license 2.0", "mozilla.org mpl 2.0")),
    ("MPL-1.1", ("mozilla public license version 1.1",)),
    ("EPL-2.0", ("eclipse public license v2.0", "eclipse public license v 2.0",
                 "eclipse public license 2.0")),
    ("EPL-1.0", ("eclipse public license v1.0", "eclipse public license v 1.0",
                 "eclipse public license 1.0")),
    ("BSL-1.0", ("boost software license",)),
    ("CC0-1.0", ("cc0 1.0", "creativecommons.org publicdomain zero 1.0", "cc0 public domain")),
    ("CC-BY-SA-4.0", ("creativecommons.org licenses by sa 4.0",)),
    ("CC-BY-4.0", ("creativecommons.org licenses by 4.0",)),
    ("Unlicense", ("free and unencumbered software released into the public domain", "unlicense.org")),
    ("Zlib", ("must not be misrepresented", "zlib license")),
    ("ISC", (_ISC,
             _CURL,
             "isc license")),
    ("PSF-2.0", ("licensed to psf under a contributor agreement", "python software foundation license")),
    ("MIT", (_MIT, " mit license",
             "licensed under mit", "licensed under the mit", "license mit ", "opensource.org licenses mit",
             "mit x11", "mit style license", "mit licensed")),
    ("BSD-3-Clause", ("endorse or promote products", "new bsd license", "modified bsd", "3 clause bsd",
                      "three clause bsd", "revised bsd", "bsd 3 clause", "opensource.org licenses bsd 3")),
    ("BSD-2-Clause", (_BSD, "simplified bsd", "2 clause bsd",
                      "two clause bsd", "bsd 2 clause")),
    ("BSD-3-Clause", ("bsd style license", "under the bsd license", "license bsd ", " bsd license",
                      "bsd licensed")),
)  # fmt: skip
