/** Bookings and invoices that name a person. Tax law wants them kept; they are handed out, and not erased. */
import { mentions, type PersonalData } from "#store/personal_data.ts";

const keptBecause = "Tax law wants bookings and invoices kept";

export const personalBookings: readonly PersonalData[] = [
  {
    kind: "bookings",
    keptBecause,
    find: (sql, organizationId, subject) => sql`
      select id from bookings
      where organization_id = ${organizationId}
        and (${mentions(sql, subject, [sql`request`, sql`answer`, sql`invoice_details`, sql`external_reference`])}
          or exists (
            select from booking_changes where booking_id = bookings.id
              and (${mentions(sql, subject, [sql`booking_changes.request`, sql`reason`])})))`,
    read: (sql, ids) => sql`
      select id, state, external_reference, request, answer, invoice_details, created_at from bookings
      where id = any (${ids}::uuid[])`,
  },
  {
    kind: "invoices",
    keptBecause,
    find: (sql, organizationId, subject) => sql`
      select id from invoices
      where organization_id = ${organizationId} and (${mentions(sql, subject, [sql`document`])})`,
    read: (sql, ids) => sql`
      select id, number, issue_date, document, created_at from invoices where id = any (${ids}::uuid[])`,
  },
];
