/** The invoice of a booking that is in force: issued and not credited. There is one at most. */
import { ApiError } from "#contracts/errors.ts";
import type { AnySql } from "#store/sql.ts";

export interface LiveInvoice {
  id: string;
  number: string;
}

/** The live invoice of a booking that the caller has found to be its own; undefined where there is none. */
export async function findLiveInvoice(sql: AnySql, bookingId: string): Promise<LiveInvoice | undefined> {
  const [row] = await sql<LiveInvoice[]>`
    select id, number from invoices where booking_id = ${bookingId} and type = 'invoice' and state = 'issued'`;
  return row;
}

/**
 * What a live invoice says must not change under it. Call it with the booking locked.
 * @throws ApiError conflict
 */
export async function refuseWhenFrozen(tx: AnySql, bookingId: string): Promise<void> {
  const live = await findLiveInvoice(tx, bookingId);
  if (!live) return;
  throw new ApiError("conflict", {
    detail: `Invoice ${live.number} is issued for this booking and freezes it: credit the invoice first`,
  });
}
