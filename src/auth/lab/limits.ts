/** Clients that the lab registered for launch URLs. */
export const MAX_CLIENTS = 100

/** Apps and users that a picker lists at once. A search finds the others. */
export const FOUND = 20

/** Patients that the error for an unknown one names. */
export const SUGGESTED = 3
