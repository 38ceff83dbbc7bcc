/**
 * Compiles `silero_kernel.assembly` to `silero_kernel.wasm`, which is committed: a production
 * install has no compiler. A test holds the two together. After a change of the source:
 * `node --import tsx media/hearing/vad/build_kernel.ts`
 */
import { readFile, writeFile } from "node:fs/promises";
import asc from "assemblyscript/asc";

const sourceUrl = new URL("./silero_kernel.assembly", import.meta.url);
export const kernelUrl = new URL("./silero_kernel.wasm", import.meta.url);

/** @throws Error with the compiler's messages */
export async function compileKernel(): Promise<Uint8Array> {
  const source = await readFile(sourceUrl, "utf8");
  let compiled: Uint8Array | undefined;
  const flags = ["--outFile", "kernel.wasm", "-O3", "--converge", "--noAssert", "--runtime", "stub"];
  const { error, stderr } = await asc.main(
    ["kernel.ts", ...flags, "--enable", "simd", "--initialMemory", "20", "--maximumMemory", "20"],
    {
      readFile: (name) => (name === "kernel.ts" ? source : null),
      writeFile(name, contents) {
        if (name === "kernel.wasm" && typeof contents !== "string") compiled = contents;
      },
      listFiles: () => [],
    },
  );
  if (error || !compiled) throw new Error(`Cannot compile the kernel: ${stderr.toString()}`, { cause: error });
  return compiled;
}

if (process.argv[1] && import.meta.url === new URL(process.argv[1], "file:").href) {
  await writeFile(kernelUrl, await compileKernel());
}
