/** One request that is sent again and again. */
export interface Endpoint {
  name: string;
  method: "GET" | "POST";
  path: string;
  headers: Record<string, string>;
  /** `[<id>]` in it is another id in each request. */
  body?: string;
}
