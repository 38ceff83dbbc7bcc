import type { Words } from "./words.ts";

export const nl: Words = {
  filler: "Een moment, alstublieft.",
  apology: "Sorry, ik kan nu geen antwoord geven. Kunt u dat herhalen, alstublieft?",
  farewell: "Het spijt me, ik kan dit gesprek nu niet voortzetten. Probeert u het later nog eens. Tot ziens.",
  handOver: "Het spijt me, ik kan dit gesprek niet voortzetten. Ik verbind u door met iemand die u kan helpen.",
  stillThere: "Bent u er nog?",
  backchannels: [
    ..."mhm mm hm hmm aha ah oh ja jaja jawel ok oké okay goed precies juist klopt prima mooi inderdaad duidelijk".split(
      " ",
    ),
    ...["dat klopt", "ja hoor", "ik snap het", "ik begrijp het", "heel goed", "is goed", "natuurlijk"],
  ],
  answers: [
    ..."ja jaja jawel ok oké okay goed precies juist klopt prima inderdaad natuurlijk mhm".split(" "),
    ...["dat klopt", "ja hoor", "heel goed", "is goed"],
  ],
  stops: ["stop", "wacht", "wacht even", "nee", "sorry", "pardon", "een moment", "momentje", "hallo"],
  yes: [
    ..."ja jaja jawel ok oké okay graag prima precies juist klopt natuurlijk akkoord zeker".split(" "),
    ...["ja hoor", "is goed", "dat klopt", "doe maar"],
  ],
  no: "nee niet geen nooit stop wacht annuleer fout verkeerd liever later".split(" "),
  goesOn: "en of maar omdat als dat wanneer de het mijn uh uhm ehm eh".split(" "),
  digits: "nul een twee drie vier vijf zes zeven acht negen".split(" "),
};
