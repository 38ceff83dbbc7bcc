-- compatible with: 0014
-- Values of the headers of tools, sealed under the row's id; the configuration keeps where they are, masked.

alter table voice_agent add column header_secrets bytea;
alter table call add column header_secrets bytea;
