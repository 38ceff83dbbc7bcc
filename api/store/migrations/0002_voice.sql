-- Voice agents and their calls. Columns that hold what a customer wrote are json, which keeps the
-- order of fields; nothing searches inside them.

create table voice_agent (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization on delete cascade,
  project_id uuid not null constraint voice_agent_project_id_fkey references project,
  name text not null,
  description text not null default '',
  status text not null default 'draft'
    constraint voice_agent_status_check check (status in ('draft', 'deploying', 'deployed', 'failed', 'archived')),
  config json not null,
  allowed_origins text[] not null default '{}',
  agent_name text,
  deploy_error text,
  deployed_at timestamptz,
  phone_numbers text[] not null default '{}',
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  updated_at timestamptz not null,
  updated_by uuid references app_user on delete set null,
  deleted_at timestamptz,
  constraint voice_agent_archived_check check ((deleted_at is not null) = (status = 'archived'))
);
create index voice_agent_organization_id_idx on voice_agent (organization_id, created_at);
create index voice_agent_project_id_idx on voice_agent (project_id, created_at);

-- From reservation to record. The heartbeat is not indexed, so that beating stays a cheap (HOT) update.
create table call (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  project_id uuid not null references project,
  agent_id uuid not null references voice_agent,
  state text not null constraint call_state_check check (state in ('reserved', 'in_progress', 'ended', 'expired')),
  secret_sha256 text not null,
  protocol text not null,
  input_format json not null,
  output_format json not null,
  client_buffer_ms integer not null,
  variables json not null,
  metadata json not null,
  config_overrides json not null,
  initial_messages json not null,
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  expires_at timestamptz not null,
  gateway_id text,
  started_at timestamptz,
  heartbeat_at timestamptz,
  ended_at timestamptz,
  duration_ms double precision,
  end_reason text,
  error_code text,
  usage json
) with (fillfactor = 80);
create index call_organization_id_idx on call (organization_id, created_at);
create index call_agent_id_idx on call (agent_id, created_at);
create index call_project_id_idx on call (project_id, created_at);
create index call_reserved_idx on call (organization_id, expires_at) where state = 'reserved';
create index call_in_progress_idx on call (id) where state = 'in_progress';

-- What was said; position keeps the order in which items were first reported.
create table call_item (
  call_id uuid not null references call on delete cascade,
  item_id text not null,
  position bigint generated always as identity,
  turn_id text not null,
  role text not null constraint call_item_role_check check (role in ('user', 'agent')),
  text text not null,
  heard_text text not null,
  interrupted boolean not null,
  start_ms double precision not null,
  end_ms double precision not null,
  primary key (call_id, item_id)
);

create table call_turn (
  call_id uuid not null references call on delete cascade,
  turn_id text not null,
  position bigint generated always as identity,
  metrics json not null,
  primary key (call_id, turn_id)
);

-- When a gateway last reported, and since when it has done so without a gap.
create table gateway_heartbeat (
  gateway_id text primary key,
  since timestamptz not null,
  heartbeat_at timestamptz not null
);
