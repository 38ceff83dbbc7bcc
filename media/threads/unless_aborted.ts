/**
 * What `promise` gives, unless `signal` is aborted before: what it gives then is left behind.
 * @throws Error when it was aborted
 */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // It may still reject later: nobody waits for it any more.
  promise.catch(() => {});
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    const onAbort = () => reject(new Error("aborted"));
    signal.addEventListener("abort", onAbort, { once: true });
    stop = () => signal.removeEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    stop();
  }
}
