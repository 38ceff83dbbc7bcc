/** What a run asks of a person, as a form: an approval with what may be changed, or an answer in its own words. */
import { element } from "../talk/dom.js";
import { FieldError, SchemaForm, schemaOf, textOf } from "./schema_form.js";

/**
 * @param {object} request data of `input.requested`
 * @param {(response: object) => Promise<void>} answer sends it; throws with the server's `details`
 * @returns {HTMLElement}
 */
export function requestForm(request, answer) {
  const isApproval = request.type === "approval_request";
  const title = element("h3", { id: `request-${request.id}` }, request.prompt);
  const problem = element("p", { class: "problem", role: "alert" });
  problem.hidden = true;
  const fieldsBox = element("div", { class: "fields" });
  const form = isApproval ? approvalForm(fieldsBox, request) : feedbackForm(fieldsBox, request);
  const comment = element("input", {
    type: "text",
    id: `comment-${request.id}`,
    maxlength: "10000",
    autocomplete: "off",
  });
  const buttons = [];

  const send = async (decision) => {
    problem.hidden = true;
    for (const button of buttons) button.disabled = true;
    try {
      const said = comment.value.trim();
      const content = decision === "reject" ? {} : form.content();
      await answer({ input_request_id: request.id, decision, ...content, ...(said && { comment: said }) });
    } catch (error) {
      for (const button of buttons) button.disabled = false;
      if (error instanceof FieldError || form.fields.showProblems(error.details ?? {}, `responses.0.${form.prefix}`))
        return;
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };
  const button = (kind, decision, text) => {
    const one = element("button", { type: decision === "reject" ? "button" : "submit", class: kind }, text);
    if (decision === "reject") one.addEventListener("click", () => send("reject"));
    buttons.push(one);
    return one;
  };
  const actions = isApproval
    ? [button("primary", "approve", "Approve"), button("secondary", "reject", "Reject")]
    : [button("primary", "respond", "Answer")];
  const node = element(
    "form",
    { class: "request", "aria-labelledby": title.id, novalidate: true },
    element("p", { class: "kicker" }, isApproval ? "Approval" : "Feedback", expiryOf(request)),
    title,
    knownParams(request, isApproval),
    fieldsBox,
    element(
      "div",
      { class: "field" },
      element("label", { for: comment.id }, "Comment", element("span", { class: "optional" }, "optional")),
      comment,
    ),
    problem,
    element("div", { class: "actions" }, ...actions),
  );
  node.addEventListener("submit", (event) => {
    event.preventDefault();
    void send(isApproval ? "approve" : "respond");
  });
  return node;
}

/** Only what was changed is sent. */
function approvalForm(place, { params, editable_params: names }) {
  const properties = Object.fromEntries(names.map((name) => [name, schemaOf(params[name])]));
  if (names.length === 0) return { fields: { showProblems: () => false }, prefix: "params", content: () => ({}) };
  const fields = new SchemaForm(place, { type: "object", properties }, params);
  const content = () => {
    const changed = Object.entries(fields.read()).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(params[name]),
    );
    return changed.length > 0 ? { params: Object.fromEntries(changed) } : {};
  };
  return { fields, prefix: "params", content };
}

function feedbackForm(place, { response_schema: schema }) {
  if (schema?.type === "object" && schema.properties) {
    const fields = new SchemaForm(place, schema);
    return { fields, prefix: "feedback", content: () => ({ feedback: fields.read() }) };
  }
  const node = { ...(schema ?? { type: "string" }), required: true };
  const fields = new SchemaForm(place, { type: "object", properties: { answer: node } });
  return { fields, prefix: "feedback", content: () => ({ feedback: fields.read().answer ?? null }) };
}

/** What cannot be changed, to read. */
function knownParams({ params, editable_params: editable }, isApproval) {
  const shown = Object.entries(params).filter(([name]) => !isApproval || !editable.includes(name));
  if (shown.length === 0) return undefined;
  return element(
    "dl",
    { class: "values" },
    ...shown.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, textOf(value)))),
  );
}

function expiryOf({ expires_at: expiresAt }) {
  if (!expiresAt) return undefined;
  const date = new Date(expiresAt);
  const text = date.toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  return element("span", { class: "expiry" }, "until ", element("time", { datetime: expiresAt }, text));
}
