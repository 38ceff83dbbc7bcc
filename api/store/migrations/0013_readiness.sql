-- One row, written now and then: whether Postgres still commits.
create table readiness_probe (
  is_only boolean primary key default true check (is_only),
  written_at timestamptz not null
);

-- The request log is purged by age.
create index request_log_created_at_idx on request_log using brin (created_at);
