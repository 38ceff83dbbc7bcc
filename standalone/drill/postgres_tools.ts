/** `pg_dump` and `pg_restore` of the machine, given an address as their environment: nobody reads it off a process list. */
import { spawn } from "node:child_process";
import { once } from "node:events";

/** @throws Error with the program's own words when it is missing or fails */
export async function runTool(
  program: string,
  args: readonly string[],
  { databaseUrl, searchPath }: { databaseUrl: string; searchPath: string | undefined },
): Promise<void> {
  const child = spawn(program, args, {
    env: { PATH: searchPath, ...addressAsEnvironment(databaseUrl) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let words = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    words = `${words}${text}`.slice(-4000);
  });
  const [code] = await once(child, "close").catch((cause: unknown) => {
    throw new Error(`Cannot run ${program}: expected it on the PATH, at least as new as the server`, { cause });
  });
  if (code !== 0) throw new Error(`${program} failed: ${words.trim()}`);
}

/** Variables of libpq. */
function addressAsEnvironment(databaseUrl: string): Record<string, string> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(databaseUrl);
  const sslMode = searchParams.get("sslmode");
  return {
    PGHOST: hostname.replaceAll(/[[\]]/g, ""),
    PGPORT: port || "5432",
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: decodeURIComponent(pathname.slice(1)),
    ...(sslMode !== null && { PGSSLMODE: sslMode }),
  };
}
