/** For validators that ignore what they do not know: the fields of a value that nobody looks at. */

/**
 * Paths of the fields that `read` does not look at, as in `/spec/replicsa`.
 * @param value as from JSON
 * @param read is handed a copy of it
 */
export function unreadFields(value: unknown, read: (copy: unknown) => void): string[] {
  const unread = new Set<string>();
  const watched = (part: unknown, path: string): unknown => {
    if (typeof part !== "object" || part === null) return part;
    if (Array.isArray(part)) return part.map((item, i) => watched(item, `${path}/${i}`));
    const copy = {};
    for (const [name, field] of Object.entries(part)) {
      const at = `${path}/${name}`;
      const child = watched(field, at);
      unread.add(at);
      Object.defineProperty(copy, name, {
        enumerable: true,
        get() {
          unread.delete(at);
          return child;
        },
      });
    }
    return copy;
  };
  read(watched(value, ""));
  return [...unread];
}
