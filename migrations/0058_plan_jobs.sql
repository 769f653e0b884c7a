-- Plans as jobs: what the portal would make wait, and what is large, is planned by workers. Such a job is deleted once
-- its answer was handed out or is not waited for any more.
ALTER TABLE jobs DROP CONSTRAINT jobs_kind_check;
ALTER TABLE jobs ADD CONSTRAINT jobs_kind_check CHECK (kind IN ('solve', 'replay', 'plan'));
COMMENT ON COLUMN jobs.kind IS 'solve, replay or plan';
