-- What the first standalone start made, so that every later start finds it again. One row at most.

create table bootstrap (
  is_only boolean primary key default true constraint bootstrap_is_only_check check (is_only),
  organization_id uuid not null references organization,
  owner_id uuid not null references app_user,
  admin_id uuid not null references app_user,
  project_id uuid not null references project,
  voice_agent_id uuid not null references voice_agent,
  echo_agent_id uuid not null references voice_agent,
  created_at timestamptz not null
);
