/** Words for states of nodes and runs. */
export const stateNames = {
  idle: "not reached",
  running: "at work",
  waiting: "waits for a person",
  retrying: "about to try again",
  succeeded: "done",
  skipped: "skipped",
  failed: "failed",
};

export const statusNames = {
  pending: "Queued",
  running: "Running",
  awaiting_input: "Needs you",
  succeeded: "Succeeded",
  failed: "Failed",
  canceled: "Canceled",
};
