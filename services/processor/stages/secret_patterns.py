"""The table of what `secrets` looks for: formats of credentials, words around them, stand-ins for them.

Formats as their issuers publish them; where an issuer does not, as gitleaks (MIT) and detect-secrets
(Apache-2.0) have found them. Patterns are RE2's, on bytes. A pattern with a group is redacted at the
group, one without as a whole. docs/reference/secrets.md lists the kinds.
"""

import re
import string

HEX_DIGITS = "0123456789abcdef"
HEX, ALNUM, BASE64 = "[0-9a-f]", "[0-9A-Za-z]", "[0-9A-Za-z+/]"
URL64 = "[0-9A-Za-z_-]"  # base64 for URLs

# kind → pattern. The first that matches at a place wins.
TOKENS = (
    ("aws_access_key", r"(?:A3T[0-9A-Z]|AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    ("aws_bedrock_key", rf"\bABSK{BASE64}{{100,}}={{0,2}}"),
    ("aws_mws_key", rf"\bamzn\.mws\.{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"),
    ("google_api_key", rf"AIza{URL64}{{35}}"),
    ("google_oauth_secret", rf"GOCSPX-{URL64}{{24,}}"),
    ("google_oauth_token", rf"\bya29\.{URL64}{{20,}}"),
    ("google_refresh_token", rf"\b1//0{URL64}{{30,}}"),
    ("azure_storage_key", rf"(?i:AccountKey|SharedAccessKey)=({BASE64}{{42,}}={{0,2}})"),
    ("azure_sas_signature", r"[?&]sig=([0-9A-Za-z%+/]{40,}(?:%3[Dd]|=)?)"),
    ("github_token", rf"gh[pousr]_{ALNUM}{{36,}}|github_pat_[0-9A-Za-z_]{{50,}}"),
    ("gitlab_token", r"gl(?:pat|dt|rt|ptt|oas|cbt|ft|imt|agent|soat|ffct)-[0-9A-Za-z_.-]{20,}"),
    ("gitlab_token", rf"\bGR1348941{URL64}{{20}}"),
    ("slack_token", r"xox[abeoprs]-[0-9A-Za-z-]{10,}"),
    ("slack_token", r"xapp-[0-9]-[0-9A-Za-z-]{20,}|xoxe\.xox[bp]-[0-9A-Za-z-]{20,}"),
    ("slack_webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/([0-9A-Za-z+/_]{20,})"),
    ("discord_webhook", rf"discord(?:app)?\.com/api/webhooks/([0-9]{{17,20}}/{URL64}{{60,}})"),
    ("discord_token", rf"\b[MNO][0-9A-Za-z_-]{{23,27}}\.{URL64}{{6}}\.{URL64}{{27,}}"),
    ("teams_webhook", r"\.webhook\.office\.com/webhookb2/([0-9a-zA-Z@/-]{60,})"),
    ("stripe_key", rf"\b[rsp]k_(?:live|test|prod)_{ALNUM}{{10,}}|\bwhsec_[0-9A-Za-z+/=]{{20,}}"),
    ("twilio_key", rf"\b(?:SK|AC){HEX}{{32}}\b"),
    ("sendgrid_key", r"\bSG\.[0-9A-Za-z_-]{16,32}\.[0-9A-Za-z_-]{16,64}"),
    ("mailgun_key", rf"\bkey-{HEX}{{32}}\b"),
    ("sendinblue_key", rf"\bxkeysib-{HEX}{{64}}-{ALNUM}{{16}}"),
    ("npm_token", rf"\bnpm_{ALNUM}{{36}}"),
    ("npm_token", r"_authToken[ \t]?=[ \t]?([0-9A-Za-z_+/=.-]{16,})"),
    ("pypi_token", rf"\bpypi-{URL64}{{50,}}"),
    ("rubygems_key", rf"\brubygems_{HEX}{{48}}"),
    ("nuget_key", r"\boy2[0-9a-z]{43}\b"),
    ("crates_token", rf"\bcio{ALNUM}{{32}}\b"),
    ("docker_token", rf"\bdck(?:r_pat|r_oat)_{URL64}{{20,}}"),
    ("huggingface_token", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("openai_key", rf"\bsk-(?:proj|svcacct|admin|None)-{URL64}{{20,}}|\bsk-{ALNUM}{{32,}}"),
    ("anthropic_key", rf"\bsk-ant-{URL64}{{20,}}"),
    ("openrouter_key", rf"\bsk-or-v1-{HEX}{{64}}"),
    ("groq_key", rf"\bgsk_{ALNUM}{{40,}}"),
    ("perplexity_key", rf"\bpplx-{ALNUM}{{40,}}"),
    ("xai_key", rf"\bxai-{ALNUM}{{60,}}"),
    ("replicate_token", rf"\br8_{ALNUM}{{37}}"),
    ("wandb_key", rf"\bwandb_v1_{URL64}{{40,}}"),
    ("databricks_token", rf"\bdapi{HEX}{{32}}(?:-[0-9])?"),
    ("digitalocean_token", rf"\bdo[opr]_v1_{HEX}{{64}}"),
    ("heroku_key", rf"\bHRKU-{URL64}{{36,}}"),
    ("shopify_token", r"\bshp(?:at|ca|pa|ss|tka)_[0-9A-Fa-f]{32}"),
    ("square_token", rf"\bsq0(?:atp|csp|idp)-{URL64}{{22,}}|\bEAAA[0-9A-Za-z_-]{{60}}"),
    ("paypal_token", rf"\baccess_token\$production\$[0-9a-z]{{16}}\${HEX}{{32}}"),
    ("facebook_token", rf"\bEAA[0-9A-Z]{ALNUM}{{80,}}"),
    ("twitter_bearer", r"\bAAAAAAAAAAAAAAAAAAAAA[0-9A-Za-z%]{60,}"),
    ("instagram_token", r"\bIGQV[0-9A-Za-z_-]{60,}"),
    ("artifactory_token", r"\bAKC[0-9A-Za-z]{64,}|\bcmVmdGtu[0-9A-Za-z]{56}"),
    ("atlassian_token", r"ATATT3[0-9A-Za-z_=-]{50,}|ATCTT3[0-9A-Za-z_=-]{50,}|ATBB[0-9A-Za-z]{32}"),
    ("linear_key", rf"lin_(?:api|oauth)_{ALNUM}{{32,}}"),
    ("notion_token", rf"\bntn_{ALNUM}{{40,}}|\bsecret_{ALNUM}{{43}}\b"),
    ("figma_token", rf"\bfig[dou]r?_{URL64}{{40,}}"),
    ("airtable_token", rf"\bpat{ALNUM}{{14}}\.{HEX}{{64}}"),
    ("asana_token", r"\b[12]/[0-9]{14,}(?:/[0-9]{14,})?:[0-9a-f]{32}"),
    ("newrelic_key", r"\bNR(?:AK|RA|II|IQ|JS|AA)-[0-9A-Za-z-]{19,}"),
    ("datadog_key", rf"\bddp?[ap]k?_{ALNUM}{{30,}}"),
    ("dynatrace_token", r"\bdt0[a-z][0-9]{2}\.[0-9A-Z]{24}\.[0-9A-Z]{64}"),
    ("grafana_token", r"\bgl(?:c|sa)_[0-9A-Za-z+/_]{32,}={0,3}|\beyJrIjoi[0-9A-Za-z+/]{60,}={0,2}"),
    ("sentry_token", r"\bsntrys_[0-9A-Za-z+/=_-]{40,}|\bsntryu_[0-9a-f]{64}"),
    ("sentry_dsn", r"://([0-9a-f]{32}(?::[0-9a-f]{32})?)@[0-9A-Za-z.-]+/[0-9]"),
    ("vault_token", rf"\bhv[sbr]\.{URL64}{{24,}}"),
    ("pulumi_token", rf"\bpul-{HEX}{{40}}"),
    ("doppler_token", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[0-9A-Za-z._-]{40,}"),
    ("onepassword_key", r"\bA3-[0-9A-Z]{6}-[0-9A-Z]{5,6}(?:-[0-9A-Z]{5,6}){3,4}"),
    ("onepassword_key", r"\bops_eyJ[0-9A-Za-z+/]{100,}={0,3}"),
    ("age_secret_key", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    ("planetscale_token", r"\bpscale_(?:tkn|pw|oauth)_[0-9A-Za-z_=.-]{32,}"),
    ("supabase_key", rf"\bsb[ps]_(?:secret_)?{ALNUM}{{30,}}"),
    ("fly_token", rf"\bfo1_{URL64}{{43}}|\bfm[12][ar]?_[0-9A-Za-z+/]{{100,}}={{0,3}}"),
    ("postman_key", rf"\bPMAK-{HEX}{{24}}-{HEX}{{34}}"),
    ("easypost_key", rf"\bEZ[AT]K{ALNUM}{{54}}"),
    ("shippo_key", r"\bshippo_(?:live|test)_[0-9A-Fa-f]{40}"),
    ("adobe_secret", rf"\bp8e-{ALNUM}{{32}}"),
    ("alibaba_key", rf"\bLTAI{ALNUM}{{12,20}}\b"),
    ("tencent_key", rf"\bAKID{ALNUM}{{32}}\b"),
    ("yandex_key", rf"\bAQVN{URL64}{{35,38}}\b"),
    ("cloudflare_key", rf"\bv1\.0-{HEX}{{24}}-{HEX}{{146}}"),
    ("sonar_token", rf"\bsq[aup]_{HEX}{{40}}"),
    ("octopus_key", r"\bAPI-[0-9A-Z]{26}\b"),
    ("sourcegraph_token", r"\bsgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    ("okta_token", rf"\bSSWS[ \t]+(00{URL64}{{38,40}})"),
    ("openshift_token", rf"\bsha256~{URL64}{{43}}"),
    ("private_key", rf"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF){BASE64}{{40,}}={{0,2}}"),
    ("private_key", rf"LS0tLS1CRUdJTi(?:BPUEVOU1NIIFBSSVZBVEUg|BFTkNSWVBURUQg){BASE64}{{40,}}={{0,2}}"),
    ("jwt", rf"\beyJ{URL64}{{8,}}\.eyJ{URL64}{{8,}}\.{URL64}{{16,}}"),
    ("jwt", rf"\beyJ{URL64}{{16,}}\.{URL64}{{16,}}\.{URL64}{{16,}}"),
)  # fmt: skip

# kind → the characters that stand before, at least and at most how many, and the tail it is found by. A
# class of characters at the front of a pattern would keep the automaton busy in every word; tails are rare.
_HEX, _ALNUM = HEX_DIGITS.encode(), (string.ascii_letters + string.digits).encode()
TAILED = (
    (
        "email",
        _ALNUM + b"._%+-",
        0,
        63,
        r"([0-9A-Za-z_%+-]@[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*\.[A-Za-z]{2,24}\b)",
    ),
    ("azure_client_secret", _ALNUM + b"_~.", 3, 3, r"([0-9]Q~[0-9A-Za-z_~.-]{31,34})"),
    ("azure_devops_token", _ALNUM, 75, 75, rf"({ALNUM}AZDO{ALNUM}{{4}}\b)"),
    ("mailchimp_key", _HEX, 31, 31, rf"({HEX}-us[0-9]{{1,2}}\b)"),
    ("mailgun_key", _HEX, 31, 31, rf"({HEX}-{HEX}{{8}}-{HEX}{{8}}\b)"),
    ("newrelic_key", _HEX, 35, 35, rf"({HEX}NRAL\b)"),
    ("telegram_token", b"0123456789", 7, 9, rf"([0-9]:A{URL64}{{34}})"),
    ("terraform_token", _ALNUM, 13, 13, rf"({ALNUM}\.atlasv1\.{URL64}{{60,}})"),
)

# A name that holds one of these is given a secret. `key` alone is not one: too many things are keys.
WORDS_FOR_ONE = (
    r"pass(?:word|wd|phrase|code)|passw|pwd|secret|token|credential|"
    r"(?:api|access|auth|private|encrypt(?:ion)?|sign(?:ing|ature)?|account|master|service|session|"
    r"licen[cs]e|app|integration|routing|subscription|shared|storage|deploy|admin|write|consumer|hmac|aes|"
    r"client|secure|security|crypto|cipher|webhook|function|primary|secondary|instrumentation)[_.-]?keys?|"
    r"(?:db|root|admin|user|smtp|mysql|redis|pg|ftp|mail|bind)[_.-]?pass\b|_pass\b|\bpass\b|webhook|\bauth\b|"
    r"_auth\b|auth[_-]|"
    r"authorization|jwt"
)
# What stands between the name and the value: `: = := => == -> , (`, `: type =`, `" value=`, with what closes
# the name (`"]`) and opens the value (`b`, `String(`).
NAME = rf"(?i:{WORDS_FOR_ONE})[0-9A-Za-z_-]{{0,40}}"
ASSIGNED = (
    r"""(?:\\?["'`]?[\])]?[ \t]{0,20}(?::?[ \t]{0,4}[&*\w\[\]?|]{1,30}[ \t]{0,4}=|[:=]=?>?|->|,|\(|"""
    r"""\|\||\?\?|["'][ \t]{1,4}value=)[ \t]{0,20}(?:[A-Za-z:.]{1,20}\(|[A-Za-z@&]{0,2}))"""
)
_AT_START = (  # of a line: where a file of settings has its names
    r"(?m:^)[ \t]*(?:[-#;][ \t]*|(?:export|ENV|ARG|set)[ \t]+)?[0-9A-Za-z_.-]{0,40}"
)
BARE = r"""[^\s"'`<>(){}\[\],;&|\\=:$]"""
_WITH_DIGIT = (
    rf"(?:{BARE}{{0,4}}[0-9]{BARE}{{4,}}|{BARE}{{4,40}}[0-9]{BARE}*)"  # and five characters at least
)
# form → pattern with the one group that may be a secret; what stands there is judged with the name.
ASSIGNMENTS = (
    ("escaped", ASSIGNED + r'\\"([^"\\\s]{6,})\\"'),
    ("double", ASSIGNED + r'"(?:"")?((?:[^"\\\s]|\\[^\s]){6,})"'),
    ("single", ASSIGNED + r"'(?:'')?((?:[^'\\\s]|\\[^\s]){6,})'"),
    ("spaced", r"""[ \t]{1,20}["']([^"'\\\s]{8,})["']"""),
    ("back", ASSIGNED + r"`([^`\\\s]{6,})`"),
    ("element", r">([^\s<>]{6,})</"),
    ("bare", rf"[ \t]{{0,4}}[:=][ \t]{{0,4}}({_WITH_DIGIT}={{0,2}})" + r"""(?:[\s"'`;&|\\<]|$)"""),
)
CONTEXTS = (
    ("ipv4", r"\b((?:[0-9]{1,3}\.){3}[0-9]{1,3})\b"),
    ("environment", _AT_START + NAME + r"""=([^\s"'`$<>(){}][^\s"'`<>]{5,})(?:\r?(?m:$)|[ \t]+#)"""),
    ("setting", _AT_START + NAME + r"""(?:[ \t]+[=:][ \t]*|:[ \t]+)([^\s"'`<>]{12,})\r?(?m:$)"""),
    ("option", r"--[A-Za-z_-]{0,24}" + NAME + r"""[ \t]["']?([^\s"'`<>(){}\[\],;|\\]{6,})"""),
    ("header", r"(?i:bearer|basic|authorization:[ \t]?token)[ \t]{1,4}([0-9A-Za-z_~+/.-]{16,}=*)"),
    ("login", r"""[ \t](?:-u|--user)[ \t]["']?[\w.@-]{1,40}:([^\s"'`<>(){}|\\]{6,})"""),
    ("url", r"""://[^\s:/@"'<>]{0,64}:([^\s/"'<>]{2,})@"""),
    ("ipv6", r"\b([23][0-9A-Fa-f]{3}:(?:[0-9A-Fa-f]{0,4}:){1,6}[0-9A-Fa-f]{0,4})"),
)
NAME_CHARACTERS = _ALNUM + b"_.:-"
# In these another may stand, when what they hold is judged to be none
_ENCLOSING = """
escaped double single spaced back element environment bare setting option header login url
"""
ENCLOSING = frozenset(_ENCLOSING.split())

# … unless the whole name, in lower case, is like this: then it is about the secret, or another sort of token.
NOT_THE_SECRET = re.compile(
    rb"public[_-]?key|(?:next|prev|page|pagination|continuation|starting|client|request|creation|lock|"
    rb"idempotency|cursor|backward|"
    rb"forward|sync|change|pad|bos|eos|unk|sep|mask|cls|special|stop|start|end|begin|prefix|"
    rb"suffix)[_-]?tokens?$|::\w*$|"
    rb"(?:izers?|ize[ds]?|ization|s?[_.-]?(?:urls?|uris?|path|file|filename|dir|names?|ids?|types?|fields?|"
    rb"header|"
    rb"prefix|suffix|regexp?|pattern|label|hint|errors?|msg|message|help|class|endpoint|length|len|size|"
    rb"expir\w*|ttl|timeout|count|format|func|method|mode|kind|description|text|title|placeholder|input|"
    rb"param\w*|arg|attr\w*|column|table|policy|policies|scopes?|version|provider|backend|manager|store|"
    rb"form|view|page|reset|change|validators?|hashers?|algorithm|alg|enc|encoding|issuer|audience|ref|"
    rb"selector|template|env|var|vars|variable|metadata|status|state|required|enabled|address|host|port|"
    rb"user|username|email|login|parser|handler|service|client|server|request|response|test|mgr|realm)|(?:token|password|secret|key)s)$"
)

# What people write where a secret would stand. Stripped from a value; if little is left, it is none.
STAND_INS = re.compile(
    rb"(?i)secret|pass(?:word|wd|phrase|w)?|pwd|user(?:name)?|login|admin|root|test(?:ing|er)?|example|"
    rb"sample|dummy|"
    rb"fake|mock|foo|bar|baz|qux|spam|eggs|hello|world|token|api|key|access|auth|private|client|session|csrf|"
    rb"credentials?|change|this|me|your|my|here|insert|enter|replace|todo|fixme|none|null|true|false|"
    rb"undefined|"
    rb"default|value|string|invalid|valid|wrong|correct|incorrect|bad|good|new|old|some|any|empty|unset|"
    rb"hidden|"
    rb"redacted|placeholder|demo|temp|tmp|data|name|first|second|third|one|two|three|four|five|"
    rb"abc(?:d(?:ef?)?)?|"
    rb"xyz|lorem|ipsum|qwerty|letmein|oauth|basic|bearer|sha(?:1|256|384|512)|md5|hs256|rs256|base64|utf-?8|latin-?1|"
    rb"0?1?23(?:4(?:5(?:6(?:7(?:89?0?)?)?)?)?)?|x{2,}|\*+|0{2,}"
)
TEMPLATE = re.compile(
    rb"\$\{|\$\(|^\$[A-Za-z_]|\{\{|\}\}|#\{|%\(|^%[A-Z_]+%$|(?:^|[\w=:/.,-])%[sdvq](?:$|[,;:/.&-])|<[%=/\w][^<>]*>|"
    rb"\{[\w.:!\[\]]*\}|^<|>$|\.\.\.|"
    rb"\*{3}|x{5}|X{5}|0{8}|REDACTED|email@example\.com|192\.0\.2\.1|2001:db8::1"
)
# Code, a path, a URL, a media type, a date, a number: whatever its name, not a secret.
NOT_A_VALUE = re.compile(
    rb"^(?:[a-z][a-z0-9+.-]*://.*|(?:arn|urn):.*|\.{0,2}/[\w./*@:-]*|[A-Za-z]:\\.*|~/.*|\d[\d.,:/_-]*|"
    rb"0[xX][0-9a-fA-F]{1,8}|"
    rb"[\w.+-]+@[\w-]+\.[\w.]+|application/[\w.+-]+|text/[\w.+-]+|"
    rb"\d{4}-\d\d-\d\d.*|[\w.]+\(.*\)|[\w.]+\[.*\]|[\w-]+,[\w-]+=.*|\w+(?:\|\w+)+|[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+|"
    rb"\([\w?].*|\[.*|\^.*\$|.*\.(?:py|js|ts|go|json|ya?ml|html?|txt|md|pem|crt|key|pub|com|org|io))$"
)
CODE = re.compile(
    rb"[&*!$]*[A-Za-z_][\w.$]*(?:(?:->|::|\?\.)[\w.$]+)*[(\[{]"
)  # what a value without quotes may be

# Bigrams that make up 86 % of the words in Python's standard library (17,000 words, measured); of
# random letters they make up 30 %.
_WORD_BIGRAMS = b"""
ab ac ad ag ai al am an ap ar as at au ay ba be bi bl bo br bs bu ca cc ce ch ci ck cl co cr ct cu da dd de
di dl do dr ds du ea ec ed ee ef eg el em en ep eq er es et ev ex fa fe ff fi fl fo fr ge gh gi gr gs ha he
hi ho ht ia ib ic id ie if ig il im in io ip ir is it iv iz ke la ld le li ll lo ls lt lu ly ma me mi mo mp
ms na nc nd ne nf ng ni no ns nt nu ob oc od ol om on oo op or os ot ou ow pa pe pi pl po pp pr ps pt py qu
ra rc rd re rg ri rm rn ro rr rs rt ru ry sa sc se sh si sl so sp ss st su ta tc te th ti tl to tp tr ts tt
tu ty ua ub ue ui ul um un up ur us ut va ve vi wa wi xt yp ze
"""
WORD_BIGRAMS = frozenset(_WORD_BIGRAMS.split())

# Whose secret it is, when the name or the words before it say so: the kind is more telling then.
PROVIDERS = (
    (b"accountkey", "azure_storage_key"), (b"sharedaccesskey", "azure_storage_key"),
    (b"aws", "aws_secret_key"), (b"azure", "azure_secret"), (b"heroku", "heroku_key"),
    (b"datadog", "datadog_key"), (b"dd_a", "datadog_key"), (b"twilio", "twilio_secret"),
    (b"twitter", "twitter_secret"), (b"facebook", "facebook_secret"), (b"wandb", "wandb_key"),
    (b"cloudflare", "cloudflare_key"), (b"docker", "docker_token"), (b"discord", "discord_secret"),
)  # fmt: skip

# Top-level domains that addresses in code end in; `a@b.shape` is a matrix product.
_TOP_LEVEL = """
com org net edu gov mil int info biz name io ai dev app me co cc tv xyz tech online site cloud email
pro page blog digital systems software engineering team works agency solutions network world live
group ac ae ar at au be bg br by ca ch cl cn cz de dk dz ee eg es eu fi fr ge gr hk hr hu id ie il
in ir is it jp ke kr kz lt lu lv ma md mx my ng nl no nz nu pe ph pk pl pt ro rs ru sa se sg si sk
su th tn to tr tw ua ug uk us uy uz ve vn za zone moe sh gg im li la fm ly asia museum coop jobs
mobi travel wiki codes rocks
"""
TOP_LEVEL = frozenset(_TOP_LEVEL.split())
NOBODY = re.compile(  # addresses that are no person's: for documentation (RFC 2606), for machines
    r"(?i)@(?:[\w-]+\.)*(?:example\.\w+|example|test|invalid|localhost|domain\.com|email\.com|test\.com|"
    r"foo\.com|"
    r"foo\.bar|bar\.com|host\.com|server\.com|company\.com|yourdomain\.\w+|mydomain\.\w+|acme\.(?:com|org)|"
    r"site\.com|sentry\.io|localdomain)$|"
    r"^(?:git|hg|svn|no-?reply|do-?not-?reply|user|username|you|your[._-]?(?:name|email)|someone|somebody|"
    r"nobody|"
    r"name|email|root|foo|bar|me|test|x+|\w|REDACTED_\w+)@"
)
_PUBLIC_RESOLVERS = """
8.8.8.8 8.8.4.4 1.1.1.1 1.0.0.1 9.9.9.9 208.67.222.222 208.67.220.220 2001:4860:4860::8888
2001:4860:4860::8844 2606:4700:4700::1111 2606:4700:4700::1001 2620:fe::fe
"""
PUBLIC_RESOLVERS = frozenset(_PUBLIC_RESOLVERS.split())
BEFORE_A_VERSION = re.compile(
    rb"(?i)(?:version\S{0,12}[ \t:=\"'(]{0,6}|[\d.]\.|[/=~^><v-]|\brev[ .]?|\boid\S{0,4}[ :=\"']{0,4})$"
)
BEFORE_A_HOST = re.compile(rb"://[^\s/\"'<>?]*$")  # ssh://user@host: what looks like an address is a login
