-- Policies in SQL that the solves of the region keep, in versions.

CREATE TABLE policy_versions (
    edition integer PRIMARY KEY CHECK (edition >= 1),
    policy entity_name NOT NULL CHECK (policy ~ '^[a-z][a-z0-9_]*$' AND char_length(policy) <= 63),
    version integer NOT NULL CHECK (version >= 1),
    sql text CHECK (octet_length(sql) BETWEEN 1 AND 262144),
    why text NOT NULL CHECK (char_length(why) <= 1000),
    changed_by entity_name NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (policy, version)
);
COMMENT ON TABLE policy_versions IS 'policies of the region; the last version of each counts, earlier ones stay readable';
COMMENT ON COLUMN policy_versions.edition IS 'number among all changes of policies: 1, 2, 3, ...; the largest names what is in force';
COMMENT ON COLUMN policy_versions.policy IS 'its name, which is the name of its file';
COMMENT ON COLUMN policy_versions.version IS 'number among the versions of the policy: 1, 2, 3, ...';
COMMENT ON COLUMN policy_versions.sql IS 'its statements; null: it is withdrawn from then on';
COMMENT ON COLUMN policy_versions.why IS 'why it was changed, as its author says; may be empty';
COMMENT ON COLUMN policy_versions.changed_by IS 'who changed it';
COMMENT ON COLUMN policy_versions.changed_at IS 'when';
CREATE TRIGGER policy_versions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON policy_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE solves ADD COLUMN policies integer NOT NULL DEFAULT 0 CHECK (policies >= 0);
COMMENT ON COLUMN solves.policies IS 'the edition of the policies that it keeps; 0: the region had none';
SELECT add_words('solves', 'solves_reason_check', ARRAY['policies_refused']);
SELECT add_words('audit_trail', 'audit_trail_action_check', ARRAY['policy_set', 'policy_withdrawn']);
