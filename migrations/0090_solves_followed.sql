-- How far a running solve is, and that it was cancelled.

CREATE TABLE solve_progress (
    solve_id uuid PRIMARY KEY REFERENCES solves,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    step text NOT NULL CHECK (step IN ('export', 'solve', 'audit', 'publish')),
    history jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(history) = 'array')
);
COMMENT ON TABLE solve_progress IS 'how far the last attempt at a solve is; no part of the region, so it leaves no entry in the audit trail';
COMMENT ON COLUMN solve_progress.solve_id IS 'the solve';
COMMENT ON COLUMN solve_progress.at IS 'when its worker last wrote here';
COMMENT ON COLUMN solve_progress.step IS 'what its worker does: export: reads and archives the region; solve: runs the solver; audit: checks and archives the result; publish: writes the targets';
COMMENT ON COLUMN solve_progress.history IS 'incumbent and bound over time, as the solver reports them: a few hundred points at most';

CREATE OR REPLACE FUNCTION pg_temp.add_words(relation regclass, listed text, further text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    held text := (SELECT pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid = relation AND conname = listed);
    words text[] := ARRAY(SELECT m[1] FROM regexp_matches(held, '''([^'']+)''::text', 'g') AS m);
BEGIN
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', relation, listed);
    EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%s IN (%s))', relation, listed,
        substring(held FROM '\((\w+) = ANY'),
        (SELECT string_agg(quote_literal(word), ', ' ORDER BY nr)
            FROM unnest(words || further) WITH ORDINALITY AS w (word, nr)));
END $$;
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check', ARRAY['solve_cancelled']);
