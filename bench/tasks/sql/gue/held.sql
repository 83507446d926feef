-- A task is held by a row lock, which ends with its worker.
select 0
