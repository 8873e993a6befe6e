// Whose a piece of state is, once several worker threads serve one configuration. Aliases without effect: the type says
// who may touch it.

/** One thread's own: made in it and never seen by another. What the process shows of it is the sum of all. */
export type OfWorker<T> = T;

/**
 * One for the process: workers hear of changes, or ask; with several threads it lies in shared memory or on the control
 * thread.
 */
export type OfProcess<T> = T;
