-- Addresses from which somebody has signed in: where an account is guessed at from many addresses,
-- its own people are not kept waiting. An IPv6 address stands here by its /64.

create table sign_in_address (
  user_id uuid not null constraint sign_in_address_user_id_fkey references app_user on delete cascade,
  address text not null,
  last_at timestamptz not null,
  constraint sign_in_address_pkey primary key (user_id, address)
);

create index sign_in_address_last_at_idx on sign_in_address (last_at);
