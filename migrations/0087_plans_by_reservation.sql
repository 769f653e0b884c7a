-- The history of a reservation finds the applied plans that concern it.

CREATE INDEX audit_trail_plans_by_reservation ON audit_trail USING gin ((detail -> 'reservations'))
    WHERE action = 'plan_applied';
