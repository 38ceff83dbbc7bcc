/** The management API, as far as the page needs it, and the token that opens it. */

const tokenKey = "frontdesk.token";

/** An answer that is not a success: `status`, `code` and the details by field. */
export class ManagementError extends Error {
  constructor(status, error) {
    // Of a 503 they are for who runs the house, not for who calls.
    const shown = status === 503 ? {} : (error?.details ?? {});
    const details = Object.entries(shown).map(([field, message]) => `${field}: ${message}`);
    super([error?.message ?? `The server answered ${status}`, ...details].join(" · "));
    this.status = status;
    this.code = error?.code;
  }
}

/** The token of this tab, unless it has expired. */
export function storedToken() {
  const stored = JSON.parse(sessionStorage.getItem(tokenKey) ?? "null");
  return stored && Date.parse(stored.expires_at) > Date.now() ? stored.token : undefined;
}

export function forgetToken() {
  sessionStorage.removeItem(tokenKey);
}

/** Keeps a token for this tab. @param {{token: string, expires_at: string}} grant */
export function keepToken(grant) {
  sessionStorage.setItem(tokenKey, JSON.stringify(grant));
}

/** Trades the code of a one-time link for a token of 12 hours. @throws {ManagementError} */
export async function redeemSignInLink(code) {
  keepToken((await request("POST", "/v1/sign-in-links/redeem", { code })).data);
}

export async function listAgents() {
  return (await request("GET", "/v1/agents/voice/agents?page_size=100&sort=name")).data;
}

/** What this house has: `{rooms}` tells whether calls can be made in LiveKit rooms. @throws {ManagementError} */
export function listOffers() {
  return request("GET", "/talk/offers.json");
}

/** Reserves a call: the answer's `websocket_url` works once, for two minutes. */
export async function reserveCall(agentId, reservation) {
  return (await request("POST", `/v1/agents/voice/agents/${agentId}/calls/websocket`, reservation)).data;
}

/** Opens a LiveKit room with the agent in it: `{token, room_name, url}`; the agent waits for two minutes. */
export function openRoom(agentId, additions) {
  return request("POST", `/v1/agents/voice/agents/${agentId}/rooms`, additions);
}

export async function listCalls() {
  return (await request("GET", "/v1/agents/voice/calls?page_size=12&sort=-created_at")).data;
}

export async function getCall(callId) {
  return (await request("GET", `/v1/agents/voice/calls/${callId}`)).data;
}

async function request(method, path, body) {
  const headers = { accept: "application/json" };
  const token = storedToken();
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const answer = await response.json().catch(() => undefined);
  if (!response.ok) throw new ManagementError(response.status, answer?.error);
  return answer;
}
