-- What an emergency may take: at most as many servers as its caller has seen in the preview, and, unless an operator
-- says otherwise, no more than the limits of emergencies.

ALTER TABLE emergencies
    ADD COLUMN max_servers integer CHECK (max_servers > 0),
    ADD COLUMN beyond_limits boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN emergencies.max_servers IS 'the most servers it may take, as its caller confirmed; null: asked before there was such a limit';
COMMENT ON COLUMN emergencies.beyond_limits IS 'whether an operator asked for more than the limits of emergencies and quotas allow';

ALTER TABLE emergencies
    DROP CONSTRAINT emergencies_refusal_check,
    ADD CONSTRAINT emergencies_refusal_check CHECK (refusal IN
        ('no_such_reservation', 'not_guaranteed', 'nothing_fits', 'over_promise', 'over_quota'));
