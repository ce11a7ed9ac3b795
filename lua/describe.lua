-- describe writes what the worker read of an activity: status, window, limit, catalog; and moves the expiry of all keys.
-- KEYS meta stock buyers res pending ledger
-- ARGV embedded status starts_at ends_at limit expires_at catalog
-- Reply:
--    1 RESERVED    written
--   -1 UNOPENED    no meta: nothing is written
-- Invariant: stock, identity, epoch and `recovering` stay as they are.
-- The caller has read the activity from the database, and does so again where it is not sure that its copy is the newest.
if not read_meta().epoch then return UNOPENED end
write_activity(2)
date_keys(ARGV[6])
return RESERVED
