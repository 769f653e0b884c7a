-- A publication from which servers were skipped is audited again before it is published. What would
-- leave a reservation worse off without the skipped servers is kept back, and says why.

ALTER TABLE target_changes ADD COLUMN kept_because text;
ALTER TABLE target_changes ADD CONSTRAINT target_changes_kept CHECK (kept_because IS NULL OR NOT taken);
COMMENT ON COLUMN target_changes.taken IS 'false: the server kept what it had, because its binding had moved since the snapshot (kept_because is null) or because the audit refused the target without the servers that had moved';
COMMENT ON COLUMN target_changes.kept_because IS 'the rule that the target would have broken without the servers that were skipped; null: it was not kept back';
