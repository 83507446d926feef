-- numbers_begin: what holds for the statements that read numbers, to the end of their
-- transaction: a table is never read whole, however little the planner knows of it, and none
-- takes longer than this.
-- $1 milliseconds
-- Rows: one, of no interest. Reads no table.
select set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('statement_timeout', $1::text, true);
