-- listen_cancel: asks to be told when the cancellation of a running task is asked for.
-- Rows: none.
listen idem_cancel;
