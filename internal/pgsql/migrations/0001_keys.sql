-- 0001_keys: the schema, its list of migrations, and what requests remember.
-- Why: the first door. Locks: none that anybody could wait for (new tables).
-- Rows rewritten: none. Programs of the version before: there is none.

create schema if not exists idem;

create table idem.migrations (
    version    integer     not null,
    name       text        not null,
    applied_at timestamptz not null default clock_timestamp(),
    constraint migrations_pkey primary key (version)
);

comment on table idem.migrations is 'Which migrations of Idem this database has.';

-- PostgreSQL reads every CHECK anew for each statement, and seven of them were
-- half of what an insert cost; so the schema refuses what no state allows, and
-- idem check looks for the rest. Wide columns come last and fixed ones by falling
-- alignment, so that a row carries no padding: there is one row per intent.
create table idem.idempotency_keys (
    created_at          timestamptz not null default clock_timestamp(),
    expires_at          timestamptz not null,
    tombstone_until     timestamptz,
    fence               uuid        not null,
    fingerprint_version smallint    not null,
    response_status     smallint,
    state               text        not null,
    scope               text        collate "C" not null,
    key                 text        collate "C" not null,
    fingerprint         bytea       not null,
    response_headers    bytea[],
    response_body       bytea,
    reference           text,

    constraint idempotency_keys_pkey primary key (scope, key),
    constraint state_columns check (
        case state
            when 'answered' then response_status is not null and response_headers is not null
                             and (response_body is null) <> (reference is null)
            when 'withheld' then response_status is not null and response_headers is null
                             and response_body is null and reference is null
            when 'unknown' then response_status is null and response_headers is null
                            and response_body is null and reference is null and tombstone_until is null
            when 'tombstone' then response_status is null and response_headers is null
                              and response_body is null and reference is null and tombstone_until is null
            else false
        end
    )
);

-- Finding what has expired costs an insert next to nothing this way: rows are
-- appended in about the order in which they expire.
create index idempotency_keys_expires_at on idem.idempotency_keys
    using brin (expires_at) with (pages_per_range = 32, autosummarize = on);

comment on table idem.idempotency_keys is 'What each request was told, by scope and key. One row per intent.';
comment on column idem.idempotency_keys.scope is 'Whom the key belongs to.';
comment on column idem.idempotency_keys.key is 'The client''s token of intent.';
comment on column idem.idempotency_keys.state is 'answered: replayed until expires_at. withheld: carried out, the answer was too large to store. unknown: an operator must settle it. tombstone: the answer''s time is over, the bare key is remembered.';
comment on column idem.idempotency_keys.fence is 'The mark of the claim that wrote the row.';
comment on column idem.idempotency_keys.fingerprint is 'SHA-256 of what makes the request the same.';
comment on column idem.idempotency_keys.fingerprint_version is '1 raw, 2 canonical JSON, 3 the program''s own function.';
comment on column idem.idempotency_keys.response_headers is 'Replayed header lines: name, value, name, value, in order.';
comment on column idem.idempotency_keys.expires_at is 'When this row''s state is over, by this database''s clock.';
comment on column idem.idempotency_keys.tombstone_until is 'Until when the bare key outlives the answer.';

insert into idem.migrations (version, name) values (1, 'keys');
