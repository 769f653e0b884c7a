-- Who may ask and say what over HTTP. Of a secret only its digest is kept: it has 256 bits of chance,
-- so nobody finds it from that, and the digest is what it is looked up by.

CREATE TABLE tokens (
    token_id uuid PRIMARY KEY,
    name entity_name NOT NULL,
    digest bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
    role text NOT NULL CONSTRAINT tokens_role_check
        CHECK (role IN ('viewer', 'owner', 'operator', 'admin', 'health', 'emergency')),
    owner entity_name,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by entity_name NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    revoked_by entity_name,
    last_used_at timestamptz,
    CONSTRAINT tokens_owner CHECK (CASE role WHEN 'owner' THEN owner IS NOT NULL
        WHEN 'viewer' THEN true ELSE owner IS NULL END),
    CONSTRAINT tokens_expires CHECK (expires_at > created_at),
    CONSTRAINT tokens_revoked CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);
COMMENT ON TABLE tokens IS 'who may do what over HTTP; a row stays when its token is over, because the audit trail has its name';
COMMENT ON COLUMN tokens.token_id IS 'its id, ordered by time';
COMMENT ON COLUMN tokens.name IS 'who stands in the audit trail';
COMMENT ON COLUMN tokens.digest IS 'SHA-256 of the secret, which is kept nowhere';
COMMENT ON COLUMN tokens.role IS 'what may be done with it';
COMMENT ON COLUMN tokens.owner IS 'whose objects it is for; null: everybody''s';
COMMENT ON COLUMN tokens.created_at IS 'when it was made';
COMMENT ON COLUMN tokens.created_by IS 'who made it';
COMMENT ON COLUMN tokens.expires_at IS 'from when on it is good for nothing';
COMMENT ON COLUMN tokens.revoked_at IS 'when somebody ended it before that';
COMMENT ON COLUMN tokens.revoked_by IS 'who did';
COMMENT ON COLUMN tokens.last_used_at IS 'when it was last used, to the minute';
-- A name is free again when its token was revoked: that is how a secret is replaced.
CREATE UNIQUE INDEX tokens_name ON tokens (name) WHERE revoked_at IS NULL;

-- Sessions of people who look at pages. One is worth what the token is that began it, looked up anew
-- each time: revoking the token ends them all. Beginning and ending one changes nothing about the region
-- and stands in no audit trail; what is done in one does, under the token's name.
CREATE TABLE sessions (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    token_digest bytea NOT NULL CHECK (octet_length(token_digest) = 32),
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    CONSTRAINT sessions_expires CHECK (expires_at > began_at)
);
COMMENT ON TABLE sessions IS 'who is signed in to the pages; a row goes when they sign out or it expires';
COMMENT ON COLUMN sessions.digest IS 'SHA-256 of what the cookie says';
COMMENT ON COLUMN sessions.token_digest IS 'SHA-256 of the secret that was signed in with: of a token here, or of one in the settings of a process';
COMMENT ON COLUMN sessions.began_at IS 'when they signed in';
COMMENT ON COLUMN sessions.expires_at IS 'from when on it is good for nothing';
CREATE INDEX sessions_expiring ON sessions (expires_at);

ALTER TABLE audit_trail DROP CONSTRAINT audit_trail_action_check;
ALTER TABLE audit_trail ADD CONSTRAINT audit_trail_action_check CHECK (action IN
    ('snapshot_loaded', 'targets_published', 'unavailability_recorded', 'unavailability_cleared',
     'moves_opened', 'server_bound', 'move_ended', 'mover_stopped', 'mover_resumed',
     'server_replaced', 'replacement_owed', 'outage_began', 'outage_ended', 'servers_lent',
     'servers_recalled', 'usage_reported', 'maintenance_planned', 'maintenance_changed',
     'contract_set', 'contract_removed', 'emergency_asked', 'emergency_granted', 'emergency_ended',
     'reservations_gave_way', 'token_created', 'token_revoked'));
