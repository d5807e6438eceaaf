/** How long anonymous requests of one kind and source are counted before the count is kept. */
export const COUNTED_MS = 60_000

/** How many kinds and sources of anonymous requests are counted separately in that time, for each kind of event. */
export const KINDS_COUNTED = 5

/** How many clinicians have a separate count among the rest, for each kind of event. */
export const SUBJECTS_COUNTED = 20
