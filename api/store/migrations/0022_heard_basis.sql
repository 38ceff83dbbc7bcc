-- compatible with: 0014
-- How it is known what was heard of what the agent said: the client's marks, its WebSocket stack, or the clock.

alter table call_item add column heard_basis text;
