-- Lists of the API in the order of their keys, whatever they are narrowed to: no page costs more than its rows.

CREATE INDEX files_refused ON files (id) WHERE reason IS NOT NULL AND retired_at IS NULL;
CREATE INDEX files_refused_for ON files (reason, id) WHERE reason IS NOT NULL AND retired_at IS NULL;
CREATE INDEX contents_best_of_language ON contents (language, score DESC, id);
