-- Quotas no longer add RRU of different meaning: each limit counts in the RRU of one profile, or in
-- servers (of all hardware types, or of one), and every promise is converted into that.

CREATE TABLE quota_limits (
    quota_limit_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL CHECK (char_length(owner) BETWEEN 1 AND 128),
    profile_id integer REFERENCES rru_profiles,
    hardware_type_id integer REFERENCES hardware_types,
    limit_micro bigint NOT NULL CHECK (limit_micro BETWEEN 0 AND 1000000000000000),
    set_by entity_name NOT NULL,
    set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT quota_limits_one_measure CHECK (profile_id IS NULL OR hardware_type_id IS NULL)
);
COMMENT ON TABLE quota_limits IS 'how much may be promised to an owner; no row: as much as there is. All of an owner''s limits hold';
COMMENT ON COLUMN quota_limits.quota_limit_id IS 'its number';
COMMENT ON COLUMN quota_limits.owner IS 'the business unit';
COMMENT ON COLUMN quota_limits.profile_id IS 'it counts RRU of this profile; null: servers';
COMMENT ON COLUMN quota_limits.hardware_type_id IS 'it counts servers of this hardware type; null: of all, unless it counts RRU';
COMMENT ON COLUMN quota_limits.limit_micro IS 'the most that the guaranteed reservations may be promised together, in micro-RRU or millionths of a server';
COMMENT ON COLUMN quota_limits.set_by IS 'who set it';
COMMENT ON COLUMN quota_limits.set_at IS 'when';
CREATE UNIQUE INDEX quota_limits_once
    ON quota_limits (owner, coalesce(profile_id, 0), coalesce(hardware_type_id, 0));
CREATE INDEX quota_limits_by_profile ON quota_limits (profile_id) WHERE profile_id IS NOT NULL;
CREATE INDEX quota_limits_by_type ON quota_limits (hardware_type_id) WHERE hardware_type_id IS NOT NULL;

-- What was stored counted the RRU of each reservation by its own values and added them. A limit keeps its
-- number and gets the meaning that its owner's reservations have: a profile made of their values. Where
-- they differ, a type counts the largest value that one of them gives it, so that no promise counts less
-- than before: such an owner may be beyond its quota, keeps what it has, and grows again when an
-- administrator sets a limit. Where an owner has no reservation the number had no meaning yet, and counts
-- servers.
DO $$
DECLARE
    held record;
    new_profile integer;
    named text;
BEGIN
    FOR held IN SELECT q.* FROM quotas q ORDER BY q.owner LOOP
        new_profile := NULL;
        IF EXISTS (SELECT FROM reservations r JOIN promises p USING (promise_id)
            JOIN rru_values v USING (promise_id)
            WHERE r.kind = 'guaranteed' AND p.owner = held.owner)
        THEN
            named := left('quota of ' || held.owner, 128);
            IF EXISTS (SELECT FROM rru_profiles WHERE profile = named) THEN
                named := left(named, 95) || ' ' || md5(held.owner);
            END IF;
            INSERT INTO rru_profiles (profile, set_by) VALUES (named, held.set_by)
                RETURNING profile_id INTO new_profile;
            INSERT INTO rru_profile_values (profile_id, hardware_type_id, value_micro)
                SELECT new_profile, v.hardware_type_id, max(v.value_micro)
                FROM reservations r JOIN promises p USING (promise_id) JOIN rru_values v USING (promise_id)
                WHERE r.kind = 'guaranteed' AND p.owner = held.owner GROUP BY 2;
        END IF;
        INSERT INTO quota_limits (owner, profile_id, limit_micro, set_by, set_at)
            VALUES (held.owner, new_profile, held.capacity_micro, held.set_by, held.set_at);
    END LOOP;
END $$;
DROP TABLE quotas;
