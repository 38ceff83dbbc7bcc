/** What voice agents need to know of the apps that they may run; the api wires it to the rooms of apps and runs. */

/** JSON Schemas of the inputs of those apps that the project has, by the ids as they are given. */
export type AppInputs = (
  projectId: string,
  appIds: readonly string[],
) => Promise<ReadonlyMap<string, Record<string, unknown>>>;
