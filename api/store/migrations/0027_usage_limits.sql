-- compatible with: 0014
-- What an organization used each day, in sum and by voice agent and app, and the ceilings of that.

-- How much of a call, or of a run, is in the sums of its organization.
alter table call add column counted_ms bigint not null default 0, add column counted_cost numeric not null default 0;
alter table run add column counted_cost numeric not null default 0;

create table usage_day (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization (id) on delete cascade,
  day date not null,
  kind text not null,
  -- The organization itself, a voice agent or an app.
  subject_id uuid not null,
  call_ms bigint not null default 0,
  cost numeric not null default 0,
  -- Something was used of which no price is known: `cost` is the rest.
  has_unknown_cost boolean not null default false,
  constraint usage_day_kind_check check (kind in ('organization', 'agent', 'app')),
  constraint usage_day_subject_key unique (organization_id, day, subject_id)
);

create table usage_limit (
  id uuid primary key,
  organization_id uuid not null references organization (id) on delete cascade,
  kind text not null,
  subject_id uuid not null,
  minutes_per_day numeric,
  cost_per_day numeric,
  at_limit text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  updated_by uuid,
  constraint usage_limit_kind_check check (kind in ('organization', 'agent', 'app')),
  constraint usage_limit_at_limit_check check (at_limit in ('finish', 'end')),
  constraint usage_limit_subject_key unique (organization_id, subject_id)
);

-- Whose people were told that a ceiling was reached, once a day.
create table usage_notice (
  organization_id uuid not null references organization (id) on delete cascade,
  day date not null,
  subject_id uuid not null,
  constraint usage_notice_pkey primary key (organization_id, day, subject_id)
);
