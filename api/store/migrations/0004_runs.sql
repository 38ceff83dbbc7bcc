-- Workflows, apps and their runs. Rows are the truth; the queue is only the dispatcher. What a
-- customer wrote is json (it keeps the order of fields).

create table workflow (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization on delete cascade,
  project_id uuid not null constraint workflow_project_id_fkey references project,
  name text not null,
  description text not null default '',
  latest_version_id uuid,
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  updated_at timestamptz not null,
  updated_by uuid references app_user on delete set null
);
create index workflow_organization_id_idx on workflow (organization_id, created_at);
create index workflow_project_id_idx on workflow (project_id, created_at);

-- Never updated.
create table workflow_version (
  id uuid primary key default gen_random_uuid(),
  workflow_id uuid not null constraint workflow_version_workflow_id_fkey references workflow on delete cascade,
  organization_id uuid not null references organization on delete cascade,
  version integer not null,
  definition json not null,
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  constraint workflow_version_workflow_id_version_key unique (workflow_id, version)
);

-- A vendor's credential. `secret_encrypted` is AES-256-GCM under ENCRYPTION_KEY, never answered.
create table connection (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization on delete cascade,
  project_id uuid not null constraint connection_project_id_fkey references project,
  name text not null,
  provider text not null,
  base_url text,
  secret_encrypted bytea not null,
  last_four text not null,
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  updated_at timestamptz not null,
  updated_by uuid references app_user on delete set null
);
create index connection_project_id_idx on connection (project_id, created_at);

create table app (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization on delete cascade,
  project_id uuid not null constraint app_project_id_fkey references project,
  name text not null,
  description text not null default '',
  -- the app answers at <host_label>.<APP_DOMAIN>
  host_label text not null constraint app_host_label_key unique,
  runtime_id uuid not null default gen_random_uuid(),
  workflow_id uuid not null constraint app_workflow_id_fkey references workflow,
  workflow_version_id uuid not null constraint app_workflow_version_id_fkey references workflow_version,
  access_type text not null default 'private' constraint app_access_type_check check (access_type in ('private', 'public')),
  -- max_concurrent_runs, max_queued_runs, session_policy, run_timeout_s, retention_days, log_io
  policy json not null,
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  updated_at timestamptz not null,
  updated_by uuid references app_user on delete set null
);
create index app_organization_id_idx on app (organization_id, created_at);
create index app_project_id_idx on app (project_id, created_at);

create table run (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  project_id uuid not null references project,
  app_id uuid not null references app on delete cascade,
  workflow_version_id uuid not null references workflow_version,
  status text not null constraint run_status_check
    check (status in ('pending', 'running', 'awaiting_input', 'succeeded', 'failed', 'canceled')),
  -- 'run' for the Runs API, 'invocation' for the root POST
  origin text not null,
  input json not null,
  output json,
  error json,
  usage json,
  metadata json not null default '{}',
  session_id text,
  user_id text,
  trace_id uuid not null,
  idempotency_key text,
  idempotency_hash text,
  timeout_s double precision not null,
  created_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz,
  -- lease of the worker that executes it; epoch fences off one that lost it
  attempt integer not null default 0,
  epoch integer not null default 0,
  generation integer not null default 0,
  lease_until timestamptz,
  worker_id text,
  -- workers that died over it since a node of it last finished
  recoveries integer not null default 0,
  last_event_id integer not null default 0,
  -- time that the run worked; waiting for people and moments does not count against its time-out
  active_ms double precision not null default 0,
  -- when something must happen without anybody's doing: a delay ends, a request expires, a retry is due
  wake_at timestamptz,
  cancel_requested_at timestamptz,
  cancel_reason text,
  cancel_by text
) with (fillfactor = 70);
create unique index run_idempotency_key_idx on run (app_id, idempotency_key) where idempotency_key is not null;
create index run_app_id_idx on run (app_id, created_at);
create index run_session_idx on run (app_id, session_id, created_at) where session_id is not null;
create index run_live_idx on run (app_id, created_at) where status in ('pending', 'running', 'awaiting_input');
create index run_pending_idx on run (created_at) where status = 'pending';
create index run_running_idx on run (lease_until) where status = 'running';
create index run_running_app_id_idx on run (app_id) where status = 'running';
create index run_cancel_requested_idx on run (id)
  where cancel_requested_at is not null and status in ('pending', 'awaiting_input');
create index run_wake_at_idx on run (wake_at) where wake_at is not null;
create index run_retention_idx on run (ended_at) where ended_at is not null;

-- The checkpoint: after a crash only what is not finished here runs again.
create table node_run (
  id uuid primary key,
  run_id uuid not null references run on delete cascade,
  node_id text not null,
  iteration integer not null default 0,
  attempt integer not null default 1,
  status text not null constraint node_run_status_check
    check (status in ('running', 'waiting', 'succeeded', 'skipped', 'failed')),
  inputs json,
  output json,
  error json,
  usage json,
  handle text,
  -- when a delay ends or a retry is due
  wake_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  constraint node_run_run_id_node_id_iteration_key unique (run_id, node_id, iteration)
) with (fillfactor = 70);

-- Inserted only by the lease holder (epoch in the insert's condition) or under the run's row lock.
create table run_event (
  run_id uuid not null references run on delete cascade,
  id integer not null,
  type text not null,
  -- the event's JSON as it is sent, byte for byte
  body text not null,
  created_at timestamptz not null,
  primary key (run_id, id)
);

create table input_request (
  id uuid primary key,
  run_id uuid not null references run on delete cascade,
  node_run_id uuid not null references node_run on delete cascade,
  node_id text not null,
  type text not null constraint input_request_type_check check (type in ('approval_request', 'feedback_request')),
  prompt text not null,
  params json not null,
  editable_params text[] not null,
  params_schema json,
  response_schema json,
  status text not null constraint input_request_status_check check (status in ('pending', 'resolved', 'expired', 'canceled')),
  response json,
  -- the run has gone on with it: its input.resolved is in the log
  taken boolean not null default false,
  on_timeout text not null,
  expires_at timestamptz,
  created_at timestamptz not null,
  resolved_at timestamptz
);
create index input_request_run_id_idx on input_request (run_id);
create index input_request_untaken_idx on input_request (run_id) where status in ('resolved', 'expired') and not taken;
create index input_request_expires_at_idx on input_request (expires_at) where status = 'pending';

-- Claimed by attempted_at before it is sent: at most one attempt, also across a crash.
create table callback (
  run_id uuid not null references run on delete cascade,
  position integer not null,
  url text not null,
  token_encrypted bytea,
  metadata json,
  attempted_at timestamptz,
  outcome text,
  primary key (run_id, position)
);

create table connect_token (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization on delete cascade,
  app_id uuid not null references app on delete cascade,
  user_id text not null,
  secret_sha256 text not null constraint connect_token_secret_sha256_key unique,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index connect_token_expires_at_idx on connect_token (expires_at);
