/** @param path `/v1/listen` */
export function listenUrl(baseUrl: string | undefined, path: string, query: [string, string | undefined][]): string {
  const given = query.filter((entry): entry is [string, string] => entry[1] !== undefined);
  return `${baseUrl ?? "https://api.deepgram.com"}${path}?${new URLSearchParams(given)}`;
}
