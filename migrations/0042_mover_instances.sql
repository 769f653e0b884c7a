-- Which process acts as the mover. A name is for people, and two processes may have the same; an instance
-- is an id that a process makes up when it starts, so no two have the same.
ALTER TABLE mover ADD COLUMN instance uuid;
COMMENT ON COLUMN mover.instance IS 'the process that acts: an id it made up when it started; null: none ever did';
COMMENT ON COLUMN mover.holder IS 'its name, for people';
COMMENT ON COLUMN mover.epoch IS 'counts the instances that acted: what one of an earlier epoch writes is refused, and hosts refuse its orders';

-- A transaction of the mover that acts holds this row FOR KEY SHARE until it ends. This index makes the epoch a
-- key: taking over, which changes it, waits for such transactions; renewing the lease, which does not, does not wait.
-- Without it a decision that takes longer than the lease would lose it.
CREATE UNIQUE INDEX mover_by_epoch ON mover (epoch);

-- The epoch only grows, and with every instance that takes over. It may be raised by hand: after an older backup
-- was restored, hosts have seen later epochs than the database.
CREATE OR REPLACE FUNCTION check_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.epoch < OLD.epoch
        OR (NEW.instance IS DISTINCT FROM OLD.instance AND NEW.epoch = OLD.epoch)
    THEN
        RAISE EXCEPTION 'the epoch of the mover grows with every instance that takes over'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'mover_epoch';
    END IF;
    RETURN NEW;
END $$;
