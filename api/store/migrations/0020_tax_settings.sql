-- compatible with: 0014
-- What an organization asks of every booking unless the booking says otherwise.

alter table organization add column tax_settings jsonb not null default '{}';
