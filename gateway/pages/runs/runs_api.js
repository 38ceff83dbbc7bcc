/** What the page asks of the server: apps and workflows of the management API, and runs through the invocation proxy. */
import { ManagementError, storedToken } from "../talk/management.js";

export async function listApps() {
  return (await request("GET", "/v1/apps?page_size=100&sort=name")).data;
}

/** @returns {Promise<{kind: string, name: string, icon: string}[]>} */
export async function listNodeKinds() {
  return (await request("GET", "/v1/workflow-node-kinds")).data;
}

export async function getVersion(workflowId, versionId) {
  return (await request("GET", `/v1/workflows/${workflowId}/versions/${versionId}`)).data;
}

/** @returns {Promise<{data: object[], pagination: object}>} the newest first */
export function listRuns(appId, page) {
  return request("GET", `${runsOf(appId)}?page=${page}&page_size=12`);
}

export async function getRun(appId, runId) {
  return (await request("GET", `${runsOf(appId)}/${runId}`)).data;
}

/** @param {string} key the same key starts the same run, however often it is sent */
export async function startRun(appId, input, key) {
  return (await request("POST", runsOf(appId), { input, background: true }, { "idempotency-key": key })).data;
}

export async function answerRequest(appId, runId, response) {
  return (await request("POST", `${runsOf(appId)}/${runId}/resume`, { responses: [response] })).data;
}

export async function cancelRun(appId, runId) {
  return (await request("POST", `${runsOf(appId)}/${runId}/cancel`, { reason: "Canceled by hand" })).data;
}

/** The run's stream after `cursor`. EventSource cannot send a token. */
export function openStream(appId, runId, cursor, signal) {
  const headers = { accept: "text/event-stream", ...authorization() };
  if (cursor > 0) headers["last-event-id"] = String(cursor);
  return fetch(`${runsOf(appId)}/${runId}/stream`, { headers, signal, cache: "no-store" });
}

const runsOf = (appId) => `/v1/apps/${appId}/invoke/v1/runs`;

function authorization() {
  const token = storedToken();
  return token ? { authorization: `Bearer ${token}` } : {};
}

/** @throws {ManagementError} with the server's `details` by field */
async function request(method, path, body, more = {}) {
  const headers = { accept: "application/json", ...authorization(), ...more };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const answer = await response.json().catch(() => undefined);
  if (!response.ok) {
    throw Object.assign(new ManagementError(response.status, answer?.error), { details: answer?.error?.details ?? {} });
  }
  return answer;
}
