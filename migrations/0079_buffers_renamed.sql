-- A shared buffer that is named after its hardware type follows the type's name, by a promise under the new name.

CREATE OR REPLACE FUNCTION check_promise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.reservation <> OLD.reservation AND OLD.kind <> 'shared_buffer' OR NEW.promise_id < OLD.promise_id THEN
        RAISE EXCEPTION 'reservation %: neither goes back to an older promise nor changes its name',
            OLD.reservation USING ERRCODE = 'check_violation', CONSTRAINT = 'reservations_promise';
    END IF;
    RETURN NEW;
END $$;
