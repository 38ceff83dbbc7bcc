/** Names and icons (24 by 24, as strokes) of kinds of nodes, and of states. */
export const kinds = {
  input: { name: "Input", icon: "M4 12h11m0 0-4-4m4 4-4 4M19 5v14" },
  output: { name: "Output", icon: "M5 5v14M9 12h11m0 0-4-4m4 4-4 4" },
  llm: { name: "Model", icon: "M4 6h16v10h-9l-4 4v-4H4zM8 10h8M8 13h5" },
  condition: { name: "Condition", icon: "M5 12h5m0 0 8-6m-8 6 8 6M14 5.500h4.500V10M14 18.500h4.500V14" },
  approval: { name: "Approval", icon: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4" },
  feedback: { name: "Feedback", icon: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3" },
  http: { name: "HTTP", icon: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M4 12h16M12 4c5 5 5 11 0 16M12 4c-5 5-5 11 0 16" },
  tool: { name: "Tool", icon: "M14 6a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5l-7 7-3-3 7-7a4 4 0 0 1 1-4" },
  template: { name: "Template", icon: "M6 4h12v16H6zM9 8h6M9 12h6M9 16h3" },
  transform: { name: "Transform", icon: "M4 8h12l-3-3m3 3-3 3M20 16H8l3-3m-3 3 3 3" },
  delay: { name: "Delay", icon: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4l3 2" },
};

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
