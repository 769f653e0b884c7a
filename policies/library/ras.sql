-- RAS (SOSP'21), section 3.5.3: expressions 1 to 7. Reservations state their spread limits, msb_alpha and
-- rack_alpha.

-- V x: what each available server is worth to the reservation that has it.
CREATE VIEW held AS
SELECT s.server_id, s.rack, s.msb, s.datacenter, v.reservation_id, v.rru
FROM servers s
JOIN rru v ON v.reservation_id = s.target_reservation AND v.hardware_type = s.hardware_type
WHERE s.available;

-- Expression 1: servers that leave their holder.
-- @soft_constraint
CREATE VIEW stability AS
SELECT -sum(CASE WHEN s.in_use THEN w.move_in_use ELSE w.move_idle END)
FROM servers s CROSS JOIN weights w
WHERE s.available AND s.holder IS NOT NULL AND s.target_reservation IS DISTINCT FROM s.holder;

CREATE VIEW rack_share AS
SELECT r.reservation_id, k.rack, r.rack_alpha * r.capacity_rru AS most,
       coalesce((SELECT sum(h.rru) FROM held h
                 WHERE h.reservation_id = r.reservation_id AND h.rack = k.rack), 0) AS rru
FROM reservations r CROSS JOIN racks k
WHERE r.kind = 'guaranteed';

-- Expression 2: what exceeds alpha^K C on a rack.
-- @soft_constraint
CREATE VIEW rack_spread AS
SELECT -sum(w.spread_beta * greatest(0, k.rru - k.most)) FROM rack_share k CROSS JOIN weights w;

CREATE VIEW msb_share AS
SELECT r.reservation_id, m.msb, m.datacenter, r.msb_alpha * r.capacity_rru AS most,
       coalesce((SELECT sum(h.rru) FROM held h
                 WHERE h.reservation_id = r.reservation_id AND h.msb = m.msb), 0) AS rru
FROM reservations r CROSS JOIN msbs m
WHERE r.kind = 'guaranteed';

-- Expression 3: what exceeds alpha^F C in an MSB.
-- @soft_constraint
CREATE VIEW msb_spread AS
SELECT -sum(w.spread_beta * greatest(0, m.rru - m.most)) FROM msb_share m CROSS JOIN weights w;

-- What each reservation has, and the embedded buffer: its largest MSB share.
CREATE VIEW totals AS
SELECT r.reservation_id, r.capacity_rru, sum(m.rru) AS rru,
       CASE WHEN r.msb_buffer THEN max(m.rru) ELSE 0 END AS buffer
FROM reservations r JOIN msb_share m ON m.reservation_id = r.reservation_id
GROUP BY r.reservation_id, r.capacity_rru, r.msb_buffer;

-- Expression 4: the embedded buffers.
-- @soft_constraint
CREATE VIEW buffers AS
SELECT -sum(w.buffer_tau * t.buffer) FROM totals t CROSS JOIN weights w;

-- Expression 5, one reservation for each server, is the column itself.

-- Expression 6: the capacity, after the loss of any MSB.
-- @hard_constraint
CREATE VIEW capacity AS
SELECT t.reservation_id FROM totals t WHERE t.rru - t.buffer >= t.capacity_rru;

CREATE VIEW wanted AS
SELECT r.reservation_id, d.datacenter, r.capacity_rru, r.affinity_theta, coalesce(a.share, 0) AS share
FROM (SELECT DISTINCT reservation_id FROM affinity) has
JOIN reservations r ON r.reservation_id = has.reservation_id
CROSS JOIN datacenters d
LEFT JOIN affinity a ON a.reservation_id = r.reservation_id AND a.datacenter = d.datacenter;

CREATE VIEW datacenter_share AS
SELECT m.reservation_id, m.datacenter, sum(m.rru) AS rru
FROM msb_share m GROUP BY m.reservation_id, m.datacenter;

-- Expression 7: the share of each datacenter; the embedded buffer comes on top where a share is wanted.
-- @hard_constraint
CREATE VIEW network_affinity AS
SELECT a.reservation_id, a.datacenter
FROM wanted a
JOIN datacenter_share d ON d.reservation_id = a.reservation_id AND d.datacenter = a.datacenter
JOIN totals t ON t.reservation_id = a.reservation_id
WHERE d.rru >= (a.share - a.affinity_theta) * a.capacity_rru
  AND d.rru - CASE WHEN a.share > 0 THEN t.buffer ELSE 0 END
      <= (a.share + a.affinity_theta) * a.capacity_rru;
