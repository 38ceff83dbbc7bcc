/**
 * Who calls the management API, and what they may touch. Another organization's resource does not
 * exist for a caller (404); one of the own organization that the role or the project membership
 * does not open is 403.
 */
import { ApiError } from "#contracts/errors.ts";
import type { AnySql } from "#store/sql.ts";

export const roles = ["owner", "admin", "member"] as const;
export type Role = (typeof roles)[number];

export interface Caller {
  userId: string;
  organizationId: string;
  role: Role;
}

/** Owners and administrators reach every project of their organization; members those they belong to. */
export function reachesEveryProject(caller: Caller): boolean {
  return caller.role !== "member";
}

/** @throws ApiError forbidden unless the caller administers the organization */
export function requireAdministrator(caller: Caller): void {
  if (caller.role === "member") throw new ApiError("forbidden");
}

/**
 * @throws ApiError forbidden when a member does not belong to the project. The caller has made sure
 * that the project is one of the organization's.
 */
export async function requireProjectAccess(sql: AnySql, caller: Caller, projectId: string): Promise<void> {
  if (reachesEveryProject(caller)) return;
  const rows = await sql`
    select 1 from project_member where project_id = ${projectId} and user_id = ${caller.userId}`;
  if (rows.length === 0) throw new ApiError("forbidden");
}

/** Narrows a list to the projects that the caller reaches: a condition on `project_id`. */
export function visibleProjects(sql: AnySql, caller: Caller) {
  if (reachesEveryProject(caller)) return sql`true`;
  return sql`project_id in (select project_id from project_member where user_id = ${caller.userId})`;
}

/** The rows of a table with `organization_id` and `project_id` that the caller may see. */
export function inReach(sql: AnySql, caller: Caller) {
  return sql`organization_id = ${caller.organizationId} and ${visibleProjects(sql, caller)}`;
}
