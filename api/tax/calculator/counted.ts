/** `1 night`, `2 nights`, `1 person aged 10 and over`: `many` begins with the plural. */
export function counted(count: number, many: string): string {
  return `${count} ${count === 1 ? many.replace(/^(\w+?)s\b/, "$1") : many}`;
}
