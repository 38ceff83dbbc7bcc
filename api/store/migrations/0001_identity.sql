-- Who you are, for both services. Secrets are kept as the SHA-256 of the whole credential, hex.

create table app_user (
  id uuid primary key default gen_random_uuid(),
  email text not null,
  first_name text not null default '',
  last_name text not null default '',
  avatar_url text not null default '',
  password_hash text,
  is_platform_admin boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index app_user_email_key on app_user (lower(email));

create table organization (
  id uuid primary key default gen_random_uuid(),
  name text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table organization_member (
  organization_id uuid not null references organization on delete cascade,
  user_id uuid not null references app_user on delete cascade,
  role text not null constraint organization_member_role_check check (role in ('owner', 'admin', 'member')),
  created_at timestamptz not null default now(),
  primary key (organization_id, user_id)
);
create index organization_member_user_id_idx on organization_member (user_id);

create table project (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization on delete cascade,
  name text not null,
  description text not null default '',
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  updated_at timestamptz not null,
  updated_by uuid references app_user on delete set null,
  -- Archived agents and call records keep pointing at their project.
  deleted_at timestamptz
);
create index project_organization_id_idx on project (organization_id, created_at);

create table project_member (
  project_id uuid not null references project on delete cascade,
  user_id uuid not null references app_user on delete cascade,
  created_at timestamptz not null default now(),
  primary key (project_id, user_id)
);
create index project_member_user_id_idx on project_member (user_id);

-- A token acts for its user within one organization.
create table personal_access_token (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null,
  organization_id uuid not null,
  name text not null,
  secret_sha256 text not null constraint personal_access_token_secret_sha256_key unique,
  prefix text not null,
  last_four text not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- Leaving the organization ends what was given out in its name.
  constraint personal_access_token_member_fkey foreign key (organization_id, user_id)
    references organization_member (organization_id, user_id) on delete cascade
);
create index personal_access_token_member_idx on personal_access_token (organization_id, user_id);
create index personal_access_token_expires_at_idx on personal_access_token (expires_at) where expires_at is not null;

-- project_id is null for a key of the whole organization.
create table access_key (
  id uuid primary key default gen_random_uuid(),
  organization_id uuid not null references organization on delete cascade,
  project_id uuid references project on delete cascade,
  name text not null,
  secret_sha256 text not null constraint access_key_secret_sha256_key unique,
  prefix text not null,
  last_four text not null,
  created_at timestamptz not null,
  created_by uuid references app_user on delete set null,
  expires_at timestamptz,
  revoked_at timestamptz
);
create index access_key_organization_id_idx on access_key (organization_id, created_at);
create index access_key_project_id_idx on access_key (project_id);

create table sign_in_link (
  id uuid primary key default gen_random_uuid(),
  user_id uuid not null references app_user on delete cascade,
  code_sha256 text not null constraint sign_in_link_code_sha256_key unique,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  redeemed_at timestamptz
);
create index sign_in_link_expires_at_idx on sign_in_link (expires_at);
