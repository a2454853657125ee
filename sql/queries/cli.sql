-- cli_may_read --
-- Which of these tables this role may read
SELECT name FROM unnest(%(tables)s::text[]) AS name WHERE has_table_privilege(name, 'SELECT');

-- score_histogram --
-- How many live contents of each language have which score
SELECT language, score, contents FROM score_histogram WHERE contents > 0 ORDER BY language, score;

-- explain_file --
-- What became of a path, or of the nearest refused directory above it; one that is there before one that is gone
SELECT s.name AS source, s.kind, s.commit_id AS source_commit, s.licence AS source_licence, s.problem,
       s.last_scanned_at, f.path, f.size_bytes, f.mtime_ns, f.language, f.content_id, f.duplicate_of, f.reason,
       f.detail, f.rules, f.first_seen_at, f.seen_at, f.retired_at, f.renamed_from, f.commit_id, f.changed_at
FROM files f JOIN sources s ON s.id = f.source_id
WHERE s.name = %(source)s AND f.path = ANY(%(paths)s)
ORDER BY f.retired_at IS NOT NULL, length(f.path) DESC
LIMIT 1;

-- explain_content --
-- What is stored of a content, but its text
SELECT id, encode(sha256, 'hex') AS sha256, cluster_id, language, bytes, lines, score, score_reasons,
       scorer_version, licence, redactions, live
FROM contents WHERE id = %(id)s;

-- explain_address --
-- The content with this address
SELECT id FROM contents WHERE sha256 = decode(%(sha256)s, 'hex');

-- explain_units --
-- The units of a content, in the order of the text
SELECT kind, name, start_line, end_line, start_byte, end_byte
FROM units WHERE content_id = %(id)s ORDER BY ordinal;

-- explain_holders --
-- Files that hold a content now
SELECT s.name AS source, f.path
FROM files f JOIN sources s ON s.id = f.source_id
WHERE f.content_id = %(id)s AND f.retired_at IS NULL
ORDER BY s.name, f.path
LIMIT %(most)s;

-- explain_duplicates --
-- How many files are near duplicates of a content
SELECT count(*) FROM files WHERE duplicate_of = %(id)s AND retired_at IS NULL;

-- explain_cluster --
-- How many contents a cluster has
SELECT count(*) FROM contents WHERE cluster_id = %(cluster)s;

-- explain_rounds --
-- The rounds that used a content, and for what
SELECT r.track, r.number, r.state, rc.role
FROM round_contents rc JOIN rounds r ON r.id = rc.round_id
WHERE rc.content_id = %(id)s
ORDER BY r.track, r.number;

-- source_names --
-- Every source that ever was, in the order of names
SELECT id, name, commit_id, licence FROM sources ORDER BY name COLLATE "C";

-- export_files --
-- A page of a source's files in the order of paths, with what is stored of each but text and units
SELECT f.path, coalesce(c.language, f.language) AS language, f.reason, f.detail, f.commit_id, f.changed_at,
       c.id AS content_id, encode(c.sha256, 'hex') AS sha256, c.bytes, c.score, c.score_reasons,
       c.scorer_version, c.cluster_id, c.licence, c.redactions, encode(d.sha256, 'hex') AS duplicate_of
FROM files f
LEFT JOIN contents c ON c.id = f.content_id
LEFT JOIN contents d ON d.id = f.duplicate_of
WHERE f.source_id = %(source_id)s AND f.path > %(after)s AND f.retired_at IS NULL
  AND (%(rejected)s OR f.content_id IS NOT NULL)
ORDER BY f.path
LIMIT %(most)s;

-- export_texts --
-- The texts of these contents
SELECT id, text FROM contents WHERE id = ANY(%(ids)s);

-- export_units --
-- The units of these contents, in the order of each text
SELECT content_id, kind, name, start_line, end_line, start_byte, end_byte
FROM units WHERE content_id = ANY(%(ids)s) ORDER BY content_id, ordinal;

-- stats_files --
-- Files that are there now by source, language and reason; null for the kept
SELECT s.name AS source, f.language, f.reason, count(*) AS files
FROM files f JOIN sources s ON s.id = f.source_id
WHERE f.retired_at IS NULL
  AND (%(source)s::text IS NULL OR s.name = %(source)s)
  AND (%(language)s::text IS NULL OR f.language = %(language)s)
GROUP BY s.name, f.language, f.reason
ORDER BY s.name COLLATE "C", f.language, f.reason;

-- stats_contents --
-- Contents that files hold now by language and score, each once
SELECT c.language, c.score, count(*) AS contents, sum(c.bytes)::bigint AS bytes, sum(c.lines)::bigint AS lines
FROM contents c
WHERE c.live
  AND (%(language)s::text IS NULL OR c.language = %(language)s)
  AND (%(source)s::text IS NULL
       OR c.id IN (SELECT f.content_id FROM files f JOIN sources s ON s.id = f.source_id
                   WHERE s.name = %(source)s AND f.retired_at IS NULL))
GROUP BY c.language, c.score
ORDER BY c.language, c.score;

-- list_sources --
-- Every source with what it is and how many files it has
SELECT s.name, s.kind, s.commit_id, s.licence, s.problem, s.first_seen_at, s.last_scanned_at,
       coalesce(f.kept, 0) AS kept, coalesce(f.refused, 0) AS refused, coalesce(f.retired, 0) AS retired
FROM sources s
LEFT JOIN (SELECT source_id,
                  count(*) FILTER (WHERE retired_at IS NULL AND reason IS NULL) AS kept,
                  count(*) FILTER (WHERE retired_at IS NULL AND reason IS NOT NULL) AS refused,
                  count(*) FILTER (WHERE retired_at IS NOT NULL) AS retired
           FROM files GROUP BY source_id) f ON f.source_id = s.id
ORDER BY s.name COLLATE "C";

-- waiting_claims --
-- Chunks that are to be worked on, the oldest first, about so many bytes of them
SELECT id AS claim_id, source_id, source, licence, entries
FROM (SELECT c.id, c.source_id, s.name AS source, s.licence, c.entries,
             sum(octet_length(c.entries)) OVER (ORDER BY c.id) - octet_length(c.entries) AS before
      FROM claims c JOIN sources s ON s.id = c.source_id) AS waiting
WHERE before < %(most_bytes)s
ORDER BY id;

-- Which adapters have learned from something

-- which_sources --
-- Every number that a source of this name has or had
SELECT id FROM sources WHERE name = %(name)s
UNION
SELECT source_id FROM round_sources WHERE name = %(name)s;

-- which_of_path --
-- The contents that a path holds, or held when a round was opened, also under names that it had before
WITH RECURSIVE paths AS (
    SELECT %(path)s::text COLLATE "C" AS path
    UNION
    SELECT f.renamed_from COLLATE "C" FROM paths
    JOIN files f ON f.source_id = ANY (%(sources)s::bigint[]) AND f.path = paths.path
    WHERE f.renamed_from IS NOT NULL
)
SELECT rf.content_id FROM paths JOIN round_files rf USING (path) WHERE rf.source_id = ANY (%(sources)s::bigint[])
UNION
SELECT f.content_id FROM paths JOIN files f USING (path)
WHERE f.source_id = ANY (%(sources)s::bigint[]) AND f.content_id IS NOT NULL;

-- which_of_folder --
-- The same of every path that begins so
SELECT content_id FROM round_files
WHERE source_id = ANY (%(sources)s::bigint[]) AND starts_with(path, %(prefix)s)
UNION
SELECT content_id FROM files
WHERE source_id = ANY (%(sources)s::bigint[]) AND starts_with(path, %(prefix)s) AND content_id IS NOT NULL;

-- which_adapters --
-- Every adapter that was trained on one of these contents, or continues from one that was
WITH RECURSIVE learned AS (
    SELECT rc.round_id, count(*) AS contents, sum(e.seen)::bigint AS seen
    FROM round_contents rc LEFT JOIN exposures e USING (round_id, content_id)
    WHERE rc.content_id = ANY (%(contents)s::bigint[]) AND rc.role IN ('train', 'replay')
      AND (e.seen IS NULL OR e.seen > 0)
    GROUP BY rc.round_id
), reached AS (
    SELECT a.id, a.id AS via FROM adapters a JOIN learned USING (round_id)
    UNION ALL
    SELECT child.id, reached.via
    FROM reached
    JOIN rounds r ON r.parent_adapter_id = reached.id
    JOIN adapters child ON child.round_id = r.id
    WHERE NOT EXISTS (SELECT FROM learned WHERE learned.round_id = child.round_id)
)
SELECT a.track, a.directory, a.published_at, a.receipt, learned.contents, learned.seen,
       via.directory AS via, champions.adapter_id IS NOT NULL AS is_champion,
       EXISTS (SELECT FROM promotions p WHERE p.adapter_id = a.id AND p.kind = 'rejected') AS is_rejected
FROM reached
JOIN adapters a USING (id)
JOIN adapters via ON via.id = reached.via
LEFT JOIN learned ON learned.round_id = a.round_id
LEFT JOIN champions ON champions.adapter_id = a.id
ORDER BY a.track, a.id;

-- which_rounds --
-- Open rounds that train on one of these contents now, and how many of them any round was judged by
SELECT ARRAY(SELECT track || '/round-' || lpad(number::text, greatest(4, length(number::text)), '0')
             FROM rounds r
             WHERE state = 'open' AND EXISTS (SELECT FROM round_contents rc
                                              WHERE rc.round_id = r.id AND role IN ('train', 'replay')
                                                AND content_id = ANY (%(contents)s::bigint[]))
             ORDER BY track) AS under_way,
       (SELECT count(DISTINCT content_id) FROM round_contents
        WHERE content_id = ANY (%(contents)s::bigint[]) AND role IN ('validation', 'held_out')) AS judged_by;

-- `ratchet doctor`

-- doctor_server --
-- The server's version in words and as a number, and its clock in seconds since 1970
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::integer AS number,
       extract(epoch FROM clock_timestamp())::float8 AS clock;

-- Rounds, adapters and requests from a terminal

-- cli_tracks --
-- Every track there is
SELECT name FROM tracks ORDER BY name;

-- cli_newest_round --
-- The number of a track's newest round
SELECT number FROM rounds WHERE track = %(track)s ORDER BY number DESC LIMIT 1;

-- cli_waiting --
-- What the next round of a track has, counted up to `most`, and whether one runs or none may begin
SELECT t.name AS track, t.paused_at, t.paused_by, t.pause_reason,
       CASE t.recipe ->> 'objective' WHEN 'reinforcement' THEN t.recipe #>> '{reinforcement,tasks}' END AS task_set,
       (SELECT count(*) FROM (SELECT FROM backlog b WHERE b.track = t.name AND b.is_new AND b.score >= %(threshold)s
                              LIMIT %(most)s) AS counted) AS new,
       (SELECT number FROM rounds WHERE track = t.name AND state = 'open') AS open_round
FROM tracks t WHERE t.name = %(track)s;

-- cli_adapters --
-- Published adapters, the newest first, of one track if asked
SELECT a.id, a.track, a.directory, r.number AS round, parent.directory AS parent, a.published_at,
       r.verdict -> 'improvement' AS improvement, r.verdict ->> 'against' AS against,
       r.verdict #> '{bits_per_byte,candidate}' AS bits_per_byte, r.verdict ->> 'metric' AS metric,
       r.verdict #> '{pass_rates,candidate}' AS pass_rate, a.manifest -> 'roles' AS roles,
       coalesce(c.adapter_id = a.id, false) AS champion,
       coalesce(c.adapter_id = a.id, false) AND (
           SELECT p.kind = 'pinned' FROM promotions p
           WHERE p.track = a.track AND p.kind IN ('pinned', 'unpinned') ORDER BY p.id DESC LIMIT 1) IS TRUE AS pinned,
       EXISTS (SELECT FROM promotions p WHERE p.adapter_id = a.id AND p.kind = 'rejected') AS rejected,
       taint.policy AS learned_what_was_forgotten, a.parity,
       CASE WHEN jsonb_typeof(r.verdict -> 'planted') = 'object'
            THEN (r.verdict -> 'planted') - 'secrets' END AS planted
FROM adapters a
JOIN rounds r ON r.id = a.round_id
LEFT JOIN adapters parent ON parent.id = r.parent_adapter_id
LEFT JOIN champions c ON c.track = a.track
LEFT JOIN taints taint ON taint.adapter_id = a.id
WHERE %(track)s::text IS NULL OR a.track = %(track)s
ORDER BY a.id DESC
LIMIT %(limit)s;

-- cli_solutions --
-- Solutions by task set: tasks that have some, those that fine-tuning may have, rounds that wrote them, and how many
-- a champion has learned
SELECT t.task_set, count(DISTINCT s.task_id) AS tasks, count(*) FILTER (WHERE s.retired_at IS NULL) AS offered,
       count(DISTINCT s.round_id) AS rounds,
       count(*) FILTER (WHERE EXISTS (
           SELECT FROM round_solutions rs JOIN rounds r ON r.id = rs.round_id
           WHERE rs.solution_id = s.id AND r.state = 'promoted' AND r.withdrawn_by IS NULL)) AS learned
FROM solutions s JOIN tasks t ON t.id = s.task_id
WHERE s.code <> ''
GROUP BY t.task_set ORDER BY t.task_set;
