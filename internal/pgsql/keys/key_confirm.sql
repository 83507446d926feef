-- key_confirm: writes a row again as it is, so that its COMMIT waits for the
-- standbys that an earlier COMMIT of the row may not have waited for: log is
-- sent in order. Without synchronous standbys nothing is written.
-- $1 scope  $2 key  $3 fence
-- Rows: 1 = written; 0 = there is nothing to wait for.
update idem.idempotency_keys set fence = fence
where  scope = $1 and key = $2 and fence = $3
and    current_setting('synchronous_standby_names') <> ''
and    set_config('synchronous_commit',
                  case current_setting('synchronous_commit')
                       when 'remote_apply' then 'remote_apply' else 'on' end, true) is not null;
