-- compatible with: 0014
-- outside of a transaction
-- Runs are purged app by app, each by its own retention: one that keeps its runs for years is not looked through.

-- One that was cut off halfway is there, and not valid.
drop index concurrently if exists run_app_id_ended_at_idx;
create index concurrently run_app_id_ended_at_idx on run (app_id, ended_at) where ended_at is not null;
drop index concurrently if exists run_retention_idx;
