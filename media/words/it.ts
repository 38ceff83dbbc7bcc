import type { Words } from "./words.ts";

export const it: Words = {
  filler: "Un momento, per favore.",
  apology: "Mi scusi, non riesco a rispondere. Può ripetere, per favore?",
  farewell: "Mi dispiace, ora non posso continuare questa chiamata. Riprovi più tardi. Arrivederci.",
  handOver: "Mi dispiace, non posso continuare questa chiamata. La metto in contatto con qualcuno che può aiutarla.",
  stillThere: "È ancora in linea?",
  backchannels: [
    ..."mhm mm hm hmm ah oh eh sì si già ok okay bene certo esatto giusto perfetto vero chiaro capito ottimo".split(
      " ",
    ),
    ...["va bene", "d'accordo", "ho capito", "molto bene", "come no", "certo che sì", "capisco"],
  ],
  answers: [
    ..."sì si ok okay bene certo esatto giusto perfetto vero ottimo mhm".split(" "),
    ...["va bene", "d'accordo", "molto bene", "come no", "certo che sì"],
  ],
  stops: ["stop", "fermo", "aspetta", "aspetti", "no", "scusi", "scusa", "un momento", "pronto"],
  yes: [
    ..."sì si ok okay certo esatto giusto perfetto volentieri procedi proceda".split(" "),
    ...["va bene", "d'accordo", "certo che sì", "come no", "lo faccia"],
  ],
  no: "no non mai niente fermo ferma aspetta aspetti annulla annulli sbagliato piuttosto".split(" "),
  goesOn: "e o ma perché se che quando il lo la i gli le un una mio mia ehm eh".split(" "),
  digits: "zero uno due tre quattro cinque sei sette otto nove".split(" "),
};
