/** How long anonymous requests of one kind and source are counted before the count is stored. */
export const COUNTED_MS = 60_000

/** Kinds and sources of anonymous requests that are counted separately in that time, for each kind of event. */
export const KINDS_COUNTED = 5

/** Clinicians with a separate count among the rest, for each kind of event. */
export const SUBJECTS_COUNTED = 20
