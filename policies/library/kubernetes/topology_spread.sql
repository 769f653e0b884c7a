-- Even spread: numbers of an app's pods in the values of a label differ by at most max_skew.
CREATE VIEW pods_by_value AS
SELECT s.app, s.key, s.max_skew, v.value,
       (SELECT count(*)
        FROM pods p JOIN node_labels l ON l.node = p.node
        WHERE p.app = s.app AND l.key = s.key AND l.value = v.value) AS pods
FROM spreads s
JOIN (SELECT DISTINCT key, value FROM node_labels) v ON v.key = s.key;

-- @hard_constraint
CREATE VIEW topology_spread AS
SELECT app, key
FROM pods_by_value
GROUP BY app, key, max_skew
HAVING max(pods) - min(pods) <= max_skew;
