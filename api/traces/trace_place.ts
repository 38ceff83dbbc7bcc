/** Traces as paths name them: those of an app, or those of a project, whichever app they are of. */
import { Type } from "@sinclair/typebox";
import { type AppRouteDeps, findApp } from "#apps/apps.ts";
import { ApiError } from "#contracts/errors.ts";
import { isUuid } from "#contracts/secrets.ts";
import type { Caller } from "#identity/caller.ts";
import { requireProject } from "#identity/projects.ts";
import type { SpanStore } from "./span_store.ts";

export interface TraceRouteDeps extends AppRouteDeps {
  traces: SpanStore;
}

export interface TracePlace {
  projectId: string;
  appId?: string;
}

/** Where a list of traces may stand, and how its routes find out what the caller asks for. */
export const tracePlaces = [
  {
    path: "/v1/apps/{app_id}",
    of: "an app",
    paramsFrom: { app_id: { route: "POST /v1/apps", field: "data.id" } },
    find: findAppPlace,
  },
  {
    path: "/v1/projects/{project_id}",
    of: "a project",
    paramsFrom: { project_id: { route: "POST /v1/projects", field: "data.id" } },
    find: findProjectPlace,
  },
] as const;

type Params = Readonly<Record<string, string>>;

async function findAppPlace(deps: TraceRouteDeps, caller: Caller, { app_id = "" }: Params): Promise<TracePlace> {
  const { id, project_id } = await findApp(deps, caller, app_id);
  return { projectId: project_id, appId: id };
}

async function findProjectPlace({ sql }: TraceRouteDeps, caller: Caller, { project_id = "" }: Params) {
  await requireProject(sql, caller, project_id);
  return { projectId: project_id } satisfies TracePlace as TracePlace;
}

/** A trace's id in a path: as it is shown, or as the 32 hex digits that other programs know it by. */
export const traceIdParam = {
  trace_id: Type.String({ maxLength: 64, description: "the trace's id, as a UUID or as 32 hex digits" }),
};

/** @throws ApiError not_found for what can be no trace's id */
export function traceIdOf(text: string): string {
  const id = /^[0-9a-f]{32}$/i.test(text) ? text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5") : text;
  if (!isUuid(id)) throw new ApiError("not_found");
  return id.toLowerCase();
}
