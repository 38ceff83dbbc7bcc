-- Nodes inside of a node: an item of a map each (`iteration`), or a subworkflow's. `parent_id` is the
-- node run that they are inside of. The constraint keeps its name: workers of before still name it.

alter table node_run
  add column parent_id uuid,
  drop constraint node_run_run_id_node_id_iteration_key,
  add constraint node_run_run_id_node_id_iteration_key
    unique nulls not distinct (run_id, parent_id, iteration, node_id);

-- A version that another one has as a subworkflow stays as long as that one does.
create table workflow_use (
  version_id uuid not null references workflow_version on delete cascade,
  uses_version_id uuid not null constraint workflow_use_uses_version_id_fkey references workflow_version,
  primary key (version_id, uses_version_id)
);
create index workflow_use_uses_version_id_idx on workflow_use (uses_version_id);

-- A pending run that was refused: 'place' where its app runs as many as it may, 'session' where an
-- earlier run of its session is under way. Who ends a run wakes one of these.
alter table run
  add column waits_for text constraint run_waits_for_check check (waits_for in ('place', 'session'));
create index run_waits_for_idx on run (app_id, created_at) where status = 'pending' and waits_for is not null;
