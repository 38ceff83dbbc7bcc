/** Whether a request came through our own gateway, which alone is handed grants: to stream a run, or to wait for it. */
import { gatewayHeader } from "#contracts/internal_runs.ts";
import { equalSecrets } from "#identity/secret.ts";

export interface GatewayKnowledge {
  /** By which our gateway is known. */
  internalSecret: string;
}

export function isFromGateway(request: Request, { internalSecret }: GatewayKnowledge): boolean {
  const shown = request.headers.get(gatewayHeader);
  return shown !== null && equalSecrets(shown, internalSecret);
}
