/** `docs/CODES.md`, made from the catalogues of codes that a client can see. */
import { type CodeEntry, callErrorCodes, callFailureCodes, callWarningCodes, runErrorCodes } from "#contracts/codes.ts";
import { errorCatalogue } from "#contracts/errors.ts";
import { closeCodes, refusals } from "#contracts/voice_protocol.ts";
import { closeWording, refusalWording } from "#gateway/protocol/wording.ts";

export function codesPage(): string {
  return `${[
    "# Every code that a client can see",
    "Made from the catalogues in `api/contracts/` by `npm run house -- --write`. New codes may come; what a code means does not change.",
    section("HTTP errors of the platform", "`error.code`, with the status beside it.", httpErrors()),
    section("Runs and their nodes", "`error.code` of a run and of a node's failure.", reasons(runErrorCodes)),
    section("Warnings in a call", "`code` of the message `warning`: the call goes on.", reasons(callWarningCodes)),
    section(
      "Errors in a call",
      "`code` of the message `error`; the call goes on unless `fatal`.",
      reasons(callErrorCodes),
    ),
    section(
      "Calls that ended by an error",
      "`error_code` of a call's record, or the reason of the close below.",
      reasons(callFailureCodes),
    ),
    section("Close codes of a call's socket", "The reason text is the code.", closes()),
    section("Refused upgrades", "The body is `{code}`.", refused()),
  ].join("\n\n")}\n`;
}

function section(title: string, text: string, rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows;
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [`## ${title}`, "", text, "", line(head), `|${"---|".repeat(head.length)}`, ...body.map(line)].join("\n");
}

function reasons(catalogue: Readonly<Record<string, CodeEntry>>): string[][] {
  const rows = Object.entries(catalogue).map(([code, { text, retryable }]) => [`\`${code}\``, text, yes(retryable)]);
  return [["Code", "Means", "Again?"], ...rows];
}

function httpErrors(): string[][] {
  const again = new Set([408, 429, 503]);
  const rows = Object.entries(errorCatalogue).map(([code, { status, message }]) => [
    `\`${code}\``,
    String(status),
    message,
    yes(again.has(status)),
  ]);
  return [["Code", "Status", "Message", "Again?"], ...rows];
}

function closes(): string[][] {
  const rows = Object.entries(closeCodes).map(([reason, { code, mayResume }]) => [
    `\`${reason}\``,
    String(code),
    closeWording[reason as keyof typeof closeCodes],
    yes(mayResume),
  ]);
  return [["Reason", "Code", "Means", "Come back?"], ...rows];
}

function refused(): string[][] {
  const rows = Object.entries(refusals).map(([code, status]) => [
    `\`${code}\``,
    String(status),
    refusalWording[code as keyof typeof refusals],
  ]);
  return [["Code", "Status", "Means"], ...rows];
}

function yes(is: boolean): string {
  return is ? "yes" : "";
}
