import type { Words } from "./words.ts";

export const en: Words = {
  filler: "One moment, please.",
  apology: "I'm sorry, I'm having trouble answering. Could you say that again?",
  farewell: "I'm sorry, I can't go on with this call right now. Please try again later. Goodbye.",
  handOver: "I'm sorry, I can't go on with this call. I'm putting you through to somebody who can help.",
  stillThere: "Are you still there?",
  backchannels: [
    ..."mhm mm mm-hm mm-hmm mmhm mmm hm hmm uh-huh uhuh uh huh ah aha oh yeah yep yup yes ok okay right sure".split(
      " ",
    ),
    ..."alright exactly indeed true good great fine nice cool wow really".split(" "),
    ...["i see", "got it", "of course", "all right", "oh okay", "makes sense", "go on", "i understand"],
  ],
  answers: [
    ..."yes yeah yep yup ok okay right sure alright exactly true good great fine mhm mm-hm mm-hmm uh-huh".split(" "),
    ...["of course", "all right", "indeed"],
  ],
  stops: ["stop", "wait", "hold on", "hang on", "no", "sorry", "excuse me", "one moment", "hello"],
  yes: [
    ..."yes yeah yep yup sure okay ok absolutely definitely certainly correct exactly".split(" "),
    ...["go ahead", "do it", "of course", "all right", "alright", "sounds good", "that is right", "that's right"],
  ],
  no: "no not nope don't never wait stop cancel wrong hold later instead".split(" "),
  goesOn: "and or but because if so that when the a an my your our um uhm uh er erm hmm".split(" "),
  digits: "zero oh one two three four five six seven eight nine".split(" "),
};
