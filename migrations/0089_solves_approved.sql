-- Targets of a solve that move many servers in use wait until an operator approves them.

INSERT INTO transitions VALUES
    ('solves', 'running', 'awaiting_approval'),
    ('solves', 'awaiting_approval', 'published'),
    -- A newer version was published, or a newer solve waits.
    ('solves', 'awaiting_approval', 'stale'),
    ('solves', 'awaiting_approval', 'rejected');
CREATE UNIQUE INDEX solves_one_awaits ON solves ((true)) WHERE state = 'awaiting_approval';

CREATE TABLE awaiting_targets (
    solve_id uuid NOT NULL REFERENCES solves ON DELETE CASCADE,
    server text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    target_reservation text COLLATE "C",
    PRIMARY KEY (solve_id, server)
);
COMMENT ON TABLE awaiting_targets IS 'the targets of a solve that awaits approval; deleted when it is decided';
COMMENT ON COLUMN awaiting_targets.solve_id IS 'the solve';
COMMENT ON COLUMN awaiting_targets.server IS 'the server';
COMMENT ON COLUMN awaiting_targets.generation IS 'its generation in the snapshot';
COMMENT ON COLUMN awaiting_targets.target_reservation IS 'the reservation that should hold it; null: free';

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
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check',
    ARRAY['solve_awaits_approval', 'solve_approved', 'solve_rejected']);
