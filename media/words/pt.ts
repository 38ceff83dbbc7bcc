import type { Words } from "./words.ts";

export const pt: Words = {
  filler: "Um momento, por favor.",
  apology: "Desculpe, não estou a conseguir responder. Pode repetir, por favor?",
  farewell: "Lamento, não posso continuar esta chamada agora. Tente novamente mais tarde. Adeus.",
  handOver: "Lamento, não posso continuar esta chamada. Vou passar a alguém que o pode ajudar.",
  stillThere: "Ainda está aí?",
  backchannels: [
    ..."mhm mm hm hmm ahã aham ah oh sim é pois ok okay bem bom claro exato certo perfeito ótimo tá".split(" "),
    ...["está bem", "tudo bem", "com certeza", "muito bem", "pois é", "entendo", "entendi", "estou a ver", "de acordo"],
  ],
  answers: [
    ..."sim é pois ok okay bem bom claro exato certo perfeito ótimo tá mhm aham".split(" "),
    ...["está bem", "tudo bem", "com certeza", "muito bem", "de acordo"],
  ],
  stops: ["pare", "para", "espere", "espera", "não", "desculpe", "um momento", "alô", "olá"],
  yes: [
    ..."sim ok okay claro certo exato perfeito correto confirmo".split(" "),
    ...["com certeza", "está bem", "tudo bem", "de acordo", "pode ser", "pode sim"],
  ],
  no: "não nao nunca espere espera cancele cancela errado nenhum nenhuma melhor".split(" "),
  goesOn: "e ou mas porque se que quando o os as um uma meu minha hum eh".split(" "),
  digits: "zero um dois três quatro cinco seis meia sete oito nove".split(" "),
};
