/** The two agents that the first start makes: a hotel's front desk, and an echo for the first WAV file. */
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";

/** A rule that answers a question and the digit that the welcome message offers for it. */
const answer = (intent: string, patterns: string[], say: string, digit?: number) => ({
  intent,
  patterns: [...patterns, ...(digit === undefined ? [] : [`^${digit}#?$`])],
  say,
});

const nightsPattern = "(\\d{1,2}|one|two|three|four|five|six|seven|a week)";

/** The first rule whose pattern matches answers: the particular comes before the general. */
export const frontDeskRules = [
  {
    intent: "book_quoted",
    patterns: ["^(yes|yeah|yep|please do|go ahead|book it)\\b"],
    slots: [
      {
        name: "name",
        prompt: "With pleasure. What name should the booking be under?",
        pattern: "(?:my name is|name is|i am|i'm|this is|it's) (.{1,80})|(.{1,80})",
      },
    ],
    tool: "book_stay",
    say: "It is booked for {{name}}: {{result.nights}} nights from {{result.arrival}}. Your booking number is {{result.number}}. Is there anything else?",
  },
  {
    intent: "find_room",
    patterns: [
      "\\brooms?\\b.{0,30}\\b(free|available)\\b",
      "\\b(free|available)\\b.{0,20}\\brooms?\\b",
      "\\b(availability|vacanc(y|ies))\\b",
    ],
    slots: [
      { name: "arrival", prompt: "I will look. On which day would you arrive?" },
      { name: "nights", prompt: "And for how many nights?", pattern: nightsPattern },
    ],
    tool: "find_stay",
    say: "{{result.say}} Ask me to book it, and I will quote the stay with its tax.",
  },
  {
    intent: "book_room",
    patterns: [
      "\\b(book|reserve|need|want|like)\\b.{0,40}\\b(room|suite|bed)\\b",
      "\\bmake a (booking|reservation)\\b",
      "^5#?$",
    ],
    slots: [
      { name: "arrival", prompt: "With pleasure. On which day will you arrive?" },
      { name: "nights", prompt: "And for how many nights?", pattern: nightsPattern },
      { name: "guests", prompt: "For how many guests?", pattern: nightsPattern },
    ],
    tool: "quote_stay",
    say: "{{result.say}} Shall I book it?",
  },
  answer(
    "late_check_out",
    [
      "\\b(late|later|extend|how late)\\b.{0,30}\\bcheck(ing)?[ -]?out\\b",
      "\\bcheck(ing)?[ -]?out\\b.{0,20}\\b(late|later)\\b",
    ],
    "Check-out is until eleven. A late check-out until two in the afternoon is possible when the room is free; please ask by nine that morning.",
  ),
  answer(
    "check_out",
    ["\\bcheck(ing)?[ -]?out\\b", "\\b(leave|vacate) (the|my|our) room\\b"],
    "Check-out is until eleven in the morning. You are welcome to leave your bags with us afterwards.",
  ),
  answer(
    "check_in",
    ["\\bcheck(ing)?[ -]?in\\b", "\\b(arrive|arrival|get in)\\b"],
    "Check-in is from three in the afternoon until midnight. If you come later, tell us and we will leave your key in the safe box.",
    1,
  ),
  answer(
    "breakfast",
    ["\\bbreakfast\\b", "\\b(eat|food) in the morning\\b"],
    "Breakfast is from seven to ten thirty on weekdays, and until eleven at weekends, in the garden room on the ground floor.",
    2,
  ),
  answer(
    "wifi",
    ["\\bwi-?\\s?fi\\b", "\\b(internet|wireless|network)\\b"],
    "Wi-Fi is free everywhere in the house. The network is called Frontdesk Guest, and the password is on your key card.",
    3,
  ),
  answer(
    "parking",
    ["\\bpark(ing)?\\b", "\\b(garage|car|charge my|charging station)\\b"],
    "Yes, there is parking under the house, eighteen euros a night, with four charging stations. No reservation is needed.",
    4,
  ),
  answer(
    "pets",
    ["\\b(pet|pets|dog|dogs|cat|cats)\\b"],
    "Dogs and cats are welcome, for fifteen euros a night. They may not come into the breakfast room.",
  ),
  answer(
    "pool_and_gym",
    ["\\b(pool|swim|swimming|gym|sauna|spa|fitness)\\b"],
    "The sauna and the gym are on the top floor, open from six in the morning to ten at night. We have no pool.",
  ),
  answer(
    "restaurant",
    ["\\b(restaurant|dinner|lunch|eat|bar|menu)\\b"],
    "The restaurant serves dinner from six to ten. The bar stays open until one.",
  ),
  answer(
    "directions",
    ["\\b(where are you|address|directions?|find you|airport|station|get there)\\b"],
    "We are five minutes on foot from the central station, and half an hour by train from the airport.",
  ),
  answer(
    "prices",
    ["\\b(price|prices|cost|costs|how much|rate|rates)\\b"],
    "A double room starts at one hundred and twenty euros a night, breakfast included. The city's tax comes on top.",
  ),
  answer(
    "cancel",
    ["\\bcancel(l?ation|l?ing|)\\b", "\\brefund\\b"],
    "You can cancel free of charge until six in the evening of the day before you arrive.",
  ),
  {
    intent: "leave_message",
    patterns: [
      "\\b(leave|take|write down|pass on) (a|my|this) (message|note)\\b",
      "\\b(call|phone|ring) me back\\b",
      "\\b(speak|talk) (to|with) (a|an|the|some) ?(human|person|someone|somebody|manager|receptionist)\\b",
      "^0#?$",
    ],
    slots: [
      { name: "name", prompt: "I'll take a message for the team. What is your name?" },
      { name: "message", prompt: "Thank you, {{name}}. What is your message?" },
    ],
    say: "Thank you, {{name}}. Your message is in the record of this call. Is there anything else?",
  },
  {
    intent: "farewell",
    patterns: ["\\b(good ?bye|bye|hang up|that('s| is) all|nothing else)\\b"],
    say: "Thank you for calling. Have a pleasant stay. Goodbye!",
    tool: "end_call",
  },
  answer("thanks", ["\\b(thanks|thank you|cheers)\\b"], "You're welcome. Is there anything else I can do for you?"),
  answer(
    "who_are_you",
    ["\\b(who|what) are you\\b", "\\bare you (a )?(human|real|robot|bot|machine)\\b"],
    "I'm the automatic front desk of this house. I answer from a set of rules, and I can take a message for a person.",
  ),
  answer(
    "help",
    ["\\bhelp\\b", "\\bwhat can (you|i) (do|ask|say)\\b", "\\boptions\\b", "^9#?$"],
    "Ask me about check-in, breakfast, Wi-Fi, parking, pets, prices or how to find us. I can find, quote and book a room, or take a message.",
  ),
  answer(
    "greeting",
    ["^(hi|hello|hey|good (morning|afternoon|evening|day)|greetings)\\b"],
    "Hello! How can I help you?",
  ),
];

/** Rules and real speech: it works without any vendor. Speech in needs a recognizer, typed text and digits do not. */
export const frontDeskConfig: VoiceAgentConfig = {
  name: "Front desk",
  instructions: "You are the front desk of a small hotel. Answer questions about the house briefly and kindly.",
  welcome_message:
    "Welcome to the front desk. Ask me about check-in, breakfast, Wi-Fi or parking, or press one to four for these. How can I help you?",
  mode: "pipeline",
  llm: {
    provider: "rules",
    options: {
      rules: frontDeskRules,
      fallback:
        "I'm sorry, I have no answer to that. You can ask about check-in, breakfast, Wi-Fi or parking, or leave a message.",
    },
  },
  tts: { provider: "flite", voice: "slt" },
  builtin_tools: ["find_stay", "quote_stay", "book_stay"],
  stays: {
    jurisdiction_code: "IT-RM-ROM",
    currency: "EUR",
    nightly_rate: "120.00",
    rooms: 12,
    property_type: "hotel",
    star_rating: 3,
  },
  end_call_enabled: true,
};

/** Says the caller's own last utterance back, sample for sample. */
export const echoConfig: VoiceAgentConfig = {
  name: "Echo",
  mode: "pipeline",
  stt: { provider: "echo" },
  llm: { provider: "echo" },
  tts: { provider: "echo" },
};
