-- compatible with: 0014
-- What went wrong in a call, as its client was told; and listeners' sounds, which are no turns.

create table call_event (
  call_id uuid not null references call on delete cascade,
  event_id text not null,
  position bigint generated always as identity,
  at_ms double precision not null,
  type text not null,
  data json not null,
  primary key (call_id, event_id)
);

alter table call_item add column backchannel boolean not null default false;
