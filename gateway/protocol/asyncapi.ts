/**
 * The AsyncAPI 3.0 document and the JSON Schemas of `voice.v1`, made from the TypeBox schemas in
 * `#contracts/voice_protocol.ts`. Pure; `generate.ts` writes them to disk.
 */
import type { TObject } from "@sinclair/typebox";
import { encodings } from "#contracts/audio_format.ts";
import {
  clientMessageSchemas,
  closeCodes,
  endReasons,
  refusals,
  serverMessageSchemas,
  voiceLimits,
  voiceProtocol,
} from "#contracts/voice_protocol.ts";
import {
  clientMessageWording,
  closeWording,
  endReasonWording,
  refusalWording,
  serverMessageWording,
} from "./wording.ts";

type Json = Record<string, unknown>;
type Side = "server" | "client";

const sides = {
  server: { schemas: serverMessageSchemas, wording: serverMessageWording, audio: "server_audio" },
  client: { schemas: clientMessageSchemas, wording: clientMessageWording, audio: "client_audio" },
} as const;

const audioWording = {
  server_audio:
    "Agent speech in the call's output format: mono, no header, one frame (`output.frame_ms`) a message; one packet a message for opus.",
  client_audio:
    "Caller audio in the call's input format: mono, no header, any length up to 64 KiB (20 ms recommended); one packet a message for opus.",
} as const;

/** A schema as plain JSON: TypeBox's symbols are gone, and the order of keys is the contract's. */
function plain(schema: TObject): Json {
  return JSON.parse(JSON.stringify(schema)) as Json;
}

function schemasOf(side: Side): [type: string, schema: Json, wording: string][] {
  const { schemas, wording } = sides[side];
  return Object.entries<TObject>(schemas).map(([type, schema]) => [
    type,
    plain(schema),
    (wording as Record<string, string>)[type] ?? "",
  ]);
}

/** JSON Schema 2020-12 of any text message of one side; `$defs` holds each message under its `type`. */
export function messageSchemaOf(side: Side): Json {
  const messages = schemasOf(side);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: `${voiceProtocol}: text messages from the ${side}`,
    oneOf: messages.map(([type]) => ({ $ref: `#/$defs/${type}` })),
    $defs: Object.fromEntries(messages.map(([type, schema, description]) => [type, { description, ...schema }])),
  };
}

function componentMessages(side: Side): Json {
  const { audio } = sides[side];
  const text = schemasOf(side).map(([type, schema, summary]) => [
    `${side}_${type}`,
    { name: type, title: type, summary, contentType: "application/json", payload: schema },
  ]);
  const binary = {
    name: audio,
    title: audio,
    summary: audioWording[audio],
    contentType: "application/octet-stream",
    payload: { type: "string", format: "binary", maxLength: voiceLimits.messageBytesMax },
  };
  return Object.fromEntries([...text, [audio, binary]]);
}

function messageNames(side: Side): string[] {
  return Object.keys(componentMessages(side));
}

const callParameters = {
  call_id: { description: "UUID of the reserved call" },
  secret: { description: "at least 32 random bytes, base64url; opens one connection; never log it" },
};

const resumeParameters = {
  call_id: { description: "UUID of the call" },
  token: { description: "`resume.token` of the newest `call_started`; works once" },
};

function channel(address: string, title: string, description: string, parameters: Json, query?: Json): Json {
  const names = [...messageNames("server"), ...messageNames("client")];
  return {
    address,
    title,
    description,
    parameters,
    messages: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    bindings: {
      ws: {
        method: "GET",
        headers: {
          type: "object",
          properties: { "Sec-WebSocket-Protocol": { type: "string", const: voiceProtocol } },
        },
        ...(query && { query }),
        bindingVersion: "0.1.0",
      },
    },
  };
}

function operation(action: "send" | "receive", channelName: string, side: Side): Json {
  return {
    action,
    channel: { $ref: `#/channels/${channelName}` },
    messages: messageNames(side).map((name) => ({ $ref: `#/channels/${channelName}/messages/${name}` })),
  };
}

/** The whole document, seen from the gateway: it sends what `server` messages are and receives the client's. */
export function voiceAsyncapi(): Json {
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Frontdesk voice calls",
      version: "1.0.0",
      description:
        "One voice call over one WebSocket: binary messages are audio, a text message is one flat JSON object with a `type`. Unknown types and fields are ignored in both directions.",
      license: { name: "Apache-2.0" },
    },
    defaultContentType: "application/json",
    servers: {
      gateway: {
        host: "127.0.0.1:8080",
        protocol: "ws",
        description: "Scheme and host come from PUBLIC_URL: dial `websocket_url` of the reservation as it is.",
      },
    },
    channels: {
      call: channel(
        "/v1/voice/calls/{call_id}/{secret}",
        "A reserved call",
        `Opens once, within ${voiceLimits.reservationTtlS} s of the reservation.`,
        callParameters,
      ),
      resume: channel(
        "/v1/voice/calls/{call_id}/resume/{token}",
        "A call whose link was lost",
        `Open for ${voiceLimits.resumeWindowS} s after the loss; text messages after last_seq are sent again.`,
        resumeParameters,
        {
          type: "object",
          properties: { last_seq: { type: "integer", minimum: 0, description: "`seq` of the last message received" } },
        },
      ),
    },
    operations: {
      send_to_caller: operation("send", "call", "server"),
      hear_caller: operation("receive", "call", "client"),
      send_to_resumed_caller: operation("send", "resume", "server"),
      hear_resumed_caller: operation("receive", "resume", "client"),
    },
    components: { messages: { ...componentMessages("server"), ...componentMessages("client") } },
    "x-encodings": [...encodings],
    "x-limits": { ...voiceLimits },
    "x-close-codes": Object.entries(closeCodes).map(([reason, { code, mayResume }]) => ({
      code,
      reason,
      may_resume: mayResume,
      description: closeWording[reason as keyof typeof closeCodes],
    })),
    "x-refusals": Object.entries(refusals).map(([code, status]) => ({
      status,
      body: { code },
      description: refusalWording[code as keyof typeof refusals],
    })),
    "x-end-reasons": endReasons.map((reason) => ({ reason, description: endReasonWording[reason] })),
  };
}
