/** Any server that speaks OpenAI's API: the same twin. */
export { startTwin } from "../openai/twin.ts";
