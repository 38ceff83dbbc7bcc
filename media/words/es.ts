import type { Words } from "./words.ts";

export const es: Words = {
  filler: "Un momento, por favor.",
  apology: "Perdone, no puedo responder en este momento. ¿Podría repetirlo, por favor?",
  farewell: "Lo siento, ahora no puedo continuar con esta llamada. Inténtelo de nuevo más tarde. Adiós.",
  handOver: "Lo siento, no puedo continuar con esta llamada. Le paso con alguien que puede ayudarle.",
  stillThere: "¿Sigue ahí?",
  backchannels: [
    ..."mhm mm hm hmm ajá aja ah oh sí si ya ok okay vale bien bueno claro exacto perfecto genial cierto correcto".split(
      " ",
    ),
    ...["de acuerdo", "muy bien", "por supuesto", "claro que sí", "ya veo", "entiendo", "eso es", "está bien"],
  ],
  answers: [
    ..."sí si ok okay vale bien bueno claro exacto perfecto genial cierto correcto mhm ajá".split(" "),
    ...["de acuerdo", "muy bien", "por supuesto", "claro que sí", "eso es", "está bien"],
  ],
  stops: ["para", "pare", "espera", "espere", "no", "perdón", "perdone", "un momento", "hola"],
  yes: [
    ..."sí si ok okay vale claro exacto correcto perfecto adelante hágalo hazlo".split(" "),
    ...["de acuerdo", "por supuesto", "claro que sí", "está bien", "muy bien"],
  ],
  no: "no nunca jamás espera espere cancela cancele incorrecto tampoco nada mejor".split(" "),
  goesOn: "y o pero porque si que cuando el la los las un una mi mis eh este".split(" "),
  digits: "cero uno dos tres cuatro cinco seis siete ocho nueve".split(" "),
};
