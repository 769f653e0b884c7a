-- The bell of jobs rings where a job has another state than before. As a trigger of statements it rang for each
-- that touched no row, too: a worker that found nothing to do rang its own bell, and looked again at once,
-- without end.

DROP TRIGGER jobs_doorbell ON jobs;
CREATE TRIGGER jobs_doorbell_insert AFTER INSERT ON jobs
    FOR EACH ROW EXECUTE FUNCTION ring_for_jobs();
CREATE TRIGGER jobs_doorbell_update AFTER UPDATE OF state ON jobs
    FOR EACH ROW WHEN (NEW.state <> OLD.state) EXECUTE FUNCTION ring_for_jobs();
