-- compatible with: 0024
-- Runs and calls that are over, or grew after their end, and are to be written as traces. Rows are made in the
-- transaction of the end, and deleted when the trace is durable. The same one twice is no harm.
create table trace_due (
  id bigint generated always as identity primary key,
  source text not null,
  source_id uuid not null,
  leased_until timestamptz not null default '-infinity'
);

-- What ended before there were traces gets one as well, as far as its record would be kept.
insert into trace_due (source, source_id)
select 'run', id from run where ended_at > now() - interval '30 days' order by ended_at;
insert into trace_due (source, source_id)
select 'call', id from call where ended_at > now() - interval '30 days' order by ended_at;
