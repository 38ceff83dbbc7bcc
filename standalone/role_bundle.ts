/**
 * The roles as plain JavaScript, for tests that start them as processes. Node 20 spends two thirds of a
 * start on reading TypeScript, in the process and again in each of its worker threads. The code is the
 * same, made into JavaScript by the same esbuild as `tsx` uses; `.ci/smoke` starts the roles as users do.
 */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";

/** What is started as a process or as a thread. */
const entries = [
  "standalone/main.ts",
  "standalone/drill/main.ts",
  "gateway/main.ts",
  "api/process/main.ts",
  "api/process/worker_main.ts",
  "api/process/migrate_main.ts",
  "api/process/bootstrap_main.ts",
  "api/providers/flite/flite_worker.ts",
  "media/threads/media_worker.ts",
  "media/tools/tool_worker.ts",
];

export interface RoleBundle {
  /** `api/process/main.ts` is `api/process/main.mjs` in it. */
  folder: string;
  remove(): void;
}

/** @param root of the repository, whose packages stay as they are */
export async function bundleRoles(root: string): Promise<RoleBundle> {
  // Below the packages: imports of them are found from there.
  const folder = join(root, "node_modules", ".cache", `frontdesk-roles-${randomBytes(6).toString("hex")}`);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    await build({
      absWorkingDir: root,
      entryPoints: entries,
      outdir: folder,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      splitting: true,
      format: "esm",
      platform: "node",
      target: "node20",
      packages: "external",
      sourcemap: "linked",
      logLevel: "warning",
      plugins: [placesKept(root, folder)],
    });
  } catch (error) {
    remove();
    throw error;
  }
  return { folder, remove };
}

/** A module looks for what lies beside it where it lies itself; threads are started from the bundle. */
function placesKept(root: string, folder: string): Plugin {
  const bundled = (path: string) => join(folder, relative(root, path).replace(/\.ts$/, ".mjs"));
  const isEntry = (path: string) => entries.includes(relative(root, path));
  return {
    name: "places kept",
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        const contents = text
          .replaceAll(/new URL\("(\.[^"]+\.ts)", import\.meta\.url\)/g, (whole, beside: string) => {
            const other = join(dirname(path), beside);
            return isEntry(other) ? `new URL(${JSON.stringify(pathToFileURL(bundled(other)).href)})` : whole;
          })
          .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href));
        return { loader: "ts", contents };
      });
    },
  };
}
