/** The environment that the processes of a load test inherit: the only file of this room that reads it. */
export const inheritedEnvironment: Readonly<Record<string, string | undefined>> = process.env;
