-- Accounts: passwords and sessions, one-time tokens, invitations, API keys, and what was asked with them.

alter table app_user
  add column email_verified_at timestamptz,
  -- Sessions carry it; raising it ends them all.
  add column token_version integer not null default 0;
-- Whoever is here already was made by a first start, with an address that takes no mail.
update app_user set email_verified_at = created_at;

alter table organization
  add column api_access_enabled boolean not null default false,
  -- Seller fields of invoices, as the interface names them; absent ones are not set.
  add column legal_profile json not null default '{}';

-- Sent by mail, good once. Only the SHA-256 is kept, hex.
create table account_token (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references app_user on delete cascade,
  purpose text not null constraint account_token_purpose_check check (purpose in ('verify_email', 'reset_password')),
  token_sha256 text not null constraint account_token_sha256_key unique,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index account_token_user_id_idx on account_token (user_id, purpose);
create index account_token_expires_at_idx on account_token (expires_at);

create table invitation (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization on delete cascade,
  email text not null,
  role text not null constraint invitation_role_check check (role in ('admin', 'member')),
  -- Null until the mail with the token is written.
  token_sha256 text constraint invitation_token_sha256_key unique,
  invited_by uuid references app_user on delete set null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  accepted_at timestamptz,
  accepted_by uuid references app_user on delete set null,
  revoked_at timestamptz
);
create unique index invitation_pending_key on invitation (organization_id, lower(email))
  where accepted_at is null and revoked_at is null;

-- Sign-in attempts in the current window of each key: an address, or an address and an account.
create table sign_in_attempt (
  key text primary key,
  attempts integer not null,
  window_ends_at timestamptz not null
);
create index sign_in_attempt_window_ends_at_idx on sign_in_attempt (window_ends_at);

create table api_key (
  id integer primary key generated always as identity,
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  environment text not null constraint api_key_environment_check check (environment in ('live', 'test')),
  secret_sha256 text not null constraint api_key_secret_sha256_key unique,
  prefix text not null,
  last_four text not null,
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  last_used_at timestamptz,
  revoked_at timestamptz
);
create index api_key_organization_id_idx on api_key (organization_id, id);

-- Billable requests. `payload` is redacted before it gets here.
create table request_log (
  id bigint primary key generated always as identity,
  organization_id uuid not null references organization on delete cascade,
  method text not null,
  -- With parameters by name, and as it was asked.
  endpoint text not null,
  path text not null,
  status integer not null,
  duration_ms integer not null,
  user_id uuid references app_user on delete set null,
  api_key_id integer references api_key on delete set null,
  payload json not null,
  created_at timestamptz not null
);
create index request_log_organization_id_idx on request_log (organization_id, id desc);
