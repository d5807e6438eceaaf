/** How long anonymous requests of one kind and source are counted before the count is kept. */
export const COUNTED_MS = 60_000

/** How many kinds and sources of anonymous requests are told apart in that time, for each kind of event. */
export const KINDS_COUNTED = 5

/** How many clinicians are told apart among those that are counted together, for each kind of event. */
export const SUBJECTS_COUNTED = 20
