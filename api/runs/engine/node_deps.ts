/** What nodes of one run may reach: models and tools, with the credentials of the run's own project. */

import { type OpenedConnection, openConnection } from "#connections/connections.ts";
import type { PriceTable } from "#contracts/usage.ts";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import { McpError } from "#outbound/mcp_client.ts";
import type { McpPool } from "#outbound/mcp_pool.ts";
import { tracedHttp, traceparentOf } from "#outbound/traced_http.ts";
import { billsNobody, builtInProviders, vendorOf } from "#providers/catalogue.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import type { Biller } from "#providers/metered_stage.ts";
import { costOf, priceOf } from "#providers/prices.ts";
import { ProviderError } from "#providers/provider_error.ts";
import { billerOf, openStage } from "#providers/stages.ts";
import type { Encryption } from "#store/encryption.ts";
import type { Sql } from "#store/sql.ts";
import { endedByLimit } from "#usage/limits.ts";
import { type AskedModel, type NodeDeps, NodeError, type OpenedModel } from "#workflows/nodes/node_kind.ts";
import { rootSpanIdOf } from "../run_spans.ts";
import type { ClaimedRun } from "./run_claim.ts";

export interface NodeWorld {
  sql: Sql;
  http: GuardedHttp;
  /** Over `http`. */
  mcp: McpPool;
  encryption: Encryption;
  prices: PriceTable;
  now(): Date;
}

export function nodeDepsFor(world: NodeWorld, { run }: ClaimedRun): NodeDeps {
  const { mcp, now, prices } = world;
  // What others do for the run is inside of it.
  const http = tracedHttp(world.http, traceparentOf(run.trace_id, rootSpanIdOf(run.id)));
  const connectionOf = async (id: string): Promise<OpenedConnection> => {
    const connection = await openConnection(world, run.project_id, id);
    if (connection) return connection;
    throw new NodeError("unknown_connection", `The run's project has no connection ${id}`);
  };
  return {
    http,
    now,
    async definitionOf(versionId) {
      const [version] = await world.sql<{ definition: WorkflowDefinition }[]>`
        select version.definition
        from workflow_version version join workflow on workflow.id = version.workflow_id
        where version.id = ${versionId} and workflow.project_id = ${run.project_id}`;
      return version?.definition;
    },
    async openModel(config) {
      if (config.connection_id === undefined) return builtIn(config, prices);
      const { provider, baseUrl, secret } = await connectionOf(config.connection_id);
      const vendor = vendorOf("llm", provider);
      if (config.temperature !== undefined && vendor.llm?.takesNoTemperature) {
        throw new NodeError("bad_config", `Models of ${vendor.name} take no temperature`);
      }
      const settings = {
        provider: vendor.name,
        language: "en",
        model: config.model,
        ...(config.temperature !== undefined && { temperature: config.temperature }),
        options: { ...(config.max_tokens !== undefined && { max_tokens: config.max_tokens }) },
      };
      const access = { secret, http, ...(baseUrl !== undefined && { baseUrl }) };
      await requireBelowEndingLimit(world, run);
      const model = withNodeErrors(await openStage("llm", vendor, settings, { access }));
      return { model, ...pricedBy(prices, billerOf("llm", vendor, settings, access)) };
    },
    async callMcpTool({ url, tool, connection_id, headers }, toolArguments, signal) {
      const connection = connection_id === undefined ? undefined : await connectionOf(connection_id);
      const server = {
        url,
        headers: {
          ...Object.fromEntries((headers ?? []).map(({ key, value }) => [key, value])),
          ...(connection && { authorization: `Bearer ${connection.secret}` }),
        },
      };
      try {
        return await mcp.callTool(server, tool, toolArguments, signal);
      } catch (cause) {
        if (!(cause instanceof McpError)) throw cause;
        throw new NodeError("mcp_failed", cause.message, { cause, retryable: cause.retryable });
      }
    },
  };
}

/** @throws NodeError where a ceiling that ends what is under way is reached */
async function requireBelowEndingLimit({ sql, now }: NodeWorld, run: ClaimedRun["run"]): Promise<void> {
  const subject = { organizationId: run.organization_id, subjectId: run.app_id };
  const [ended] = await endedByLimit(sql, [subject], now());
  if (ended) throw new NodeError("usage_limit", "The ceiling of the day is reached, until midnight UTC");
}

async function builtIn({ model, options }: AskedModel, prices: PriceTable): Promise<OpenedModel> {
  const models = builtInProviders("llm");
  const provider = models.find(({ name }) => name === model);
  if (!provider) {
    const names = models.map(({ name }) => name).join(", ");
    throw new NodeError(
      "unknown_model",
      `Expected a connection_id for ${model}; without one the model is one of ${names}`,
    );
  }
  const settings = { provider: model, language: "en", options: options ?? {} };
  const opened = withNodeErrors(await openStage("llm", provider, settings));
  return { model: opened, ...pricedBy(prices, billerOf("llm", provider, settings, undefined)) };
}

function pricedBy({ prices, currency }: PriceTable, by: Biller): Omit<OpenedModel, "model"> {
  const price = priceOf(by, prices);
  return {
    provider: by.provider,
    currency,
    costOf({ prompt_tokens: prompt, completion_tokens: completion, cached_tokens: cached = 0 }) {
      if (!price && billsNobody(by.provider)) return 0;
      return costOf({ by, requests: 1, prompt, completion, cached }, price);
    },
  };
}

/** A provider's failure as the node's own. */
function withNodeErrors(model: LanguageModel): LanguageModel {
  return {
    async *reply(request, signal) {
      try {
        yield* model.reply(request, signal);
      } catch (cause) {
        if (!(cause instanceof ProviderError)) throw cause;
        throw new NodeError("model_failed", cause.message, { cause, retryable: cause.retryable });
      }
    },
    close: () => model.close(),
  };
}
