-- The demo app of the first start. Null where it has not been made yet, and once it was deleted.

alter table bootstrap add column app_id uuid references app on delete set null;
