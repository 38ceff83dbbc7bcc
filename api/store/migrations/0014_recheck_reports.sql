-- What booked stays would be taxed by another day's law: reports that change nothing.

create table recheck_reports (
  id uuid primary key,
  -- Order of creation, for paging.
  position bigint not null generated always as identity,
  organization_id uuid not null references organization on delete cascade,
  environment text not null constraint recheck_reports_environment_check check (environment in ('live', 'test')),
  -- The night whose job made it; null for one that somebody asked for.
  night date,
  stay_from date,
  stay_to date,
  -- Bookings that were looked at.
  bookings integer not null,
  created_at timestamptz not null,
  constraint recheck_reports_night_key unique (organization_id, environment, night)
);
create index recheck_reports_position_idx on recheck_reports (organization_id, environment, position);

create table recheck_rows (
  report_id uuid not null references recheck_reports on delete cascade,
  position integer not null,
  booking_id uuid not null references bookings on delete cascade,
  row json not null,
  primary key (report_id, position)
);
create index recheck_rows_booking_id_idx on recheck_rows (booking_id);
