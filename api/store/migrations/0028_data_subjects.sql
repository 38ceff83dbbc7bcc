-- compatible with: 0027
-- Requests to hand out, or to erase, what is kept of one person.

create table data_subject_request (
  id uuid primary key,
  organization_id uuid not null references organization on delete cascade,
  action text not null,
  identified_by text not null,
  -- Who it is, sealed, until the request is done: a list of who was erased would keep what it was made to remove.
  subject_sealed bytea,
  status text not null,
  result json not null default '[]',
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  ended_at timestamptz,
  constraint data_subject_request_action_check check (action in ('export', 'erase')),
  constraint data_subject_request_identified_by_check check (identified_by in ('user_id', 'phone', 'email')),
  constraint data_subject_request_status_check check (status in ('pending', 'running', 'succeeded', 'failed'))
);

create index data_subject_request_organization_id_idx on data_subject_request (organization_id, created_at);

-- What an export found; deleted with the request's week.
create table data_subject_record (
  request_id uuid not null references data_subject_request on delete cascade,
  position bigint generated always as identity,
  kind text not null,
  record json not null,
  primary key (request_id, position)
);
