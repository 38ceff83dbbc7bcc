-- compatible with: 0019
-- Traces: one record of what runs and calls did, and of what others send.

-- Days for which traces are kept; an app's runs and an organization's calls may be kept for less.
alter table project add column trace_retention_days integer not null default 30
  constraint project_trace_retention_days_check check (trace_retention_days between 1 and 400);

-- The days of `span` stand apart from the tables that the code names.
create schema if not exists span_day;

create table trace (
  project_id uuid not null references project on delete cascade,
  id uuid not null,
  organization_id uuid not null,
  app_id uuid references app on delete cascade,
  source text not null,
  source_id text,
  root_span_id text,
  name text not null default '',
  status text not null,
  session_id text,
  user_id text,
  started_at timestamptz not null,
  ended_at timestamptz,
  input json,
  output json,
  model text,
  provider text,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cached_tokens bigint not null default 0,
  cost_usd double precision,
  span_count integer not null default 0,
  error_count integer not null default 0,
  tags text[] not null default '{}',
  metadata json not null default '{}',
  written_at timestamptz not null,
  settled_at timestamptz,
  primary key (project_id, id),
  constraint trace_status_check check (status in ('running', 'succeeded', 'failed', 'canceled'))
);

create index trace_app_id_idx on trace (app_id, started_at desc, id);
create index trace_project_id_idx on trace (project_id, started_at desc, id);
create index trace_session_idx on trace (project_id, session_id, started_at desc) where session_id is not null;
create index trace_user_idx on trace (project_id, user_id, started_at desc) where user_id is not null;
create index trace_unsettled_idx on trace (written_at) where settled_at is null;

-- One partition a day (UTC), made and dropped by the workers. Without foreign keys: a trace that is deleted
-- takes its spans along by statement, and what a cascade leaves behind goes with its day.
create table span (
  project_id uuid not null,
  trace_id uuid not null,
  span_id text not null,
  started_at timestamptz not null,
  parent_span_id text,
  kind text not null,
  name text not null,
  status text not null,
  status_message text,
  duration_us bigint not null,
  model text,
  provider text,
  prompt_tokens bigint,
  completion_tokens bigint,
  cached_tokens bigint,
  cost_usd double precision,
  tool_name text,
  input json,
  output json,
  truncated text[] not null default '{}',
  attributes json not null default '{}',
  events json not null default '[]',
  links json not null default '[]',
  primary key (project_id, trace_id, span_id, started_at),
  constraint span_status_check check (status in ('succeeded', 'failed', 'canceled'))
) partition by range (started_at);

create table trace_session (
  project_id uuid not null references project on delete cascade,
  app_id uuid references app on delete cascade,
  id text not null,
  created_at timestamptz not null,
  last_trace_at timestamptz not null,
  constraint trace_session_key unique nulls not distinct (project_id, app_id, id)
);

create index trace_session_app_id_idx on trace_session (app_id, created_at desc, id);
create index trace_session_project_id_idx on trace_session (project_id, created_at desc, id);
