-- What a server of each hardware type is worth, by a name that requests may give in place of values. A
-- request takes the values of its time: a promise does not change with a profile.

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
SELECT pg_temp.add_words('audit_trail', 'audit_trail_action_check', ARRAY['profile_set', 'profile_removed']);

CREATE TABLE rru_profiles (
    profile_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    profile entity_name NOT NULL UNIQUE,
    set_by entity_name NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE rru_profiles IS 'names for what servers are worth; a promise keeps the values it was made with';
COMMENT ON COLUMN rru_profiles.profile_id IS 'what its values refer to';
COMMENT ON COLUMN rru_profiles.profile IS 'its name';
COMMENT ON COLUMN rru_profiles.set_by IS 'who set it last';
COMMENT ON COLUMN rru_profiles.set_at IS 'when';

CREATE TABLE rru_profile_values (
    profile_id integer NOT NULL REFERENCES rru_profiles ON DELETE CASCADE,
    hardware_type_id integer NOT NULL REFERENCES hardware_types ON DELETE CASCADE,
    value_micro bigint NOT NULL CHECK (value_micro BETWEEN 1 AND 1000000000000000),
    PRIMARY KEY (profile_id, hardware_type_id)
);
COMMENT ON TABLE rru_profile_values IS 'V of a profile: what one server of a type is worth; types without a row are not accepted';
COMMENT ON COLUMN rru_profile_values.profile_id IS 'the profile';
COMMENT ON COLUMN rru_profile_values.hardware_type_id IS 'the hardware type';
COMMENT ON COLUMN rru_profile_values.value_micro IS 'micro-RRU of one server';
CREATE INDEX rru_profile_values_by_type ON rru_profile_values (hardware_type_id);
