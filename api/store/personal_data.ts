/**
 * What is kept of a person: the seam by which every room that keeps such data says how it is found, read and
 * erased. `api/data_subjects` walks over them all.
 */
import type { AnySql, Fragment } from "./sql.ts";

export const subjectKinds = ["user_id", "phone", "email"] as const;
export type SubjectKind = (typeof subjectKinds)[number];

/** A person, by one thing that names them. */
export interface Subject {
  by: SubjectKind;
  value: string;
}

/** One kind of record. Ids are text, whatever the table has. */
export interface PersonalData {
  /** As answers name it: `runs`, `calls` … */
  kind: string;
  /** Records of the organization that are the person's, or mention the person. */
  find(sql: AnySql, organizationId: string, subject: Subject): PromiseLike<readonly { id: string }[]>;
  /** At most as many as `portionIds`, as they are handed out. */
  read(sql: AnySql, ids: readonly string[]): PromiseLike<readonly unknown[]>;
  /** Deletes those that are over; the others are ended, and deleted when it is asked again. */
  erase?(ids: readonly string[]): Promise<void>;
  /** Why it is not erased, where it is not. */
  keptBecause?: string;
}

/**
 * Whether one of `texts` names the person: a phone number however it is spaced, an address as a whole word. Texts
 * are not searched for a user id: one that is short, as 7, would be found in everybody's.
 */
export function mentions(sql: AnySql, { by, value }: Subject, texts: readonly Fragment[]): Fragment {
  if (by === "user_id") return sql`false`;
  const pattern = by === "phone" ? phonePattern(value) : emailPattern(value);
  return texts.reduce<Fragment>((before, text) => sql`${before} or (${text})::text ~* ${pattern}`, sql`false`);
}

/** Whether the column is the person's own id. */
export function isOf(sql: AnySql, { by, value }: Subject, column: Fragment): Fragment {
  return by === "user_id" ? sql`${column} = ${value}` : sql`false`;
}

function phonePattern(phone: string): string {
  const digits = phone.replace(/\D/g, "");
  return `(?<![0-9])${[...digits].join("[ ().\\/-]*")}(?![0-9])`;
}

function emailPattern(email: string): string {
  const escaped = email.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return `(?<![A-Za-z0-9._%+-])${escaped}(?![A-Za-z0-9-]|\\.[A-Za-z0-9])`;
}
