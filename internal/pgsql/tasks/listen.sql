-- listen: asks for what wake tells, for as long as the connection lives.
-- Rows: none.
listen idem_tasks;
