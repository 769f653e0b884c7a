-- Hardware types that are not used any more; old versions of promises still refer to them.

ALTER TABLE hardware_types ADD COLUMN removed boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN hardware_types.removed IS 'whether it was removed: it is not offered any more, until it is added or a server of it is racked';
