-- compatible with: 0014
-- How long an organization keeps what was said in its calls.

alter table organization
  add column call_retention_days integer not null default 400
  constraint organization_call_retention_days_check check (call_retention_days between 1 and 3650);
