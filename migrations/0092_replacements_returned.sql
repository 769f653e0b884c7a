-- A failed server that works again returns to its reservation, and the spare that replaced it to its shared buffer.
ALTER TABLE replacements
    ADD COLUMN returning_since timestamptz,
    ADD COLUMN returned_at timestamptz,
    ADD CONSTRAINT replacements_returns CHECK (returned_at IS NULL OR returning_since IS NOT NULL),
    ADD CONSTRAINT replacements_returning CHECK (returning_since IS NULL OR state = 'bound');
COMMENT ON COLUMN replacements.returning_since IS 'since when the repaired server moves back to the reservation; null: it does not';
COMMENT ON COLUMN replacements.returned_at IS 'when the repaired server was bound to the reservation again';
-- Those whose server may still return.
CREATE INDEX replacements_to_return ON replacements (state_at) WHERE state = 'bound' AND returned_at IS NULL;

-- For this and later migrations; earlier ones each made their own for the session.
CREATE FUNCTION add_words(relation regclass, listed text, further text[]) RETURNS void
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
COMMENT ON FUNCTION add_words IS 'adds words to the CHECK of an enumerated column, for migrations';
SELECT add_words('audit_trail', 'audit_trail_action_check',
    ARRAY['server_returns', 'spare_returns']);
