-- Invoices: further sellers, the number series, and what was issued.

-- Sellers beside the organization itself, with the fields of its legal profile.
create table issuers (
  id uuid primary key default gen_random_uuid(),
  -- Order of creation, for paging.
  position bigint not null generated always as identity,
  organization_id uuid not null references organization on delete cascade,
  legal_profile json not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- No new bookings from then on. What was booked goes on to be invoiced.
  archived_at timestamptz,
  constraint issuers_organization_id_key unique (organization_id, id)
);
create index issuers_position_idx on issuers (organization_id, position);

-- An issuer is one of the booking's own organization.
alter table bookings add constraint bookings_issuer_id_fkey
  foreign key (organization_id, issuer_id) references issuers (organization_id, id);
create index bookings_issuer_id_idx on bookings (issuer_id) where issuer_id is not null;

-- The last number given in each series. Its row is locked until the invoice that took the number
-- is committed, so that a number is never skipped.
create table invoice_series (
  organization_id uuid not null references organization on delete cascade,
  -- Null: the organization itself sells.
  issuer_id uuid,
  environment text not null constraint invoice_series_environment_check check (environment in ('live', 'test')),
  type text not null constraint invoice_series_type_check check (type in ('invoice', 'credit_note')),
  series text not null,
  fiscal_year integer not null,
  last_sequence integer not null,
  -- Numbers and dates go the same way, whatever the clocks of two processes say.
  last_issue_date date not null,
  constraint invoice_series_key
    unique nulls not distinct (organization_id, issuer_id, environment, type, series, fiscal_year),
  constraint invoice_series_issuer_id_fkey foreign key (organization_id, issuer_id) references issuers (organization_id, id)
);

create table invoices (
  id uuid primary key default gen_random_uuid(),
  -- Order of issue, for paging.
  position bigint not null generated always as identity,
  organization_id uuid not null references organization on delete cascade,
  environment text not null constraint invoices_environment_check check (environment in ('live', 'test')),
  booking_id uuid not null references bookings on delete cascade,
  issuer_id uuid,
  type text not null constraint invoices_type_check check (type in ('invoice', 'credit_note')),
  state text not null constraint invoices_state_check check (state in ('issued', 'credited')),
  series text not null,
  fiscal_year integer not null,
  sequence integer not null,
  number text not null,
  issue_date date not null,
  currency text not null,
  total_with_vat numeric not null,
  -- What was issued, whole: nothing that changes later shows on it.
  document json not null,
  -- The invoice that a credit note takes back.
  credited_invoice_id uuid constraint invoices_credited_invoice_id_key unique references invoices on delete cascade,
  user_id uuid references app_user on delete set null,
  api_key_id integer references api_key on delete set null,
  created_at timestamptz not null,
  credited_at timestamptz,
  constraint invoices_sequence_key
    unique nulls not distinct (organization_id, issuer_id, environment, type, series, fiscal_year, sequence),
  constraint invoices_issuer_id_fkey foreign key (organization_id, issuer_id) references issuers (organization_id, id),
  constraint invoices_credit_note_check check (
    (type = 'credit_note') = (credited_invoice_id is not null) and not (type = 'credit_note' and state = 'credited')
  ),
  constraint invoices_credited_at_check check ((state = 'credited') = (credited_at is not null))
);
-- The live one, which freezes its booking.
create unique index invoices_live_key on invoices (booking_id) where type = 'invoice' and state = 'issued';
create index invoices_booking_id_idx on invoices (booking_id, position);
create index invoices_position_idx on invoices (organization_id, environment, position);

-- What was issued stays as it is, but that it is credited once.
create function refuse_rewriting_invoice() returns trigger language plpgsql as $$
begin
  raise exception 'an issued invoice is never rewritten';
end $$;
create trigger invoices_unchanged before update on invoices
  for each row when (
    (old.id, old.organization_id, old.environment, old.booking_id, old.issuer_id, old.type, old.series, old.fiscal_year,
     old.sequence, old.number, old.issue_date, old.currency, old.total_with_vat, old.document::text,
     old.credited_invoice_id, old.created_at)
    is distinct from
    (new.id, new.organization_id, new.environment, new.booking_id, new.issuer_id, new.type, new.series, new.fiscal_year,
     new.sequence, new.number, new.issue_date, new.currency, new.total_with_vat, new.document::text,
     new.credited_invoice_id, new.created_at)
    or (old.state = 'credited' and new.state <> 'credited')
  ) execute function refuse_rewriting_invoice();
