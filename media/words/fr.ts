import type { Words } from "./words.ts";

export const fr: Words = {
  filler: "Un instant, s'il vous plaît.",
  apology: "Excusez-moi, je n'arrive pas à répondre. Pouvez-vous répéter, s'il vous plaît ?",
  farewell: "Je suis désolé, je ne peux pas poursuivre cet appel. Veuillez réessayer plus tard. Au revoir.",
  handOver:
    "Je suis désolé, je ne peux pas poursuivre cet appel. Je vous mets en relation avec quelqu'un qui pourra vous aider.",
  stillThere: "Êtes-vous toujours là ?",
  backchannels: [
    ..."mhm mm hm hmm ah oh oui ouais ok okay d'accord bien bon voilà exactement parfait super certes entendu".split(
      " ",
    ),
    ...["ah bon", "ah oui", "bien sûr", "très bien", "je vois", "je comprends", "c'est ça", "tout à fait", "ça marche"],
  ],
  answers: [
    ..."oui ouais ok okay d'accord bien voilà exactement parfait super entendu mhm".split(" "),
    ...["ah oui", "bien sûr", "très bien", "c'est ça", "tout à fait", "ça marche"],
  ],
  stops: ["stop", "arrêtez", "attendez", "attends", "non", "pardon", "un instant", "excusez-moi", "allô"],
  yes: [
    ..."oui ouais ok okay d'accord volontiers exactement parfait absolument certainement".split(" "),
    ...["bien sûr", "tout à fait", "ça marche", "allez-y", "vas-y", "c'est ça"],
  ],
  no: "non pas jamais stop arrêtez attendez attends annulez faux plutôt aucun aucune".split(" "),
  goesOn: "et ou mais parce que si quand le la les un une des mon ma mes euh heu ben".split(" "),
  digits: "zéro un deux trois quatre cinq six sept huit neuf".split(" "),
};
