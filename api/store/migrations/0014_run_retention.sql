-- compatible with: 0012
-- outside of a transaction
-- Runs are purged app by app, each by its own retention: one that keeps its runs for years is not looked through.

create index concurrently if not exists run_app_id_ended_at_idx on run (app_id, ended_at) where ended_at is not null;
drop index concurrently if exists run_retention_idx;
