-- The roll-out of a changed host profile is paused by an operator, reservation by reservation.

ALTER TABLE rollouts ADD COLUMN paused_by text COLLATE "C";
ALTER TABLE rollouts ADD COLUMN paused_why text COLLATE "C";
ALTER TABLE rollouts ADD CONSTRAINT rollouts_paused CHECK ((paused_by IS NULL) = (paused_why IS NULL));
COMMENT ON COLUMN rollouts.paused_by IS 'who paused it: no server begins to be reconfigured, also after a further change of the profile; null: it goes on';
COMMENT ON COLUMN rollouts.paused_why IS 'why, for people';

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
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check', ARRAY['rollout_paused', 'rollout_resumed']);
SELECT pg_temp.add_words('moves', 'moves_reason_check', ARRAY['rollout_paused']);
