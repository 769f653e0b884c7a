-- What was not written down of what people ask for, and what they look for that no index knew.

-- Somebody asked for a solve.
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
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check', ARRAY['solve_requested']);

-- An owner who has seen a reservation may not write over a contract that was set since.
ALTER TABLE reservations ADD COLUMN contract_changes integer NOT NULL DEFAULT 0
    CHECK (contract_changes >= 0);
COMMENT ON COLUMN reservations.contract_changes IS 'counts what was changed of its churn contract';

-- The moves of a reservation, from it and to it, the youngest first.
CREATE INDEX moves_by_source ON moves (source_reservation, move_id) WHERE source_reservation IS NOT NULL;
CREATE INDEX moves_by_target ON moves (target_reservation, move_id) WHERE target_reservation IS NOT NULL;
