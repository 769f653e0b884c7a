-- What operators change of a region piece by piece, beside importing a whole snapshot.

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
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check', ARRAY['region_settings_set',
    'shared_buffer_set', 'elastic_set', 'elastic_ended', 'hardware_type_added', 'servers_racked',
    'servers_decommissioned', 'servers_relocated']);

ALTER TABLE reservations ADD COLUMN loan_share double precision
    CHECK (loan_share > 0 AND loan_share < 'infinity');
ALTER TABLE reservations ADD COLUMN ending boolean NOT NULL DEFAULT false;
ALTER TABLE reservations ADD CONSTRAINT reservations_loans
    CHECK (kind = 'elastic' OR loan_share IS NULL AND NOT ending);
COMMENT ON COLUMN reservations.loan_share IS 'of an elastic reservation: the share by which it is served; null: what the mover''s settings say, else 1';
COMMENT ON COLUMN reservations.ending IS 'of an elastic reservation: it was ended, is lent nothing more, and goes once what it borrows is back';
