/**
 * Who may call what: every operation of the OpenAPI documents, and which kinds of credential open it. Kept by
 * hand, beside the documents: a new operation is in nobody's reach until somebody has thought about its line.
 */
export const credentialKinds = [
  "nothing",
  "nonsense",
  "pat",
  "access_key",
  "session",
  "admin_session",
  "api_key",
] as const;
export type CredentialKind = (typeof credentialKinds)[number];

export const accesses = {
  /** No credential is asked for: what counts is in the body or the path. */
  anybody: credentialKinds,
  /** The management API. */
  token: ["pat"],
  /** A person who is signed in. */
  person: ["session", "admin_session"],
  administrator: ["admin_session"],
  /** A program of the organization, or a person of it. */
  program: ["api_key", "session", "admin_session"],
  /** An app's host, where the app is private. Public apps have a matrix of their own. */
  app: ["access_key"],
  /** The traces collector. */
  collector: ["access_key"],
} as const satisfies Record<string, readonly CredentialKind[]>;
export type Access = keyof typeof accesses;

export type DocumentName =
  | "/openapi.json"
  | "/openapi/tax.json"
  | "an app's /openapi.json"
  | "the collector's /openapi.json";

const token = "token";
const person = "person";
const program = "program";
const app = "app";
const collector = "collector";
const anybody = "anybody";
const administrator = "administrator";

export const matrix: Readonly<Record<DocumentName, Readonly<Record<string, Access>>>> = {
  "/openapi.json": {
    "GET /v1/organizations/me": token,
    "PATCH /v1/organizations/me": token,
    "POST /v1/data-subjects/export": token,
    "POST /v1/data-subjects/erase": token,
    "GET /v1/data-subjects/requests": token,
    "GET /v1/data-subjects/requests/{request_id}": token,
    "GET /v1/data-subjects/requests/{request_id}/records": token,
    "POST /v1/projects": token,
    "GET /v1/projects": token,
    "GET /v1/projects/{project_id}": token,
    "PATCH /v1/projects/{project_id}": token,
    "DELETE /v1/projects/{project_id}": token,
    "POST /v1/access-keys": token,
    "GET /v1/access-keys": token,
    "GET /v1/access-keys/{access_key_id}": token,
    "DELETE /v1/access-keys/{access_key_id}": token,
    "POST /v1/sign-in-links/redeem": anybody,
    "POST /v1/agents/voice/agents": token,
    "GET /v1/agents/voice/agents": token,
    "GET /v1/agents/voice/agents/{agent_id}": token,
    "PATCH /v1/agents/voice/agents/{agent_id}": token,
    "DELETE /v1/agents/voice/agents/{agent_id}": token,
    "POST /v1/agents/voice/agents/{agent_id}/calls/websocket": token,
    "GET /v1/agents/voice/calls": token,
    "GET /v1/agents/voice/calls/{call_id}": token,
    "POST /v1/agents/voice/calls/{call_id}/control": token,
    "POST /v1/agents/voice/agents/{agent_id}/rooms": token,
    "POST /v1/agents/voice/sessions": token,
    "POST /v1/agents/voice/rooms/webhook": anybody,
    "POST /v1/agents/voice/tools/http/test": token,
    "POST /v1/agents/voice/tools/mcp/test": token,
    "POST /v1/workflows": token,
    "GET /v1/workflow-node-kinds": token,
    "GET /v1/workflows": token,
    "GET /v1/workflows/{workflow_id}": token,
    "PATCH /v1/workflows/{workflow_id}": token,
    "DELETE /v1/workflows/{workflow_id}": token,
    "POST /v1/workflows/{workflow_id}/versions": token,
    "GET /v1/workflows/{workflow_id}/versions": token,
    "GET /v1/workflows/{workflow_id}/versions/{version_id}": token,
    "POST /v1/connections": token,
    "GET /v1/usage": token,
    "GET /v1/usage/limits": token,
    "PUT /v1/usage/limits": token,
    "DELETE /v1/usage/limits/{limit_id}": token,
    "GET /v1/connections": token,
    "GET /v1/connections/{connection_id}": token,
    "PATCH /v1/connections/{connection_id}": token,
    "DELETE /v1/connections/{connection_id}": token,
    "POST /v1/connections/{connection_id}/test": token,
    "POST /v1/apps": token,
    "GET /v1/apps": token,
    "GET /v1/apps/{app_id}": token,
    "PATCH /v1/apps/{app_id}": token,
    "DELETE /v1/apps/{app_id}": token,
    "GET /v1/apps/{app_id}/sessions": token,
    "GET /v1/apps/{app_id}/sessions/{session_id}/traces": token,
    "GET /v1/apps/{app_id}/traces": token,
    "GET /v1/apps/{app_id}/traces/download": token,
    "GET /v1/apps/{app_id}/traces/{trace_id}": token,
    "GET /v1/apps/{app_id}/traces/{trace_id}/spans": token,
    "GET /v1/projects/{project_id}/sessions": token,
    "GET /v1/projects/{project_id}/sessions/{session_id}/traces": token,
    "GET /v1/projects/{project_id}/traces": token,
    "GET /v1/projects/{project_id}/traces/download": token,
    "GET /v1/projects/{project_id}/traces/{trace_id}": token,
    "GET /v1/projects/{project_id}/traces/{trace_id}/spans": token,
    "DELETE /v1/projects/{project_id}/traces/{trace_id}": token,
    "POST /v1/projects/{project_id}/traces/bulk/delete": token,
  },
  "/openapi/tax.json": {
    "POST /v1/auth/signup": anybody,
    "POST /v1/auth/register": administrator,
    "POST /v1/auth/login": anybody,
    "GET /v1/auth/me": person,
    "POST /v1/auth/verify-email": anybody,
    "POST /v1/auth/resend-verification": anybody,
    "POST /v1/auth/forgot-password": anybody,
    "POST /v1/auth/reset-password": anybody,
    "PATCH /v1/orgs/me/members/{user_id}": person,
    "DELETE /v1/orgs/me/members/{user_id}": person,
    "GET /v1/orgs/me": program,
    "PATCH /v1/orgs/me/legal-profile": person,
    "GET /v1/orgs/me/tax-settings": program,
    "PATCH /v1/orgs/me/tax-settings": person,
    "POST /v1/orgs/me/invitations": person,
    "GET /v1/orgs/me/invitations": person,
    "DELETE /v1/orgs/me/invitations/{invitation_id}": person,
    "POST /v1/orgs/invitations/{token}/preview": anybody,
    "POST /v1/orgs/invitations/{token}/accept": anybody,
    "GET /v1/orgs/me/request-log": person,
    "POST /v1/api-keys": person,
    "GET /v1/api-keys": person,
    "DELETE /v1/api-keys/{key_id}": person,
    "POST /v1/personal-access-tokens": person,
    "GET /v1/personal-access-tokens": person,
    "DELETE /v1/personal-access-tokens/{token_id}": person,
    "GET /v1/admin/organizations": administrator,
    "PATCH /v1/admin/organizations/{organization_id}": administrator,
    "POST /v1/issuers": program,
    "GET /v1/issuers": program,
    "GET /v1/issuers/{issuer_id}": program,
    "PATCH /v1/issuers/{issuer_id}": program,
    "POST /v1/issuers/{issuer_id}/archive": program,
    "GET /v1/jurisdictions": program,
    "GET /v1/coverage": program,
    "GET /v1/law-changes": program,
    "POST /v1/addresses/validate": program,
    "POST /v1/tax/calculate": program,
    "POST /v1/tax/calculate/batch": program,
    "POST /v1/bookings": program,
    "GET /v1/bookings": program,
    "GET /v1/bookings/{booking_id}": program,
    "POST /v1/bookings/recheck": program,
    "GET /v1/recheck-reports": program,
    "GET /v1/recheck-reports/{report_id}": program,
    "POST /v1/bookings/{booking_id}/adjust": program,
    "POST /v1/bookings/{booking_id}/refund": program,
    "POST /v1/bookings/{booking_id}/void": program,
    "PATCH /v1/bookings/{booking_id}/invoice-details": program,
    "GET /v1/bookings/{booking_id}/document": program,
    "POST /v1/bookings/{booking_id}/invoice": program,
    "GET /v1/bookings/{booking_id}/invoice": program,
    "POST /v1/bookings/{booking_id}/invoice/credit": program,
    "GET /v1/bookings/{booking_id}/invoice/ubl": program,
    "GET /v1/invoices": program,
    "GET /v1/invoices/{invoice_id}": program,
    "GET /v1/invoices/{invoice_id}/ubl": program,
    "GET /v1/liability": program,
  },
  "an app's /openapi.json": {
    "POST /v1/runs": app,
    "GET /v1/runs": app,
    "GET /v1/runs/{run_id}": app,
    "GET /v1/runs/{run_id}/stream": app,
    "GET /v1/runs/{run_id}/events": app,
    "POST /v1/runs/{run_id}/cancel": app,
    "POST /v1/runs/{run_id}/resume": app,
    "POST /": app,
    "POST /v1/connect/tokens": app,
  },
  "the collector's /openapi.json": {
    "POST /v1/traces": collector,
  },
};
