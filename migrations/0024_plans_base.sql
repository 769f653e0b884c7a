-- A plan names the version it was made on to be compared with, not to keep it. As a foreign key it waited for whoever
-- held the head of the versions, which for the mover can be seconds, to store what nobody waits for.

ALTER TABLE plans DROP CONSTRAINT plans_base_fkey;
