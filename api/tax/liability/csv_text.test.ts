import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { csvText } from "./csv_text.ts";

describe("CSV", () => {
  it("ends every row with CRLF and quotes what needs it", () => {
    const rows = [
      ["a", "b"],
      ['say "so"', "one, two"],
      ["two\nlines", null],
      [" edge", 7],
    ];
    assert.equal(csvText(rows), 'a,b\r\n"say ""so""","one, two"\r\n"two\nlines",\r\n" edge",7\r\n');
  });

  it("makes no formula of a text, and leaves numbers numbers", () => {
    const guarded = ["=1+1", "+49 30", "-2+3", "@SUM(A1)", "  =x", "\t=x"];
    const plain = ["-12.50", "12", "A-1"];
    const text = csvText([...guarded, ...plain].map((cell) => [cell]));
    assert.deepEqual(text.split("\r\n"), [...guarded.map((cell) => `'${cell}`), ...plain, ""]);
  });
});
