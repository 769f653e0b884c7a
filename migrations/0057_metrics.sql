-- What monitoring counts over and over is found without reading what was granted or bound.
CREATE INDEX capacity_requests_refused ON capacity_requests (request_id) WHERE state = 'refused';
CREATE INDEX moves_failed ON moves (origin, in_use, reason) WHERE state IN ('failed', 'expired');
