-- Printed from the migrated database by `npm run schema`: for readers. Above each table stands the room that writes it.

-- api/identity
create table access_key (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  project_id uuid,
  name text not null,
  secret_sha256 text not null,
  prefix text not null,
  last_four text not null,
  created_at timestamp with time zone not null,
  created_by uuid,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint access_key_pkey PRIMARY KEY (id),
  constraint access_key_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint access_key_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint access_key_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE,
  constraint access_key_secret_sha256_key UNIQUE (secret_sha256)
);
CREATE INDEX access_key_organization_id_idx ON access_key USING btree (organization_id, created_at);
CREATE INDEX access_key_project_id_idx ON access_key USING btree (project_id);

-- api/accounts
create table account_token (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  purpose text not null,
  token_sha256 text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint account_token_pkey PRIMARY KEY (id),
  constraint account_token_purpose_check CHECK ((purpose = ANY (ARRAY['verify_email'::text, 'reset_password'::text]))),
  constraint account_token_sha256_key UNIQUE (token_sha256),
  constraint account_token_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE
);
CREATE INDEX account_token_expires_at_idx ON account_token USING btree (expires_at);
CREATE INDEX account_token_user_id_idx ON account_token USING btree (user_id, purpose);

-- api/identity
create table api_key (
  id integer not null generated always as identity,
  organization_id uuid not null,
  name text not null,
  environment text not null,
  secret_sha256 text not null,
  prefix text not null,
  last_four text not null,
  created_at timestamp with time zone not null,
  created_by uuid,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint api_key_pkey PRIMARY KEY (id),
  constraint api_key_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint api_key_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint api_key_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint api_key_secret_sha256_key UNIQUE (secret_sha256)
);
CREATE INDEX api_key_organization_id_idx ON api_key USING btree (organization_id, id);

-- api/apps
create table app (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  project_id uuid not null,
  name text not null,
  description text not null default ''::text,
  host_label text not null,
  runtime_id uuid not null default gen_random_uuid(),
  workflow_id uuid not null,
  workflow_version_id uuid not null,
  access_type text not null default 'private'::text,
  policy json not null,
  created_at timestamp with time zone not null,
  created_by uuid,
  updated_at timestamp with time zone not null,
  updated_by uuid,
  public_may text[] not null default '{}'::text[],
  constraint app_pkey PRIMARY KEY (id),
  constraint app_access_type_check CHECK ((access_type = ANY (ARRAY['private'::text, 'public'::text]))),
  constraint app_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint app_host_label_key UNIQUE (host_label),
  constraint app_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint app_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id),
  constraint app_public_may_check CHECK ((public_may <@ ARRAY['respond'::text, 'cancel'::text])),
  constraint app_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint app_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES workflow(id),
  constraint app_workflow_version_id_fkey FOREIGN KEY (workflow_version_id) REFERENCES workflow_version(id)
);
CREATE INDEX app_organization_id_idx ON app USING btree (organization_id, created_at);
CREATE INDEX app_project_id_idx ON app USING btree (project_id, created_at);

-- api/accounts
create table app_user (
  id uuid not null default gen_random_uuid(),
  email text not null,
  first_name text not null default ''::text,
  last_name text not null default ''::text,
  avatar_url text not null default ''::text,
  password_hash text,
  is_platform_admin boolean not null default false,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  email_verified_at timestamp with time zone,
  token_version integer not null default 0,
  constraint app_user_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX app_user_email_key ON app_user USING btree (lower(email));

-- api/tax
create table booking_changes (
  id bigint not null generated always as identity,
  booking_id uuid not null,
  organization_id uuid not null,
  environment text not null,
  kind text not null,
  reason text,
  request json not null,
  tax_delta json not null,
  refunded_amount numeric,
  idempotency_key text,
  request_fingerprint text,
  user_id uuid,
  api_key_id integer,
  created_at timestamp with time zone not null,
  constraint booking_changes_pkey PRIMARY KEY (id),
  constraint booking_changes_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_key(id) ON DELETE SET NULL,
  constraint booking_changes_booking_id_fkey FOREIGN KEY (booking_id) REFERENCES bookings(id) ON DELETE CASCADE,
  constraint booking_changes_idempotency_key_key UNIQUE (organization_id, environment, idempotency_key),
  constraint booking_changes_kind_check CHECK ((kind = ANY (ARRAY['created'::text, 'adjusted'::text, 'refunded'::text, 'voided'::text]))),
  constraint booking_changes_request_fingerprint_check CHECK (((idempotency_key IS NULL) = (request_fingerprint IS NULL))),
  constraint booking_changes_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE SET NULL
);
CREATE INDEX booking_changes_booking_id_idx ON booking_changes USING btree (booking_id, id);
CREATE TRIGGER booking_changes_unchanged BEFORE UPDATE ON booking_changes FOR EACH ROW WHEN ((((((((((old.booking_id IS DISTINCT FROM new.booking_id) OR (old.kind IS DISTINCT FROM new.kind)) OR (old.reason IS DISTINCT FROM new.reason)) OR ((old.request)::text IS DISTINCT FROM (new.request)::text)) OR ((old.tax_delta)::text IS DISTINCT FROM (new.tax_delta)::text)) OR (old.refunded_amount IS DISTINCT FROM new.refunded_amount)) OR (old.idempotency_key IS DISTINCT FROM new.idempotency_key)) OR (old.request_fingerprint IS DISTINCT FROM new.request_fingerprint)) OR (old.created_at IS DISTINCT FROM new.created_at))) EXECUTE FUNCTION refuse_rewriting_history();

-- api/tax
create table bookings (
  id uuid not null,
  position bigint not null generated always as identity,
  organization_id uuid not null,
  environment text not null,
  state text not null default 'confirmed'::text,
  external_reference text,
  idempotency_key text,
  request_fingerprint text,
  request json not null,
  answer json not null,
  ruleset_hash text not null,
  calculated_on date not null,
  jurisdiction_code text not null,
  currency text not null,
  stay_date date not null,
  checkout_date date not null,
  total_tax numeric not null,
  total_with_tax numeric not null,
  issuer_id uuid,
  invoice_details json,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint bookings_pkey PRIMARY KEY (id),
  constraint bookings_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint bookings_idempotency_key_key UNIQUE (organization_id, environment, idempotency_key),
  constraint bookings_issuer_id_fkey FOREIGN KEY (organization_id, issuer_id) REFERENCES issuers(organization_id, id),
  constraint bookings_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint bookings_request_fingerprint_check CHECK (((idempotency_key IS NULL) = (request_fingerprint IS NULL))),
  constraint bookings_ruleset_hash_fkey FOREIGN KEY (ruleset_hash) REFERENCES frozen_rules(hash),
  constraint bookings_state_check CHECK ((state = ANY (ARRAY['confirmed'::text, 'adjusted'::text, 'partially_refunded'::text, 'refunded'::text, 'voided'::text])))
);
CREATE INDEX bookings_checkout_date_idx ON bookings USING btree (organization_id, environment, checkout_date);
CREATE INDEX bookings_external_reference_idx ON bookings USING btree (organization_id, external_reference) WHERE (external_reference IS NOT NULL);
CREATE INDEX bookings_issuer_id_idx ON bookings USING btree (issuer_id) WHERE (issuer_id IS NOT NULL);
CREATE UNIQUE INDEX bookings_position_idx ON bookings USING btree (organization_id, environment, "position");
CREATE INDEX bookings_stay_date_idx ON bookings USING btree (organization_id, environment, stay_date);

-- standalone
create table bootstrap (
  is_only boolean not null default true,
  organization_id uuid not null,
  owner_id uuid not null,
  admin_id uuid not null,
  project_id uuid not null,
  voice_agent_id uuid not null,
  echo_agent_id uuid not null,
  created_at timestamp with time zone not null,
  app_id uuid,
  constraint bootstrap_pkey PRIMARY KEY (is_only),
  constraint bootstrap_admin_id_fkey FOREIGN KEY (admin_id) REFERENCES app_user(id),
  constraint bootstrap_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE SET NULL,
  constraint bootstrap_echo_agent_id_fkey FOREIGN KEY (echo_agent_id) REFERENCES voice_agent(id),
  constraint bootstrap_is_only_check CHECK (is_only),
  constraint bootstrap_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id),
  constraint bootstrap_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES app_user(id),
  constraint bootstrap_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id),
  constraint bootstrap_voice_agent_id_fkey FOREIGN KEY (voice_agent_id) REFERENCES voice_agent(id)
);

-- api/voice
create table call (
  id uuid not null,
  organization_id uuid not null,
  project_id uuid not null,
  agent_id uuid,
  state text not null,
  secret_sha256 text not null,
  protocol text not null,
  input_format json not null,
  output_format json not null,
  client_buffer_ms integer not null,
  variables json not null,
  metadata json not null,
  config_overrides json not null,
  initial_messages json not null,
  created_at timestamp with time zone not null,
  created_by uuid,
  expires_at timestamp with time zone not null,
  gateway_id text,
  started_at timestamp with time zone,
  heartbeat_at timestamp with time zone,
  ended_at timestamp with time zone,
  duration_ms double precision,
  end_reason text,
  error_code text,
  usage json,
  transport text not null default 'websocket'::text,
  room_name text,
  inline_config json,
  header_secrets bytea,
  quoted_stay jsonb,
  counted_ms bigint not null default 0,
  counted_cost numeric not null default 0,
  constraint call_pkey PRIMARY KEY (id),
  constraint call_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES voice_agent(id),
  constraint call_config_check CHECK (((agent_id IS NULL) = (inline_config IS NOT NULL))),
  constraint call_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint call_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint call_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id),
  constraint call_room_check CHECK (((room_name IS NOT NULL) = (transport = 'room'::text))),
  constraint call_state_check CHECK ((state = ANY (ARRAY['reserved'::text, 'in_progress'::text, 'ended'::text, 'expired'::text]))),
  constraint call_transport_check CHECK ((transport = ANY (ARRAY['websocket'::text, 'room'::text])))
);
CREATE INDEX call_agent_id_idx ON call USING btree (agent_id, created_at);
CREATE INDEX call_in_progress_idx ON call USING btree (id) WHERE (state = 'in_progress'::text);
CREATE INDEX call_organization_id_idx ON call USING btree (organization_id, created_at);
CREATE INDEX call_project_id_idx ON call USING btree (project_id, created_at);
CREATE INDEX call_reserved_idx ON call USING btree (organization_id, expires_at) WHERE (state = 'reserved'::text);
CREATE UNIQUE INDEX call_room_name_key ON call USING btree (room_name) WHERE (room_name IS NOT NULL);

-- api/voice
create table call_event (
  call_id uuid not null,
  event_id text not null,
  position bigint not null generated always as identity,
  at_ms double precision not null,
  type text not null,
  data json not null,
  constraint call_event_pkey PRIMARY KEY (call_id, event_id),
  constraint call_event_call_id_fkey FOREIGN KEY (call_id) REFERENCES call(id) ON DELETE CASCADE
);

-- api/voice
create table call_item (
  call_id uuid not null,
  item_id text not null,
  position bigint not null generated always as identity,
  turn_id text not null,
  role text not null,
  text text not null,
  heard_text text not null,
  interrupted boolean not null,
  start_ms double precision not null,
  end_ms double precision not null,
  backchannel boolean not null default false,
  heard_basis text,
  constraint call_item_pkey PRIMARY KEY (call_id, item_id),
  constraint call_item_call_id_fkey FOREIGN KEY (call_id) REFERENCES call(id) ON DELETE CASCADE,
  constraint call_item_role_check CHECK ((role = ANY (ARRAY['user'::text, 'agent'::text])))
);

-- api/voice
create table call_request (
  call_id uuid not null,
  request_id text not null,
  position bigint not null generated always as identity,
  request json not null,
  constraint call_request_pkey PRIMARY KEY (call_id, request_id),
  constraint call_request_call_id_fkey FOREIGN KEY (call_id) REFERENCES call(id) ON DELETE CASCADE
);

-- api
create table call_run (
  call_id uuid not null,
  tool_call_id text not null,
  run_id uuid not null,
  ends_with_call boolean not null,
  constraint call_run_pkey PRIMARY KEY (call_id, tool_call_id),
  constraint call_run_call_id_fkey FOREIGN KEY (call_id) REFERENCES call(id) ON DELETE CASCADE,
  constraint call_run_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id) ON DELETE CASCADE
);
CREATE INDEX call_run_ending ON call_run USING btree (call_id) WHERE ends_with_call;
CREATE INDEX call_run_run ON call_run USING btree (run_id);

-- api/voice
create table call_tool (
  call_id uuid not null,
  tool_call_id text not null,
  position bigint not null generated always as identity,
  name text not null,
  source text not null,
  state text not null,
  task_id text,
  arguments json,
  result text,
  error text,
  started_ms double precision not null,
  duration_ms double precision,
  run_id uuid,
  constraint call_tool_pkey PRIMARY KEY (call_id, tool_call_id),
  constraint call_tool_call_id_fkey FOREIGN KEY (call_id) REFERENCES call(id) ON DELETE CASCADE
);

-- api/voice
create table call_turn (
  call_id uuid not null,
  turn_id text not null,
  position bigint not null generated always as identity,
  metrics json not null,
  constraint call_turn_pkey PRIMARY KEY (call_id, turn_id),
  constraint call_turn_call_id_fkey FOREIGN KEY (call_id) REFERENCES call(id) ON DELETE CASCADE
);

-- api/runs
create table callback (
  run_id uuid not null,
  position integer not null,
  url text not null,
  token_encrypted bytea,
  metadata json,
  attempted_at timestamp with time zone,
  outcome text,
  constraint callback_pkey PRIMARY KEY (run_id, "position"),
  constraint callback_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id) ON DELETE CASCADE
);

-- api/connections
create table connect_token (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  app_id uuid not null,
  user_id text not null,
  secret_sha256 text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint connect_token_pkey PRIMARY KEY (id),
  constraint connect_token_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  constraint connect_token_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint connect_token_secret_sha256_key UNIQUE (secret_sha256)
);
CREATE INDEX connect_token_expires_at_idx ON connect_token USING btree (expires_at);

-- api/connections
create table connection (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  project_id uuid not null,
  name text not null,
  provider text not null,
  base_url text,
  secret_encrypted bytea not null,
  last_four text not null,
  created_at timestamp with time zone not null,
  created_by uuid,
  updated_at timestamp with time zone not null,
  updated_by uuid,
  constraint connection_pkey PRIMARY KEY (id),
  constraint connection_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint connection_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint connection_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id),
  constraint connection_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES app_user(id) ON DELETE SET NULL
);
CREATE INDEX connection_project_id_idx ON connection USING btree (project_id, created_at);

-- api/data_subjects
create table data_subject_record (
  request_id uuid not null,
  position bigint not null generated always as identity,
  kind text not null,
  record json not null,
  constraint data_subject_record_pkey PRIMARY KEY (request_id, "position"),
  constraint data_subject_record_request_id_fkey FOREIGN KEY (request_id) REFERENCES data_subject_request(id) ON DELETE CASCADE
);

-- api/data_subjects
create table data_subject_request (
  id uuid not null,
  organization_id uuid not null,
  action text not null,
  identified_by text not null,
  subject_sealed bytea,
  status text not null,
  result json not null default '[]'::json,
  created_at timestamp with time zone not null,
  created_by uuid,
  ended_at timestamp with time zone,
  constraint data_subject_request_pkey PRIMARY KEY (id),
  constraint data_subject_request_action_check CHECK ((action = ANY (ARRAY['export'::text, 'erase'::text]))),
  constraint data_subject_request_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint data_subject_request_identified_by_check CHECK ((identified_by = ANY (ARRAY['user_id'::text, 'phone'::text, 'email'::text]))),
  constraint data_subject_request_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint data_subject_request_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'succeeded'::text, 'failed'::text])))
);
CREATE INDEX data_subject_request_organization_id_idx ON data_subject_request USING btree (organization_id, created_at);

-- api/tax
create table frozen_rules (
  hash text not null,
  rules json not null,
  constraint frozen_rules_pkey PRIMARY KEY (hash)
);
CREATE TRIGGER frozen_rules_unchanged BEFORE UPDATE ON frozen_rules FOR EACH ROW EXECUTE FUNCTION refuse_rewriting_history();

-- api/voice
create table gateway_heartbeat (
  gateway_id text not null,
  since timestamp with time zone not null,
  heartbeat_at timestamp with time zone not null,
  constraint gateway_heartbeat_pkey PRIMARY KEY (gateway_id)
);

-- api/runs
create table input_request (
  id uuid not null,
  run_id uuid not null,
  node_run_id uuid not null,
  node_id text not null,
  type text not null,
  prompt text not null,
  params json not null,
  editable_params text[] not null,
  params_schema json,
  response_schema json,
  status text not null,
  response json,
  taken boolean not null default false,
  on_timeout text not null,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  resolved_at timestamp with time zone,
  audience text not null default 'staff'::text,
  constraint input_request_pkey PRIMARY KEY (id),
  constraint input_request_audience_check CHECK ((audience = ANY (ARRAY['staff'::text, 'caller'::text]))),
  constraint input_request_node_run_id_fkey FOREIGN KEY (node_run_id) REFERENCES node_run(id) ON DELETE CASCADE,
  constraint input_request_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id) ON DELETE CASCADE,
  constraint input_request_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'resolved'::text, 'expired'::text, 'canceled'::text]))),
  constraint input_request_type_check CHECK ((type = ANY (ARRAY['approval_request'::text, 'feedback_request'::text])))
);
CREATE INDEX input_request_expires_at_idx ON input_request USING btree (expires_at) WHERE (status = 'pending'::text);
CREATE INDEX input_request_run_id_idx ON input_request USING btree (run_id);
CREATE INDEX input_request_untaken_idx ON input_request USING btree (run_id) WHERE ((status = ANY (ARRAY['resolved'::text, 'expired'::text])) AND (NOT taken));

-- api/accounts
create table invitation (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  email text not null,
  role text not null,
  token_sha256 text,
  invited_by uuid,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  accepted_at timestamp with time zone,
  accepted_by uuid,
  revoked_at timestamp with time zone,
  constraint invitation_pkey PRIMARY KEY (id),
  constraint invitation_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint invitation_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint invitation_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint invitation_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'member'::text]))),
  constraint invitation_token_sha256_key UNIQUE (token_sha256)
);
CREATE UNIQUE INDEX invitation_pending_key ON invitation USING btree (organization_id, lower(email)) WHERE ((accepted_at IS NULL) AND (revoked_at IS NULL));

-- api/tax
create table invoice_series (
  organization_id uuid not null,
  issuer_id uuid,
  environment text not null,
  type text not null,
  series text not null,
  fiscal_year integer not null,
  last_sequence integer not null,
  last_issue_date date not null,
  constraint invoice_series_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint invoice_series_issuer_id_fkey FOREIGN KEY (organization_id, issuer_id) REFERENCES issuers(organization_id, id),
  constraint invoice_series_key UNIQUE NULLS NOT DISTINCT (organization_id, issuer_id, environment, type, series, fiscal_year),
  constraint invoice_series_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint invoice_series_type_check CHECK ((type = ANY (ARRAY['invoice'::text, 'credit_note'::text])))
);

-- api/tax
create table invoices (
  id uuid not null default gen_random_uuid(),
  position bigint not null generated always as identity,
  organization_id uuid not null,
  environment text not null,
  booking_id uuid not null,
  issuer_id uuid,
  type text not null,
  state text not null,
  series text not null,
  fiscal_year integer not null,
  sequence integer not null,
  number text not null,
  issue_date date not null,
  currency text not null,
  total_with_vat numeric not null,
  document json not null,
  credited_invoice_id uuid,
  user_id uuid,
  api_key_id integer,
  created_at timestamp with time zone not null,
  credited_at timestamp with time zone,
  constraint invoices_pkey PRIMARY KEY (id),
  constraint invoices_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_key(id) ON DELETE SET NULL,
  constraint invoices_booking_id_fkey FOREIGN KEY (booking_id) REFERENCES bookings(id) ON DELETE CASCADE,
  constraint invoices_credit_note_check CHECK ((((type = 'credit_note'::text) = (credited_invoice_id IS NOT NULL)) AND (NOT ((type = 'credit_note'::text) AND (state = 'credited'::text))))),
  constraint invoices_credited_at_check CHECK (((state = 'credited'::text) = (credited_at IS NOT NULL))),
  constraint invoices_credited_invoice_id_fkey FOREIGN KEY (credited_invoice_id) REFERENCES invoices(id) ON DELETE CASCADE,
  constraint invoices_credited_invoice_id_key UNIQUE (credited_invoice_id),
  constraint invoices_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint invoices_issuer_id_fkey FOREIGN KEY (organization_id, issuer_id) REFERENCES issuers(organization_id, id),
  constraint invoices_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint invoices_sequence_key UNIQUE NULLS NOT DISTINCT (organization_id, issuer_id, environment, type, series, fiscal_year, sequence),
  constraint invoices_state_check CHECK ((state = ANY (ARRAY['issued'::text, 'credited'::text]))),
  constraint invoices_type_check CHECK ((type = ANY (ARRAY['invoice'::text, 'credit_note'::text]))),
  constraint invoices_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE SET NULL
);
CREATE INDEX invoices_booking_id_idx ON invoices USING btree (booking_id, "position");
CREATE UNIQUE INDEX invoices_live_key ON invoices USING btree (booking_id) WHERE ((type = 'invoice'::text) AND (state = 'issued'::text));
CREATE INDEX invoices_position_idx ON invoices USING btree (organization_id, environment, "position");
CREATE TRIGGER invoices_unchanged BEFORE UPDATE ON invoices FOR EACH ROW WHEN ((((((((((((((((((old.id IS DISTINCT FROM new.id) OR (old.organization_id IS DISTINCT FROM new.organization_id)) OR (old.environment IS DISTINCT FROM new.environment)) OR (old.booking_id IS DISTINCT FROM new.booking_id)) OR (old.issuer_id IS DISTINCT FROM new.issuer_id)) OR (old.type IS DISTINCT FROM new.type)) OR (old.series IS DISTINCT FROM new.series)) OR (old.fiscal_year IS DISTINCT FROM new.fiscal_year)) OR (old.sequence IS DISTINCT FROM new.sequence)) OR (old.number IS DISTINCT FROM new.number)) OR (old.issue_date IS DISTINCT FROM new.issue_date)) OR (old.currency IS DISTINCT FROM new.currency)) OR (old.total_with_vat IS DISTINCT FROM new.total_with_vat)) OR ((old.document)::text IS DISTINCT FROM (new.document)::text)) OR (old.credited_invoice_id IS DISTINCT FROM new.credited_invoice_id)) OR (old.created_at IS DISTINCT FROM new.created_at)) OR ((old.state = 'credited'::text) AND (new.state <> 'credited'::text)))) EXECUTE FUNCTION refuse_rewriting_invoice();

-- api/tax
create table issuers (
  id uuid not null default gen_random_uuid(),
  position bigint not null generated always as identity,
  organization_id uuid not null,
  legal_profile json not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  archived_at timestamp with time zone,
  constraint issuers_pkey PRIMARY KEY (id),
  constraint issuers_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint issuers_organization_id_key UNIQUE (organization_id, id)
);
CREATE INDEX issuers_position_idx ON issuers USING btree (organization_id, "position");

-- api/voice
create table livekit_webhook (
  id text not null,
  received_at timestamp with time zone not null,
  constraint livekit_webhook_pkey PRIMARY KEY (id)
);
CREATE INDEX livekit_webhook_received_at_idx ON livekit_webhook USING btree (received_at);

-- api/runs
create table node_run (
  id uuid not null,
  run_id uuid not null,
  node_id text not null,
  iteration integer not null default 0,
  attempt integer not null default 1,
  status text not null,
  inputs json,
  output json,
  error json,
  usage json,
  handle text,
  wake_at timestamp with time zone,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  parent_id uuid,
  constraint node_run_pkey PRIMARY KEY (id),
  constraint node_run_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id) ON DELETE CASCADE,
  constraint node_run_run_id_node_id_iteration_key UNIQUE NULLS NOT DISTINCT (run_id, parent_id, iteration, node_id),
  constraint node_run_status_check CHECK ((status = ANY (ARRAY['running'::text, 'waiting'::text, 'succeeded'::text, 'skipped'::text, 'failed'::text])))
);

-- api/accounts
create table organization (
  id uuid not null default gen_random_uuid(),
  name text not null,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  api_access_enabled boolean not null default false,
  legal_profile json not null default '{}'::json,
  call_retention_days integer not null default 400,
  tax_settings jsonb not null default '{}'::jsonb,
  constraint organization_pkey PRIMARY KEY (id),
  constraint organization_call_retention_days_check CHECK (((call_retention_days >= 1) AND (call_retention_days <= 3650)))
);

-- api/accounts
create table organization_member (
  organization_id uuid not null,
  user_id uuid not null,
  role text not null,
  created_at timestamp with time zone not null default now(),
  constraint organization_member_pkey PRIMARY KEY (organization_id, user_id),
  constraint organization_member_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint organization_member_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text]))),
  constraint organization_member_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE
);
CREATE INDEX organization_member_user_id_idx ON organization_member USING btree (user_id);

-- api/identity
create table personal_access_token (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  organization_id uuid not null,
  name text not null,
  secret_sha256 text not null,
  prefix text not null,
  last_four text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint personal_access_token_pkey PRIMARY KEY (id),
  constraint personal_access_token_member_fkey FOREIGN KEY (organization_id, user_id) REFERENCES organization_member(organization_id, user_id) ON DELETE CASCADE,
  constraint personal_access_token_secret_sha256_key UNIQUE (secret_sha256)
);
CREATE INDEX personal_access_token_expires_at_idx ON personal_access_token USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX personal_access_token_member_idx ON personal_access_token USING btree (organization_id, user_id);

-- api/identity
create table project (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  name text not null,
  description text not null default ''::text,
  created_at timestamp with time zone not null,
  created_by uuid,
  updated_at timestamp with time zone not null,
  updated_by uuid,
  deleted_at timestamp with time zone,
  trace_retention_days integer not null default 30,
  constraint project_pkey PRIMARY KEY (id),
  constraint project_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint project_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint project_trace_retention_days_check CHECK (((trace_retention_days >= 1) AND (trace_retention_days <= 400))),
  constraint project_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES app_user(id) ON DELETE SET NULL
);
CREATE INDEX project_organization_id_idx ON project USING btree (organization_id, created_at);

-- api/accounts
create table project_member (
  project_id uuid not null,
  user_id uuid not null,
  created_at timestamp with time zone not null default now(),
  constraint project_member_pkey PRIMARY KEY (project_id, user_id),
  constraint project_member_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE,
  constraint project_member_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE
);
CREATE INDEX project_member_user_id_idx ON project_member USING btree (user_id);

-- api
create table readiness_probe (
  is_only boolean not null default true,
  written_at timestamp with time zone not null,
  constraint readiness_probe_pkey PRIMARY KEY (is_only),
  constraint readiness_probe_is_only_check CHECK (is_only)
);

-- api/tax
create table recheck_reports (
  id uuid not null,
  position bigint not null generated always as identity,
  organization_id uuid not null,
  environment text not null,
  night date,
  stay_from date,
  stay_to date,
  bookings integer not null,
  created_at timestamp with time zone not null,
  constraint recheck_reports_pkey PRIMARY KEY (id),
  constraint recheck_reports_environment_check CHECK ((environment = ANY (ARRAY['live'::text, 'test'::text]))),
  constraint recheck_reports_night_key UNIQUE (organization_id, environment, night),
  constraint recheck_reports_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE
);
CREATE INDEX recheck_reports_position_idx ON recheck_reports USING btree (organization_id, environment, "position");

-- api/tax
create table recheck_rows (
  report_id uuid not null,
  position integer not null,
  booking_id uuid not null,
  row json not null,
  constraint recheck_rows_pkey PRIMARY KEY (report_id, "position"),
  constraint recheck_rows_booking_id_fkey FOREIGN KEY (booking_id) REFERENCES bookings(id) ON DELETE CASCADE,
  constraint recheck_rows_report_id_fkey FOREIGN KEY (report_id) REFERENCES recheck_reports(id) ON DELETE CASCADE
);
CREATE INDEX recheck_rows_booking_id_idx ON recheck_rows USING btree (booking_id);

-- api/accounts
create table request_log (
  id bigint not null generated always as identity,
  organization_id uuid not null,
  method text not null,
  endpoint text not null,
  path text not null,
  status integer not null,
  duration_ms integer not null,
  user_id uuid,
  api_key_id integer,
  payload json not null,
  created_at timestamp with time zone not null,
  constraint request_log_pkey PRIMARY KEY (id),
  constraint request_log_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES api_key(id) ON DELETE SET NULL,
  constraint request_log_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint request_log_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE SET NULL
);
CREATE INDEX request_log_created_at_idx ON request_log USING brin (created_at);
CREATE INDEX request_log_organization_id_idx ON request_log USING btree (organization_id, id DESC);

-- api/runs
create table run (
  id uuid not null,
  organization_id uuid not null,
  project_id uuid not null,
  app_id uuid not null,
  workflow_version_id uuid not null,
  status text not null,
  origin text not null,
  input json not null,
  output json,
  error json,
  usage json,
  metadata json not null default '{}'::json,
  session_id text,
  user_id text,
  trace_id uuid not null,
  idempotency_key text,
  idempotency_hash text,
  timeout_s double precision not null,
  created_at timestamp with time zone not null,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  attempt integer not null default 0,
  epoch integer not null default 0,
  generation integer not null default 0,
  lease_until timestamp with time zone,
  worker_id text,
  recoveries integer not null default 0,
  last_event_id integer not null default 0,
  active_ms double precision not null default 0,
  wake_at timestamp with time zone,
  cancel_requested_at timestamp with time zone,
  cancel_reason text,
  cancel_by text,
  waits_for text,
  counted_cost numeric not null default 0,
  caller_span text,
  constraint run_pkey PRIMARY KEY (id),
  constraint run_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  constraint run_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint run_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id),
  constraint run_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'running'::text, 'awaiting_input'::text, 'succeeded'::text, 'failed'::text, 'canceled'::text]))),
  constraint run_waits_for_check CHECK ((waits_for = ANY (ARRAY['place'::text, 'session'::text]))),
  constraint run_workflow_version_id_fkey FOREIGN KEY (workflow_version_id) REFERENCES workflow_version(id)
);
CREATE INDEX run_app_id_ended_at_idx ON run USING btree (app_id, ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX run_app_id_idx ON run USING btree (app_id, created_at);
CREATE INDEX run_cancel_requested_idx ON run USING btree (id) WHERE ((cancel_requested_at IS NOT NULL) AND (status = ANY (ARRAY['pending'::text, 'awaiting_input'::text])));
CREATE UNIQUE INDEX run_idempotency_key_idx ON run USING btree (app_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX run_live_idx ON run USING btree (app_id, created_at) WHERE (status = ANY (ARRAY['pending'::text, 'running'::text, 'awaiting_input'::text]));
CREATE INDEX run_pending_idx ON run USING btree (created_at) WHERE (status = 'pending'::text);
CREATE INDEX run_running_app_id_idx ON run USING btree (app_id) WHERE (status = 'running'::text);
CREATE INDEX run_running_idx ON run USING btree (lease_until) WHERE (status = 'running'::text);
CREATE INDEX run_session_idx ON run USING btree (app_id, session_id, created_at) WHERE (session_id IS NOT NULL);
CREATE INDEX run_waits_for_idx ON run USING btree (app_id, created_at) WHERE ((status = 'pending'::text) AND (waits_for IS NOT NULL));
CREATE INDEX run_wake_at_idx ON run USING btree (wake_at) WHERE (wake_at IS NOT NULL);

-- api/runs
create table run_event (
  run_id uuid not null,
  id integer not null,
  type text not null,
  body text not null,
  created_at timestamp with time zone not null,
  constraint run_event_pkey PRIMARY KEY (run_id, id),
  constraint run_event_run_id_fkey FOREIGN KEY (run_id) REFERENCES run(id) ON DELETE CASCADE
);

-- api/store
create table schema_migration (
  version integer not null,
  name text not null,
  checksum text not null,
  applied_at timestamp with time zone not null default now(),
  compatible_with integer,
  constraint schema_migration_pkey PRIMARY KEY (version)
);

-- api/identity
create table sign_in_address (
  user_id uuid not null,
  address text not null,
  last_at timestamp with time zone not null,
  constraint sign_in_address_pkey PRIMARY KEY (user_id, address),
  constraint sign_in_address_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE
);
CREATE INDEX sign_in_address_last_at_idx ON sign_in_address USING btree (last_at);

-- api/identity
create table sign_in_attempt (
  key text not null,
  attempts integer not null,
  window_ends_at timestamp with time zone not null,
  constraint sign_in_attempt_pkey PRIMARY KEY (key)
);
CREATE INDEX sign_in_attempt_window_ends_at_idx ON sign_in_attempt USING btree (window_ends_at);

-- api/identity
create table sign_in_link (
  id uuid not null default gen_random_uuid(),
  user_id uuid not null,
  code_sha256 text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  redeemed_at timestamp with time zone,
  constraint sign_in_link_pkey PRIMARY KEY (id),
  constraint sign_in_link_code_sha256_key UNIQUE (code_sha256),
  constraint sign_in_link_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE
);
CREATE INDEX sign_in_link_expires_at_idx ON sign_in_link USING btree (expires_at);

-- api/traces
create table span (
  project_id uuid not null,
  trace_id uuid not null,
  span_id text not null,
  started_at timestamp with time zone not null,
  parent_span_id text,
  kind text not null,
  name text not null,
  status text not null,
  status_message text,
  duration_us bigint not null,
  model text,
  provider text,
  prompt_tokens bigint,
  completion_tokens bigint,
  cached_tokens bigint,
  cost_usd double precision,
  tool_name text,
  input json,
  output json,
  truncated text[] not null default '{}'::text[],
  attributes json not null default '{}'::json,
  events json not null default '[]'::json,
  links json not null default '[]'::json,
  constraint span_pkey PRIMARY KEY (project_id, trace_id, span_id, started_at),
  constraint span_status_check CHECK ((status = ANY (ARRAY['succeeded'::text, 'failed'::text, 'canceled'::text])))
);

-- api/tax
create table tax_entries (
  change_id bigint not null,
  booking_id uuid not null,
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
  recorded_at timestamp with time zone not null,
  constraint tax_entries_booking_id_fkey FOREIGN KEY (booking_id) REFERENCES bookings(id) ON DELETE CASCADE,
  constraint tax_entries_change_id_fkey FOREIGN KEY (change_id) REFERENCES booking_changes(id) ON DELETE CASCADE
);
CREATE INDEX tax_entries_booking_id_idx ON tax_entries USING btree (booking_id);
CREATE INDEX tax_entries_change_id_idx ON tax_entries USING btree (change_id);
CREATE INDEX tax_entries_recorded_at_idx ON tax_entries USING btree (organization_id, environment, recorded_at);
CREATE TRIGGER tax_entries_unchanged BEFORE UPDATE ON tax_entries FOR EACH ROW EXECUTE FUNCTION refuse_rewriting_history();

-- api/traces
create table trace (
  project_id uuid not null,
  id uuid not null,
  organization_id uuid not null,
  app_id uuid,
  source text not null,
  source_id text,
  root_span_id text,
  name text not null default ''::text,
  status text not null,
  session_id text,
  user_id text,
  started_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  input json,
  output json,
  model text,
  provider text,
  prompt_tokens bigint not null default 0,
  completion_tokens bigint not null default 0,
  cached_tokens bigint not null default 0,
  cost_usd double precision,
  span_count integer not null default 0,
  error_count integer not null default 0,
  tags text[] not null default '{}'::text[],
  metadata json not null default '{}'::json,
  written_at timestamp with time zone not null,
  settled_at timestamp with time zone,
  constraint trace_pkey PRIMARY KEY (project_id, id),
  constraint trace_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  constraint trace_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE,
  constraint trace_status_check CHECK ((status = ANY (ARRAY['running'::text, 'succeeded'::text, 'failed'::text, 'canceled'::text])))
);
CREATE INDEX trace_app_id_idx ON trace USING btree (app_id, started_at DESC, id);
CREATE INDEX trace_project_id_idx ON trace USING btree (project_id, started_at DESC, id);
CREATE INDEX trace_session_idx ON trace USING btree (project_id, session_id, started_at DESC) WHERE (session_id IS NOT NULL);
CREATE INDEX trace_unsettled_idx ON trace USING btree (written_at) WHERE (settled_at IS NULL);
CREATE INDEX trace_user_idx ON trace USING btree (project_id, user_id, started_at DESC) WHERE (user_id IS NOT NULL);

-- api/traces
create table trace_due (
  id bigint not null generated always as identity,
  source text not null,
  source_id uuid not null,
  leased_until timestamp with time zone not null default '-infinity'::timestamp with time zone,
  constraint trace_due_pkey PRIMARY KEY (id)
);

-- api/traces
create table trace_session (
  project_id uuid not null,
  app_id uuid,
  id text not null,
  created_at timestamp with time zone not null,
  last_trace_at timestamp with time zone not null,
  constraint trace_session_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE,
  constraint trace_session_key UNIQUE NULLS NOT DISTINCT (project_id, app_id, id),
  constraint trace_session_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id) ON DELETE CASCADE
);
CREATE INDEX trace_session_app_id_idx ON trace_session USING btree (app_id, created_at DESC, id);
CREATE INDEX trace_session_project_id_idx ON trace_session USING btree (project_id, created_at DESC, id);

-- api/usage
create table usage_day (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  day date not null,
  kind text not null,
  subject_id uuid not null,
  call_ms bigint not null default 0,
  cost numeric not null default 0,
  has_unknown_cost boolean not null default false,
  constraint usage_day_pkey PRIMARY KEY (id),
  constraint usage_day_kind_check CHECK ((kind = ANY (ARRAY['organization'::text, 'agent'::text, 'app'::text]))),
  constraint usage_day_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint usage_day_subject_key UNIQUE (organization_id, day, subject_id)
);

-- api/usage
create table usage_limit (
  id uuid not null,
  organization_id uuid not null,
  kind text not null,
  subject_id uuid not null,
  minutes_per_day numeric,
  cost_per_day numeric,
  at_limit text not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  updated_by uuid,
  constraint usage_limit_pkey PRIMARY KEY (id),
  constraint usage_limit_at_limit_check CHECK ((at_limit = ANY (ARRAY['finish'::text, 'end'::text]))),
  constraint usage_limit_kind_check CHECK ((kind = ANY (ARRAY['organization'::text, 'agent'::text, 'app'::text]))),
  constraint usage_limit_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint usage_limit_subject_key UNIQUE (organization_id, subject_id)
);

-- api/usage
create table usage_notice (
  organization_id uuid not null,
  day date not null,
  subject_id uuid not null,
  constraint usage_notice_pkey PRIMARY KEY (organization_id, day, subject_id),
  constraint usage_notice_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE
);

-- api/voice
create table voice_agent (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  project_id uuid not null,
  name text not null,
  description text not null default ''::text,
  status text not null default 'draft'::text,
  config json not null,
  allowed_origins text[] not null default '{}'::text[],
  agent_name text,
  deploy_error text,
  deployed_at timestamp with time zone,
  phone_numbers text[] not null default '{}'::text[],
  created_at timestamp with time zone not null,
  created_by uuid,
  updated_at timestamp with time zone not null,
  updated_by uuid,
  deleted_at timestamp with time zone,
  header_secrets bytea,
  constraint voice_agent_pkey PRIMARY KEY (id),
  constraint voice_agent_archived_check CHECK (((deleted_at IS NOT NULL) = (status = 'archived'::text))),
  constraint voice_agent_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint voice_agent_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint voice_agent_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id),
  constraint voice_agent_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'deploying'::text, 'deployed'::text, 'failed'::text, 'archived'::text]))),
  constraint voice_agent_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES app_user(id) ON DELETE SET NULL
);
CREATE INDEX voice_agent_organization_id_idx ON voice_agent USING btree (organization_id, created_at);
CREATE INDEX voice_agent_project_id_idx ON voice_agent USING btree (project_id, created_at);

-- api/workflows
create table workflow (
  id uuid not null default gen_random_uuid(),
  organization_id uuid not null,
  project_id uuid not null,
  name text not null,
  description text not null default ''::text,
  latest_version_id uuid,
  created_at timestamp with time zone not null,
  created_by uuid,
  updated_at timestamp with time zone not null,
  updated_by uuid,
  constraint workflow_pkey PRIMARY KEY (id),
  constraint workflow_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint workflow_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint workflow_project_id_fkey FOREIGN KEY (project_id) REFERENCES project(id),
  constraint workflow_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES app_user(id) ON DELETE SET NULL
);
CREATE INDEX workflow_organization_id_idx ON workflow USING btree (organization_id, created_at);
CREATE INDEX workflow_project_id_idx ON workflow USING btree (project_id, created_at);

-- api/workflows
create table workflow_use (
  version_id uuid not null,
  uses_version_id uuid not null,
  constraint workflow_use_pkey PRIMARY KEY (version_id, uses_version_id),
  constraint workflow_use_uses_version_id_fkey FOREIGN KEY (uses_version_id) REFERENCES workflow_version(id),
  constraint workflow_use_version_id_fkey FOREIGN KEY (version_id) REFERENCES workflow_version(id) ON DELETE CASCADE
);
CREATE INDEX workflow_use_uses_version_id_idx ON workflow_use USING btree (uses_version_id);

-- api/workflows
create table workflow_version (
  id uuid not null default gen_random_uuid(),
  workflow_id uuid not null,
  organization_id uuid not null,
  version integer not null,
  definition json not null,
  created_at timestamp with time zone not null,
  created_by uuid,
  constraint workflow_version_pkey PRIMARY KEY (id),
  constraint workflow_version_created_by_fkey FOREIGN KEY (created_by) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint workflow_version_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint workflow_version_workflow_id_fkey FOREIGN KEY (workflow_id) REFERENCES workflow(id) ON DELETE CASCADE,
  constraint workflow_version_workflow_id_version_key UNIQUE (workflow_id, version)
);

CREATE OR REPLACE FUNCTION public.refuse_rewriting_history()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception '% is only ever added to', tg_table_name;
end $function$;

CREATE OR REPLACE FUNCTION public.refuse_rewriting_invoice()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'an issued invoice is never rewritten';
end $function$;
