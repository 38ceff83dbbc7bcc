/**
 * A role as a process of its own, for tests: started with an environment, awaited until it serves,
 * stopped as a supervisor would, with its last words at hand when it fails.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface RoleProcess {
  child: ChildProcess;
  /** Everything it has said on both streams. */
  said(): string;
  /** Resolves once it has said something that matches. @throws Error with its words when it ends before */
  until(pattern: RegExp): Promise<RegExpMatchArray>;
  /** Sends the signal and resolves with the exit code, null when the signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The environment's variables, without those of a project that this test run itself was given. */
const bareEnvironment = { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: "1", SHUTDOWN_DELAY_S: "0" };

/** `command` runs in the project's folder with nothing in its environment but `environment`. */
export function startProcess(command: readonly string[], environment: Readonly<Record<string, string>>): RoleProcess {
  const [program = "", ...rest] = command;
  const child = spawn(program, rest, {
    cwd: root,
    env: { ...bareEnvironment, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let words = "";
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      words += text;
      for (const listener of listeners) listener();
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  const killed = () => child.kill("SIGKILL");
  process.once("exit", killed);
  void exited.then(() => process.removeListener("exit", killed));
  return {
    child,
    said: () => words,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = words.match(pattern);
          if (!match) return;
          listeners.delete(look);
          resolve(match);
        };
        listeners.add(look);
        void exited.then((code) =>
          reject(new Error(`${command.join(" ")} ended with ${code} before ${pattern}:\n${words}`)),
        );
        look();
      }),
    stop(signal = "SIGTERM") {
      child.kill(signal);
      return exited;
    },
  };
}

/** A role, by the TypeScript file that its npm script runs. */
export function startRole(file: string, environment: Readonly<Record<string, string>>): RoleProcess {
  return startProcess([process.execPath, ...roleArguments(file)], environment);
}

/** What Node is given to run a role: its bundle, which the test runner makes, or the file itself without one. */
export function roleArguments(file: string): string[] {
  const bundle = process.env.TEST_ROLES && join(process.env.TEST_ROLES, file.replace(/\.ts$/, ".mjs"));
  return bundle ? ["--enable-source-maps", bundle] : ["--import", "tsx", file];
}

/** The secrets that separate roles must share. */
export const sharedSecrets = {
  INTERNAL_SECRET: "internal-secret-of-this-test",
  ENCRYPTION_KEY: "encryption-key-of-this-test",
  JWT_SECRET: "jwt-secret-of-this-test",
};
