/** The page: signs in, lets a person pick an app, start or open a run, and joins stream and views. */
import { byId, element } from "../talk/dom.js";
import { forgetToken, keepToken, redeemSignInLink, storedToken } from "../talk/management.js";
import { EarlierRuns } from "./earlier_runs.js";
import { loadNodeKinds } from "./node_kinds.js";
import { forgetEvents } from "./run_memory.js";
import { RunView } from "./run_view.js";
import { cancelRun, getVersion, listApps, startRun } from "./runs_api.js";
import { FieldError, SchemaForm } from "./schema_form.js";

const apps = new Map();
const versions = new Map();
let picked;
let form;
let asJson = false;

const view = new RunView({ complain, changed: () => earlier.refresh() });
const earlier = new EarlierRuns((run) => address(picked.id, run.id), complain);

// Signing in

async function begin() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    // The code is used up in a moment: it has no business in the history or in a bookmark.
    history.replaceState(null, "", location.pathname);
    signInMessage("Signing you in…");
    show("sign-in");
    try {
      await redeemSignInLink(code);
    } catch (error) {
      return signInMessage(
        error.status === 410 || error.status === 400
          ? "This sign-in link has been used already, or it is too old: each link works once, within an hour. Start Frontdesk again and open the new link that it prints."
          : `Signing in did not work: ${error.message}`,
      );
    }
  }
  if (!storedToken()) return show("sign-in");
  if (document.body.dataset.screen === "desk") await followAddress();
  else await enterDesk();
}

async function enterDesk() {
  try {
    const [list] = await Promise.all([listApps(), loadNodeKinds()]);
    apps.clear();
    for (const app of list) apps.set(app.id, app);
  } catch (error) {
    if (error.status === 401) forgetToken();
    show("sign-in");
    return signInMessage(
      error.status === 401
        ? "That sign-in is not valid any more. Start Frontdesk again and open the new link that it prints."
        : `The apps could not be listed: ${error.message}`,
    );
  }
  showApps();
  show("desk");
  await followAddress();
}

function show(screen) {
  document.body.dataset.screen = screen;
}

function signInMessage(text) {
  byId("sign-in-message").textContent = text;
}

byId("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  keepToken({ token, expires_at: new Date(Date.now() + 12 * 3600_000).toISOString() });
  byId("token").value = "";
  await enterDesk();
});

byId("sign-out").addEventListener("click", () => signOut("You are signed out. Open a new sign-in link to come back."));

function signOut(message) {
  view.leave();
  forgetToken();
  forgetEvents();
  history.replaceState(null, "", location.pathname);
  signInMessage(message);
  show("sign-in");
}

/** Says what went wrong, in the run's own place. */
function complain(error) {
  if (error?.status === 401)
    return signOut("Your sign-in has ended. Start Frontdesk again and open the new link that it prints.");
  const notice = byId("notice");
  notice.textContent = error instanceof Error ? error.message : String(error);
  notice.hidden = false;
}

// The address names the app and the run: a reload, a bookmark and the back button all lead there.

function address(appId, runId) {
  location.hash = runId ? `app=${appId}&run=${runId}` : `app=${appId}`;
}

async function followAddress() {
  const named = new URLSearchParams(location.hash.slice(1));
  const app = apps.get(named.get("app")) ?? apps.get(picked?.id) ?? [...apps.values()][0];
  if (!app) return;
  byId("notice").hidden = true;
  const runId = apps.has(named.get("app")) ? named.get("run") : undefined;
  if (runId && view.runId === runId) return;
  view.leave();
  try {
    const isOther = picked?.id !== app.id;
    picked = app;
    showPicked();
    const version = await versionOf(app, app.workflow_version_id);
    if (picked !== app) return;
    showForm(version.definition);
    view.clear(version.definition);
    if (isOther) await earlier.show(app.id);
    if (runId) await view.open(app, runId, (versionId) => versionOf(app, versionId));
  } catch (error) {
    complain(error);
  }
}

async function versionOf(app, versionId) {
  if (!versions.has(versionId)) versions.set(versionId, await getVersion(app.workflow_id, versionId));
  return versions.get(versionId);
}

addEventListener("hashchange", () => begin());

// Apps

function showApps() {
  byId("apps-empty").hidden = apps.size > 0;
  byId("start").disabled = apps.size === 0;
  byId("apps").replaceChildren(
    ...[...apps.values()].map((app) =>
      element(
        "label",
        { class: "agent-card" },
        element("input", { type: "radio", name: "app", value: app.id, onchange: () => address(app.id) }),
        element("span", { class: "agent-name" }, app.name),
        element("span", { class: "agent-about" }, app.description || app.hostname),
      ),
    ),
  );
}

function showPicked() {
  byId("run-title").textContent = picked.name;
  byId("app-about").textContent = picked.hostname;
  for (const input of byId("apps").querySelectorAll("input")) input.checked = input.value === picked.id;
}

// Starting a run

function showForm(definition) {
  const filled = form && form.appId === picked.id ? read(form) : undefined;
  form = new SchemaForm(byId("input-fields"), asJson ? undefined : definition.input, filled);
  Object.assign(form, { appId: picked.id, definition });
}

function read(given) {
  try {
    return given.read();
  } catch {
    return undefined;
  }
}

byId("as-json").addEventListener("click", () => {
  asJson = !asJson;
  byId("as-json").setAttribute("aria-pressed", String(asJson));
  if (form) showForm(form.definition);
});

byId("start-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!picked || !form || byId("start").disabled) return;
  const app = picked;
  byId("notice").hidden = true;
  byId("start").disabled = true;
  try {
    const run = await startRun(app.id, form.read(), newKey());
    address(app.id, run.id);
    await earlier.refresh();
  } catch (error) {
    if (!(error instanceof FieldError) && !form.showProblems(error.details ?? {}, "input")) complain(error);
  }
  byId("start").disabled = false;
});

// Enter starts, as in a chat; with Shift it is a new line.
byId("input-fields").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.target.tagName !== "TEXTAREA") return;
  if (event.target.classList.contains("json")) return;
  event.preventDefault();
  byId("start-form").requestSubmit();
});

function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// What can be done with a run

byId("cancel").addEventListener("click", async () => {
  byId("cancel").disabled = true;
  try {
    await cancelRun(picked.id, view.runId);
  } catch (error) {
    complain(error);
  }
  byId("cancel").disabled = false;
});

byId("new-run").addEventListener("click", async () => {
  history.pushState(null, "", `#app=${picked.id}`);
  await followAddress();
  byId("input-fields").querySelector("textarea, input, select")?.focus();
});

// On a phone the log would push everything else away.
byId("events-panel").open = matchMedia("(min-width: 761px)").matches;

addEventListener("pagehide", () => view.keep());

await begin();
