-- compatible with: 0014
-- Tools that the model of a call called, and what came of them.

create table call_tool (
  call_id uuid not null references call on delete cascade,
  tool_call_id text not null,
  position bigint generated always as identity,
  name text not null,
  source text not null,
  state text not null,
  task_id text,
  arguments json,
  result text,
  error text,
  started_ms double precision not null,
  duration_ms double precision,
  primary key (call_id, tool_call_id)
);
