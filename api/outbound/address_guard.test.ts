import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { describe, it } from "node:test";
import fc from "fast-check";
import { AddressRefusedError, addressProblem, checkPublicUrl, type ResolvedAddress } from "./address_guard.ts";
import { createGuardedHttp } from "./guarded_http.ts";

const publicly = async (): Promise<ResolvedAddress[]> => [{ address: "93.184.216.34", family: 4 }];
const rules = { protocols: ["https:", "http:"], allowPrivateAddresses: false, resolve: publicly };

/** Hosts by which requests have been smuggled inside; every one must be refused. */
const smuggled = [
  // loopback and its spellings
  "127.0.0.1",
  "127.1",
  "127.0.1",
  "127.255.255.254",
  "2130706433",
  "0x7f000001",
  "0x7f.1",
  "0177.0.0.1",
  "017700000001",
  "127.0.0.1.",
  "①②⑦.⓪.⓪.①",
  "１２７.0.0.1",
  "127。0。0。1",
  "%31%32%37.0.0.1",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[0000::0001]",
  "localhost",
  "LOCALHOST",
  "localhost.",
  "a.localhost",
  "localhost.localdomain",
  // unspecified
  "0.0.0.0",
  "0",
  "0x0",
  "[::]",
  // private, link-local and metadata services
  "10.0.0.1",
  "10.255.255.255",
  "172.16.0.1",
  "172.31.255.254",
  "192.168.0.1",
  "192.168.1",
  "169.254.169.254",
  "168.63.129.16",
  "2822734096",
  "[::ffff:168.63.129.16]",
  "2852039166",
  "0xa9fea9fe",
  "[fe80::1]",
  "[fc00::1]",
  "[fd00:ec2::254]",
  "[fec0::1]",
  "metadata.google.internal",
  "printer.local",
  "router",
  "nas.home.arpa",
  // carrier-grade NAT, multicast, broadcast, reserved, documentation, benchmarking
  "100.64.0.1",
  "100.127.255.255",
  "224.0.0.1",
  "239.255.255.250",
  "255.255.255.255",
  "240.0.0.1",
  "192.0.0.8",
  "192.0.2.1",
  "198.51.100.7",
  "203.0.113.9",
  "198.18.0.1",
  "192.88.99.1",
  "[ff02::1]",
  "[2001:db8::1]",
  "[100::1]",
  // IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[::ffff:10.0.0.1]",
  "[::127.0.0.1]",
  "[::ffff:0:127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[64:ff9b::10.0.0.1]",
  "[64:ff9b:1::a00:1]",
  "[2002:7f00:1::]",
  "[2001:0:7f00:1::]",
];

describe("the address guard", () => {
  it(`refuses each of ${smuggled.length} hosts that lead inside`, async () => {
    assert.ok(smuggled.length >= 40);
    for (const host of smuggled) {
      await assert.rejects(checkPublicUrl(`http://${host}/`, rules), AddressRefusedError, `${host} was let through`);
    }
  });

  it("lets public hosts and addresses pass", async () => {
    for (const host of ["example.com", "93.184.216.34", "[2606:4700::1111]", "xn--mnchen-3ya.de", "example.com."]) {
      assert.equal((await checkPublicUrl(`https://${host}/hook?x=1`, rules)).protocol, "https:");
    }
  });

  it("refuses other schemes, credentials in the URL and what is no URL", async () => {
    const httpsOnly = { ...rules, protocols: ["https:"] };
    for (const text of [
      "http://example.com",
      "ftp://example.com",
      "file:///etc/passwd",
      "gopher://example.com",
      "https://u:p@example.com",
      "//example.com",
      "",
      "https://",
    ]) {
      await assert.rejects(checkPublicUrl(text, httpsOnly), AddressRefusedError, text);
    }
  });

  it("refuses a name when one of its addresses is private, and a name that does not resolve", async () => {
    const mixed = async () => [...(await publicly()), { address: "10.0.0.1", family: 4 }];
    await assert.rejects(checkPublicUrl("https://a.example", { ...rules, resolve: mixed }), /10\.0\.0\.1/);
    const unknown = async () => Promise.reject(new Error("ENOTFOUND"));
    await assert.rejects(checkPublicUrl("https://a.example", { ...rules, resolve: unknown }), /does not resolve/);
    await assert.rejects(
      checkPublicUrl("https://a.example", { ...rules, resolve: async () => [] }),
      /does not resolve/,
    );
  });

  it("refuses every address of the private IPv4 blocks, in every embedding", () => {
    const octet = fc.nat(255);
    const inside = fc.oneof(
      fc.tuple(fc.constant(10), octet, octet, octet),
      fc.tuple(fc.constant(127), octet, octet, octet),
      fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
      fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
      fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
      fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
      fc.tuple(fc.integer({ min: 224, max: 255 }), octet, octet, octet),
    );
    fc.assert(
      fc.property(inside, fc.constantFrom("", "::ffff:", "::", "64:ff9b::"), (octets, prefix) => {
        assert.ok(addressProblem(prefix + octets.join(".")));
      }),
    );
  });
});

describe("guarded HTTP", () => {
  /** A server that must never be reached unless the guard is off. */
  async function withServer<T>(use: (port: number, hits: () => number) => Promise<T>): Promise<T> {
    let hits = 0;
    const server = createServer((req, res) => {
      hits += 1;
      if (req.url === "/redirect") res.writeHead(302, { location: "/landed" }).end();
      else res.end("x".repeat(100_000));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      return await use((server.address() as AddressInfo).port, () => hits);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  it("dials no reserved address, be it literal or resolved", async () => {
    await withServer(async (port, hits) => {
      const http = createGuardedHttp({
        allowPrivateAddresses: false,
        resolve: async () => [{ address: "127.0.0.1", family: 4 }],
      });
      for (const host of ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "rebound.example", "2130706433"]) {
        const sent = http.send(`http://${host}:${port}/`, { method: "GET", responseBytesMax: 1000 });
        await assert.rejects(sent, AddressRefusedError, host);
      }
      assert.equal(hits(), 0);
      await http.close();
    });
  });

  it("is not fooled by a resolver that answers publicly first and privately second", async () => {
    await withServer(async (port, hits) => {
      let asked = 0;
      const rebinding = async (): Promise<ResolvedAddress[]> => {
        asked += 1;
        return asked === 1 ? publicly() : [{ address: "127.0.0.1", family: 4 }];
      };
      const url = await checkPublicUrl(`http://rebinding.example:${port}/`, { ...rules, resolve: rebinding });
      const http = createGuardedHttp({ allowPrivateAddresses: false, resolve: rebinding });
      await assert.rejects(http.send(url, { method: "POST", body: "{}", responseBytesMax: 1000 }), AddressRefusedError);
      assert.deepEqual({ asked, hits: hits() }, { asked: 2, hits: 0 });
      await http.close();
    });
  });

  it("follows no redirect and reads no more than it was told", async () => {
    await withServer(async (port, hits) => {
      const http = createGuardedHttp({ allowPrivateAddresses: true });
      const moved = await http.send(`http://127.0.0.1:${port}/redirect`, { method: "POST", responseBytesMax: 1000 });
      assert.deepEqual({ status: moved.status, hits: hits() }, { status: 302, hits: 1 });
      const long = await http.send(`http://127.0.0.1:${port}/`, { method: "GET", responseBytesMax: 1000 });
      assert.deepEqual({ bytes: long.body.length, truncated: long.truncated }, { bytes: 1000, truncated: true });
      await http.close();
    });
  });

  it("gives up on who takes a connection and no more, does not answer, or stops in the middle", async () => {
    const http = createGuardedHttp({
      allowPrivateAddresses: true,
      connectTimeoutMs: 100,
      headersTimeoutMs: 100,
      bodyTimeoutMs: 100,
    });
    const half = createServer((request, response) => {
      if (request.url === "/half") response.writeHead(200, { "content-length": "100" }).write("half");
    });
    const mute = createTcpServer((socket) => socket.on("error", () => undefined));
    await Promise.all([half, mute].map((server) => once(server.listen(0, "127.0.0.1"), "listening")));
    const portOf = (server: Pick<typeof mute, "address">) => (server.address() as AddressInfo).port;
    const outcomeOf = (url: string) =>
      http.send(url, { method: "POST", body: "{}", responseBytesMax: 1000 }).then(
        () => "answered",
        (error: { code?: string }) => error.code,
      );
    const outcomes = await Promise.all([
      outcomeOf(`https://127.0.0.1:${portOf(mute)}/`),
      outcomeOf(`http://127.0.0.1:${portOf(half)}/silent`),
      outcomeOf(`http://127.0.0.1:${portOf(half)}/half`),
    ]);
    assert.deepEqual(outcomes, ["UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);
    await http.close();
    half.closeAllConnections();
    half.close();
    mute.close();
  });
});
