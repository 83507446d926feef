-- 0002_audit: who changed what by hand, and what became of an answer's writes.
-- Why: an operator may release a remembered refusal, but nothing that committed;
-- so each row says whether its writes were committed, and each change who made it.
-- Locks: idem.idempotency_keys exclusively, for as long as a catalog entry takes.
-- Requests hold that table while they run, so the lock is waited for at most 4 s,
-- less than any request waits behind it; if it is not to be had the step fails
-- with 55P03 and may be applied again (Migrate does so by itself).
-- Rows rewritten: none. Programs of the version before go on running: they do not
-- name the new column, which stays null in their rows, and null means not known.
-- After it, they do not start again, since the schema is newer.

set local lock_timeout = '4s';

alter table idem.idempotency_keys add column committed boolean;

comment on column idem.idempotency_keys.committed is 'Whether what the request wrote was committed with its answer: true committed, false rolled back, null not known.';

create table idem.audit (
    id     bigint      generated always as identity,
    at     timestamptz not null default clock_timestamp(),
    actor  text        not null,
    action text        not null,
    scope  text        collate "C" not null,
    key    text        collate "C" not null,
    reason text        not null,
    detail jsonb,

    constraint audit_pkey primary key (id),
    constraint audit_words check (actor <> '' and action <> '' and scope <> '' and key <> '' and reason <> '')
);

-- The story of one key. There is one row for each decision of a person, so this
-- costs nothing that anybody could measure.
create index audit_subject on idem.audit (scope, key);

comment on table idem.audit is 'Every change that somebody made by hand, by whom and why. Idem never changes or deletes a row.';
comment on column idem.audit.actor is 'Who did it, in their own words: a user and a machine.';
comment on column idem.audit.action is 'The statement that did it: key_release.';
comment on column idem.audit.scope is 'Scope of what was changed; with key its name. No foreign key: the line outlives its subject.';
comment on column idem.audit.detail is 'What the subject was before, without bodies.';

insert into idem.migrations (version, name) values (2, 'audit');
