-- audit_words: every change by hand says who made it, what it was and why. The
-- constraint audit_words refuses others; this finds what came in without it.
-- Rows: one for each broken row: table, row, detail.
select 'idem.audit', id::text, 'a change without actor, action, subject or reason'
from   idem.audit
where  (actor <> '' and action <> '' and scope <> '' and key <> '' and reason <> '') is not true;
