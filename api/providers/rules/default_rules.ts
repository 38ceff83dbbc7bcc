/** What a `rules` agent knows before anyone has written rules for it. */
import type { Rule } from "./options.ts";

export const defaultRules: readonly Rule[] = [
  {
    intent: "farewell",
    patterns: ["\\b(good ?bye|bye|see you|hang up|that('s| is) all|have a (nice|good|great) (day|evening|night))\\b"],
    say: "Thank you for calling. Goodbye!",
    tool: "end_call",
  },
  {
    intent: "thanks",
    patterns: ["\\b(thanks|thank you|cheers|much appreciated)\\b"],
    say: "You're welcome. Is there anything else I can do for you?",
  },
  {
    intent: "leave_message",
    patterns: [
      "\\b(leave|take|write down|pass on) (a|my|this) (message|note)\\b",
      "\\b(call|phone|ring) me back\\b",
      "\\b(speak|talk) (to|with) (a|an|the|some) ?(human|person|someone|somebody|agent|manager|receptionist|operator)\\b",
    ],
    slots: [
      {
        name: "name",
        prompt: "I'll take a message for the team. What is your name?",
        pattern: "(?:my name is|i am|i'm|this is|it's) (.{1,80})|(.{1,80})",
      },
      { name: "message", prompt: "Thank you, {{name}}. What is your message?" },
    ],
    say: "Thank you, {{name}}. Your message is in the record of this call. Is there anything else?",
  },
  {
    intent: "how_are_you",
    patterns: ["\\bhow (are|do) you( do(ing)?)?\\b"],
    say: "I'm well, thank you. How can I help you?",
  },
  {
    intent: "who_are_you",
    patterns: [
      "\\b(who|what) are you\\b",
      "\\bwhat('s| is) your name\\b",
      "\\bare you (a )?(human|real|robot|bot|machine)\\b",
    ],
    say: "I'm the automatic front desk. I answer from a set of rules.",
  },
  {
    intent: "help",
    patterns: ["\\bhelp\\b", "\\bwhat can (you|i) (do|ask|say)\\b", "\\b(menu|options)\\b", "^0#?$"],
    say: "You can ask me a question, leave a message, or say goodbye.",
  },
  {
    intent: "greeting",
    patterns: ["^(hi|hello|hey|good (morning|afternoon|evening|day)|greetings)\\b"],
    say: "Hello! How can I help you?",
  },
];
