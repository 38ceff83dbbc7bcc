/** What our mails say, in plain text and as HTML. */

export interface Letter {
  subject: string;
  paragraphs: readonly string[];
  /** What the link does. */
  action?: string;
  link?: string;
  closing: string;
}

const notYou = "If you did not ask for this, you need do nothing.";

export const letters = {
  verify_email: (link: string): Letter => ({
    subject: "Confirm your e-mail address",
    paragraphs: ["Welcome to Frontdesk. Please confirm that this address is yours.", "The link works for 48 hours."],
    action: "Confirm the address",
    link,
    closing: notYou,
  }),
  reset_password: (link: string): Letter => ({
    subject: "Set a new password",
    paragraphs: ["Somebody asked for a new password for your account.", "The link works once, within an hour."],
    action: "Set a new password",
    link,
    closing: `${notYou} Your password stays as it is.`,
  }),
  invitation: (link: string, organization: string): Letter => ({
    subject: `You are invited to ${singleLine(organization)}`,
    paragraphs: [
      `You are invited to work with ${singleLine(organization)} on Frontdesk.`,
      "The link works once, within 7 days. If you have an account already, sign in there with its password.",
    ],
    action: "Accept the invitation",
    link,
    closing: "If you did not expect this, you need do nothing.",
  }),
};

export function renderLetter(letter: Letter): { subject: string; text: string; html: string } {
  const { subject, paragraphs, action, link, closing } = letter;
  const text = [...paragraphs, ...(link ? [`${action}:\n${link}`] : []), closing].join("\n\n");
  const html = [
    "<!doctype html>",
    `<html lang="en"><head><meta charset="utf-8"><title>${escaped(subject)}</title></head>`,
    '<body style="font-family: sans-serif; line-height: 1.5; max-width: 36em">',
    ...paragraphs.map((paragraph) => `<p>${escaped(paragraph)}</p>`),
    ...(link ? [`<p><a href="${escaped(link)}">${escaped(action ?? link)}</a></p>`] : []),
    `<p>${escaped(closing)}</p>`,
    "</body></html>",
  ].join("\n");
  return { subject, text: `${text}\n`, html: `${html}\n` };
}

/** An organization's name is somebody's free text: it may not end a header or pretend to be our words. */
export const singleLine = (text: string) => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").slice(0, 100);

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
