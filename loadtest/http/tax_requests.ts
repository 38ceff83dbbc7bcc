/** What the http test asks of the tax service: an account of its own, calculations and bookings. */
import { randomBytes } from "node:crypto";
import { request } from "undici";
import type { Endpoint } from "./endpoint.ts";

/** Rome: a tax by head and night with classes and a limit of nights, and VAT. */
const calculation = {
  jurisdiction_code: "IT-RM-ROM",
  stay_date: "2026-12-01",
  nights: 3,
  nightly_rate: "120.00",
  currency: "EUR",
  number_of_guests: 2,
  property_type: "hotel",
  star_rating: 4,
};

export async function taxAccessToken(baseUrl: string): Promise<string> {
  const id = randomBytes(8).toString("hex");
  const reply = await request(`${baseUrl}/v1/auth/signup`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: `load-${id}@example.com`, password: `load test ${id}` }),
  });
  const { access_token } = (await reply.body.json()) as { access_token?: string };
  if (!access_token) throw new Error(`Cannot sign up at ${baseUrl}: the answer was ${reply.statusCode}`);
  return access_token;
}

export function taxEndpoints(accessToken: string): Endpoint[] {
  const headers = { authorization: `Bearer ${accessToken}`, "content-type": "application/json" };
  const asked = (name: string, path: string, body: object): Endpoint => ({
    name,
    method: "POST",
    path,
    headers,
    body: JSON.stringify(body),
  });
  return [
    asked("calculate a tax", "/v1/tax/calculate", calculation),
    asked("book a stay", "/v1/bookings", { calculation, idempotency_key: "[<id>]", external_reference: "load" }),
  ];
}
