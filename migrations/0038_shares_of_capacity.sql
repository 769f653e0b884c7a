-- Datacenter shares are of the capacity now, with the embedded buffer apart. Shares that were stored before
-- counted the buffer, so those of a reservation that has one may add up to more than 1. They are kept in
-- proportion, as parts of 1: what snapshots of version 1 are read as, too. It is the one time that rows of
-- a promise change.
ALTER TABLE affinities DISABLE TRIGGER affinities_append_only;
UPDATE affinities a SET share = a.share / s.total
    FROM (SELECT promise_id, sum(share) AS total FROM affinities GROUP BY promise_id
        HAVING sum(share) > 1.000000001) s
    WHERE a.promise_id = s.promise_id;
ALTER TABLE affinities ENABLE TRIGGER affinities_append_only;
COMMENT ON COLUMN affinities.share IS 'the share of the capacity, 0 to 1, the embedded buffer apart, 1 together at most';
