/** A form from a schema node: one labelled field for each property, with the kind of control that fits it. */
import { element } from "../talk/dom.js";

/** What a person typed cannot be read as the field's type; the field is marked. */
export class FieldError extends Error {}

let forms = 0;

export class SchemaForm {
  /**
   * @param {HTMLElement} place its children become the form's fields
   * @param {object | undefined} schema a schema node of type object; without one there is a single field for JSON
   * @param {Record<string, unknown>} [values] what stands in the fields at first
   */
  constructor(place, schema, values = {}) {
    forms += 1;
    this.fields = new Map();
    this.isWhole = !schema?.properties || Object.keys(schema.properties).length === 0;
    const properties = this.isWhole ? { input: { type: "object", description: "A JSON object" } } : schema.properties;
    place.replaceChildren();
    for (const [name, node] of Object.entries(properties)) {
      const value = this.isWhole ? values : values[name];
      const field = makeField(`field-${forms}-${this.fields.size}`, name, node, value);
      this.fields.set(name, field);
      place.append(field.box);
    }
  }

  /** @throws {FieldError} naming the first field whose text does not fit its type */
  read() {
    const values = {};
    for (const [name, field] of this.fields) {
      field.mark("");
      let value;
      try {
        value = field.read();
      } catch (error) {
        field.mark(error.message);
        field.control.focus();
        throw new FieldError(`${name}: ${error.message}`);
      }
      if (value !== undefined) values[name] = value;
    }
    return this.isWhole ? (values.input ?? {}) : values;
  }

  /** Shows the server's remarks at the fields that they name. @returns {boolean} whether all found their field */
  showProblems(details, prefix) {
    let found = 0;
    let first;
    for (const [path, message] of Object.entries(details)) {
      const rest = path.startsWith(`${prefix}.`) ? path.slice(prefix.length + 1) : path;
      const field = this.fields.get(rest) ?? this.fields.get(rest.split(".")[0]);
      if (!field) continue;
      field.mark(message);
      first ??= field;
      found += 1;
    }
    first?.control.focus();
    return found > 0 && found === Object.keys(details).length;
  }
}

function makeField(id, name, node, value) {
  const control = controlFor(node, value);
  const problem = element("p", { class: "problem", id: `${id}-problem` });
  problem.hidden = true;
  const hint = element("span", { class: "hint", id: `${id}-hint` }, hintFor(node));
  control.id = id;
  control.name = name;
  control.setAttribute("aria-describedby", `${id}-hint ${id}-problem`);
  if (node.required) control.setAttribute("aria-required", "true");
  const label = element(
    "label",
    { for: id },
    name,
    ...(node.required ? [] : [element("span", { class: "optional" }, "optional")]),
  );
  const isSwitch = control.type === "checkbox";
  return {
    control,
    box: element(
      "div",
      { class: isSwitch ? "field switch" : "field" },
      ...(isSwitch ? [control, label] : [label, control]),
      hint,
      problem,
    ),
    read: () => readControl(control, node),
    mark(message) {
      problem.textContent = message;
      problem.hidden = !message;
      if (message) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    },
  };
}

function controlFor(node, value) {
  if (Array.isArray(node.enum)) {
    // Nothing is chosen by itself.
    const none = [element("option", { value: "" }, node.required ? "Choose…" : "–")];
    const select = element(
      "select",
      {},
      ...none,
      ...node.enum.map((item, i) => element("option", { value: String(i) }, textOf(item))),
    );
    const chosen = node.enum.findIndex((item) => JSON.stringify(item) === JSON.stringify(value));
    if (chosen >= 0) select.value = String(chosen);
    return select;
  }
  if (node.type === "boolean") {
    const box = element("input", { type: "checkbox" });
    box.checked = value === true;
    return box;
  }
  if (node.type === "number" || node.type === "integer") {
    const number = element("input", {
      type: "number",
      step: node.type === "integer" ? "1" : "any",
      inputmode: "decimal",
    });
    if (value !== undefined) number.value = String(value);
    return number;
  }
  const area = element("textarea", { rows: "2", spellcheck: node.type === "string" ? "true" : "false" });
  if (node.type !== "string") area.classList.add("json");
  if (value !== undefined)
    area.value = node.type === "string" && typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const rows = area.value.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / 60)), 0);
  area.rows = Math.min(12, Math.max(2, rows));
  return area;
}

function readControl(control, node) {
  if (Array.isArray(node.enum)) return control.value === "" ? undefined : node.enum[Number(control.value)];
  if (node.type === "boolean") return control.checked;
  const text = control.value;
  if (node.type === "string") return text === "" && !node.required ? undefined : text;
  if (text.trim() === "") return undefined;
  if (node.type === "number" || node.type === "integer") return Number(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("Expected JSON: check quotes, commas and brackets");
  }
}

function hintFor({ description, type, enum: choices }) {
  const kind =
    choices || type === "string" || type === "boolean"
      ? ""
      : { any: "JSON", array: "a JSON list", object: "a JSON object" }[type];
  return [description, kind && !description?.includes("JSON") ? kind : ""].filter(Boolean).join(" · ");
}

/** A schema node for a value that has none of its own. */
export function schemaOf(value) {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
    return { type: typeof value, required: true };
  return { type: "any" };
}

export function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
