-- Bookings: stays with the taxes that were answered for them, the rules that it was done by, and every change.

-- The law of a place as stays were booked under it, once for each fingerprint. Never changed.
create table frozen_rules (
  hash text primary key,
  rules json not null
);

create table bookings (
  id uuid primary key,
  -- Order of creation, for paging.
  position bigint not null generated always as identity,
  organization_id uuid not null references organization on delete cascade,
  environment text not null constraint bookings_environment_check check (environment in ('live', 'test')),
  state text not null default 'confirmed' constraint bookings_state_check
    check (state in ('confirmed', 'adjusted', 'partially_refunded', 'refunded', 'voided')),
  external_reference text,
  -- In the row itself, so that there is no moment at which the one exists without the other.
  idempotency_key text,
  request_fingerprint text,
  -- As they stand after the last change.
  request json not null,
  answer json not null,
  ruleset_hash text not null references frozen_rules,
  -- The day that counted as today when it was booked, for facts which the request leaves out.
  calculated_on date not null,
  jurisdiction_code text not null,
  currency text not null,
  stay_date date not null,
  checkout_date date not null,
  total_tax numeric not null,
  total_with_tax numeric not null,
  issuer_id uuid,
  invoice_details json,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint bookings_idempotency_key_key unique (organization_id, environment, idempotency_key),
  constraint bookings_request_fingerprint_check check ((idempotency_key is null) = (request_fingerprint is null))
);
create unique index bookings_position_idx on bookings (organization_id, environment, position);
create index bookings_stay_date_idx on bookings (organization_id, environment, stay_date);
create index bookings_checkout_date_idx on bookings (organization_id, environment, checkout_date);
create index bookings_external_reference_idx on bookings (organization_id, external_reference)
  where external_reference is not null;

-- What happened to a booking, in order. A refund's key stands in the refund itself.
create table booking_changes (
  id bigint primary key generated always as identity,
  booking_id uuid not null references bookings on delete cascade,
  organization_id uuid not null,
  environment text not null,
  kind text not null constraint booking_changes_kind_check check (kind in ('created', 'adjusted', 'refunded', 'voided')),
  reason text,
  -- What was asked for: the change, or the refund's nights or amount.
  request json not null,
  tax_delta json not null,
  -- What goes back to the guest, tax included; null for a change that is no refund.
  refunded_amount numeric,
  idempotency_key text,
  request_fingerprint text,
  user_id uuid references app_user on delete set null,
  api_key_id integer references api_key on delete set null,
  created_at timestamptz not null,
  constraint booking_changes_idempotency_key_key unique (organization_id, environment, idempotency_key),
  constraint booking_changes_request_fingerprint_check
    check ((idempotency_key is null) = (request_fingerprint is null))
);
create index booking_changes_booking_id_idx on booking_changes (booking_id, id);

-- The ledger of tax: what each change added or took away, by rule. A booking's entries sum up to its taxes.
create table tax_entries (
  change_id bigint not null references booking_changes on delete cascade,
  booking_id uuid not null references bookings on delete cascade,
  organization_id uuid not null,
  environment text not null,
  rule_id text not null,
  version integer not null,
  jurisdiction_code text not null,
  authority text not null,
  kind text not null,
  category_code text not null,
  collector text not null,
  currency text not null,
  taxable_amount numeric not null,
  tax_amount numeric not null,
  recorded_at timestamptz not null
);
create index tax_entries_booking_id_idx on tax_entries (booking_id);
create index tax_entries_change_id_idx on tax_entries (change_id);
create index tax_entries_recorded_at_idx on tax_entries (organization_id, environment, recorded_at);

-- History and ledger are added to. What was wrong is put right by another entry.
create function refuse_rewriting_history() returns trigger language plpgsql as $$
begin
  raise exception '% is only ever added to', tg_table_name;
end $$;
create trigger frozen_rules_unchanged before update on frozen_rules
  for each row execute function refuse_rewriting_history();
create trigger tax_entries_unchanged before update on tax_entries
  for each row execute function refuse_rewriting_history();
-- But that a deleted person's or key's id becomes null.
create trigger booking_changes_unchanged before update on booking_changes
  for each row when (
    (old.booking_id, old.kind, old.reason, old.request::text, old.tax_delta::text, old.refunded_amount,
     old.idempotency_key, old.request_fingerprint, old.created_at)
    is distinct from
    (new.booking_id, new.kind, new.reason, new.request::text, new.tax_delta::text, new.refunded_amount,
     new.idempotency_key, new.request_fingerprint, new.created_at)
  ) execute function refuse_rewriting_history();
