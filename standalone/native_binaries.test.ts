import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("native_binaries.mjs", import.meta.url));
const { unlistedBinaries } = (await import(program)) as {
  unlistedBinaries(folder?: string, list?: string): string[];
};
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

describe("the native code of the sockets", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "frontdesk-native-"));
    writeFileSync(join(folder, "uws_linux_x64_115.node"), "looked at");
    writeFileSync(join(folder, "uws.js"), "anything");
  });
  after(() => rmSync(folder, { recursive: true }));

  it("is installed as it is listed", () => {
    assert.deepEqual(unlistedBinaries(), []);
    assert.match(execFileSync(process.execPath, [program], { encoding: "utf8" }), /as listed/);
  });

  it("is refused when one byte differs, or when nobody listed it", () => {
    const list = `${sha256("looked at")}  uws_linux_x64_115.node\n`;
    assert.deepEqual(unlistedBinaries(folder, list), []);
    assert.deepEqual(
      unlistedBinaries(
        folder,
        list.replace(/^./, (digit) => (digit === "0" ? "1" : "0")),
      ),
      ["uws_linux_x64_115.node is not the file that is on the list"],
    );
    assert.deepEqual(unlistedBinaries(folder, ""), ["uws_linux_x64_115.node is not on the list"]);
  });

  it("may be missing, which the transport on ws is for", () => {
    assert.deepEqual(unlistedBinaries(join(folder, "nowhere")), []);
  });

  it("is compared with another build file by file", () => {
    const said = execFileSync(process.execPath, [program, "--compare", folder], { encoding: "utf8" });
    assert.match(said, /^DIFFERS {4}uws_linux_x64_115\.node$/m);
    assert.match(said, /^not there {2}uws_linux_x64_127\.node$/m);
    const own = fileURLToPath(new URL("../node_modules/uWebSockets.js", import.meta.url));
    assert.doesNotMatch(
      execFileSync(process.execPath, [program, "--compare", own], { encoding: "utf8" }),
      /DIFFERS|not there/,
    );
  });
});
