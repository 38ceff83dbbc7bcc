-- compatible with: 0014
-- Runs that a call's model started as tools: once for each call of the tool, and cancelled with the call where its agent says so.

create table call_run (
  call_id uuid not null references call on delete cascade,
  tool_call_id text not null,
  run_id uuid not null references run on delete cascade,
  ends_with_call boolean not null,
  primary key (call_id, tool_call_id)
);
create index call_run_run on call_run (run_id);
create index call_run_ending on call_run (call_id) where ends_with_call;

alter table call_tool add column run_id uuid;
