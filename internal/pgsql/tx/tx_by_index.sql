-- tx_by_index: has the statements of the transaction that come behind it look rows up by
-- index, and read them in its order, as far as they need. A planner that believes that few
-- rows qualify, of which it knows little when many have come since it looked last, reads
-- and sorts all that there are, for each batch of them again.
-- https://www.postgresql.org/docs/current/runtime-config-query.html
-- Rows: one.
select set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true);
