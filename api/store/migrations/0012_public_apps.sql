-- What whoever started a run of a public app without a key may do with it, beyond following it; and who is
-- to answer what a run asks.

alter table app
  add column public_may text[] not null default '{}'
    constraint app_public_may_check check (public_may <@ array['respond', 'cancel']);

alter table input_request
  add column audience text not null default 'staff'
    constraint input_request_audience_check check (audience in ('staff', 'caller'));
