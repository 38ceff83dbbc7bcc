import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { publicAccess, type Route, route } from "../route.ts";
import { openApiFor } from "./open_api.ts";

const errors = { schema: { type: "object" }, invalidRequest: "unprocessable" } as const;
const info = { title: "T", version: "1", description: "D" };
const Thing = named("Thing", Type.Object({ data: Type.Object({ id: Type.String() }) }));

// biome-ignore lint/suspicious/noExplicitAny: a test reads the document as a client in JavaScript does
const documentOf = (routes: readonly Route[]): any => JSON.parse(JSON.stringify(openApiFor(info, errors, routes)));

const create = route({
  method: "POST",
  path: "/v1/things",
  summary: "Make a thing",
  guard: publicAccess,
  body: named("NewThing", Type.Object({ name: Type.Optional(Type.String()) }), { name: "what people call it" }),
  reply: { status: 201, body: Thing },
  otherReplies: { 200: "The thing that was made before" },
  examples: {
    a_thing: { body: { name: "A" } },
    too_long_a_name: { body: { name: "AAAA" }, status: 422, answer: { detail: "too long" } },
  },
  handle: async () => ({ data: { id: "1" } }),
});
const read = route({
  method: "GET",
  path: "/v1/things/{thing_id}/{part}",
  summary: "A part of a thing",
  guard: publicAccess,
  params: { part: Type.Integer() },
  query: { wide: Type.Optional(Type.Boolean()), unit: Type.String() },
  reply: { status: 200, body: named("Part", Type.String()), mediaType: "application/xml" },
  paramsFrom: { thing_id: { route: "POST /v1/things", field: "data.id" } },
  examples: { in_metres: { query: { unit: "m" } } },
  handle: async () => "<a/>",
});

describe("the OpenAPI document of routes", () => {
  const { paths, components } = documentOf([create, read]);
  const created = paths["/v1/things"].post;
  const part = paths["/v1/things/{thing_id}/{part}"].get;

  it("shows each part of an example where OpenAPI has room for it", () => {
    const { examples } = created.requestBody.content["application/json"];
    assert.deepEqual(examples.a_thing, { summary: "a thing", value: { name: "A" } });
    const refused = created.responses["422"].content["application/json"].examples;
    assert.deepEqual(refused, { too_long_a_name: { summary: "too long a name", value: { detail: "too long" } } });
    const unit = part.parameters.find((one: { name: string }) => one.name === "unit");
    assert.deepEqual([unit.required, unit.examples.in_metres.value], [true, "m"]);
    assert.equal(part.parameters.find((one: { name: string }) => one.name === "wide").required, false);
  });

  it("links what gives out an id to what takes it", () => {
    const link = { operationId: part.operationId, parameters: { "path.thing_id": "$response.body#/data/id" } };
    assert.deepEqual(created.responses["201"].links, { [part.operationId]: link });
    assert.equal(part.operationId, "get_v1_things_thing_id_part");
    assert.equal(part.responses["200"].links, undefined);
  });

  it("tells other success answers, other media types, and bodies that may be left out", () => {
    assert.equal(created.responses["200"].description, "The thing that was made before");
    assert.deepEqual(Object.keys(part.responses["200"].content), ["application/xml"]);
    assert.equal(created.requestBody.required, false);
    assert.deepEqual(components.securitySchemes, {});
  });

  it("has a recursive schema once, and refers to it", () => {
    const Tree = named(
      "Tree",
      Type.Recursive((self) => Type.Object({ children: Type.Array(self) }), { $id: "Tree" }),
    );
    const make = (path: "/v1/a" | "/v1/b") =>
      route({
        method: "POST",
        path,
        summary: "Plant",
        guard: publicAccess,
        body: Tree,
        reply: { status: 200, body: Tree },
        handle: async ({ body }) => body,
      });
    const document = documentOf([make("/v1/a"), make("/v1/b")]);
    const reference = { $ref: "#/components/schemas/Tree" };
    for (const path of ["/v1/a", "/v1/b"]) {
      const { requestBody, responses } = document.paths[path].post;
      assert.deepEqual(requestBody.content["application/json"].schema, reference);
      assert.deepEqual(responses["200"].content["application/json"].schema, reference);
    }
    assert.deepEqual(document.components.schemas.Tree.properties.children.items, reference);
    assert.ok(!JSON.stringify(document).includes("$id"));
  });

  it("says of a choice without any words that nothing fits, and leaves our gateway's own routes out", () => {
    const common = {
      method: "POST",
      summary: "S",
      reply: { status: 204 },
      handle: async () => new Response(),
    } as const;
    const choice = route({
      ...common,
      path: "/v1/c",
      guard: publicAccess,
      body: named("Choice", Type.Object({ one: oneOf([]) })),
    });
    const internal = route({
      ...common,
      path: "/internal/x",
      guard: { scheme: "internal_secret", check: async () => undefined },
    });
    const document = documentOf([choice, internal]);
    assert.deepEqual(document.paths["/v1/c"].post.requestBody.content["application/json"].schema, {
      $ref: "#/components/schemas/Choice",
    });
    assert.deepEqual(document.components.schemas.Choice.properties.one, { not: {} });
    assert.deepEqual(Object.keys(document.paths), ["/v1/c"]);
  });

  it("cannot be made of routes whose schemas have no name, or one name for two schemas", () => {
    const common = { method: "POST", summary: "S", guard: publicAccess, handle: async () => ({ a: "" }) } as const;
    const body = Type.Object({ a: Type.String() });
    const reply = { status: 200, body: named("Reply", body) } as const;
    // @ts-expect-error: a body without a name
    route({ ...common, path: "/v1/a", body, reply });
    const one = route({ ...common, path: "/v1/a", body: named("Same", body), reply });
    const other = route({ ...common, path: "/v1/b", body: named("Same", Type.Object({ b: Type.String() })), reply });
    assert.throws(() => documentOf([one, other]), /Two schemas have the name Same/);
  });

  it("puts words before what a wrong value is told, and knows fields that mean the same everywhere", () => {
    const text = Type.String({ pattern: "\\S", description: "text that is not blank" });
    const schema = named("Worded", Type.Object({ name: text, created_at: Type.String(), odd: Type.String() }), {
      name: "what people call it",
    });
    const reply = { status: 200, body: schema } as const;
    const worded = route({
      method: "GET",
      path: "/v1/w",
      summary: "S",
      guard: publicAccess,
      reply,
      handle: async () => ({ name: "", created_at: "", odd: "" }),
    });
    const { properties } = documentOf([worded]).components.schemas.Worded;
    assert.equal(properties.name.description, "what people call it: text that is not blank");
    assert.deepEqual([properties.created_at.description, properties.odd.description], ["when it was made", undefined]);
  });
});
