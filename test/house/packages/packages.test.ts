import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { licenceProblems, lockedPackages, readAudit } from "./packages.ts";

const lockOf = (packages: object) => JSON.stringify({ packages: { "": {}, ...packages } });

describe("the packages of the lock", () => {
  it("have licences under which they may be passed on", () => {
    const packages = lockedPackages();
    assert.ok(packages.length > 100);
    assert.deepEqual(licenceProblems(packages), []);
  });

  it("are refused with a licence that asks for more, or none", () => {
    const lock = lockOf({
      "node_modules/a": { version: "1.0.0", license: "(MIT OR GPL-3.0)" },
      "node_modules/a/node_modules/@b/c": { version: "2.0.0", license: "(MIT AND GPL-3.0)" },
      "node_modules/d": { version: "1.0.0" },
      "node_modules/e": { version: "1.0.0", license: "MPL-2.0", dev: true },
      "node_modules/f": { version: "1.0.0", license: "MPL-2.0" },
      "node_modules/g-win32": { version: "1.0.0", optional: true },
    });
    assert.deepEqual(licenceProblems(lockedPackages(lock)), [
      "@b/c 2.0.0 has the licence (MIT AND GPL-3.0)",
      "d 1.0.0 has the licence none",
      "f 1.0.0 has the licence MPL-2.0",
    ]);
  });

  it("fail with a grave fault that npm knows, and not for want of a registry", () => {
    const fault = (severity: string) =>
      JSON.stringify({ vulnerabilities: { a: { name: "a", severity, range: "<2" } } });
    assert.deepEqual(readAudit(fault("critical")), { is: "faults", lines: ["a <2: critical"] });
    assert.deepEqual(readAudit(fault("low")), { is: "clean" });
    assert.deepEqual(readAudit('{"message":"405 Method Not Allowed"}'), {
      is: "skipped",
      why: "405 Method Not Allowed",
    });
    assert.equal(readAudit("").is, "skipped");
  });
});
