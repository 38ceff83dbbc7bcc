-- compatible with: 0028
-- The span that asked for a run, by the `traceparent` of its request: trace id and span id.

alter table run add column caller_span text;
