/**
 * An app's host through the management API: `/v1/apps/{app_id}/invoke` and everything below it, any
 * method, with a personal access token. What the app's host answers is answered, streams included.
 */

import { findApp } from "#apps/apps.ts";
import type { HostedAppGuards } from "#apps/hosted_app.ts";
import { ApiError } from "#contracts/errors.ts";
import { isUuid } from "#contracts/secrets.ts";
import { notePeer, peerOf } from "#http/peer_address.ts";
import type { Fetch } from "#http/service.ts";
import type { ApiDeps } from "#identity/api_deps.ts";

const proxied = /^\/v1\/apps\/([^/]+)\/invoke(\/.*)?$/;

export interface InvocationProxyDeps extends ApiDeps {
  appDomain: string;
  hostedApp: HostedAppGuards;
  /** The service of app hosts. */
  appService: Fetch;
}

/** @throws ApiError as every endpoint of the management API does */
export async function forwardInvocation(deps: InvocationProxyDeps, request: Request): Promise<Response> {
  const url = new URL(request.url);
  const [, appId = "", path = "/"] = proxied.exec(url.pathname) ?? [];
  const caller = await deps.personalAccessToken.check(request);
  if (!isUuid(appId)) throw new ApiError("not_found");
  await findApp(deps, caller, appId);
  const target = new URL(url);
  target.pathname = path;
  const inner = new Request(target, request);
  notePeer(inner, peerOf(request));
  deps.hostedApp.admit(inner, appId);
  return deps.appService(inner);
}
