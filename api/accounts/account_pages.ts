/**
 * The pages that links in mail open: confirm an address, set a password, accept an invitation. The
 * token stands in the fragment, which browsers send to nobody; a mail scanner that only opens the
 * link uses nothing up.
 */
import { createHash } from "node:crypto";

interface Page {
  title: string;
  button: string;
  asksPassword: boolean;
  /** A box to tick, by the field of the request that it sets. */
  choice?: { field: string; label: string };
  /** What is shown in the end; what the service says, when absent. */
  done?: string;
  /** Where the form goes, with the token in the path as `{token}` or in the body. */
  endpoint: string;
}

const pages: Readonly<Record<string, Page>> = {
  "/account/verify-email": {
    title: "Confirm your e-mail address",
    button: "Confirm the address",
    asksPassword: false,
    done: "Thank you. The address is confirmed.",
    endpoint: "/v1/auth/verify-email",
  },
  "/account/reset-password": {
    title: "Set a new password",
    button: "Set the password",
    asksPassword: true,
    choice: {
      field: "keep_personal_access_tokens",
      label: "I forgot the password, nobody stole it: programs that use my personal access tokens go on",
    },
    endpoint: "/v1/auth/reset-password",
  },
  "/account/invitation": {
    title: "Accept the invitation",
    button: "Accept",
    asksPassword: true,
    done: "You belong to the organization now.",
    endpoint: "/v1/orgs/invitations/{token}/accept",
  },
};

const script = `
const form = document.querySelector("form");
const output = document.querySelector("output");
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
history.replaceState(null, "", location.pathname);
const post = async (path, body) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(path.replace("{token}", encodeURIComponent(token)), { method: "POST", headers, body: JSON.stringify(body) });
  const reply = await response.json();
  if (response.ok) return reply;
  const { detail } = reply;
  throw new Error(typeof detail === "string" ? detail : detail.map(({ loc, msg }) => loc.slice(1).join(".") + ": " + msg).join("\\n"));
};
const preview = form.dataset.preview;
if (preview) {
  post(preview, {}).then(
    ({ organization_name, email, has_account }) => {
      output.textContent = organization_name + " invites " + email + ". " +
        (has_account ? "Accept with the password of your account." : "Choose a password of at least 8 characters.");
    },
    (error) => { output.textContent = error.message; },
  );
}
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const password = form.elements.password?.value;
  const inPath = form.dataset.endpoint.includes("{token}");
  const chosen = [...form.querySelectorAll("input[type=checkbox]")].map(({ name, checked }) => [name, checked]);
  const body = { ...(password === undefined ? {} : { password }), ...Object.fromEntries(chosen) };
  try {
    const reply = await post(form.dataset.endpoint, inPath ? body : { ...body, token });
    output.textContent = form.dataset.done ?? reply.message;
    form.hidden = true;
  } catch (error) {
    output.textContent = error.message;
  }
});
`;

const headers = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "content-security-policy": [
    "default-src 'none'",
    `script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`,
    "style-src 'unsafe-inline'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
};

function htmlOf({ title, button, asksPassword, choice, done, endpoint }: Page): string {
  const preview = endpoint.includes("{token}") ? ` data-preview="${endpoint.replace("/accept", "/preview")}"` : "";
  const field = `<p><label>Password<br><input name="password" type="password" required autocomplete="current-password"></label></p>`;
  const box = choice && `<p><label><input type="checkbox" name="${choice.field}"> ${choice.label}</label></p>`;
  const closing = done === undefined ? "" : ` data-done="${done}"`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 26rem; margin: 4rem auto; padding: 0 1rem }
input, button { font: inherit; padding: .4rem .7rem } output { display: block; margin-top: 1rem; white-space: pre-line }</style>
</head>
<body>
<h1>${title}</h1>
<form data-endpoint="${endpoint}"${closing}${preview}>
${asksPassword ? field : ""}${box ?? ""}
<button>${button}</button>
</form>
<output role="status"></output>
<script>${script}</script>
</body>
</html>
`;
}

/** By path, as the service serves documents. */
export const accountPages: Readonly<Record<string, () => Promise<Response>>> = Object.fromEntries(
  Object.entries(pages).map(([path, page]) => {
    const html = htmlOf(page);
    return [path, async () => new Response(html, { headers })];
  }),
);
