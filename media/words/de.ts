import type { Words } from "./words.ts";

export const de: Words = {
  filler: "Einen Moment, bitte.",
  apology: "Entschuldigung, ich kann gerade nicht antworten. Können Sie das bitte wiederholen?",
  farewell:
    "Es tut mir leid, ich kann dieses Gespräch gerade nicht fortsetzen. Bitte versuchen Sie es später noch einmal. Auf Wiederhören.",
  handOver:
    "Es tut mir leid, ich kann dieses Gespräch nicht fortsetzen. Ich verbinde Sie mit jemandem, der Ihnen weiterhilft.",
  stillThere: "Sind Sie noch da?",
  backchannels: [
    ..."mhm mm hm hmm aha ah ach oh ja jaja jo jawohl ok okay gut genau richtig stimmt klar schön prima super eben".split(
      " ",
    ),
    ...["ach so", "alles klar", "na klar", "sehr gut", "ja genau", "ich verstehe", "verstehe", "in ordnung"],
  ],
  answers: [
    ..."ja jaja jo jawohl ok okay gut genau richtig stimmt klar prima super mhm".split(" "),
    ...["alles klar", "na klar", "sehr gut", "ja genau", "in ordnung"],
  ],
  stops: ["stopp", "stop", "halt", "warte", "warten sie", "moment", "nein", "entschuldigung", "hallo"],
  yes: [
    ..."ja jaja jo jawohl jep gerne okay ok klar genau richtig sicher einverstanden stimmt".split(" "),
    ...["na klar", "alles klar", "auf jeden fall", "in ordnung", "machen sie das", "mach das"],
  ],
  no: "nein nee nö nicht kein keine keinen nie stopp stop halt warten warte moment falsch abbrechen später lieber".split(
    " ",
  ),
  goesOn: "und oder aber weil wenn dass denn der die das den dem ein eine einen mein meine ähm äh hm also".split(" "),
  digits: "null eins zwei zwo drei vier fünf sechs sieben acht neun".split(" "),
};
