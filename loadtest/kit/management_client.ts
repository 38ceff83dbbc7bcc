/** The few requests to the management API that a load test needs. */

export interface ManagementClient {
  createAgent(name: string, config: Record<string, unknown>): Promise<string>;
  archiveAgent(agentId: string): Promise<void>;
  /** A connection to a vendor at `baseUrl`. @returns its id */
  createConnection(provider: string, access: { secret: string; baseUrl: string }): Promise<string>;
  /** Reserves a call and returns its `websocket_url`. */
  reserveCall(agentId: string, options: Record<string, unknown>): Promise<string>;
  /** Opens a room with the agent: its token and address, or the code of the refusal. */
  openRoom(agentId: string): Promise<{ token: string; url: string } | { code: string }>;
  /** Deploys a workflow that is bounded by nothing but the machine, and returns the app's hostname. */
  deployApp(name: string, definition: Record<string, unknown>): Promise<string>;
}

export interface ManagementAccess {
  /** Where the management API is: the api's or the gateway's address. */
  baseUrl: string;
  token: string;
  /** For the Runs API of apps. */
  accessKey: string;
  projectId: string;
}

export function createManagementClient({ baseUrl, token, projectId }: ManagementAccess): ManagementClient {
  const send = (method: string, path: string, body?: unknown) =>
    fetch(new URL(path, baseUrl), {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      signal: AbortSignal.timeout(30_000),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });

  async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await send(method, path, body);
    const text = await response.text();
    if (!response.ok) throw new Error(`Cannot ${method} ${path}: the answer was ${response.status} ${text}`);
    return (JSON.parse(text) as { data: T }).data;
  }

  return {
    async createAgent(name, config) {
      const { id } = await request<{ id: string }>("POST", "/v1/agents/voice/agents", {
        name,
        project_id: projectId,
        config,
      });
      return id;
    },
    async archiveAgent(agentId) {
      await request("DELETE", `/v1/agents/voice/agents/${agentId}`);
    },
    async createConnection(provider, { secret, baseUrl }) {
      const { id } = await request<{ id: string }>("POST", "/v1/connections", {
        name: `Load test ${provider}`,
        project_id: projectId,
        provider,
        secret,
        base_url: baseUrl,
      });
      return id;
    },
    async reserveCall(agentId, options) {
      const { websocket_url } = await request<{ websocket_url: string }>(
        "POST",
        `/v1/agents/voice/agents/${agentId}/calls/websocket`,
        options,
      );
      return websocket_url;
    },
    async openRoom(agentId) {
      const response = await send("POST", `/v1/agents/voice/agents/${agentId}/rooms`, {});
      const answer = (await response.json()) as { token: string; url: string; code?: string; error?: { code: string } };
      return response.ok ? answer : { code: answer.code ?? answer.error?.code ?? `http_${response.status}` };
    },
    async deployApp(name, definition) {
      const workflow = await request<{ id: string }>("POST", "/v1/workflows", {
        name,
        project_id: projectId,
        definition: { schema_version: 1, ...definition },
      });
      const { hostname } = await request<{ hostname: string }>("POST", "/v1/apps", {
        name,
        project_id: projectId,
        workflow_id: workflow.id,
        policy: { max_concurrent_runs: 10_000, max_queued_runs: 1_000_000 },
      });
      return hostname;
    },
  };
}
