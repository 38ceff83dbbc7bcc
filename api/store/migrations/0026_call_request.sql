-- compatible with: 0025
-- Requests of a call to its models: who answered, what it took and what it cost.

create table call_request (
  call_id uuid not null references call on delete cascade,
  request_id text not null,
  position bigint generated always as identity,
  request json not null,
  primary key (call_id, request_id)
);
