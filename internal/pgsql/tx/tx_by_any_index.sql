-- tx_by_any_index: as tx_by_index, for an index that needs a bitmap.
-- https://www.postgresql.org/docs/current/runtime-config-query.html
-- Rows: one.
select set_config('enable_seqscan', 'off', true),
       set_config('jit', 'off', true);
