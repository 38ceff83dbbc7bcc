/** What the pipeline itself says in a call, and what it knows of a language to take turns in it. */

/** Of one language. Lists are in lower case, without punctuation but apostrophes and hyphens. */
export interface Words {
  /** Said when an answer takes long. */
  filler: string;
  /** Said when an answer failed … */
  apology: string;
  /** … and when the call ends because it fails again and again. */
  farewell: string;
  /** … or is handed on to a person. */
  handOver: string;
  /** Asked after half of the idle time. */
  stillThere: string;
  /** Sounds and words of a listener, who does not want the floor. */
  backchannels: readonly string[];
  /** Backchannels that answer a question. */
  answers: readonly string[];
  /** What takes the floor from the agent, however few words an agent's configuration lets pass. */
  stops: readonly string[];
  /** Says that something is to be done, where nothing of `no` stands beside it. */
  yes: readonly string[];
  /** Takes back, puts off or forbids. Single words. */
  no: readonly string[];
  /** Conjunctions, articles and hesitations: who ends with one has not finished. */
  goesOn: readonly string[];
  /** How numbers are told digit by digit. */
  digits: readonly string[];
}
