-- As many pods as can be have a node.
-- @soft_constraint [weight=1000]
CREATE VIEW placed AS
SELECT count(p.node) FROM pods p;
