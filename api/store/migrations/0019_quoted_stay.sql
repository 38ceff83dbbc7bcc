-- compatible with: 0014
-- The stay that was quoted last in a call: it alone is what the call may book.

alter table call add column quoted_stay jsonb;
