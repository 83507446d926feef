-- 0004_effects: what must happen once, whoever runs it again.
-- Why: a charge is neither a row nor an answer; its intention is remembered before
-- the call, its result after it, and what lies between is told apart.
-- Locks: none that anybody could wait for (new tables); validating the constraint
-- of 0003 reads idem.idempotency_keys once and keeps no reader or writer out.
-- Rows rewritten: none. Programs of the version before go on running.

alter table idem.idempotency_keys validate constraint state_columns;

-- What makes the keys that go to others those of this database: a copy that is
-- restored keeps it, on purpose, so that it does not charge anew.
create table idem.instance (
    id  uuid    not null default gen_random_uuid(),
    one boolean not null default true,

    constraint instance_pkey primary key (one),
    constraint instance_one check (one)
);

insert into idem.instance default values;

create table idem.applied_effects (
    created_at     timestamptz not null default clock_timestamp(),
    updated_at     timestamptz not null default clock_timestamp(),
    intended_at    timestamptz,
    call_until     timestamptz,
    keyed_until    timestamptz,
    fence          uuid,
    calls          integer     not null default 0,
    status         text        not null,
    scope          text        collate "C" not null,
    effect_key     text        collate "C" not null,
    input          bytea,
    result         bytea,
    downstream_key text,
    last_error     text,
    cause_door     text,
    cause_scope    text        collate "C",
    cause_key      text        collate "C",
    owner_door     text,
    owner_scope    text        collate "C",
    owner_key      text        collate "C",

    constraint applied_effects_pkey primary key (scope, effect_key),
    constraint status_columns check (
        case status
            when 'started' then result is null and fence is not null and downstream_key is not null
                            and intended_at is not null and call_until is not null
            when 'applied' then result is not null
            when 'unknown' then result is null
            when 'absent' then result is null
            else false
        end
    )
);

-- The story of one request, and what keeps an abandoned claim from being swept.
create index applied_effects_cause on idem.applied_effects (cause_scope, cause_key)
    where cause_scope is not null;
create index applied_effects_owner on idem.applied_effects (owner_scope, owner_key)
    where owner_scope is not null;

-- What an operator looks at and an alert counts: few rows at any time.
create index applied_effects_unsettled on idem.applied_effects (updated_at)
    where status in ('started', 'unknown');

comment on table idem.instance is 'The random id of this database, from which downstream keys are derived.';
comment on table idem.applied_effects is 'Each thing that must happen once, by scope and key, and what came of it. Rows never expire.';
comment on column idem.applied_effects.status is 'started: the intention is committed, the call may be under way. applied: done, with its result. unknown: done or not, to be settled. absent: known not to be done; it may be started again.';
comment on column idem.applied_effects.intended_at is 'When the intention was committed that the calls since then belong to; null for an effect within a transaction.';
comment on column idem.applied_effects.call_until is 'Until when the last call may be under way.';
comment on column idem.applied_effects.keyed_until is 'Until when the other side honours the downstream key; null: it does not.';
comment on column idem.applied_effects.fence is 'The mark of the claim that called last; null for an effect within a transaction.';
comment on column idem.applied_effects.input is 'SHA-256 of what the effect was to do; null if nothing was said.';
comment on column idem.applied_effects.downstream_key is 'The key that every call of this effect sends to the other side.';
comment on column idem.applied_effects.cause_door is 'What it was started by: request (cause_scope and cause_key are the key''s) or task (the queue and the id).';
comment on column idem.applied_effects.owner_door is 'What called last, in the same words: the fence is that claim''s.';

insert into idem.migrations (version, name) values (4, 'effects');
