import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addressGroup, clientAddress, noProxies, parseTrustedProxies } from "./client_address.ts";

const trusted = parseTrustedProxies("10.0.0.0/8, 192.0.2.1, fd00::/8");

describe("a client's address", () => {
  it("is the peer's where no proxy is trusted, whatever a header says", () => {
    const hops = { peer: "198.51.100.7", forwardedFor: "203.0.113.9", forwarded: "for=203.0.113.9" };
    assert.equal(clientAddress(hops, noProxies), "198.51.100.7");
    assert.equal(clientAddress(hops, trusted), "198.51.100.7");
    assert.equal(clientAddress({ ...hops, peer: "::ffff:198.51.100.7" }, trusted), "198.51.100.7");
  });

  it("is the last one that no trusted proxy has, read backwards; what stands before it is a claim", () => {
    const cases: [string, string][] = [
      ["203.0.113.9", "203.0.113.9"],
      ["1.2.3.4, 203.0.113.9", "203.0.113.9"],
      ["1.2.3.4, 203.0.113.9, 10.1.1.1", "203.0.113.9"],
      ["10.9.9.9, 10.1.1.1", "10.9.9.9"],
      ["203.0.113.9:4711", "203.0.113.9"],
      ["[2001:db8::0:1]:4711", "2001:db8::1"],
      ["2001:DB8:0::1", "2001:db8::1"],
      ["fd00::5,10.2.3.4", "fd00::5"],
      ["203.0.113.9, unknown, 10.1.1.1", "10.1.1.1"],
      ["203.0.113.9, ", "10.0.0.1"],
    ];
    for (const [forwardedFor, expected] of cases) {
      assert.equal(clientAddress({ peer: "10.0.0.1", forwardedFor }, trusted), expected, forwardedFor);
    }
    assert.equal(clientAddress({ peer: "10.0.0.1" }, trusted), "10.0.0.1");
  });

  it("is read from Forwarded as well; where the two headers disagree nobody is believed", () => {
    const peer = "::ffff:10.0.0.1";
    const forwarded = 'for=1.2.3.4;proto=https, For="[2001:db8::9]:47"; by=10.0.0.2, for=10.7.7.7';
    assert.equal(clientAddress({ peer, forwarded }, trusted), "2001:db8::9");
    assert.equal(clientAddress({ peer, forwarded: "for=_hidden" }, trusted), "10.0.0.1");
    assert.equal(clientAddress({ peer, forwarded, forwardedFor: "2001:db8::9" }, trusted), "2001:db8::9");
    assert.equal(clientAddress({ peer, forwarded, forwardedFor: "203.0.113.9" }, trusted), "10.0.0.1");
  });

  it("counts by the /64 in IPv6", () => {
    assert.equal(addressGroup("2001:db8:1:2:3:4:5:6"), addressGroup("2001:db8:1:2::9"));
    assert.notEqual(addressGroup("2001:db8:1:2::9"), addressGroup("2001:db8:1:3::9"));
    assert.equal(addressGroup("::ffff:192.0.2.7"), "192.0.2.7");
    assert.equal(addressGroup("direct"), "direct");
  });
});

describe("the list of trusted proxies", () => {
  it("names the entry that is none", () => {
    for (const list of ["10.0.0.0/8,proxy", "10.0.0.0/40", "10.0.0"]) {
      assert.throws(() => parseTrustedProxies(list), /Expected CIDRs .* got /, list);
    }
    assert.equal(parseTrustedProxies(" ").includes("127.0.0.1"), false);
  });
});
