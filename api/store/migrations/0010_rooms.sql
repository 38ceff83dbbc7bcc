-- Calls in LiveKit rooms, draft sessions, and the webhooks that were heard already.

alter table call
  add column transport text not null default 'websocket'
    constraint call_transport_check check (transport in ('websocket', 'room')),
  add column room_name text,
  -- The configuration of a draft session, which has no agent behind it.
  add column inline_config json,
  alter column agent_id drop not null,
  add constraint call_config_check check ((agent_id is null) = (inline_config is not null)),
  add constraint call_room_check check ((room_name is not null) = (transport = 'room'));
create unique index call_room_name_key on call (room_name) where room_name is not null;

-- LiveKit delivers a webhook again until it is answered; its id tells.
create table livekit_webhook (
  id text primary key,
  received_at timestamptz not null
);
create index livekit_webhook_received_at_idx on livekit_webhook (received_at);
